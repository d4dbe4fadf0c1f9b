"""How far the device is from its peaks: static cost over measured time.

Contract: rate = flops (model_flops, else flops) or bytes accessed, over self time; utilisation =
rate / peak of the plane; bound_by = the larger utilisation. A utilisation above 1 is an error in
the data: it is named, never reported as a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from marin_profile.analysis.ops import OpTotals
from marin_profile.events.classify import GROUP_COMPUTE

COMPUTE_BOUND, MEMORY_BOUND = "compute", "memory"


@dataclass(frozen=True)
class Peaks:
    """Per device; None where the plane does not say."""

    teraflops: float | None
    hbm_gigabytes: float | None


@dataclass(frozen=True)
class OpRate:
    tflops: float | None
    gbps: float | None
    bound_by: str | None
    impossible: bool


@dataclass(frozen=True)
class RooflineTotals:
    """Over all compute ops with costs. coverage: their share of all ops' self time."""

    flops: int
    bytes_accessed: int
    time: int
    all_time: int

    @property
    def coverage(self) -> float | None:
        return self.time / self.all_time if self.all_time else None


def peaks_of(stats: Mapping[str, int | float | str]) -> Peaks:
    """TPU planes give teraflops and gigabytes per second, GPU planes bytes per second."""
    memory = _positive(stats.get("peak_hbm_bw_gigabytes_per_second"))
    if memory is None:
        bytes_per_second = _positive(stats.get("memory_bandwidth"))
        memory = None if bytes_per_second is None else bytes_per_second / 1e9
    return Peaks(_positive(stats.get("peak_teraflops_per_second")), memory)


def _positive(value: int | float | str | None) -> float | None:
    if isinstance(value, int | float) and 0 < value < math.inf:
        return float(value)
    return None


def op_rate(op: OpTotals, peaks: Peaks) -> OpRate:
    """Achieved TFLOP/s (flops per ps) and GB/s of one compute op: a wait's duration is no work."""
    facts, time = op.facts, op.exclusive
    if time <= 0 or facts.group != GROUP_COMPUTE:
        return OpRate(None, None, None, False)
    tflops = None if facts.flops is None else facts.flops * op.count / time
    gbps = None if facts.bytes_accessed is None else facts.bytes_accessed * op.count * 1000 / time
    compute = _utilisation(tflops, peaks.teraflops)
    memory = _utilisation(gbps, peaks.hbm_gigabytes)
    impossible = max(compute or 0.0, memory or 0.0) > 1.0
    return OpRate(tflops, gbps, None if impossible else _larger(compute, memory), impossible)


def _utilisation(rate: float | None, peak: float | None) -> float | None:
    return None if rate is None or peak is None else rate / peak


def _larger(compute: float | None, memory: float | None) -> str | None:
    if compute is None or memory is None or compute == memory == 0:
        return None
    return COMPUTE_BOUND if compute > memory else MEMORY_BOUND


def roofline_totals(ops: Iterable[OpTotals], peaks: Peaks) -> RooflineTotals:
    """Ops without time, or with a rate that cannot be, are left out of all but `all_time`."""
    flops = bytes_accessed = time = all_time = 0
    for op in ops:
        all_time += op.exclusive
        if op.facts.group != GROUP_COMPUTE or op.facts.op_class.is_container:
            continue
        if op.facts.flops is None and op.facts.bytes_accessed is None:
            continue
        if not op.exclusive or op_rate(op, peaks).impossible:
            continue
        flops += (op.facts.flops or 0) * op.count
        bytes_accessed += (op.facts.bytes_accessed or 0) * op.count
        time += op.exclusive
    return RooflineTotals(flops, bytes_accessed, time, all_time)
