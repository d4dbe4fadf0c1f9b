"""Rates against peaks, and how much of the peak a step uses."""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile import schema
from marin_profile.analysis.roofline import (
    OpWork,
    Peaks,
    Work,
    total,
    work_by_family,
    work_by_pass,
    work_by_program,
    work_by_region,
    work_of_ops,
)
from marin_profile.assemble.context import Context, us

ROWS_OF_A_KIND = 20

NO_COSTS = "No op carries costs."
FEW_COSTS = "Less than half of the compute time has known costs."
NO_PEAK = "The file does not state the device's peak."
NO_WHOLE_STEPS = "There are no whole steps."
CONTRADICTION = "The flops exceed the peak: costs, times or peak are wrong."
NEITHER_COST = "The ops with known costs neither compute nor access memory."


def roofline_section(context: Context) -> schema.Roofline | None:
    """None where no op computes."""
    peaks = context.peaks
    works = work_of_ops(context.ops, peaks, in_periods=context.in_periods)
    whole = total(works)
    if not whole.time:
        return None
    known_peaks = {
        name: value
        for name, value in (
            ("teraflops_per_second", peaks.teraflops),
            ("hbm_gigabytes_per_second", peaks.hbm_gigabytes),
        )
        if value is not None
    }
    achieved = _achieved(whole)
    bound_by = whole.bound_by(peaks)
    mfu, hfu, why_no_mfu = _of_the_peak(context, whole, peaks)
    return schema.Roofline(
        peaks=known_peaks,
        achieved=achieved,
        utilization={name: achieved[name] / peak for name, peak in known_peaks.items() if achieved},
        bound_by=bound_by,
        bound_by_unknown_because=None if bound_by else _why_not_bound(whole, peaks),
        mfu=mfu,
        hfu=hfu,
        mfu_is_lower_bound=None if mfu is None else whole.known_time < whole.time,
        mfu_unknown_because=why_no_mfu,
        coverage=whole.coverage,
        compute_duration=us(whole.time),
        compute_bound_duration=us(whole.compute_bound),
        memory_bound_duration=us(whole.memory_bound),
        by=_rows(works, peaks) if whole.known_time else [],
    )


def _achieved(work: Work) -> dict[str, float]:
    if work.tflops is None or work.gbps is None:
        return {}
    achieved = {"teraflops_per_second": work.tflops, "hbm_gigabytes_per_second": work.gbps}
    if work.bytes_accessed:
        achieved["operational_intensity"] = work.flops / work.bytes_accessed
    return achieved


def _why_not_bound(work: Work, peaks: Peaks) -> str:
    if not work.is_covered:
        return FEW_COSTS if work.known_time else NO_COSTS
    return NO_PEAK if None in (peaks.teraflops, peaks.hbm_gigabytes) else NEITHER_COST


def _of_the_peak(
    context: Context, work: Work, peaks: Peaks
) -> tuple[float | None, float | None, str | None]:
    """MFU and HFU of the whole periods, or why there are none."""
    time = context.period_time
    mfu, hfu = work.mfu(peaks, time), work.hfu(peaks, time)
    if not context.in_periods or not time:
        return None, None, NO_WHOLE_STEPS
    if not work.is_covered:
        return None, None, FEW_COSTS if work.known_time else NO_COSTS
    if mfu is None or hfu is None:
        return None, None, NO_PEAK
    if hfu > 1.0:
        return None, None, CONTRADICTION
    return mfu, hfu, None


def _rows(works: Sequence[OpWork], peaks: Peaks) -> list[schema.RooflineRow]:
    groups = {
        "program": work_by_program(works),
        "pass": work_by_pass(works),
        "family": work_by_family(works),
        "region": work_by_region(works),
    }
    return [
        _row(by, name, work, peaks)
        for by, found in groups.items()
        for name, work in sorted(found.items(), key=lambda item: (-item[1].time, item[0]))[
            :ROWS_OF_A_KIND
        ]
    ]


def _row(by: str, name: str, work: Work, peaks: Peaks) -> schema.RooflineRow:
    return schema.RooflineRow(
        by=by,
        name=name,
        flops=work.flops if work.known_time else None,
        bytes_accessed=work.bytes_accessed if work.known_time else None,
        duration=us(work.time),
        coverage=work.coverage,
        achieved_tflops=work.tflops,
        achieved_gbps=work.gbps,
        bound_by=work.bound_by(peaks),
        mfu=work.mfu(peaks, work.time),
        hfu=work.hfu(peaks, work.time),
    )
