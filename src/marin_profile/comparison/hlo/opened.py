"""A program with its fusions opened: what is computed, from what, and which op of a trace does it.

Contract
* A step is one primitive: what only passes values on (tuples, bitcasts, calls, fusions, the done of
  an async pair) is none; whoever takes such a value takes it from where it was made. A computation
  that is called from several places has its primitives once for each.
* The value that a loop carries is a step of its own, made from its first value; so is what leaves
  the loop, made from that and from what the body makes of it. So the order in which values are
  carried plays no part.
* `unit` is the op of the trace that does the step: the fusion around it, or the instruction itself.
* Steps stand behind those that they take values from, otherwise in the order of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeAlias

from marin_profile.events.hlo_program import HloNode, HloProgram

# A call graph may double with each level.
MOST_STEPS = 200_000
DEEPEST = 200
ASYNC = "async"
LOOP = "while"
LOOP_VALUE, LOOP_RESULT, BRANCH_RESULT = "loop-value", "loop-result", "branch-result"
PARAMETER, CONSTANT = "parameter", "constant"

_PASSES = frozenset(
    {"bitcast", "get-tuple-element", "tuple", "domain", "opt-barrier", "add-dependency"}
)
_CALLS = frozenset({"fusion", "call", "async-start"})
_ENDS = frozenset(
    {"async-done", "async-update", "all-reduce-done", "all-gather-done", "copy-done"}
    | {"collective-permute-done", "send-done", "recv-done"}
)
_STARTS = {
    f"{opcode}-start": opcode
    for opcode in ("all-reduce", "all-gather", "collective-permute", "copy")
}


class TooLargeError(Exception):
    """The program opens into more steps than can be compared."""


@dataclass(frozen=True, slots=True)
class Step:
    """A primitive. node: its instruction; shape and layout are those of what it makes.
    computes: what it does to its operands, without shapes. loops: the loops around it, the
    outermost first. is_async: it runs beside others."""

    at: int
    node: HloNode
    opcode: str
    shape: str
    layout: str
    computes: str
    operands: tuple[int, ...]
    unit: str
    loops: tuple[str, ...] = ()
    is_async: bool = False


@dataclass(frozen=True)
class Opened:
    """users: of each step, those that take what it makes. ends: the op that ends an async pair ->
    the unit that began it. results: the steps that make what the program returns."""

    program: HloProgram
    steps: tuple[Step, ...]
    users: tuple[tuple[int, ...], ...]
    ends: dict[str, str]
    results: tuple[int, ...]


def open_program(program: HloProgram, timed: Container[str]) -> Opened:
    """`timed`: names that the trace has ops of: a call with such a name is one unit. Raises
    TooLargeError."""
    opening = _Opening(program, timed)
    with _deep_recursion():
        result = opening.block(program.entry, None, "", (), 0)
    steps = tuple(opening.steps)
    users: list[list[int]] = [[] for _ in steps]
    for step in steps:
        for operand in dict.fromkeys(step.operands):
            users[operand].append(step.at)
    return Opened(
        program, steps, tuple(map(tuple, users)), opening.ends, tuple(dict.fromkeys(_flat(result)))
    )


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Tuples in tuples and calls in calls are walked by recursion, DEEPEST levels at most."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20 * DEEPEST))
    try:
        yield
    except RecursionError as error:
        raise TooLargeError from error
    finally:
        sys.setrecursionlimit(before)


# What an instruction stands for: a step, or a tuple of such.
Value: TypeAlias = "int | tuple[Value, ...]"


@dataclass
class _Opening:
    program: HloProgram
    timed: Container[str]
    steps: list[Step] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    opened: int = 0

    def block(
        self,
        block_id: int,
        arguments: Sequence[Value] | None,
        unit: str,
        loops: tuple[str, ...],
        depth: int,
    ) -> Value:
        """The value of a computation's root; `unit` is the fusion around it, if any."""
        block = self.program.blocks.get(block_id)
        if block is None or depth > DEEPEST:
            return ()
        self.opened += 1
        if self.opened > MOST_STEPS:  # calls without steps may double with each level too
            raise TooLargeError
        values: dict[str, Value] = {}
        for name in _in_order(block.instructions, self.program):
            node = self.program.nodes[name]
            taken = [values.get(operand, ()) for operand in node.operands]
            values[name] = self._value(node, taken, arguments, unit, loops, depth)
        return values.get(block.root, ())

    def _value(
        self,
        node: HloNode,
        taken: list[Value],
        arguments: Sequence[Value] | None,
        unit: str,
        loops: tuple[str, ...],
        depth: int,
    ) -> Value:
        opcode = node.opcode
        if opcode == PARAMETER and arguments is not None:
            return arguments[node.number] if node.number < len(arguments) else ()
        if opcode == "tuple":
            return tuple(taken)
        if opcode in _PASSES and taken:
            return self._passed(node, taken, unit, loops)
        if opcode in _ENDS and taken:
            return self._ended(node, taken[0])
        if opcode in _CALLS and node.called:
            around = unit or (node.name if opcode != "call" or node.name in self.timed else "")
            first = len(self.steps)
            result = self.block(node.called[0], taken, around, loops, depth + 1)
            if opcode == "async-start":
                for at in range(first, len(self.steps)):
                    self.steps[at] = replace(self.steps[at], is_async=True)
            return result
        if opcode == LOOP and len(node.called) == 2 and taken:
            return self._loop(node, taken[0], unit, loops, depth)
        if opcode == "conditional" and node.called:
            return self._branches(node, taken, unit, loops, depth)
        own = self._step(node, _flat(taken), unit, loops)
        return own

    def _passed(
        self, node: HloNode, taken: list[Value], unit: str, loops: tuple[str, ...]
    ) -> Value:
        whole = taken[0]
        if node.opcode != "get-tuple-element":
            return whole
        if isinstance(whole, tuple):
            return whole[node.number] if node.number < len(whole) else ()
        step = self.steps[whole]
        if step.node.opcode in _STARTS:  # of a pair, what the done gives
            return whole
        return self._step(node, [whole], unit or step.unit, loops)

    def _ended(self, node: HloNode, begun: Value) -> Value:
        """A done is what its start makes."""
        at = _flat([begun])
        if at:
            start = self.steps[at[0]]
            self.ends[node.name] = start.unit
            if start.opcode != start.node.opcode and len(at) == 1:
                self.steps[at[0]] = replace(start, shape=node.shape, layout=node.layout)
        return begun

    def _loop(
        self, node: HloNode, first: Value, unit: str, loops: tuple[str, ...], depth: int
    ) -> Value:
        inside = (*loops, node.name)
        carried = self._each(LOOP_VALUE, node, (first,), unit or node.name, inside)
        # `while` names its condition and its body; which is which tells the root's shape.
        roots = [self.block(called, [carried], unit, inside, depth + 1) for called in node.called]
        is_body = [_is_like(root, carried) for root in roots]
        body = roots[0] if is_body[0] and not is_body[1] else roots[1]
        condition = roots[1] if body is roots[0] else roots[0]
        turned = self._add(
            node,
            "while",
            "",
            "",
            f"while {node.trips}",
            (*_flat([condition]),),
            unit or node.name,
            loops,
        )
        return self._each(LOOP_RESULT, node, (carried, body), unit or node.name, loops, turned)

    def _branches(
        self, node: HloNode, taken: list[Value], unit: str, loops: tuple[str, ...], depth: int
    ) -> Value:
        roots = [
            self.block(called, [argument], unit, loops, depth + 1)
            for called, argument in zip(node.called, taken[1:], strict=False)
        ]
        chosen = self._step(node, _flat(taken[:1]), unit, loops)
        if not roots:
            return chosen
        return self._each(BRANCH_RESULT, node, tuple(roots), unit or node.name, loops, chosen)

    def _each(
        self,
        opcode: str,
        node: HloNode,
        values: tuple[Value, ...],
        unit: str,
        loops: tuple[str, ...],
        *also: int,
    ) -> Value:
        """A step for each single value, made from those in the same place of all `values`."""
        first = values[0]
        if isinstance(first, tuple):
            others = [
                value
                if isinstance(value, tuple) and len(value) == len(first)
                else (value,) * len(first)
                for value in values[1:]
            ]
            return tuple(
                self._each(opcode, node, parts, unit, loops, *also)
                for parts in zip(first, *others, strict=True)
            )
        made_from = _flat(values)
        like = self.steps[made_from[0]] if made_from else None
        shape, layout = (like.shape, like.layout) if like else ("", "")
        carried = replace(node, opcode=opcode)
        return self._add(carried, opcode, shape, layout, opcode, (*made_from, *also), unit, loops)

    def _step(
        self,
        node: HloNode,
        operands: Sequence[int],
        unit: str,
        loops: tuple[str, ...],
    ) -> int:
        opcode = _STARTS.get(node.opcode, node.opcode)
        applied = map(self._digest, node.called)
        number = node.number if opcode != PARAMETER else 0
        computes = " ".join(
            map(str, (opcode, node.attributes, node.literal, node.target, number, *applied))
        )
        at = self._add(
            node,
            opcode,
            node.shape,
            node.layout,
            computes,
            tuple(operands),
            unit or node.name,
            loops,
        )
        if opcode != node.opcode:
            self.steps[at] = replace(self.steps[at], is_async=True)
        return at

    def _add(
        self,
        node: HloNode,
        opcode: str,
        shape: str,
        layout: str,
        computes: str,
        operands: tuple[int, ...],
        unit: str,
        loops: tuple[str, ...],
    ) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise TooLargeError
        at = len(self.steps)
        self.steps.append(Step(at, node, opcode, shape, layout, computes, operands, unit, loops))
        return at

    def _digest(self, block_id: int) -> str:
        """Of a computation that a step applies to elements: by what it computes alone."""
        if block_id not in self.digests:
            self.digests[block_id] = ""
            block = self.program.blocks.get(block_id)
            own: dict[str, str] = {}
            for name in _in_order(block.instructions, self.program) if block else ():
                node = self.program.nodes[name]
                parts = (
                    node.opcode,
                    node.shape,
                    node.attributes,
                    node.literal,
                    node.number,
                    *(own.get(operand, "") for operand in node.operands),
                    *map(self._digest, node.called),
                )
                own[name] = digest(parts)
            self.digests[block_id] = own.get(block.root, "") if block else ""
        return self.digests[block_id]


def _in_order(names: Sequence[str], program: HloProgram) -> list[str]:
    """Operands first, which is how XLA writes them; damage may not."""
    placed: dict[str, None] = {}
    inside = frozenset(names)
    for name in names:
        stack = [name]
        seen: set[str] = set()
        while stack:
            one = stack[-1]
            left = [
                operand
                for operand in program.nodes[one].operands
                if operand in inside and operand not in placed and operand not in seen
            ]
            if one in placed or not left:
                placed.setdefault(stack.pop())
            else:
                seen.add(one)
                stack += left
    return list(placed)


def _flat(value: Value | Sequence[Value]) -> list[int]:
    if isinstance(value, int):
        return [value]
    return [at for part in value for at in _flat(part)]


def _is_like(one: Value, other: Value) -> bool:
    """Of the same arity, as a loop's body is to what it carries."""
    if isinstance(one, tuple) != isinstance(other, tuple):
        return False
    return not isinstance(one, tuple) or len(one) == len(other)  # type: ignore[arg-type]


def digest(parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()
