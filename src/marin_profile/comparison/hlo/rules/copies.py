"""Data that is moved, and was not before: for an argument, for a loop, for a layout."""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.comparison.hlo.donation import GAINED, LOST, described
from marin_profile.comparison.hlo.matching import MOVERS
from marin_profile.comparison.hlo.opened import LOOP_VALUE, Opened, Step
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import elements, heaviest, name, shapes

COPY = frozenset({"copy"})
MOVES = frozenset({"copy", "transpose"})
_DONE = {"copy": "copied", "transpose": "transposed"}


def donated_copy(asked: Asked) -> Kind | None:
    """A copy of an argument that was donated, or no such copy any more."""
    lost, gained = asked.donations.lost, asked.donations.gained
    if _copies_one(asked.after, asked.came(COPY), lost):
        return Kind(LOST, f"{described(lost)} no longer donated, and copied.")
    if _copies_one(asked.before, asked.went(COPY), gained):
        return Kind(GAINED, f"{described(gained)} donated now, and not copied.")
    return None


def _copies_one(opened: Opened, copies: Sequence[Step], arguments: Sequence[Step]) -> bool:
    own = {step.at for step in arguments}
    return any(_source(opened, copy) in own for copy in copies)


def _source(opened: Opened, step: Step) -> int:
    """Where what it moves comes from."""
    at = step.at
    while opened.steps[at].opcode in MOVERS and opened.steps[at].operands:
        at = opened.steps[at].operands[0]
    return at


def loop_copy(asked: Asked) -> Kind | None:
    inside = [step for step in asked.came(COPY) if step.loops]
    if len(inside) > len([step for step in asked.went(COPY) if step.loops]):
        return Kind("loop_copy", f"{_moved(inside)} in each turn of {inside[0].loops[-1]}.")
    ahead = [(step, loop) for step in asked.came(COPY) if (loop := _carried(asked.after, step))]
    if ahead:
        return Kind("loop_copy", f"{_moved([step for step, _ in ahead])} ahead of {ahead[0][1]}.")
    return None


def _carried(opened: Opened, step: Step) -> str:
    """The loop that it is carried into."""
    users = (opened.steps[user] for user in opened.users[step.at])
    return next((user.loops[-1] for user in users if user.opcode == LOOP_VALUE), "")


def layout_copy(asked: Asked) -> Kind | None:
    gone, new = asked.went(MOVES), asked.came(MOVES)
    if len(new) > len(gone):
        return Kind("layout_copy", f"{_moved(new)}, which it was not before.")
    if len(gone) > len(new):
        return Kind("layout_copy", f"{_moved(gone, is_past=True)}.")
    turned = [
        (one, two)
        for one, two in asked.part.changed
        if one.layout != two.layout and elements(one) == elements(two)
    ]
    if not turned:
        return None
    one, two = heaviest(turned)
    return Kind(
        "layout_copy",
        f"{name(two)} ({two.opcode}) has the layout {two.layout or 'row-major'}, before "
        f"{one.layout or 'row-major'}.",
    )


def _moved(steps: Sequence[Step], *, is_past: bool = False) -> str:
    """As "f32[8,8] is copied and transposed"; several in one op are moved once."""
    how = " and ".join(sorted({_DONE[step.opcode] for step in steps}))
    times = len({step.unit for step in steps})
    often = f" by {times} ops" if times > 1 else ""
    return f"{shapes(steps)} is {'no longer ' if is_past else ''}{how}{often}"
