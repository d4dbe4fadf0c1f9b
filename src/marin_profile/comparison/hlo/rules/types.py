"""Other element types and other shapes."""

from __future__ import annotations

from marin_profile.comparison.hlo.matching import MOVERS
from marin_profile.comparison.hlo.opened import Opened, Step
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import (
    COLLECTIVES,
    REDUCTIONS,
    element_type,
    elements,
    heaviest,
    name,
    taken,
)


def dtype(asked: Asked) -> Kind | None:
    changed = [
        (one, two)
        for one, two in asked.part.changed
        if element_type(one) != element_type(two) and one.opcode not in MOVERS
    ]
    if not changed:
        return None
    one, two = heaviest(changed)
    sentence = (
        f"{name(two)} ({two.opcode}) is computed in {element_type(two)}, before in "
        f"{element_type(one)}"
    )
    if _adds_up_otherwise(asked, one, two):
        return Kind("accumulate_dtype", f"{sentence}: it adds up in another type.")
    return Kind("dtype", f"{sentence}.")


def _adds_up_otherwise(asked: Asked, one: Step, two: Step) -> bool:
    """What it takes has the type that it had, or is converted for a sum alone."""
    before, after = taken(asked.before, one), taken(asked.after, two)
    if list(map(element_type, before)) == list(map(element_type, after)):
        return True
    converts = [any(step.opcode == "convert" for step in side) for side in (before, after)]
    return one.opcode in REDUCTIONS and converts[0] != converts[1]


def shape(asked: Asked) -> Kind | None:
    """Another number of elements, made or taken; as many in another order are no other shape."""
    changed = [
        (one, two)
        for one, two in asked.part.changed
        if one.opcode not in COLLECTIVES
        and (
            elements(one) != elements(two)
            or list(map(elements, taken(asked.before, one)))
            != list(map(elements, taken(asked.after, two)))
        )
    ]
    if not changed:
        return None
    one, two = heaviest(changed)
    if elements(one) != elements(two):
        made = f"makes {two.shape}, before {one.shape}"
    else:
        made = f"takes {_shapes(asked.after, two)}, before {_shapes(asked.before, one)}"
    padded = " (padded)" if asked.came({"pad"}) else ""
    return Kind("shape", f"{name(two)} ({two.opcode}) {made}{padded}.")


def _shapes(opened: Opened, step: Step) -> str:
    return " and ".join(one.shape for one in taken(opened, step))
