"""What XLA did differently in one part: a table of kinds, the first that fits names it.

Contract: a rule looks at one part and gives a sentence, or None where it is not of its kind. Rules
stand in the order of causes before what follows from them: another dtype also adds conversions and
tears fusions, so it is asked for first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from marin_profile.base.text import plural
from marin_profile.comparison.hlo.components import COSTLESS, Part, significant
from marin_profile.comparison.hlo.donation import GAINED, LOST, Donations, described
from marin_profile.comparison.hlo.matching import MOVERS
from marin_profile.comparison.hlo.opened import LOOP_VALUE, Opened, Step
from marin_profile.events.scopes import RECOMPUTE, parse_scope
from marin_profile.events.shapes import Array, arrays_in

COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"}
    | {"collective-broadcast", "ragged-all-to-all"}
)
PRODUCTS = frozenset({"dot", "convolution"})
REDUCTIONS = frozenset({"reduce", "reduce-window", "scatter"})
LIBRARY = "custom-call"
_REMAT_NAME = re.compile(r"\.remat\d*\b")


@dataclass(frozen=True)
class Kind:
    """The name of what happened, and a sentence that says it."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Asked:
    """A part, and the programs that it is of."""

    part: Part
    before: Opened
    after: Opened
    donations: Donations = field(default_factory=Donations)

    @property
    def removed(self) -> list[Step]:
        return significant(self.part.removed)

    @property
    def added(self) -> list[Step]:
        return significant(self.part.added)

    def went(self, opcodes: Iterable[str]) -> list[Step]:
        wanted = frozenset(opcodes)
        return [step for step in self.part.removed if step.opcode in wanted]

    def came(self, opcodes: Iterable[str]) -> list[Step]:
        wanted = frozenset(opcodes)
        return [step for step in self.part.added if step.opcode in wanted]


Rule = Callable[[Asked], Kind | None]


def kind_of(asked: Asked) -> Kind:
    return next(kind for rule in RULES if (kind := rule(asked)) is not None)


# --- donation ------------------------------------------------------------------------------------


def donation(asked: Asked) -> Kind | None:
    """A copy of an argument that was donated, or no such copy any more."""
    moved = asked.donations
    for name, copies, opened, arguments in (
        (LOST, asked.came({"copy"}), asked.after, moved.lost),
        (GAINED, asked.went({"copy"}), asked.before, moved.gained),
    ):
        own = {step.at for step in arguments}
        if any(source(opened, copy) in own for copy in copies):
            now = (
                "no longer donated, and is copied"
                if name == LOST
                else "donated now, and not copied"
            )
            return Kind(name, f"{described(arguments)} {now}.")
    return None


def source(opened: Opened, step: Step) -> int:
    """Where what it moves comes from."""
    at = step.at
    while opened.steps[at].opcode in MOVERS and opened.steps[at].operands:
        at = opened.steps[at].operands[0]
    return at


# --- loops and recomputation ---------------------------------------------------------------------


def loop(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.opcode == "while" and one.node.trips != two.node.trips:
            was, becomes = one.node.trips, two.node.trips
            turns = f"The loop {_name(two)} turns {_times(becomes)}, before {_times(was)}"
            if was is None or becomes is None:
                return Kind("loop_trips", f"{turns}.")
            more, fewer = len(asked.added), len(asked.removed)
            if becomes < was and more > fewer:
                return Kind("loop_unrolled", f"{turns}, and does more in each turn: unrolled.")
            if becomes > was and fewer > more:
                return Kind("loop_rolled", f"{turns}, and does less in each turn: rolled up.")
            return Kind("loop_trips", f"{turns}.")
    gone, new = asked.went({"while"}), asked.came({"while"})
    if gone and not new:
        return Kind(
            "loop_unrolled",
            f"The loop {_name(gone[0])} ({_times(gone[0].node.trips)}) is gone: its body is "
            "written out.",
        )
    if new and not gone:
        return Kind(
            "loop_rolled",
            f"A loop {_name(new[0])} ({_times(new[0].node.trips)}) does what was "
            "written out before.",
        )
    return None


def _times(trips: int | None) -> str:
    return "an unknown number of times" if trips is None else plural(trips, "time")


def moved_between_loops(asked: Asked) -> Kind | None:
    """The same computation in more or fewer loops than before."""
    moved = [(one, two) for one, two in asked.part.changed if len(one.loops) != len(two.loops)]
    moved = [(one, two) for one, two in moved if one.opcode not in MOVERS | COSTLESS]
    if not moved or asked.removed or asked.added:
        return None
    one, two = max(moved, key=lambda pair: (weight(pair[0]), -pair[0].at))
    if len(two.loops) > len(one.loops):
        return Kind(
            "loop_sunk", f"{_name(two)} ({two.opcode}) is computed in each turn of {two.loops[-1]}."
        )
    return Kind(
        "loop_hoisted",
        f"{_name(two)} ({two.opcode}) is no longer computed in each turn of {one.loops[-1]}.",
    )


def remat(asked: Asked) -> Kind | None:
    more = [step for step in asked.added if _is_recomputed(step)]
    fewer = [step for step in asked.removed if _is_recomputed(step)]
    grown = len(more) - len(fewer)
    if not grown:
        return None
    own, all_of_it = (more, asked.added) if grown > 0 else (fewer, asked.removed)
    if 2 * len(own) < len(all_of_it):
        return None
    what = _listed(own)
    if grown > 0:
        return Kind("remat_on", f"The backward pass computes again what it kept before: {what}.")
    return Kind("remat_off", f"The backward pass no longer computes again: {what}.")


def _is_recomputed(step: Step) -> bool:
    parsed = parse_scope(step.node.op_name)
    return bool(parsed and parsed[1] == RECOMPUTE) or bool(_REMAT_NAME.search(step.node.name))


# --- types and shapes ----------------------------------------------------------------------------


def dtype(asked: Asked) -> Kind | None:
    changed = [(one, two) for one, two in asked.part.changed if _type(one) != _type(two)]
    compute = [pair for pair in changed if pair[0].opcode not in MOVERS]
    if not compute:
        return None
    one, two = max(compute, key=lambda pair: (weight(pair[0]), -pair[0].at))
    taken = [
        _operand_types(opened, step) for opened, step in ((asked.before, one), (asked.after, two))
    ]
    sentence = f"{_name(two)} ({two.opcode}) is computed in {_type(two)}, before in {_type(one)}"
    is_sum = one.opcode in REDUCTIONS and _widened_for_it(asked, two) != _widened_for_it(asked, one)
    if taken[0] == taken[1] or is_sum:
        return Kind("accumulate_dtype", f"{sentence}: it adds up in another type.")
    return Kind("dtype", f"{sentence}.")


def _widened_for_it(asked: Asked, step: Step) -> bool:
    """Whether what it takes is converted for it."""
    opened = (
        asked.after
        if step.at < len(asked.after.steps) and asked.after.steps[step.at] is step
        else asked.before
    )
    return any(opened.steps[operand].opcode == "convert" for operand in step.operands)


def _operand_types(opened: Opened, step: Step) -> list[str]:
    return [_type(opened.steps[operand]) for operand in step.operands]


def shape(asked: Asked) -> Kind | None:
    """Another number of elements; as many in another order are no other shape."""
    changed = [
        (one, two)
        for one, two in asked.part.changed
        if one.opcode not in COLLECTIVES
        and (
            _elements(one) != _elements(two)
            or _takes(asked.before, one) != _takes(asked.after, two)
        )
    ]
    if not changed:
        return None
    one, two = max(
        changed,
        key=lambda pair: (weight(pair[0]), -pair[0].at),
    )
    padded = " (padded)" if asked.came({"pad"}) else ""
    if _elements(one) != _elements(two):
        made = f"makes {two.shape}, before {one.shape}"
    else:
        made = f"takes {_taken(asked.after, two)}, before {_taken(asked.before, one)}"
    return Kind("shape", f"{_name(two)} ({two.opcode}) {made}{padded}.")


def _taken(opened: Opened, step: Step) -> str:
    return " and ".join(opened.steps[operand].shape for operand in step.operands)


def _takes(opened: Opened, step: Step) -> list[int]:
    return [_elements(opened.steps[operand]) for operand in step.operands]


# --- collectives ---------------------------------------------------------------------------------


def collective_kind(asked: Asked) -> Kind | None:
    gone, new = asked.went(COLLECTIVES), asked.came(COLLECTIVES)
    was, becomes = ({step.opcode for step in side} for side in (gone, new))
    if not was or not becomes or was == becomes:
        return None
    return Kind("collective_kind", f"{_counted(new)} where {_counted(gone)} was before.")


def collective_grouping(asked: Asked) -> Kind | None:
    gone, new = list(asked.went(COLLECTIVES)), list(asked.came(COLLECTIVES))
    for one, two in asked.part.changed:
        if one.opcode in COLLECTIVES and (
            one.node.groups != two.node.groups or _elements(one) != _elements(two)
        ):
            gone.append(one)
            new.append(two)
    if not gone or not new:
        return None
    groups = {step.node.groups for step in gone} != {step.node.groups for step in new}
    among = ", among other groups of devices" if groups else ""
    return Kind("collective_grouping", f"{_counted(new)} where {_counted(gone)} was before{among}.")


def asynchronous(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.is_async and not two.is_async:
            return Kind("async_to_sync", f"{_name(two)} ({two.opcode}) is no longer asynchronous.")
        if two.is_async and not one.is_async:
            return Kind("sync_to_async", f"{_name(two)} ({two.opcode}) is asynchronous now.")
    return None


def _counted(steps: Sequence[Step]) -> str:
    """As "2 x all-reduce f32[512], f32[512]"."""
    kinds = Counter(step.opcode for step in steps)
    shapes = sorted({step.shape for step in steps})
    what = " and ".join(f"{count} x {opcode}" for opcode, count in sorted(kinds.items()))
    return f"{what} of {', '.join(shapes[:2])}{' ...' if len(shapes) > 2 else ''}"


# --- copies and layouts --------------------------------------------------------------------------


def loop_copy(asked: Asked) -> Kind | None:
    copies = [step for step in asked.came({"copy"}) if step.loops or _is_carried(asked.after, step)]
    if len(copies) <= len([step for step in asked.went({"copy"}) if step.loops]):
        return None
    into = copies[0].loops[-1] if copies[0].loops else "the loop that it is carried into"
    return Kind("loop_copy", f"{_counted(copies)} in or for {into}, which was not there before.")


def _is_carried(opened: Opened, step: Step) -> bool:
    return any(opened.steps[user].opcode == LOOP_VALUE for user in opened.users[step.at])


def layout_copy(asked: Asked) -> Kind | None:
    moved = {"copy", "transpose"}
    gone, new = asked.went(moved), asked.came(moved)
    turned = [
        (one, two)
        for one, two in asked.part.changed
        if one.layout != two.layout and _elements(one) == _elements(two)
    ]
    if len(new) > len(gone):
        return Kind("layout_copy", f"Data is moved that was not before: {_counted(new)}.")
    if len(gone) > len(new):
        return Kind("layout_copy", f"Data is no longer moved: {_counted(gone)}.")
    if turned:
        one, two = max(turned, key=lambda pair: (weight(pair[0]), -pair[0].at))
        return Kind(
            "layout_copy",
            f"{_name(two)} ({two.opcode}) has the layout {two.layout or 'row-major'}, before "
            f"{one.layout or 'row-major'}.",
        )
    return None


# --- kernels and fusions -------------------------------------------------------------------------


def kernel(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.opcode == LIBRARY and one.node.target != two.node.target:
            return Kind("kernel_replaced", f"{_target(two)} where {_target(one)} was before.")
    gone, new = asked.went({LIBRARY}), asked.came({LIBRARY})
    if new and (gone or asked.removed):
        was = _target(gone[0]) if gone else _listed(asked.removed)
        return Kind("kernel_replaced", f"{_target(new[0])} does what {was} did before.")
    if gone and asked.added:
        return Kind(
            "kernel_replaced", f"{_listed(asked.added)} where {_target(gone[0])} was before."
        )
    return None


def _target(step: Step) -> str:
    return f"the kernel {step.node.target or step.node.name}"


def fusion(asked: Asked) -> Kind | None:
    if not asked.part.regrouped or len(asked.removed) > len(asked.part.regrouped):
        return None
    was, becomes = len(asked.part.before_units), len(asked.part.after_units)
    between = f"; {_listed(asked.added)} came between" if asked.added else ""
    if becomes > was:
        return Kind(
            "fusion_split",
            f"{_ops(becomes)} what {plural(was, 'op')} did before{between}.",
        )
    if becomes < was:
        return Kind("fusion_merged", f"{_ops(becomes)} what {plural(was, 'op')} did before.")
    if asked.added or asked.removed:
        return None
    return Kind("fusion_split", f"The same work is divided otherwise over {plural(was, 'op')}.")


def _ops(count: int) -> str:
    return f"{plural(count, 'op')} {'does' if count == 1 else 'do'}"


def rest(asked: Asked) -> Kind:
    added, removed = asked.added, asked.removed
    if added and not removed:
        return Kind("op_added", f"New: {_listed(added)}.")
    if removed and not added:
        return Kind("op_removed", f"Gone: {_listed(removed)}.")
    if added:
        return Kind("op_replaced", f"{_listed(added)} where {_listed(removed)} was before.")
    one, two = asked.part.changed[0] if asked.part.changed else asked.part.regrouped[0]
    return Kind("op_changed", f"{_name(two)} ({two.opcode}) computes otherwise than {_name(one)}.")


RULES: tuple[Rule, ...] = (
    donation,
    loop,
    moved_between_loops,
    remat,
    collective_kind,
    dtype,
    shape,
    collective_grouping,
    asynchronous,
    loop_copy,
    layout_copy,
    kernel,
    fusion,
    rest,
)

# Every kind there is, causes before what follows from them.
KINDS = (
    "program_added",
    "program_removed",
    LOST,
    GAINED,
    "loop_unrolled",
    "loop_rolled",
    "loop_trips",
    "loop_hoisted",
    "loop_sunk",
    "remat_on",
    "remat_off",
    "collective_kind",
    "dtype",
    "accumulate_dtype",
    "shape",
    "collective_grouping",
    "async_to_sync",
    "sync_to_async",
    "loop_copy",
    "layout_copy",
    "kernel_replaced",
    "fusion_split",
    "fusion_merged",
    "op_replaced",
    "op_added",
    "op_removed",
    "op_changed",
)


# --- words ---------------------------------------------------------------------------------------


def _name(step: Step) -> str:
    return step.node.name


def _listed(steps: Sequence[Step]) -> str:
    """By opcode, most elements first, as "dot f32[8,8], 3 x add f32[8]"."""
    counts = Counter((step.opcode, step.shape) for step in steps)
    order = sorted(counts, key=lambda key: (key[0] not in PRODUCTS, -_size(key[1]), key))
    parts = [
        f"{opcode} {shape}"
        if counts[opcode, shape] == 1
        else f"{counts[opcode, shape]} x {opcode} {shape}"
        for opcode, shape in order[:3]
    ]
    more = f" and {len(order) - 3} more" if len(order) > 3 else ""
    return f"{', '.join(parts)}{more}" if parts else "nothing"


def weight(step: Step) -> tuple[bool, bool, int]:
    """Products before sums before the rest, then by size."""
    return step.opcode in PRODUCTS, step.opcode in REDUCTIONS, _elements(step)


def _arrays(shape: str) -> list[Array]:
    return list(arrays_in(shape))


def _type(step: Step) -> str:
    return step.shape.partition("[")[0].lstrip("(")


def _elements(step: Step) -> int:
    return _size(step.shape)


def _size(shape: str) -> int:
    return sum(math.prod(array.dims) for array in _arrays(shape))
