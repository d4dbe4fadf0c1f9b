"""Two summaries -> one Comparison: can they be compared, what changed, and what accounts for it.

Contract: a pure function of the two summaries; same summaries, same bytes. Figures are per step and
device, so that one more step in the window, other op numbers or other module hashes change nothing.
"""

from __future__ import annotations

from marin_profile.comparison.account import SideAccount, side_accounts
from marin_profile.comparison.attribution import attribute
from marin_profile.comparison.comparable import comparability
from marin_profile.comparison.deltas import (
    bandwidth_changes,
    collective_changes,
    gap_changes,
    inclusive_region_changes,
    step_changes,
)
from marin_profile.comparison.devices import device_changes
from marin_profile.comparison.exact import change_fields, plain_change
from marin_profile.comparison.model import (
    Caveat,
    Comparability,
    ComparedCapture,
    Comparison,
    Target,
)
from marin_profile.facts.step_time import kept_steps, step_length
from marin_profile.schema import ProfileSummary

UNITS = {"durations": "us per step and device", "counts": "per step and device", "gbps": "GB/s"}


def compare(before: ProfileSummary, after: ProfileSummary, *, top_k: int = 10) -> Comparison:
    """What changed from `before` to `after`; lists of ops, regions, families and gaps hold `top_k`
    rows at most.

    Raises BrokenInputError where a summary contradicts itself.
    """
    found = Comparison(
        before=_side(before),
        after=_side(after),
        comparability=comparability(before, after),
        devices=device_changes([before], [after]),
        step_time=step_changes(before, after),
        bandwidth=bandwidth_changes(before, after),
        units=UNITS,
    )
    accounts = side_accounts(before, after)
    if isinstance(accounts, str):
        return found.model_copy(update={"cannot_attribute": accounts})
    one, two = accounts
    regions, gaps = inclusive_region_changes(one, two), gap_changes(one, two)
    return found.model_copy(
        update={
            "target": _target(one, two),
            "attribution": attribute(one, two, top_k),
            "regions": regions[:top_k],
            "total_regions": len(regions),
            "collectives": collective_changes(one, two),
            "gaps": gaps[:top_k],
            "total_gaps": len(gaps),
        }
    )


def _side(summary: ProfileSummary) -> ComparedCapture:
    run, capture = summary.run_metadata, summary.capture
    return ComparedCapture(
        source_path=summary.source_path,
        source_format=summary.source_format,
        trace_sha256=summary.trace_provenance.trace_sha256,
        generated_at_utc=summary.generated_at_utc,
        run_id=run.run_id,
        run_path=run.run_path,
        git_sha=run.git_sha,
        config_hash=run.config_hash,
        hardware_type=run.hardware_type,
        num_devices=run.num_devices,
        num_hosts=run.num_hosts,
        step_source=summary.step_time.source,
        kept_steps=kept_steps(summary),
        tool_version=capture.tool_version if capture else None,
        jax_version=capture.jax_version if capture else None,
    )


def _target(before: SideAccount, after: SideAccount) -> Target:
    lengths = [step_length(side.summary) for side in (before, after)]
    one, two = lengths
    same_measure = one is not None and two is not None and one[0] == two[0]
    bases = sorted({before.account.basis, after.account.basis})
    return Target(
        basis=", ".join(bases),
        launch_included=before.launch,
        before_steps=before.account.steps,
        after_steps=after.account.steps,
        before_devices=before.account.devices,
        after_devices=after.account.devices,
        median_measure=one[0] if one and same_measure else None,
        median=plain_change(one[1].median, two[1].median) if one and two and same_measure else None,
        **change_fields(before.total, after.total),
    )


__all__ = ["Caveat", "Comparability", "Comparison", "comparability", "compare"]
