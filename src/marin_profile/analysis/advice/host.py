"""Rules about idle devices: by what the host did, and where that is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from marin_profile.analysis.advice.model import (
    AT_MOST,
    COMPUTE,
    IDLE,
    KNOWN,
    ONE_OFF,
    RECURRING,
    UNCAUSED,
    Certainty,
    Findings,
    Found,
    Gaps,
    HostIdle,
    Occurrence,
    Rule,
    percent,
)
from marin_profile.analysis.host_account import ON_DEVICE, QUEUED, UNTRACED
from marin_profile.analysis.planes import GPU
from marin_profile.base.text import plural
from marin_profile.events.host_events import (
    COMPILE,
    DISPATCH,
    EVALUATES,
    FRAME,
    LOADS,
    LOGS,
    NAMED,
    READ,
    SAVES,
    WAIT,
    WRITE,
    purpose_of,
)

HOST_CAUSE = 0.05
SMALL_UNTRACED = 0.10
MANY_READS = 20  # a step
MANY_ROUNDS = 2  # a step
MANY_LAUNCHES = 5  # a step
MOST_OF_TIME = 0.5
MANY_KERNELS = 100  # a step
SMALL_KERNEL_US = 20
LEFT_IDLE = 0.20
GAP_BEFORE_OP = 0.05
BETWEEN_OPS = 0.10
MOST_NAMED = 8
LAUNCHING = (DISPATCH, QUEUED, WAIT)
# A small program computes less than so many times what each launch leaves idle.
TIMES_A_LAUNCH = 10
# What is no more than this beside idle time leaves its ceiling known.
LITTLE_BESIDE = 0.25

# --- causes that the host's account names: each belongs to one rule ---


def causes_named(f: Findings) -> list[HostIdle]:
    """The causes of idle time that have an advice of their own. What launches cost is one, with a
    little Python around it."""
    launching = [] if _reads_much(f) or _has_small_kernels(f) else _launching(f)
    apart = {ON_DEVICE, *LAUNCHING, *([READ] if _reads_much(f) or _reads_once(f) else [])}
    apart |= {UNTRACED} if launching and _is_little_untraced(f) else set()
    causes = [one for one in f.host_idle if one.kind not in apart]
    return [one for one in (*causes, *launching) if one.share >= HOST_CAUSE]


def _launching(f: Findings) -> list[HostIdle]:
    """Time to launch and to begin; and, where the host waits for the devices in every step, until
    it has seen that they ended, or read from them. Else, while it waits, it is not what they wait
    for. It is called after what takes most of it: launching or reading."""
    kinds = [DISPATCH, QUEUED]
    kinds += [WAIT] if f.rounds_per_step else []
    kinds += [READ] if _reads_once(f) else []
    kinds += [UNTRACED] if _is_little_untraced(f) else []
    rows = [one for one in f.host_idle if one.kind in kinds]
    if not any(one.kind != UNTRACED for one in rows):
        return []
    share = sum(one.share for one in rows)
    reads = sum(one.share for one in rows if one.kind == READ)
    kind = READ if 2 * reads > share else DISPATCH
    most = max(rows, key=lambda one: (one.kind == kind, one.share))
    return [replace(most, kind=kind, name="", share=share)]


def _is_little_untraced(f: Findings) -> bool:
    return sum(one.share for one in f.host_idle if one.kind == UNTRACED) < SMALL_UNTRACED


def _is_slower(f: Findings) -> bool:
    """Without its waits the host would still be what the devices wait for."""
    return bool(f.rounds_per_step) and not f.keeps_up


def _reads_once(f: Findings) -> bool:
    """In every step, and launches little then: it launches late because it has read."""
    launches = f.launches_per_step
    return bool(f.rounds_per_step) and (launches is None or launches < MANY_LAUNCHES)


def _reads_much(f: Findings) -> bool:
    """Or waits, of which some platforms tell no reads: all that is launched between them."""
    return (f.reads_per_step or 0) >= MANY_READS or (f.rounds_per_step or 0) >= MANY_ROUNDS


def _has_small_kernels(f: Findings) -> bool:
    """Launched by few programs: it is not Python that launches too much."""
    return (
        f.device_kind == GPU
        and f.ops_per_step is not None
        and f.op_mean_us is not None
        and f.ops_per_step >= MANY_KERNELS
        and f.op_mean_us <= SMALL_KERNEL_US
        and not (f.launches_per_step is not None and f.launches_per_step >= MANY_LAUNCHES)
    )


def _launches_much(cause: HostIdle, f: Findings) -> bool:
    """Also where a step is little more than its launches."""
    if f.launches_per_step is None:
        return cause.count >= MANY_LAUNCHES
    several = cause.share >= MOST_OF_TIME and f.launches_per_step >= 2
    return several or f.launches_per_step >= MANY_LAUNCHES


Condition = Callable[[HostIdle, Findings], bool]


def _purpose(*wanted: str) -> Condition:
    return lambda cause, f: cause.kind in (NAMED, FRAME) and purpose_of(cause.name) in wanted


def _kind(kind: str) -> Condition:
    return lambda cause, f: cause.kind == kind


def _rule_of(
    meets: Condition,
    words: Callable[[HostIdle], tuple[str, str]],
    is_bound: Callable[[Findings], bool] | None = None,
) -> Finder:
    """A finding for each cause that meets the condition. words: its title and its cause."""

    def find(f: Findings) -> Iterator[Found]:
        for cause in causes_named(f):
            if meets(cause, f):
                title, why = words(cause)
                certainty: Certainty = AT_MOST if is_bound is not None and is_bound(f) else KNOWN
                yield Found(
                    title, why, _evidence(cause, f), cause.share, certainty, occurs=cause.occurs
                )

    return find


Finder = Callable[[Findings], Iterator[Found]]


def _evidence(cause: HostIdle, f: Findings) -> tuple[str, ...]:
    evidence = [f"all devices of a host idle meanwhile: {percent(cause.share)} of {f.basis}"]
    evidence += _occurrence(cause)
    if cause.kind == DISPATCH and f.launches_per_step is not None:
        evidence.append(f"launches from Python: {f.launches_per_step:.1f} a step")
        if f.most_launched:
            evidence.append(f"most often: {', '.join(f.most_launched)}")
    if cause.kind == READ and f.reads_per_step is not None:
        evidence.append(f"reads of device values: {f.reads_per_step:.1f} a step")
    return tuple(evidence)


def _occurrence(cause: HostIdle) -> list[str]:
    if not cause.periods:
        return [f"{plural(cause.count, 'time')} in the capture"] if cause.count else []
    if not cause.steps:
        return [f"in {cause.step_count} of {plural(cause.periods, 'step')}"]
    listed = ", ".join(map(str, cause.steps[:MOST_NAMED]))
    more = ", ..." if len(cause.steps) > MOST_NAMED else ""
    often = f"every {cause.every} steps" if cause.every else ""
    often = ONE_OFF if cause.occurs == ONE_OFF else often
    where = f"in {cause.step_count} of {plural(cause.periods, 'step')} ({listed}{more})"
    return [f"{where}, {often}" if often else where]


def _in_event(cause: HostIdle) -> tuple[str, str]:
    return (
        f"Wait less for {cause.name.lstrip('$')}",
        "The host is in this event while all of its devices have nothing to run.",
    )


_PLACES = {"inside": " inside the step markers", "between": " between the step markers"}

compiles = _rule_of(
    _kind(COMPILE),
    lambda cause: (
        f"Compile {cause.name or 'programs'} before the loop, once",
        "The host traced, lowered and compiled a program while the devices had nothing to run.",
    ),
)
loads, saves, evaluates, logs, events = (
    _rule_of(_purpose(purpose), _in_event) for purpose in (LOADS, SAVES, EVALUATES, LOGS, "")
)
untraced = _rule_of(
    _kind(UNTRACED),
    lambda cause: (
        f"Find the Python code{_PLACES.get(cause.place, '')} that keeps the devices waiting",
        "The host's main thread is outside any recorded event: in Python, or waiting for data.",
    ),
)
late_launches = _rule_of(
    lambda cause, f: cause.kind == DISPATCH and not _launches_much(cause, f),
    lambda cause: (
        "Launch the next step before the last one ends",
        "The devices wait while the host launches: it begins only when they have nothing to run.",
    ),
    # Nothing in the capture shows how far the host could run ahead.
    lambda f: True,
)
reads = _rule_of(
    _kind(READ),
    lambda cause: (
        "Read values from the devices less often",
        "The host waits for values of the devices, which have nothing to run meanwhile.",
    ),
    _is_slower,
)
writes = _rule_of(
    _kind(WRITE),
    lambda cause: (
        "Put batches on the devices ahead of time",
        "The host copies values to the devices while they have nothing to run.",
    ),
)


def many_launches(f: Findings) -> Iterator[Found]:
    """The work of small programs goes for the most part with their launches."""
    for cause in causes_named(f):
        if cause.kind == DISPATCH and _launches_much(cause, f):
            yield _with_small_programs(
                "Launch fewer, larger programs",
                "The devices finish what is launched before the host has launched the next "
                "program.",
                _evidence(cause, f),
                cause.share,
                f,
                occurs=cause.occurs,
            )


def _with_small_programs(
    title: str,
    cause: str,
    evidence: tuple[str, ...],
    idle: float,
    f: Findings,
    *,
    is_bound: bool = False,
    occurs: Occurrence | None = None,
    line: str = "",
) -> Found:
    work = _small_programs(f, idle)
    if work:
        evidence += (f"work of the small programs: {percent(work)} of {f.basis}",)
    known = not is_bound and work <= LITTLE_BESIDE * (idle + work)
    return Found(
        title,
        cause,
        evidence,
        idle + work,
        KNOWN if known else AT_MOST,
        occurs=occurs,
        line=line,
        also={COMPUTE: work} if work else {},
        weight=(idle / 2 if is_bound else idle) + work / 2,
    )


def _small_programs(f: Findings, idle: float) -> float:
    """Compute of programs that a step calls many times, each little beside its launch."""
    if not f.launches_per_step:
        return 0.0
    most = TIMES_A_LAUNCH * idle / f.launches_per_step
    work: dict[str, float] = {}
    for op in f.ops:
        if f.calls_per_step.get(op.module, 0.0) >= MANY_LAUNCHES:
            work[op.module] = work.get(op.module, 0.0) + op.share
    return sum(share for module, share in work.items() if share < most * f.calls_per_step[module])


def many_reads(f: Findings) -> Iterator[Found]:
    """Each read waits for the devices, and they for the launches that come after it."""
    if not _reads_much(f):
        yield from reads(f)
        return
    share = _held_up(f)
    if share < HOST_CAUSE:
        return
    often = f"rounds of waiting for a device and launching again: {f.rounds_per_step or 0} a step"
    if f.reads_per_step:
        often = f"reads of device values: {f.reads_per_step:.1f} a step"
    yield _with_small_programs(
        "Read values from the devices less often",
        "Every read waits until its value is there, so that nothing is launched ahead.",
        (
            often,
            f"idle in reads and launches, and of single devices: {percent(share)} of {f.basis}",
        ),
        share,
        f,
        is_bound=not f.keeps_up or bool(f.partly_idle),
        line=often,
    )


def _held_up(f: Findings) -> float:
    kinds = (READ, *LAUNCHING)
    return sum(one.share for one in f.host_idle if one.kind in kinds) + f.partly_idle


def small_kernels(f: Findings) -> Iterator[Found]:
    """GPUs that wait for the launches inside a program, one for each kernel."""
    if not _has_small_kernels(f) or _reads_much(f):
        return
    share = (
        sum(one.share for one in f.host_idle if one.kind == DISPATCH)
        if f.host_idle
        else f.terms[IDLE]
    )
    if share < HOST_CAUSE:
        return
    each = f"{f.ops_per_step:.0f} a step on each device, {f.op_mean_us:.1f} us each"
    yield Found(
        "Launch small kernels together",
        "A program launches its kernels one by one, more slowly than the device runs them.",
        (
            f"kernels: {each}",
            f"idle while they are launched: {percent(share)} of {f.basis}",
        ),
        share,
        line=f"kernels: {each}",
    )


# --- idle time that nothing above names ---


def idle(f: Findings) -> Iterator[Found]:
    """Outside of running programs."""
    share = max(0.0, _left(f) - _between_ops(f))
    if share < LEFT_IDLE:
        return
    evidence = [f"idle without a cause that the host's events show: {percent(share)}"]
    if f.most_delayed is not None:
        evidence += _gaps_in_words(f.most_delayed, f)
    yield Found(
        "Keep the devices fed",
        "Devices have nothing to run for a large part of the time.",
        tuple(evidence),
        share,
    )


def uneven_work(f: Findings) -> Iterator[Found]:
    if f.partly_idle < LEFT_IDLE or _reads_much(f):
        return
    yield Found(
        "Devices idle while others of their host work",
        "They begin or end at different times: launches reach them one after the other, they have "
        "different work, or they share processors, as CPU devices do.",
        (f"idle while another device works: {percent(f.partly_idle)} of {f.basis}",),
        f.partly_idle,
    )


def _left(f: Findings) -> float:
    named = sum(cause.share for cause in causes_named(f))
    named += sum(found.share or 0.0 for found in small_kernels(f))
    if _reads_much(f):
        named += _held_up(f) - f.partly_idle
    return max(0.0, f.terms[IDLE] - f.partly_idle - named)


def _between_ops(f: Findings) -> float:
    return sum(cause.share for cause in f.host_idle if cause.kind == ON_DEVICE)


def _unexplained(f: Findings) -> float:
    """Nor by a cause too small for advice."""
    named = causes_named(f)
    kinds = {ON_DEVICE, WAIT} if f.host_idle else set()
    launching = any(one.kind in (DISPATCH, READ) and not one.name for one in named)
    small = [
        one
        for one in f.host_idle
        if one.kind not in kinds
        and one not in named
        and not (launching and one.kind in (*LAUNCHING, UNTRACED, READ))
    ]
    return max(0.0, _left(f) - sum(one.share for one in small))


def _before_one_op(f: Findings) -> float:
    """Where idle time is not much, but before one op, and the host's account does not name it."""
    left = _unexplained(f)
    if f.most_delayed is None or _left(f) - _between_ops(f) >= LEFT_IDLE:
        return 0.0
    share = min(f.most_delayed.share, left)
    return share if share >= GAP_BEFORE_OP else 0.0


def one_gap(f: Findings) -> Iterator[Found]:
    gaps, share = f.most_delayed, _before_one_op(f)
    if gaps is not None and share and gaps.is_one_off:
        yield Found(
            f"Find out what caused the long gap before {gaps.before}",
            "One long gap takes most of the time that the device idles before this op.",
            _gaps_in_words(gaps, f),
            share,
            occurs=ONE_OFF,
        )


def gaps_before_op(f: Findings) -> Iterator[Found]:
    gaps, share = f.most_delayed, _before_one_op(f)
    if gaps is not None and share and not gaps.is_one_off:
        yield Found(
            f"Find out what delays {gaps.before}",
            "The device idles before one op again and again.",
            _gaps_in_words(gaps, f),
            share,
            occurs=RECURRING,
        )


def _gaps_in_words(gaps: Gaps, f: Findings) -> tuple[str, ...]:
    total = f"gaps before {gaps.before}: {percent(gaps.share)} of {f.basis} in {gaps.count} gaps"
    longest = f"the longest gap alone: {percent(gaps.longest)} of {f.basis}"
    return (total, longest) if gaps.is_one_off else (total,)


def between_ops(f: Findings) -> Iterator[Found]:
    share = min(_between_ops(f), _left(f) - _before_one_op(f))
    if share < BETWEEN_OPS:
        return
    yield Found(
        "Give the devices fewer, larger ops",
        "The devices idle between the ops of a running program: each op costs time to start, and "
        "most are short.",
        (f"idle inside programs: {percent(share)} of {f.basis}",),
        share,
    )


_BASIS = "idle time of all devices of a host while its main thread is there"
_LAUNCHING = (
    "idle time of all devices of a host while it launches, until what is launched begins, and "
    "where it waits in every step also until it has seen the end, or read"
)
_FROM = f"from {HOST_CAUSE:.0%} of device time on"
_CAUSES = ("host_activity[].causes[].idle_duration", "host_activity[].causes[].name")
_VERIFY = "query host_activity: idle_duration of the cause falls, and the mean step by as much"

NAMED_CAUSES = (
    Rule(
        "compile-in-window",
        compiles,
        f"devices idle while the host compiles, {_FROM}",
        ("host_activity[].causes[cause=compile]", "host_activity[].compilations[]"),
        (
            "Keep shapes, dtypes and static arguments the same in every step: pad or bucket what "
            "varies; JAX_EXPLAIN_CACHE_MISSES=1 says what did.",
            "If it only compiles in the first steps, capture later.",
        ),
        "query host_activity: compilations are none",
        IDLE,
        "idle time of all devices of a host from the call that compiles to the end of compiling",
    ),
    Rule(
        "input-bound",
        loads,
        f"devices idle in an event named after data, batches or loading, {_FROM}",
        _CAUSES,
        (
            "Prepare batches ahead, in another thread or process, and keep some on the devices.",
            "Cache or simplify what is done for each batch.",
        ),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "checkpoint-pause",
        saves,
        f"devices idle in an event named after saving or checkpoints, {_FROM}",
        _CAUSES,
        (
            "Save in the background (asynchronous checkpointing), or less often (in Levanter: "
            "--trainer.checkpointer.save_interval).",
            "Copy to host memory first, and write while the next steps run.",
        ),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "evaluation-pause",
        evaluates,
        f"devices idle in an event named after evaluation, {_FROM}",
        _CAUSES,
        (
            "Evaluate less often or on fewer batches (in Levanter: --trainer.steps_per_eval, "
            "--trainer.max_eval_batches), or in a job of its own.",
        ),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "logging-pause",
        logs,
        f"devices idle in an event named after logging or metrics, {_FROM}",
        _CAUSES,
        ("Log every so many steps, what was computed a step before, from another thread.",),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "host-event",
        events,
        f"devices idle in any other named event or Python frame, {_FROM}",
        _CAUSES,
        ("Shorten it, or move it off the thread that launches the steps.",),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "untraced-python",
        untraced,
        f"devices idle while the main thread is in no event, {_FROM}; less than "
        f"{SMALL_UNTRACED:.0%} counts with what launches cost",
        ("host_activity[].causes[cause=untraced]",),
        (
            "Name its parts with jax.profiler.TraceAnnotation, or capture a few steps with the "
            "Python tracer on, and look at them by name.",
            "Usual causes: the data loader, logging, .item() and what follows it, callbacks.",
        ),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "device-reads",
        many_reads,
        f"devices idle while the host reads from them, {_FROM}; from {MANY_READS} reads a step on, "
        f"or {MANY_ROUNDS} rounds of waiting and launching, with launches and devices that idle "
        "apart",
        (
            "host_activity[].causes[cause=device_read]",
            "host_activity[].device_reads",
            "host_activity[].rounds_per_step",
        ),
        (
            "Keep metrics on the devices, and read them together every so many steps "
            "(jax.device_get of the whole tree).",
            "Read the values of the step before (jax.Array is asynchronous until it is read).",
        ),
        "query host_activity: device_reads falls",
        IDLE,
        "idle time in reads; of many also in launches and waits, of single devices, and the work "
        "of small programs: known where that is little and the host, but for its waits, takes "
        "less time than the devices work",
    ),
    Rule(
        "device-writes",
        writes,
        f"devices idle while the host copies to them, {_FROM}",
        ("host_activity[].causes[cause=device_write]",),
        ("Call jax.device_put for the next batch while the step runs (double buffering).",),
        _VERIFY,
        IDLE,
        _BASIS,
    ),
    Rule(
        "small-kernels",
        small_kernels,
        f"a GPU runs >= {MANY_KERNELS} kernels a step of <= {SMALL_KERNEL_US} us, and idles while "
        f"they are launched, {_FROM}",
        ("hot_ops[].count", "host_activity[].causes[cause=dispatch]"),
        (
            "Record them in command buffers: --xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN, "
            "--xla_gpu_graph_min_graph_size=5.",
            "Run several steps in one program (jax.lax.scan); use larger batches.",
        ),
        "query host_activity: dispatch falls; coverage.unattributed_ops names command buffers",
        IDLE,
        "idle time while the host launches; all idle time where the host has no account",
    ),
    Rule(
        "dispatch-bound",
        many_launches,
        f"devices idle while the host launches >= {MANY_LAUNCHES} programs or eager ops a step, "
        f"{_FROM}",
        (
            "host_activity[].causes[cause=dispatch]",
            "host_activity[].causes[cause=queued]",
            "host_activity[].launches[]",
        ),
        (
            "Put the eager operations of a step into one jitted function.",
            "Run several steps in one program (jax.lax.scan), and do not wait between steps.",
        ),
        "query host_activity: launches per_step falls",
        IDLE,
        _LAUNCHING + "; and the work of small programs, a bound",
    ),
    Rule(
        "dispatch-late",
        late_launches,
        f"devices idle while the host launches few programs, {_FROM}",
        (
            "host_activity[].causes[cause=dispatch]",
            "host_activity[].causes[cause=queued]",
            "host_activity[].causes[cause=device_wait]",
        ),
        (
            "Do not wait for results in every step (block_until_ready, .item(), logging).",
            "Keep arguments on the devices: copying or sharding them anew makes launches slow.",
        ),
        _VERIFY,
        IDLE,
        _LAUNCHING,
    ),
)

_GAPS = ("gap_before_ops[].total_gap_duration", "gap_before_ops[].max_gap_duration")

UNNAMED = (
    Rule(
        "idle-devices",
        idle,
        f"idle time that no other advice names >= {LEFT_IDLE:.0%} of device time",
        ("device_ledger[].idle_duration", *_GAPS),
        (
            "Look at the input pipeline and at host work between steps (logging, hooks, .item()).",
            "Dispatch ahead: avoid blocking on results inside the step loop.",
            "Batch small executions into one jitted function.",
        ),
        "query device_ledger: idle_duration falls",
        IDLE,
        "idle time less what other advice claims",
    ),
    Rule(
        "one-long-gap",
        one_gap,
        f"gaps before one op >= {GAP_BEFORE_OP:.0%} of device time, most of it in one",
        _GAPS,
        ("Look at what the host did then: a compilation, a checkpoint, a slow input batch.",),
        "query pre_op_gap: max_gap_duration falls",
        IDLE,
        "gaps before this op, at most the idle time that other advice leaves",
    ),
    Rule(
        "gap-before-op",
        gaps_before_op,
        f"gaps before one op >= {GAP_BEFORE_OP:.0%} of device time, in several",
        _GAPS,
        ("Ask for the gaps before the op (query pre_op_gap), and see what the host does then.",),
        "query pre_op_gap: total_gap_duration falls",
        IDLE,
        "gaps before this op, at most the idle time that other advice leaves",
    ),
    Rule(
        "gaps-between-ops",
        between_ops,
        f"devices idle between the ops of running programs >= {BETWEEN_OPS:.0%} of device time",
        ("host_activity[].causes[cause=on_device]",),
        (
            "Larger batches; fewer small ops in the program (fusion, fewer reshapes and copies).",
            "On GPU record ops as command buffers: "
            "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN.",
        ),
        "query host_activity: on_device falls",
        IDLE,
        "idle time between the first and the last op of executions, less gaps before one op",
    ),
)

APART = Rule(
    "devices-idle-apart",
    uneven_work,
    f"devices idle while others of their host work >= {LEFT_IDLE:.0%} of device time",
    ("host_activity[].partly_idle_duration",),
    ("Of CPU devices on one machine think nothing of it.",),
    "query host_activity: partly_idle_duration falls",
    IDLE,
    "idle time of single devices",
    UNCAUSED,
)
