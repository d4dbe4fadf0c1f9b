"""Summaries before and after -> one Comparison: can they be compared, what changed, and why.

Contract: a pure function of the summaries; same summaries, same bytes. Figures are per step and
device, so that one more step in the window, other op numbers or other module hashes change nothing;
of several captures a side they are the mean over captures, each counting alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from marin_profile.base.errors import UsageError
from marin_profile.comparison.account import SideAccount, side_accounts
from marin_profile.comparison.attribution import Sides, attribute, inclusive_region_changes
from marin_profile.comparison.captures import comparability_of_all
from marin_profile.comparison.comparable import comparability
from marin_profile.comparison.deltas import (
    bandwidth_changes,
    collective_changes,
    gap_changes,
    plain_mean,
    step_changes,
)
from marin_profile.comparison.devices import device_changes
from marin_profile.comparison.exact import change_fields, plain_change
from marin_profile.comparison.executions import on_one_basis
from marin_profile.comparison.memory import memory_change
from marin_profile.comparison.model import (
    Caveat,
    Change,
    Comparability,
    ComparedCapture,
    Comparison,
    Target,
)
from marin_profile.facts.step_time import kept_steps, step_length
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.pipeline.programs import CapturedPrograms

# Of each capture before and after; None where a summary is all that there is.
Programs: TypeAlias = "tuple[Sequence[CapturedPrograms | None], Sequence[CapturedPrograms | None]]"


def compare(
    before: ProfileSummary | Sequence[ProfileSummary],
    after: ProfileSummary | Sequence[ProfileSummary],
    *,
    top_k: int = 10,
    paired: bool = False,
    programs: Programs | None = None,
) -> Comparison:
    """What changed from `before` to `after`, each one summary or several repeats; lists of ops,
    regions, families and gaps hold `top_k` rows at most. `paired`: the captures belong together one
    by one, in this order. `programs`: those of the captures, before and after, in their order; with
    them it is said what XLA did differently.

    Raises UsageError without a summary on each side or for pairs of unequal counts,
    BrokenInputError where a summary contradicts itself.
    """
    one, two = _several(before), _several(after)
    if not one or not two:
        raise UsageError("A comparison takes at least one summary before and one after.")
    if paired and len(one) != len(two):
        raise UsageError(f"Pairs need as many summaries before as after: {len(one)}, {len(two)}.")
    found = Comparison(
        before=[_capture(summary) for summary in one],
        after=[_capture(summary) for summary in two],
        comparability=comparability_of_all(one, two),
        devices=device_changes(one, two),
        step_time=step_changes(one, two),
        bandwidth=bandwidth_changes(one, two),
        memory=memory_change(one[0], two[0], top_k),
        units=_units("step and device"),
    )
    compared = on_one_basis(one, two)
    accounts = side_accounts(compared.before, compared.after)
    if isinstance(accounts, str):
        return found.model_copy(update={"cannot_attribute": accounts})
    sides = Sides(*accounts, paired=paired)
    hlo = None
    if programs is not None:
        from marin_profile.comparison.hlo import hlo_changes

        hlo = hlo_changes(sides, compared.basis, *programs, top_k)
    regions, gaps = inclusive_region_changes(sides), gap_changes(*accounts)
    return found.model_copy(
        update={
            "basis": compared.basis,
            "units": _units(compared.unit),
            "target": _target(sides),
            "attribution": attribute(sides, top_k),
            "regions": regions[:top_k],
            "total_regions": len(regions),
            "collectives": collective_changes(*accounts),
            "memory": memory_change(one[0], two[0], top_k, sides.renames),
            "gaps": gaps[:top_k],
            "total_gaps": len(gaps),
            "hlo": hlo,
        }
    )


def _units(one: str) -> dict[str, str]:
    return {"durations": f"us per {one}", "counts": f"per {one}", "gbps": "GB/s", "sizes": "byte"}


def _several(side: ProfileSummary | Sequence[ProfileSummary]) -> list[ProfileSummary]:
    return [side] if isinstance(side, ProfileSummary) else list(side)


def _capture(summary: ProfileSummary) -> ComparedCapture:
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


def _target(sides: Sides) -> Target:
    accounts = (sides.before, sides.after)
    bases = sorted({one.account.basis for side in accounts for one in side.captures})
    judged = sides.judged_total()
    measure, median = _typical(*accounts)
    return Target(
        basis=", ".join(bases),
        launch_included=sides.launch,
        before_captures=sides.before.num_captures,
        after_captures=sides.after.num_captures,
        before_steps=_steps(sides.before),
        after_steps=_steps(sides.after),
        before_devices=_devices(sides.before),
        after_devices=_devices(sides.after),
        median_measure=measure,
        median=median,
        interval=judged.interval,
        noise=judged.noise,
        **change_fields(sides.before.total, sides.after.total),
    )


def _steps(side: SideAccount) -> int:
    return sum(one.account.steps for one in side.captures)


def _devices(side: SideAccount) -> int:
    return max(one.account.devices for one in side.captures)


def _typical(before: SideAccount, after: SideAccount) -> tuple[str | None, Change | None]:
    """The measure of the typical step and its change, where all captures have the same."""
    lengths = [[step_length(one.summary) for one in side.captures] for side in (before, after)]
    measures = {length[0] if length else None for side in lengths for length in side}
    if len(measures) != 1 or None in measures:
        return None, None
    medians = [plain_mean(length[1].median for length in side if length) for side in lengths]
    return measures.pop(), plain_change(*medians)


__all__ = ["Caveat", "Comparability", "Comparison", "Programs", "comparability", "compare"]
