"""What to try next: rules over the summary's own numbers, each with its evidence.

Contract: a rule takes a Findings record and returns a Candidate or None; candidates are ordered by
the share of device time they concern, ties by id. Thresholds stand in one table. Text holds no
number that the evidence does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marin_profile.base.text import plural
from marin_profile.events.classify import SPARSECORE

# Shares of device time (or ratios) from which a rule speaks.
EXPOSED_COMMUNICATION = 0.15
HOST_TRANSFER = 0.10
DEVICE_WAIT = 0.10
IDLE = 0.20
GAP_BEFORE_OP = 0.05
ONE_OFF = 0.5  # of all gaps before an op: more in one gap is no recurring delay
TOP_OP = 0.30
RECOMPUTE = 0.15
STEP_SPREAD = 1.4
STEPS_IN_ONE_OP = 2
SLOW_STEPS = 0.02
MOST_CAUSES = 3
LOW_ATTRIBUTION = 0.90


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
    """The outliers of one cause: in words, how many, and what they add to the mean period."""

    cause: str
    count: int
    excess_us: float


@dataclass(frozen=True)
class Findings:
    """All figures are of the headline window; shares of device time (or of op time), in 0..1."""

    window: str
    exposed_communication: float  # less the wait for stragglers
    exposed_wait: float  # of all exposed communication: waiting for the last to arrive
    straggler: tuple[str, float] | None  # who, and the exposed wait for them
    worst_collective: tuple[str, float, float] | None  # kind, exposed share, overlapped share
    host_transfer: float
    worst_transfer: tuple[str, float] | None
    device_wait: float  # for copies inside and between devices, and for sparse cores
    worst_wait: tuple[str, str, float] | None  # kind, its largest op, share
    idle: float
    most_delayed: Gaps | None
    top_op: tuple[str, str, float] | None  # compute op: name, scope, share of op time
    top_op_bound_by: str | None
    long_op: tuple[str, int] | None  # the longest that outlasts a step, in typical steps
    recompute: float
    step_median_us: float | None
    step_mean_us: float | None
    step_p90_us: float | None
    slow_steps: tuple[CauseOfSlowSteps, ...]  # the costliest first
    kept_steps: int
    hlo_attributed: float | None


@dataclass(frozen=True)
class Candidate:
    id: str
    title: str
    rationale: str
    evidence: tuple[str, ...]
    suggestions: tuple[str, ...]
    share: float


def candidates(findings: Findings) -> list[Candidate]:
    found = [candidate for rule in RULES if (candidate := rule(findings)) is not None]
    return sorted(found, key=lambda candidate: (-candidate.share, candidate.id))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _communication(f: Findings) -> Candidate | None:
    if f.exposed_communication < EXPOSED_COMMUNICATION or f.worst_collective is None:
        return None
    kind, exposed, overlapped = f.worst_collective
    evidence = [
        f"exposed communication: {_percent(f.exposed_communication)} of device time",
        f"{kind}: {_percent(exposed)} exposed, {_percent(overlapped)} overlapped",
    ]
    if f.straggler is not None:
        name, share = f.straggler
        evidence.append(f"not included: the wait for {name}, {_percent(share)}")
    elif f.exposed_wait:
        evidence.append(f"of which waiting for the last to arrive: {_percent(f.exposed_wait)}")
    return Candidate(
        "exposed-communication",
        f"Hide or shrink {kind}",
        "Devices wait for collectives that no compute covers.",
        tuple(evidence),
        (
            "Let XLA overlap collectives with compute (latency-hiding scheduler, async pairs).",
            "Check the sharding: fewer or larger collectives, a mesh axis that fits the network.",
            "If much of it is waiting, look for uneven work between devices first.",
        ),
        f.exposed_communication,
    )


def _straggler(f: Findings) -> Candidate | None:
    if f.straggler is None or f.straggler[1] <= 0:
        return None
    name, share = f.straggler
    return Candidate(
        "straggler",
        f"Find out why {name} arrives late",
        "The other devices wait for it in collectives; the network is not to blame for that time.",
        (
            f"wait for {name}: {_percent(share)} of device time",
            f"all waits for the last to arrive: {_percent(f.exposed_wait)}",
        ),
        (
            "Compare its compute time, idle time and host work with the others'.",
            "Look at what runs beside it on that machine, at its clocks and temperature, its data.",
            "If the next capture shows another straggler, look for uneven work instead.",
        ),
        share,
    )


def _host_transfer(f: Findings) -> Candidate | None:
    if f.host_transfer < HOST_TRANSFER or f.worst_transfer is None:
        return None
    kind, share = f.worst_transfer
    return Candidate(
        "exposed-host-transfer",
        "Move less between host and device, or earlier",
        "Devices wait for copies between host and device memory that nothing covers.",
        (
            f"exposed host transfer: {_percent(f.host_transfer)} of device time",
            f"{kind}: {_percent(share)} exposed",
        ),
        (
            "Offload fewer or smaller tensors, or choose other activations to offload.",
            "Start the copy earlier, so that compute covers it (prefetch, double buffering).",
        ),
        f.host_transfer,
    )


def _device_wait(f: Findings) -> Candidate | None:
    if f.device_wait < DEVICE_WAIT or f.worst_wait is None:
        return None
    kind, op, share = f.worst_wait
    if kind == SPARSECORE:
        title = "Wait less for the sparse core"
        suggestions = (
            "Keep the op on the TensorCore and compare: it may take longer offloaded.",
            "Schedule it earlier, beside compute that does not need its result.",
        )
    else:
        title = "Hide copies within and between devices"
        suggestions = (
            "Start the copies earlier, beside compute (latency-hiding scheduler, prefetch).",
            "Avoid them: fuse producer and consumer, or keep one layout.",
        )
    return Candidate(
        "exposed-device-wait",
        title,
        "Devices wait for copies or for sparse cores, and no compute covers the wait.",
        (
            f"exposed waits: {_percent(f.device_wait)} of device time",
            f"{kind}: {_percent(share)} exposed, most of it in {op}",
        ),
        suggestions,
        f.device_wait,
    )


def _idle(f: Findings) -> Candidate | None:
    if f.idle < IDLE:
        return None
    evidence = [f"idle: {_percent(f.idle)} of device time"]
    if f.most_delayed is not None:
        evidence += _gaps_in_words(f.most_delayed)
    return Candidate(
        "idle-devices",
        "Keep the devices fed",
        "Devices have nothing to run for a large part of the time.",
        tuple(evidence),
        (
            "Look at the input pipeline and at host work between steps (logging, hooks, .item()).",
            "Dispatch ahead: avoid blocking on results inside the step loop.",
            "Batch small executions into one jitted function.",
        ),
        f.idle,
    )


def _gap(f: Findings) -> Candidate | None:
    gaps = f.most_delayed
    if gaps is None or f.idle >= IDLE or gaps.share < GAP_BEFORE_OP:
        return None
    if gaps.is_one_off:
        return Candidate(
            "one-long-gap",
            f"Find out what caused the long gap before {gaps.before}",
            "One long gap takes most of the time that the device idles before this op.",
            _gaps_in_words(gaps),
            ("Look at what the host did then: a compilation, a checkpoint, a slow input batch.",),
            gaps.share,
        )
    return Candidate(
        "gap-before-op",
        f"Find out what delays {gaps.before}",
        "The device idles before one op again and again.",
        _gaps_in_words(gaps),
        (f"Ask for the context of `{gaps.before}` and look at what the host does meanwhile.",),
        gaps.share,
    )


def _gaps_in_words(gaps: Gaps) -> tuple[str, ...]:
    total = f"gaps before {gaps.before}: {_percent(gaps.share)} of device time in {gaps.count} gaps"
    longest = f"the longest gap alone: {_percent(gaps.longest)} of device time"
    return (total, longest) if gaps.is_one_off else (total,)


def _top_op(f: Findings) -> Candidate | None:
    if f.top_op is None or f.top_op[2] < TOP_OP:
        return None
    name, scope, share = f.top_op
    if f.long_op is not None and f.long_op[0] == name and f.long_op[1] >= STEPS_IN_ONE_OP:
        return Candidate(
            "op-longer-than-steps",
            f"Check the capture: {name} spans many steps",
            "An op cannot last longer than the step that it is in: the profiler joined or lost "
            "events, or the markers name something else.",
            (f"{name}: {_percent(share)} of op time, {f.long_op[1]:,} typical steps long",),
            ("Capture again, with fewer steps, and look at this op in the trace viewer.",),
            share,
        )
    evidence = [f"{name}: {_percent(share)} of op time"]
    if scope:
        evidence.append(f"scope: {scope}")
    if f.top_op_bound_by:
        evidence.append(f"bound by: {f.top_op_bound_by}")
    return Candidate(
        "dominant-op",
        f"Optimise {name} first",
        "One op takes a large part of the time of all ops.",
        tuple(evidence),
        ("Try another kernel, precision, block size or layout for it, and compare.",),
        share,
    )


def _recompute(f: Findings) -> Candidate | None:
    if f.recompute < RECOMPUTE:
        return None
    return Candidate(
        "recompute",
        "Recompute less in the backward pass",
        "Checkpointing repeats a large part of the forward pass.",
        (f"recompute: {_percent(f.recompute)} of op time",),
        ("Save more activations (a checkpoint policy), if memory allows.",),
        f.recompute,
    )


def _spread(f: Findings) -> Candidate | None:
    """About the time that the mean step takes beyond the typical one."""
    median, mean, p90 = f.step_median_us, f.step_mean_us, f.step_p90_us
    if not median or not mean or p90 is None or f.kept_steps < 2:
        return None
    beyond = max(0.0, 1 - median / mean)
    if p90 / median < STEP_SPREAD and beyond <= SLOW_STEPS:
        return None
    return Candidate(
        "uneven-steps",
        "Find out why some steps are slow",
        "Training time follows the mean step, which slow steps make longer than the typical one.",
        (
            f"step period: typical (median) {median:.1f} us, mean {mean:.1f} us, p90 {p90:.1f} us "
            f"over {f.kept_steps} steps",
            *(
                f"{slow.cause}: {plural(slow.count, 'step')}, "
                f"{slow.excess_us:.1f} us of the mean step"
                for slow in f.slow_steps[:MOST_CAUSES]
            ),
        ),
        ("Look at the slow steps: evaluation, checkpoints, data stalls, recompilation.",),
        beyond,
    )


def _attribution(f: Findings) -> Candidate | None:
    if f.hlo_attributed is None or f.hlo_attributed >= LOW_ATTRIBUTION:
        return None
    return Candidate(
        "low-attribution",
        "Attribute more kernels to HLO ops",
        "Much kernel time has no HLO op, so regions and families are incomplete.",
        (f"HLO-attributed: {_percent(f.hlo_attributed)} of kernel time",),
        (
            "Capture once with command buffers off (--xla_gpu_enable_command_buffer=) to see which "
            "ops they hold.",
        ),
        1 - f.hlo_attributed,
    )


RULES: tuple[Callable[[Findings], Candidate | None], ...] = (
    _communication,
    _straggler,
    _host_transfer,
    _device_wait,
    _idle,
    _gap,
    _top_op,
    _recompute,
    _spread,
    _attribution,
)
