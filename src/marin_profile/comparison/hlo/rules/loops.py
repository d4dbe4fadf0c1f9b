"""Loops that turn otherwise, and what is computed again."""

from __future__ import annotations

import re

from marin_profile.base.text import plural
from marin_profile.comparison.hlo.components import COSTLESS
from marin_profile.comparison.hlo.matching import MOVERS
from marin_profile.comparison.hlo.opened import LOOP, Step
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import heaviest, listed, name
from marin_profile.events.scopes import RECOMPUTE, parse_scope

_REMAT_NAME = re.compile(r"\.remat\d*\b")


def loop(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.opcode == LOOP and one.node.trips != two.node.trips:
            return _turns(asked, one, two)
    gone, new = asked.went({LOOP}), asked.came({LOOP})
    if gone and not new:
        turned = _times(gone[0].node.trips)
        return Kind(
            "loop_unrolled",
            f"The loop {name(gone[0])} ({turned}) is gone: its body is written out.",
        )
    if new and not gone:
        turns = _times(new[0].node.trips)
        return Kind(
            "loop_rolled", f"A loop {name(new[0])} ({turns}) does what was written out before."
        )
    return None


def _turns(asked: Asked, one: Step, two: Step) -> Kind:
    was, becomes = one.node.trips, two.node.trips
    turns = f"The loop {name(two)} turns {_times(becomes)}, before {_times(was)}"
    more = len(asked.added) - len(asked.removed)
    if was is not None and becomes is not None:
        if becomes < was and more > 0:
            return Kind("loop_unrolled", f"{turns}, and does more in each turn: unrolled.")
        if becomes > was and more < 0:
            return Kind("loop_rolled", f"{turns}, and does less in each turn: rolled up.")
    return Kind("loop_trips", f"{turns}.")


def _times(trips: int | None) -> str:
    return "an unknown number of times" if trips is None else plural(trips, "time")


def moved_between_loops(asked: Asked) -> Kind | None:
    """The same computation in more or fewer loops than before."""
    moved = [
        (one, two)
        for one, two in asked.part.changed
        if len(one.loops) != len(two.loops) and one.opcode not in MOVERS | COSTLESS
    ]
    if not moved or asked.removed or asked.added:
        return None
    one, two = heaviest(moved)
    what = f"{name(two)} ({two.opcode})"
    if len(two.loops) > len(one.loops):
        return Kind("loop_sunk", f"{what} is computed in each turn of {two.loops[-1]}.")
    return Kind("loop_hoisted", f"{what} is no longer computed in each turn of {one.loops[-1]}.")


def recomputed(asked: Asked) -> Kind | None:
    """By the scopes that JAX gives it, or the names that XLA's own rematerialisation gives."""
    more = [step for step in asked.added if _is_recomputed(step)]
    fewer = [step for step in asked.removed if _is_recomputed(step)]
    if len(more) == len(fewer):
        return None
    is_on = len(more) > len(fewer)
    own, all_of_it = (more, asked.added) if is_on else (fewer, asked.removed)
    if 2 * len(own) < len(all_of_it):
        return None
    if is_on:
        what = f"The backward pass computes again what it kept before: {listed(own)}."
        return Kind("remat_on", what)
    return Kind("remat_off", f"The backward pass no longer computes again: {listed(own)}.")


def _is_recomputed(step: Step) -> bool:
    parsed = parse_scope(step.node.op_name)
    return bool(parsed and parsed[1] == RECOMPUTE) or bool(_REMAT_NAME.search(step.node.name))
