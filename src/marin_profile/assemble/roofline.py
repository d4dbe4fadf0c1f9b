"""Rates against peaks, and the model flops utilisation."""

from __future__ import annotations

import numpy as np

from marin_profile import schema
from marin_profile.analysis.roofline import Peaks, op_rate, roofline_totals
from marin_profile.assemble.context import Context
from marin_profile.events.classify import GROUP_COMPUTE


def roofline_section(context: Context) -> schema.Roofline | None:
    peaks = context.peaks
    totals = roofline_totals(context.ops, peaks)
    named = {
        "teraflops_per_second": peaks.teraflops,
        "hbm_gigabytes_per_second": peaks.hbm_gigabytes,
    }
    known = {name: value for name, value in named.items() if value is not None}
    if not totals.time:
        has_costs = any(op.facts.flops or op.facts.bytes_accessed for op in context.ops)
        return schema.Roofline(peaks=known, coverage=0.0) if has_costs else None
    tflops = totals.flops / totals.time
    gbps = totals.bytes_accessed * 1000 / totals.time
    achieved = {"teraflops_per_second": tflops, "hbm_gigabytes_per_second": gbps}
    if totals.bytes_accessed:
        achieved["operational_intensity"] = totals.flops / totals.bytes_accessed
    utilization = {name: achieved[name] / peak for name, peak in known.items()}
    possible = all(value <= 1.0 for value in utilization.values())
    bound_by = None
    if possible and len(utilization) == 2:
        memory = utilization["hbm_gigabytes_per_second"] >= utilization["teraflops_per_second"]
        bound_by = "memory" if memory else "compute"
    return schema.Roofline(
        peaks=known,
        achieved=achieved,
        utilization=utilization if possible else {},
        bound_by=bound_by,
        mfu=_mfu(context, peaks),
        coverage=totals.coverage,
    )


def _mfu(context: Context, peaks: Peaks) -> float | None:
    """Model flops of a step / (period x peak x devices); with one step, its duration."""
    kept = context.kept_steps
    if not context.steady or not kept or not peaks.teraflops:
        return None
    lengths = [step.period for step in kept if step.period is not None]
    if len(kept) == 1:
        lengths = [step.duration for step in kept if step.duration is not None]
    flops = sum(
        (op.facts.flops or 0) * op.period_count
        for op in context.ops
        if op.facts.group == GROUP_COMPUTE
        and not op.facts.op_class.is_container
        and op.exclusive
        and not op_rate(op, peaks).impossible
    )
    if not lengths or not flops or not context.periods:
        return None
    mfu = (
        flops
        / context.periods
        / (float(np.median(lengths)) * peaks.teraflops * len(context.main_devices))
    )
    return mfu if mfu <= 1.0 else None
