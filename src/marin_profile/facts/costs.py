"""Compute whose costs are not known: how much of it, and in which families of ops."""

from __future__ import annotations

from marin_profile.base.units import Share
from marin_profile.facts.rows import Row
from marin_profile.schema import ProfileSummary

LEAST = 0.1
LEAST_OF_FAMILY = 0.01


class WithoutCosts(Row, frozen=True, kw_only=True):
    """Shares of compute time; families with less than a hundredth are left out, the largest is
    first."""

    share: Share
    families: list[tuple[str, float]]


def without_costs(summary: ProfileSummary) -> WithoutCosts | None:
    """None below a tenth of compute time, and where no op has known costs."""
    roofline = summary.roofline
    if roofline is None or roofline.coverage is None or not roofline.compute_duration:
        return None
    share = 1 - roofline.coverage
    if share < LEAST or not roofline.by:
        return None
    families = [
        (row.name, row.duration * (1 - row.coverage) / roofline.compute_duration)
        for row in roofline.by
        if row.by == "family" and row.coverage is not None
    ]
    named = [(name, part) for name, part in families if part >= LEAST_OF_FAMILY]
    return WithoutCosts(share=share, families=sorted(named, key=lambda one: (-one[1], one[0])))
