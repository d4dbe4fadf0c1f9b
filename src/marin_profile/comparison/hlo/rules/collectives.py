"""Collectives: of another kind, of other sizes or groups, beside other work or not."""

from __future__ import annotations

from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import COLLECTIVES, counted, elements, name


def collective_kind(asked: Asked) -> Kind | None:
    gone, new = asked.went(COLLECTIVES), asked.came(COLLECTIVES)
    was, becomes = ({step.opcode for step in side} for side in (gone, new))
    if not was or not becomes or was == becomes:
        return None
    return Kind("collective_kind", f"{counted(new)} where {counted(gone)} was before.")


def collective_grouping(asked: Asked) -> Kind | None:
    gone, new = asked.went(COLLECTIVES), asked.came(COLLECTIVES)
    for one, two in asked.part.changed:
        if one.opcode in COLLECTIVES and (
            one.node.groups != two.node.groups or elements(one) != elements(two)
        ):
            gone.append(one)
            new.append(two)
    if not gone or not new:
        return None
    groups = {step.node.groups for step in gone} != {step.node.groups for step in new}
    among = ", among other groups of devices" if groups else ""
    return Kind("collective_grouping", f"{counted(new)} where {counted(gone)} was before{among}.")


def asynchronous(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.is_async and not two.is_async:
            return Kind("async_to_sync", f"{name(two)} ({two.opcode}) is no longer asynchronous.")
        if two.is_async and not one.is_async:
            return Kind("sync_to_async", f"{name(two)} ({two.opcode}) is asynchronous now.")
    return None
