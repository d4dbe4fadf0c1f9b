"""How far the device is from its peaks: static costs over measured time.

Contract
* rate = flops, or bytes accessed, over self time; utilisation = rate / peak of the plane; bound_by
  = the larger utilisation, where both costs are known. A utilisation above 1 is an error in the
  data: it is named, never reported as a figure, and the op's costs count as unknown.
* Sums are over compute ops: a wait's duration is no work. What may be work that is not seen counts
  as time without costs: a container's own time, which no op inside it covers, and ops of unknown
  kind, such as a GPU's graphs.
* MFU = flops outside the recompute pass / (time x peak), HFU = all flops / (time x peak). Where ops
  lack costs both are lower bounds; below LEAST_COVERAGE of compute time there are none, and no
  rates: those of the few ops with costs would pass for the whole's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.events.classify import GROUP_COMPUTE, GROUP_UNKNOWN, family
from marin_profile.events.scopes import RECOMPUTE, SEPARATOR

COMPUTE_BOUND, MEMORY_BOUND = "compute", "memory"

LEAST_COVERAGE = 0.5

# Dense bf16 flops per clock cycle and core (streaming multiprocessor, compute unit), by vendor and
# compute capability; AMD's are gfx908 and gfx90a, gfx942, gfx950.
FLOPS_PER_CYCLE: dict[tuple[object, ...], int] = {
    ("nvidia", 8, 0): 2048,
    ("nvidia", 9, 0): 4096,
    ("nvidia", 10, 0): 8192,
    ("amd", 9, 0): 1024,
    ("amd", 9, 4): 2048,
    ("amd", 9, 5): 4096,
}
# A plane's memory bandwidth counts two transfers per memory clock; gfx942's memory makes four, and
# kernels on it are faster than the plane says.
TRANSFERS_BEYOND_STATED: dict[tuple[object, ...], int] = {("amd", 9, 4): 2}


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


def peaks_of(stats: Mapping[str, int | float | str]) -> Peaks:
    """TPU planes give teraflops and gigabytes per second, GPU planes their clock (kHz), cores,
    compute capability, and bytes per second."""
    gpu = (
        str(stats.get("device_vendor", "")).lower(),
        stats.get("compute_cap_major"),
        stats.get("compute_cap_minor", 0),
    )
    teraflops = _positive(stats.get("peak_teraflops_per_second"))
    clock, cores = _positive(stats.get("clock_rate")), _positive(stats.get("core_count"))
    if teraflops is None and clock and cores and gpu in FLOPS_PER_CYCLE:
        teraflops = clock * cores * FLOPS_PER_CYCLE[gpu] / 1e9
    memory = _positive(stats.get("peak_hbm_bw_gigabytes_per_second"))
    bytes_per_second = _positive(stats.get("memory_bandwidth"))
    if memory is None and bytes_per_second:
        memory = bytes_per_second * TRANSFERS_BEYOND_STATED.get(gpu, 1) / 1e9
    return Peaks(teraflops, memory)


def _positive(value: int | float | str | None) -> float | None:
    if isinstance(value, int | float) and 0 < value < math.inf:
        return float(value)
    return None


def op_rate(op: OpTotals, peaks: Peaks) -> OpRate:
    """Achieved TFLOP/s (flops per ps) and GB/s of one compute op over the whole capture."""
    costs, time = op.costs, op.exclusive
    if not time or op.facts.group != GROUP_COMPUTE:
        return OpRate(None, None, None, False)
    count = op.cost_count
    tflops = None if costs.flops is None else costs.flops * count / time
    gbps = None if costs.bytes_accessed is None else costs.bytes_accessed * count * 1000 / time
    compute = _utilisation(tflops, peaks.teraflops)
    memory = _utilisation(gbps, peaks.hbm_gigabytes)
    if any(share is not None and share > 1.0 for share in (compute, memory)):
        return OpRate(None, None, None, True)
    return OpRate(tflops, gbps, _larger(compute, memory), False)


def share_at_roofline(ops: Iterable[OpTotals], peaks: Peaks) -> float | None:
    """The part of their time that these compute ops would take at their roofline; None unless the
    costs of all of them and both peaks are known."""
    time = needed = 0.0
    for op in ops:
        rate = op_rate(op, peaks)
        compute = _utilisation(rate.tflops, peaks.teraflops)
        memory = _utilisation(rate.gbps, peaks.hbm_gigabytes)
        if op.exclusive and (compute is None or memory is None):
            return None
        time += op.exclusive
        needed += op.exclusive * max(compute or 0.0, memory or 0.0)
    return needed / time if time else None


def _utilisation(rate: float | None, peak: float | None) -> float | None:
    return None if rate is None or peak is None else rate / peak


def _larger(compute: float | None, memory: float | None) -> str | None:
    if compute is None or memory is None or not (compute or memory):
        return None
    return COMPUTE_BOUND if compute > memory else MEMORY_BOUND


@dataclass
class Work:
    """What compute ops do in a window, over all devices; picoseconds. time: of all of them, and of
    ops of unknown kind;
    known_time: of those with known costs, whose flops and bytes these are. compute_bound,
    memory_bound: parts of known_time."""

    flops: int = 0
    recomputed_flops: int = 0
    bytes_accessed: int = 0
    time: int = 0
    known_time: int = 0
    compute_bound: int = 0
    memory_bound: int = 0

    def add(self, other: Work) -> None:
        self.flops += other.flops
        self.recomputed_flops += other.recomputed_flops
        self.bytes_accessed += other.bytes_accessed
        self.time += other.time
        self.known_time += other.known_time
        self.compute_bound += other.compute_bound
        self.memory_bound += other.memory_bound

    @property
    def coverage(self) -> float | None:
        return self.known_time / self.time if self.time else None

    @property
    def is_covered(self) -> bool:
        """Whether enough is known to speak of the whole."""
        return self.known_time > 0 and self.known_time >= LEAST_COVERAGE * self.time

    @property
    def tflops(self) -> float | None:
        return self.flops / self.known_time if self.is_covered else None

    @property
    def gbps(self) -> float | None:
        return self.bytes_accessed * 1000 / self.known_time if self.is_covered else None

    def bound_by(self, peaks: Peaks) -> str | None:
        return _larger(
            _utilisation(self.tflops, peaks.teraflops),
            _utilisation(self.gbps, peaks.hbm_gigabytes),
        )

    def mfu(self, peaks: Peaks, time: float) -> float | None:
        """`time` that the devices had, summed over them."""
        return self._share_of_peak(self.flops - self.recomputed_flops, peaks, time)

    def hfu(self, peaks: Peaks, time: float) -> float | None:
        return self._share_of_peak(self.flops, peaks, time)

    def _share_of_peak(self, flops: int, peaks: Peaks, time: float) -> float | None:
        if not self.is_covered or peaks.teraflops is None or not time:
            return None
        return flops / (time * peaks.teraflops)


OpWork = tuple[OpTotals, Work]


def work_of_ops(ops: Iterable[OpTotals], peaks: Peaks, *, in_periods: bool) -> list[OpWork]:
    """The ops that compute, or may, and take time, over whole periods or over the whole capture."""
    return [
        (op, _work(op, peaks, in_periods))
        for op in ops
        if op.facts.group in (GROUP_COMPUTE, GROUP_UNKNOWN)
        and op.device_kind != SPARSECORE
        and (op.period_exclusive if in_periods else op.exclusive)
    ]


def _work(op: OpTotals, peaks: Peaks, in_periods: bool) -> Work:
    time = op.period_exclusive if in_periods else op.exclusive
    rate, costs = op_rate(op, peaks), op.costs
    is_unknown = op.facts.group == GROUP_UNKNOWN or rate.impossible
    if is_unknown or costs.flops is None or costs.bytes_accessed is None:
        return Work(time=time)
    count = op.period_cost_count if in_periods else op.cost_count
    flops = costs.flops * count
    return Work(
        flops=flops,
        recomputed_flops=flops if op.facts.pass_name == RECOMPUTE else 0,
        bytes_accessed=costs.bytes_accessed * count,
        time=time,
        known_time=time,
        compute_bound=time if rate.bound_by == COMPUTE_BOUND else 0,
        memory_bound=time if rate.bound_by == MEMORY_BOUND else 0,
    )


def total(works: Iterable[OpWork]) -> Work:
    whole = Work()
    for _, work in works:
        whole.add(work)
    return whole


def _grouped(works: Iterable[OpWork], name: Callable[[OpTotals], str]) -> dict[str, Work]:
    found: dict[str, Work] = {}
    for op, work in works:
        found.setdefault(name(op), Work()).add(work)
    return found


def work_by_program(works: Sequence[OpWork]) -> dict[str, Work]:
    """By module name; programs of one name are told apart by their ids."""
    ids: dict[str, set[int | None]] = {}
    for op, _ in works:
        ids.setdefault(op.module, set()).add(op.program_id)

    def name(op: OpTotals) -> str:
        return op.module if len(ids[op.module]) == 1 else f"{op.module}({op.program_id})"

    return _grouped(works, name)


def work_by_pass(works: Sequence[OpWork]) -> dict[str, Work]:
    return _grouped(works, lambda op: op.facts.pass_name)


def work_by_family(works: Sequence[OpWork]) -> dict[str, Work]:
    def name(op: OpTotals) -> str:
        fact = op.facts
        return family(fact.name, fact.scope_path, fact.kind, fact.hlo_category)

    return _grouped(works, name)


def work_by_region(works: Sequence[OpWork]) -> dict[str, Work]:
    """Every prefix of a scope path is a region; ops without a scope are in none."""
    by_scope: dict[tuple[str, ...], Work] = {}
    for op, work in works:
        by_scope.setdefault(op.facts.scope, Work()).add(work)
    found: dict[str, Work] = {}
    for scope, work in by_scope.items():
        for depth in range(1, len(scope) + 1):
            found.setdefault(SEPARATOR.join(scope[:depth]), Work()).add(work)
    return found
