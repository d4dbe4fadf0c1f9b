"""Other kernels, fusions that fell apart or grew together, and what is left."""

from __future__ import annotations

from marin_profile.base.text import plural
from marin_profile.comparison.hlo.matching import MOVERS
from marin_profile.comparison.hlo.opened import Step
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import LIBRARY, listed, name, ops


def kernel(asked: Asked) -> Kind | None:
    for one, two in asked.part.changed:
        if one.opcode == LIBRARY and one.node.target != two.node.target:
            return Kind("kernel_replaced", f"{_target(two)} where {_target(one)} was before.")
    gone, new = asked.went({LIBRARY}), asked.came({LIBRARY})
    if new and asked.removed:
        was = _target(gone[0]) if gone else listed(asked.removed)
        return Kind("kernel_replaced", f"{_target(new[0])} does what {was} did before.")
    if gone and asked.added:
        return Kind(
            "kernel_replaced", f"{listed(asked.added)} where {_target(gone[0])} was before."
        )
    return None


def _target(step: Step) -> str:
    return f"Kernel {step.node.target or step.node.name}"


def fusion(asked: Asked) -> Kind | None:
    """The same work in other ops; what new work tears apart is told by that work."""
    if not asked.part.regrouped or len(asked.removed) > len(asked.part.regrouped):
        return None
    was, becomes = len(asked.part.before_units), len(asked.part.after_units)
    other = f"{ops(becomes)} what {plural(was, 'op')} did before"
    if new := [step for step in asked.added if step.opcode not in MOVERS]:
        if asked.removed:
            return None
        return Kind("op_added", f"New: {listed(new)}{f'; {other}' if becomes > was else ''}.")
    if becomes > was:
        return Kind("fusion_split", f"{other}.")
    if becomes < was:
        return Kind("fusion_merged", f"{other}.")
    if asked.added or asked.removed:
        return None
    return Kind("fusion_split", f"The same work is divided otherwise over {plural(was, 'op')}.")


def rest(asked: Asked) -> Kind:
    added, removed = asked.added, asked.removed
    if added and not removed:
        return Kind("op_added", f"New: {listed(added)}.")
    if removed and not added:
        return Kind("op_removed", f"Gone: {listed(removed)}.")
    if added:
        return Kind("op_replaced", f"{listed(added)} where {listed(removed)} was before.")
    one, two = asked.part.changed[0] if asked.part.changed else asked.part.regrouped[0]
    return Kind("op_changed", f"{name(two)} ({two.opcode}) computes otherwise than {name(one)}.")
