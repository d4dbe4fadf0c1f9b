"""The what_if section: each standard change replayed, in microseconds of the mean step."""

from __future__ import annotations

from math import sqrt

from marin_profile import schema
from marin_profile.analysis.collectives.matching import HostShare
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.replay.changes import Change, WhatIf, what_if
from marin_profile.analysis.replay.graph import build_graph
from marin_profile.analysis.roofline import share_at_roofline
from marin_profile.analysis.steps.chance import error_of_mean
from marin_profile.assemble.context import Context, us, us_or_none
from marin_profile.base.text import natural_order
from marin_profile.events.classify import COMPUTE

# Of a saving: bounds that lie closer together are one figure.
CLOSE = 0.01

NO_PERIODS = "there are no whole periods of steps on all hosts"
NO_ORDER = "the order of ops on its devices contradicts itself"


def what_if_section(context: Context) -> schema.WhatIf:
    """The largest saving first. Hosts in the order of their names: so devices are numbered."""
    parts = sorted(context.parts, key=lambda part: natural_order(part.host))
    shares = [HostShare(part.host, part.collectives, part.steps) for part in parts]
    graph = build_graph(shares, [part.track for part in parts]) if context.in_periods else None
    if graph is None:
        return schema.WhatIf(reason=NO_PERIODS)
    found = what_if(graph, _of_roofline(context))
    if found is None:
        return schema.WhatIf(reason=NO_ORDER)
    rows = [_change(change, found) for change in found.changes]
    return schema.WhatIf(
        step_now=us(found.step),
        replayed_step=us(found.replayed),
        replay_error=abs(found.replayed - found.step) / found.step,
        whole_periods=found.periods,
        chance=_chance(context),
        changes=sorted(
            rows,
            key=lambda row: (
                -row.saving,
                row.change,
                row.target,
                row.host or "",
                natural_order(row.name or ""),
            ),
        ),
    )


def _chance(context: Context) -> float | None:
    """Of the difference of two means."""
    periods = [step.period for step in context.steps.steps if step.kept]
    error = error_of_mean([period for period in periods if period is not None])
    return us_or_none(None if error is None else sqrt(2) * error)


def _of_roofline(context: Context) -> dict[str, float]:
    by_name: dict[str, list[OpTotals]] = {}
    for op in context.main_ops:
        if op.facts.kind == COMPUTE:
            by_name.setdefault(op.facts.canonical, []).append(op)
    shares = {name: share_at_roofline(ops, context.peaks) for name, ops in by_name.items()}
    return {name: share for name, share in shares.items() if share is not None}


def _change(change: Change, found: WhatIf) -> schema.WhatIfChange:
    close = change.saving - change.least <= CLOSE * change.saving
    return schema.WhatIfChange(
        change=change.change,
        target=change.target,
        name=change.name or None,
        host=change.host or None,
        factor=change.factor,
        step_then=us(found.step - change.saving),
        saving=us(change.saving),
        saving_at_least=us(change.least),
        saving_share=change.saving / found.step,
        certainty="known" if close else "at_most",
    )
