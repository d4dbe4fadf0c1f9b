"""What rules are given, and what they say.

Contract: shares are of device time (devices x window) in 0..1, of the headline window, so that they
are disjoint as the ledger's terms are; a share times the mean step is its time a step. Where
devices share processors, they are of the time of their hosts (see `on_shared_processors`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

ONE_OFF = 0.5  # of all gaps before an op: more in one gap is no recurring delay

# Whether all of a ceiling can be saved (its cause is seen), or it is a bound.
KNOWN: Final = "known"
AT_MOST: Final = "at most"
Certainty = Literal["known", "at most"]


@dataclass(frozen=True)
class Gaps:
    """Idle time before one op: shares of device time of all gaps, and of the longest one on each
    device."""

    before: str
    share: float
    longest: float
    count: int

    @property
    def is_one_off(self) -> bool:
        return self.longest > ONE_OFF * self.share


@dataclass(frozen=True)
class CauseOfSlowSteps:
    """The outliers of one cause (see `outliers`): in words, how many, and what they add to the mean
    period. every: after how many steps they come back, None if that is not seen."""

    cause: str
    count: int
    excess_us: float
    kind: str = ""
    name: str = ""
    every: int | None = None


@dataclass(frozen=True)
class HostIdle:
    """Idle time of all devices of a host at once with one cause (see `host_account`), over all
    hosts. place: "inside" or "between" step markers, whatever holds more of it, "" without markers;
    count: events. steps: names of those that it costs, of `periods`; () where it costs all of them
    or there are none. every: after how many steps it comes back, None if that is not seen."""

    kind: str
    name: str
    place: str
    share: float
    count: int
    steps: tuple[int, ...] = ()
    step_count: int = 0
    periods: int = 0
    every: int | None = None

    @property
    def is_one_off(self) -> bool:
        """Neither in most steps nor at a constant distance."""
        return self.periods > 0 and self.every is None and 2 * self.step_count < self.periods


@dataclass(frozen=True)
class TopRegion:
    """The region furthest in that holds most compute ("": none does), and its largest op."""

    path: str
    op: str
    share: float
    bound_by: str | None


@dataclass(frozen=True)
class Findings:
    """All figures are of the headline window; shares of `basis`, in words."""

    window: str
    basis: str
    exposed_communication: float  # less all waits for the last to arrive, and what varies
    exposed_wait: float  # waiting for the last to arrive
    exposed_varying: float  # what collectives take beyond the fastest of their op
    straggler: tuple[str, float] | None  # who, and the exposed wait for them
    worst_collective: tuple[str, float, float] | None  # kind, exposed share, overlapped share
    worst_collective_scope: str
    host_transfer: float
    worst_transfer: tuple[str, float] | None
    device_wait: float  # for copies inside and between devices, and for sparse cores
    worst_wait: tuple[str, str, float] | None  # kind, its largest op, share
    idle: float
    partly_idle: float  # while another device of the host works; 0.0 where that is not known
    host_idle: tuple[HostIdle, ...]  # the largest first
    launches_per_step: float | None
    most_launched: tuple[str, ...]
    reads_per_step: float | None
    most_delayed: Gaps | None
    top_region: TopRegion | None
    long_op: tuple[str, int, float] | None  # one that outlasts steps: how many, share of its device
    recompute: float
    step_median_us: float | None
    step_mean_us: float | None
    step_p90_us: float | None
    slow_steps: tuple[CauseOfSlowSteps, ...]  # the costliest first
    kept_steps: int
    hlo_attributed: float | None


@dataclass(frozen=True)
class HostTime:
    """Shares of the time of hosts whose devices share processors, see `shared_processors`; and of
    device time, what their ledgers call compute and exposed communication."""

    compute: float
    communication: float
    idle: float
    ledger_compute: float
    ledger_communication: float


def on_shared_processors(f: Findings, time: HostTime) -> Findings:
    """The same for devices that share processors. Compute takes the time in which any of them
    computes, less what is waited for a straggler; collectives take what is left of theirs. Nothing
    is lost to other waits, nor to idling while another device works: processors do not idle then.
    """
    late = f.straggler[1] if f.straggler else 0.0
    compute = _ratio(max(0.0, time.compute - late), time.ledger_compute)
    communication = _ratio(time.communication, time.ledger_communication - f.exposed_wait)
    region, worst, gap = f.top_region, f.worst_collective, f.most_delayed
    idle = _ratio(time.idle, f.idle)
    return replace(
        f,
        basis="host time",
        exposed_communication=f.exposed_communication * communication,
        exposed_varying=f.exposed_varying * communication,
        exposed_wait=late,
        worst_collective=worst and (worst[0], worst[1] * communication, worst[2]),
        idle=time.idle,
        partly_idle=0.0,
        most_delayed=gap and replace(gap, share=gap.share * idle, longest=gap.longest * idle),
        top_region=region and replace(region, share=region.share * compute),
        recompute=f.recompute * compute,
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class Candidate:
    """share: the ceiling, what is saved at most; certainty: whether it is known or only a bound."""

    id: str
    title: str
    rationale: str
    evidence: tuple[str, ...]
    suggestions: tuple[str, ...]
    share: float
    certainty: Certainty = AT_MOST


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
