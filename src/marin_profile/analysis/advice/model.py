"""What rules are given, what they say, and what is known of a rule besides.

Contract: shares are of device time (devices x window) in 0..1, of the headline window; a share
times the mean step is its time a step. Every claim is a part of one term of TERMS, which are
disjoint as the ledger's are. Where devices share processors, shares are of the time of their hosts
(see `on_shared_processors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

ONE_OFF_GAP = 0.5  # of all gaps before an op: more in one gap is no recurring delay

# Whether all of a ceiling can be saved (its cause is seen), or it is a bound.
KNOWN: Final = "known"
AT_MOST: Final = "at most"
Certainty = Literal["known", "at most"]

ONE_OFF: Final = "one-off"
RECURRING: Final = "recurring"
Occurrence = Literal["one-off", "recurring"]

# The parts of device time that advice can claim: the ledger's terms, and of exposed communication
# apart what is waiting for the last to arrive, and what varies.
IDLE: Final = "idle"
WAIT: Final = "wait"
VARYING: Final = "varying"
COMMUNICATION: Final = "exposed_communication"
TRANSFER: Final = "exposed_transfer"
COMPUTE: Final = "compute"
# A part of all of them, as a program has that some steps run besides.
STEP: Final = "step"
TERMS: Final = (IDLE, WAIT, VARYING, COMMUNICATION, TRANSFER, COMPUTE)

# A collective of so few bytes pays for latency, not for bandwidth.
SMALL_BYTES = 64 * 1024

# A straggler on shared processors computes longer by this part of what is waited for it, or more.
MORE_WORK = 0.5

# Where advice stands: what changes the reading of everything, then by its ceiling, then waits that
# nobody causes (by chance, or because devices share a processor), then what saves no time itself.
FIRST, RANKED, UNCAUSED, LAST = range(4)


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
        return self.longest > ONE_OFF_GAP * self.share


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
    def occurs(self) -> Occurrence | None:
        """Recurring in most steps or at a constant distance; None in some without one, and where no
        steps are known."""
        if self.periods and (self.every is not None or 2 * self.step_count >= self.periods):
            return RECURRING
        return ONE_OFF if self.step_count == 1 else None


@dataclass(frozen=True)
class Late:
    """Those that the others wait for in collectives, and the exposed wait for them. part: of all
    devices, theirs."""

    names: tuple[str, ...]
    share: float
    part: float = 0.0

    def has(self, device: str) -> bool:
        """By its name, or its host's."""
        return any(device == one or device.startswith(f"{one} ") for one in self.names)

    @property
    def each(self) -> float:
        """What each of the others waits on average, of its time."""
        return self.share / (1 - self.part) if self.part < 1 else self.share


@dataclass(frozen=True)
class Exposed:
    """Exposed collectives of one kind and scope (numbered layers are one, "*"; "" for none, or for
    several combined), less the waits for the last to arrive and what varies. blocks: a plain op on
    the line of compute, of a kind that has an asynchronous form. bytes_each: of one execution, the
    mean; None if not known. per_step: executions on a device, None without whole periods.
    overlapped: of all of the kind. varying: what it takes beyond the fastest of its op."""

    kind: str
    scope: str
    share: float
    overlapped: float
    blocks: bool = False
    bytes_each: float | None = None
    per_step: float | None = None
    varying: float = 0.0

    @property
    def is_small(self) -> bool:
        return self.bytes_each is not None and self.bytes_each <= SMALL_BYTES

    def with_(self, other: Exposed) -> Exposed:
        """Both together; bytes_each is then of executions of either."""
        counts = (self.per_step, other.per_step)
        return replace(
            self,
            share=self.share + other.share,
            varying=self.varying + other.varying,
            bytes_each=_mean(counts, (self.bytes_each, other.bytes_each)),
            per_step=None if None in counts else sum(one or 0.0 for one in counts),
        )


def _mean(
    weights: tuple[float | None, float | None], values: tuple[float | None, float | None]
) -> float | None:
    (a, b), (x, y) = weights, values
    if x is None or y is None:
        return None
    return (a * x + b * y) / (a + b) if a and b else max(x, y)


@dataclass(frozen=True, slots=True)
class OpShare:
    """A compute op (or all that are alike in these fields). least: what it needs at the device's
    peaks, least_compute: what its flops alone need there; None where costs or peaks are not known.
    flops: of all its executions, None where not known.
    is_wide: a product of float32 or wider operands; from_narrow: of ones converted to that.
    is_container: a loop or a call, whose own time is between the ops in it."""

    name: str
    module: str
    scope: tuple[str, ...]
    share: float
    least: float | None = None
    least_compute: float | None = None
    flops: int | None = None
    bound_by: str | None = None
    is_recompute: bool = False
    is_copy: bool = False
    in_loop: bool = False
    is_product: bool = False
    is_wide: bool = False
    from_narrow: bool = False
    is_container: bool = False


@dataclass(frozen=True)
class Padding:
    """Padding at a program's peak in one memory space, as a share of the fullest program's peak."""

    program: str
    space: str
    share: float


@dataclass(frozen=True)
class Findings:
    """All figures are of the headline window; shares of `basis`, in words. terms: by TERMS, all of
    what there is of each; varying: what collectives take beyond the fastest of their op."""

    basis: str
    terms: Mapping[str, float]
    device_kind: str
    compute_by_device: tuple[tuple[str, float], ...]  # of each device's own window
    late_hosts: Late | None
    late_devices: Late | None
    collectives: tuple[Exposed, ...]  # the largest first
    transfers: tuple[tuple[str, str, float], ...]  # kind, its largest op, share; the largest first
    partly_idle: float  # while another device of the host works; 0.0 where that is not known
    host_idle: tuple[HostIdle, ...]  # the largest first
    launches_per_step: float | None
    calls_per_step: Mapping[str, float]  # of programs by name, on one device
    most_launched: tuple[str, ...]
    reads_per_step: float | None
    rounds_per_step: int | None  # of waiting for a device and launching again, in a typical step
    keeps_up: bool  # but for its waits the host takes less time than the devices work
    most_delayed: Gaps | None
    ops: tuple[OpShare, ...]  # the largest first
    ops_per_step: float | None  # compute ops on one device
    op_mean_us: float | None
    long_op: tuple[str, int, float] | None  # one that outlasts steps: how many, share of its device
    step_median_us: float | None
    step_mean_us: float | None
    step_p90_us: float | None
    slow_steps: tuple[CauseOfSlowSteps, ...]  # the costliest first
    steps: int
    kept_steps: int  # those whose period is known
    is_cut: bool
    padding: tuple[Padding, ...]  # the largest first
    hlo_attributed: float | None
    scope_attributed: float | None
    without_hlo: tuple[str, ...]  # hosts whose files could hold HLO protos and do not
    window_to_outside: float | None
    shares_processors: bool = False


@dataclass(frozen=True)
class HostTime:
    """Shares of the time of hosts whose devices share processors, see `shared_processors`; and of
    device time, what their ledgers call compute and exposed communication."""

    compute: float
    communication: float
    other: float
    idle: float
    ledger_compute: float
    ledger_communication: float


def on_shared_processors(f: Findings, time: HostTime) -> Findings:
    """The same for devices that share processors. Compute takes the time in which any of them
    computes, less what the others wait for a straggler; collectives take what is left of theirs. A
    straggler is one that computes longer: to be late may be to get a processor last. Nothing is
    lost to other waits, nor to idling while another device works: processors do not idle then.
    """
    devices = f.late_devices
    if devices is not None and beyond_the_others(f, devices) < MORE_WORK * devices.each:
        devices = None
    late = sum(one.each for one in (f.late_hosts, devices) if one is not None)
    computing = max(0.0, time.compute - late)
    compute = _ratio(computing, time.ledger_compute)
    communication = _ratio(time.communication, time.ledger_communication - f.terms[WAIT])
    idle = _ratio(time.idle, f.terms[IDLE])
    gap = f.most_delayed
    return replace(
        f,
        basis="host time",
        shares_processors=True,
        terms={
            IDLE: time.idle,
            WAIT: min(late, time.compute),
            VARYING: f.terms[VARYING] * communication,
            COMMUNICATION: f.terms[COMMUNICATION] * communication,
            TRANSFER: min(f.terms[TRANSFER], time.other),
            COMPUTE: computing,
        },
        collectives=tuple(
            replace(one, share=one.share * communication, varying=one.varying * communication)
            for one in f.collectives
        ),
        late_hosts=f.late_hosts and replace(f.late_hosts, share=f.late_hosts.each, part=0.0),
        late_devices=devices and replace(devices, share=devices.each, part=0.0),
        partly_idle=0.0,
        most_delayed=gap and replace(gap, share=gap.share * idle, longest=gap.longest * idle),
        ops=tuple(_scaled(op, compute) for op in f.ops),
    )


def beyond_the_others(f: Findings, late: Late) -> float:
    """What the late ones compute longer than the others, of their time."""
    own: list[float] = []
    others: list[float] = []
    for name, share in f.compute_by_device:
        (own if late.has(name) else others).append(share)
    if not own or not others:
        return 0.0
    return max(0.0, sum(own) / len(own) - sum(others) / len(others))


def _scaled(op: OpShare, by: float) -> OpShare:
    return replace(
        op,
        share=op.share * by,
        least=None if op.least is None else op.least * by,
        least_compute=None if op.least_compute is None else op.least_compute * by,
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class Found:
    """What a rule's function yields. share: what is saved at most, None where it saves no time
    itself; also: how much of it is of other terms than its rule's. weight: what it counts among
    others, by default all of it where it is known and half of it where it is a bound. line: the one
    line of the evidence to show. By default it is the first, but behind a ceiling the second, since
    the first says how large that is."""

    title: str
    cause: str
    evidence: tuple[str, ...]
    share: float | None = None
    certainty: Certainty = AT_MOST
    occurs: Occurrence | None = None
    line: str = ""
    also: Mapping[str, float] = field(default_factory=dict)
    weight: float | None = None

    @property
    def why(self) -> str:
        beside_ceiling = self.share is not None and len(self.evidence) > 1
        return self.line or self.evidence[1 if beside_ceiling else 0]


@dataclass(frozen=True)
class Rule:
    """when: it fires. basis: how the ceiling was got ("" without one), term: what it is a part of.
    fields: of the summary, which hold the evidence. do: what to try; verify: which query or figure
    then shows that it helped."""

    id: str
    find: Callable[[Findings], Iterable[Found]]
    when: str
    fields: tuple[str, ...]
    do: tuple[str, ...]
    verify: str
    term: str | None = None
    basis: str = ""
    place: int = RANKED


@dataclass(frozen=True)
class Candidate:
    """share: the ceiling, cut to what earlier rules left of the term; None without one."""

    rule: Rule
    found: Found
    share: float | None


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
