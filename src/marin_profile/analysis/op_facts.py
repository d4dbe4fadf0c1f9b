"""What is known of each op, from its stats, its HLO text and the HLO protos, in this order.

Contract: one OpFacts per row of the Timeline's op table, at the same index. An instruction of an
HLO proto is looked up by program (see `programs`) and name, since module names repeat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.analysis.costs import UNKNOWN_COSTS, Costs, Module, costs_of
from marin_profile.analysis.fusions import largest_in, other_scopes
from marin_profile.analysis.loop_bodies import in_branches, loops_of
from marin_profile.analysis.planes import GPU, plane_kind
from marin_profile.analysis.programs import registered_programs
from marin_profile.base.columns import distinct
from marin_profile.events.classify import (
    COMPUTE,
    GROUP_COMPUTE,
    MOVES,
    UNKNOWN,
    UNKNOWN_TRANSFER,
    OpClass,
    canonical_name,
    classify_op,
    kind_group,
    only_moves,
)
from marin_profile.events.replica_groups import Groups, groups_in_text, pairs_in_text
from marin_profile.events.scopes import BACKWARD, OPTIMIZER, OTHER, is_update, parse_scope
from marin_profile.events.shapes import arrays_in, shape_signature
from marin_profile.events.timeline import HloInstruction, Int64s, Op, Timeline


@dataclass(frozen=True, slots=True)
class Product:
    """bits: of an element of the widest operand, 0 where there is no product or its operands are
    not known; from_narrow: some operand is converted from fewer bits."""

    bits: int = 0
    from_narrow: bool = False


NO_PRODUCT = Product()


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What is known of one op of the op table. `program_id` and `module` identify its program.
    in_loop, in_branch: it stands in the body of a loop, or in a branch, as far as the file shows.
    product: of what its dot, convolution or library product multiplies, or of what the one in a
    fusion does. only_moves: it changes layout, order or padding, and computes nothing. fused_with:
    the other scopes that a fusion holds, without the ops' own names. loops: see `loop_bodies`."""

    name: str
    hlo_op: str
    module: str
    program_id: int | None
    op_class: OpClass
    hlo_category: str
    shape: str
    scope: tuple[str, ...]
    pass_name: str
    source: str
    costs: Costs
    operands: tuple[str, ...]
    replica_groups: Groups
    source_target_pairs: Groups
    has_hlo: bool
    in_loop: bool = False
    in_branch: bool = False
    product: Product = NO_PRODUCT
    only_moves: bool = False
    fused_with: tuple[tuple[str, ...], ...] = ()
    loops: tuple[str, ...] = ()

    @property
    def canonical(self) -> str:
        return canonical_name(self.name)

    @property
    def kind(self) -> str:
        return self.op_class.kind

    @property
    def group(self) -> int:
        return kind_group(self.op_class.kind)

    @property
    def sort_key(self) -> tuple[str, ...]:
        """By name, then by all that can tell ops of one name apart."""
        return (
            self.name,
            self.hlo_op,
            self.module,
            "" if self.program_id is None else f"{self.program_id:020d}",
            self.kind,
            self.op_class.role,
            self.hlo_category,
            self.shape,
            self.scope_path,
            self.pass_name,
            self.source,
            repr((self.costs, self.operands, self.replica_groups)),
        )

    @property
    def scope_path(self) -> str:
        return "/".join(self.scope)


def name_ranks(facts: tuple[OpFacts, ...]) -> Int64s:
    """The place of each op in the order of names; of one name, by program."""
    keys = [
        (fact.name, fact.hlo_op, fact.module, -1 if fact.program_id is None else fact.program_id)
        for fact in facts
    ]
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.int64)


def op_facts(timeline: Timeline) -> tuple[OpFacts, ...]:
    line_names = _line_names_by_op(timeline)
    names = {program_id: timeline.hlo_modules.get(program_id, "") for program_id in timeline.hlo}
    programs = registered_programs(timeline.ops, names)
    looped = {program_id: loops_of(module) for program_id, module in timeline.hlo.items()}
    branched = {program_id: in_branches(module) for program_id, module in timeline.hlo.items()}

    def facts_of(index: int, op: Op) -> OpFacts:
        """Names of modules and of ops repeat: an op is looked up by program and name."""
        program_id = None if op.program_id is None else programs.get((op.module, op.program_id))
        module = {} if program_id is None else timeline.hlo[program_id]
        loops = {} if program_id is None else looped[program_id]
        branches = frozenset() if program_id is None else branched[program_id]
        return _facts(op, module, line_names.get(index), loops, branches)

    facts = tuple(facts_of(index, op) for index, op in enumerate(timeline.ops))
    return _with_kinds_of_starts(facts)


# Kinds that a done may have because it does not say what it waits for.
_VAGUE = frozenset({COMPUTE, UNKNOWN, UNKNOWN_TRANSFER})


def _with_kinds_of_starts(facts: tuple[OpFacts, ...]) -> tuple[OpFacts, ...]:
    """A done that does not say what it waits for takes the kind of its start: between which
    memories data moves, or on which processor the operation runs."""
    starts = {
        (fact.name, fact.module, fact.program_id): fact
        for fact in facts
        if fact.op_class.role == "start" and fact.kind != COMPUTE
    }

    def like_its_start(fact: OpFacts) -> OpFacts:
        if fact.op_class.role != "done" or fact.kind not in _VAGUE:
            return fact
        for operand in fact.operands:
            start = starts.get((operand, fact.module, fact.program_id))
            if start is not None:
                op_class = replace(fact.op_class, kind=start.kind)
                return replace(fact, op_class=op_class)
        return fact

    return tuple(map(like_its_start, facts)) if starts else facts


def _line_names_by_op(timeline: Timeline) -> dict[int, str]:
    """For ops on GPU stream lines: one such line's name (stream names tell memcpy streams)."""
    names: dict[int, str] = {}
    for line in timeline.lines:
        if plane_kind(timeline.planes[line.plane]) == GPU and line.count:
            ops = timeline.op[line.first : line.first + line.count]
            for op in distinct(ops, len(timeline.ops)).tolist():
                names[op] = min(names.get(op, line.name), line.name)
    return names


def _facts(
    op: Op,
    module: Module,
    stream: str | None,
    looped: Mapping[str, tuple[str, ...]],
    branched: frozenset[str],
) -> OpFacts:
    instruction = module.get(op.hlo_op or op.name)
    op_class = classify_op(
        op.name if stream is not None else op.hlo_op or op.name,
        hlo_op=op.hlo_op,
        category=op.category,
        opcode=instruction.opcode if instruction else "",
        wrapped_opcode=instruction.wrapped_opcode if instruction else "",
        thread=instruction.execution_thread if instruction else "",
        long_name=op.long_name,
        shape=op.shape,
        memcpy_details=op.memcpy_details,
        line_name=stream or "",
        is_kernel=stream is not None,
    )
    scope, pass_name = _scope(op, instruction, module)
    return OpFacts(
        name=op.name,
        hlo_op=op.hlo_op,
        module=op.module,
        program_id=op.program_id,
        op_class=op_class,
        hlo_category=op.category,
        shape=shape_signature(op.shape or (instruction.shape if instruction else ""), op.long_name),
        scope=scope,
        pass_name=pass_name,
        source=op.source,
        costs=_costs(op, op_class, instruction, module),
        operands=_operands(op, instruction),
        replica_groups=groups_in_text(op.long_name)
        or (instruction.replica_groups if instruction else ()),
        source_target_pairs=pairs_in_text(op.long_name)
        or (instruction.source_target_pairs if instruction else ()),
        has_hlo=bool(op.hlo_op or op.long_name or op.category),
        loops=looped.get(op.hlo_op or op.name, ()),
        in_loop=(op.hlo_op or op.name) in looped
        or any("while/body" in hint for hint in _hints(op, instruction)),
        in_branch=(op.hlo_op or op.name) in branched
        or any("cond/branch_" in hint for hint in _hints(op, instruction)),
        product=_product(op, instruction, module),
        only_moves=_only_moves(op, instruction, module),
        fused_with=other_scopes(scope, instruction, module) if scope else (),
    )


def _costs(op: Op, op_class: OpClass, instruction: HloInstruction | None, module: Module) -> Costs:
    """A container's work is that of the ops inside it."""
    if op_class.is_container:
        return UNKNOWN_COSTS
    is_compute = kind_group(op_class.kind) == GROUP_COMPUTE
    return costs_of(op, instruction if is_compute else None, module)


def _scope(
    op: Op, instruction: HloInstruction | None, module: Module
) -> tuple[tuple[str, ...], str]:
    """A fusion's is that of the op in it that takes the time, see `fusions`."""
    products = [one.op_name for one in _products_in(instruction, module) if one.op_name]
    inside = products[:1] or [largest_in(instruction, module)]
    for hint in (*inside, *_hints(op, instruction)):
        parsed = parse_scope(hint)
        if parsed:
            return parsed
    return (), OTHER


def _hints(op: Op, instruction: HloInstruction | None) -> list[str]:
    return [*op.scope_hints, instruction.op_name if instruction else ""]


def _products_in(instruction: HloInstruction | None, module: Module) -> list[HloInstruction]:
    """The dots and convolutions that a fusion holds."""
    inner = [
        module.get(name)
        for computation in (instruction.called if instruction else ())
        for name in computation.instructions
    ]
    return [one for one in inner if one is not None and _is_product(one)]


def _is_product(instruction: HloInstruction) -> bool:
    return instruction.contracting is not None or instruction.convolution is not None


# What stands beside the moves in a fusion and is no work.
_NO_WORK = frozenset({"parameter", "constant", "bitcast", "tuple", "get-tuple-element"})


def _only_moves(op: Op, instruction: HloInstruction | None, module: Module) -> bool:
    if instruction is None or not instruction.called:
        return only_moves(op.hlo_op or op.name, op.category)
    inside = {
        module[name].opcode
        for computation in instruction.called
        for name in computation.instructions
        if name in module
    }
    return bool(inside & MOVES) and inside <= MOVES | _NO_WORK


_PRODUCT_TEXT = re.compile(r"\s(?:dot|convolution)\((.*)")
# What hands an operand on as it is, and how far it is followed.
_HANDS_ON = frozenset({"bitcast", "copy", "reshape", "transpose", "broadcast"})
_FOLLOWED = 4


def _product(op: Op, instruction: HloInstruction | None, module: Module) -> Product:
    own = [instruction] if instruction is not None and _is_product(instruction) else []
    products = own or _products_in(instruction, module)
    if products:
        # A custom call has a workspace and scales besides its two factors.
        factors = [_origin(module.get(name), module) for name in products[0].operands[:2]]
        widths = [_bits(factor.shape) for factor, _ in factors if factor is not None]
        return Product(max(widths, default=0), any(narrow for _, narrow in factors))
    if instruction is None:
        found = _PRODUCT_TEXT.search(op.long_name)
        return Product(_bits(found.group(1))) if found else NO_PRODUCT
    return NO_PRODUCT


def _origin(operand: HloInstruction | None, module: Module) -> tuple[HloInstruction | None, bool]:
    """An operand, and whether it is converted from fewer bits."""
    at = operand
    for _ in range(_FOLLOWED):
        if at is None or not at.operands:
            break
        source = module.get(at.operands[0])
        if at.opcode == "convert" and source is not None:
            return operand, 0 < _bits(source.shape) < _bits(at.shape)
        if at.opcode not in _HANDS_ON:
            break
        at = source
    return operand, False


def _bits(shapes: str) -> int:
    """Of an element of the widest array."""
    return max((array.bits or 0 for array in arrays_in(shapes)), default=0)


_OPERAND = re.compile(r"%([\w.\-]+)")


def _operands(op: Op, instruction: HloInstruction | None) -> tuple[str, ...]:
    if instruction and instruction.operands:
        return instruction.operands
    _, _, text = op.long_name.partition(" = ")
    return tuple(_OPERAND.findall(text))[:8]


def with_update_pass(facts: tuple[OpFacts, ...], used: set[int]) -> tuple[OpFacts, ...]:
    """In programs with a backward pass, update arithmetic outside the loss is the optimizer's."""
    trained = {
        (facts[i].module, facts[i].program_id) for i in used if facts[i].pass_name == BACKWARD
    }
    return tuple(
        replace(fact, pass_name=OPTIMIZER)
        if fact.scope
        and (fact.module, fact.program_id) in trained
        and is_update(fact.scope, fact.pass_name)
        else fact
        for fact in facts
    )
