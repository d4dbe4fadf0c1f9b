"""Rules about idle devices: by what the host did, and where that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from marin_profile.analysis.advice.model import (
    AT_MOST,
    KNOWN,
    Candidate,
    Findings,
    Gaps,
    HostIdle,
    percent,
)
from marin_profile.analysis.host_account import ON_DEVICE, UNTRACED
from marin_profile.base.text import plural
from marin_profile.events.host_events import (
    COMPILE,
    DISPATCH,
    FRAME,
    NAMED,
    READ,
    WAIT,
    WRITE,
)

HOST_CAUSE = 0.05
MANY_READS = 20  # a step
MANY_LAUNCHES = 5  # a step
MOST_OF_TIME = 0.5
IDLE = 0.20
GAP_BEFORE_OP = 0.05
BETWEEN_OPS = 0.10
MOST_NAMED = 8

UNEVEN_WORK = "devices-idle-apart"
READ_LESS = (
    "Keep metrics on the devices, and read them together every so many steps.",
    "Read the values of the step before (jax.Array is asynchronous until it is read).",
)

_LOADS = re.compile(r"load|batch|data|input|fetch|next|iter|token", re.IGNORECASE)
_SAVES = re.compile(r"save|checkpoint|ckpt", re.IGNORECASE)
_EVALUATES = re.compile(r"eval|valid|metric|log", re.IGNORECASE)


def causes_named(f: Findings) -> list[HostIdle]:
    """The causes of idle time that have an advice of their own."""
    # While the host waits for idle devices, it is not what they wait for.
    kinds = (ON_DEVICE, WAIT, READ, DISPATCH) if _reads_much(f) else (ON_DEVICE, WAIT)
    return [one for one in f.host_idle if one.kind not in kinds and one.share >= HOST_CAUSE]


def _reads_much(f: Findings) -> bool:
    return f.reads_per_step is not None and f.reads_per_step >= MANY_READS


def many_reads(f: Findings) -> Iterator[Candidate]:
    """Each read waits for the devices, and they for the launches that come after it."""
    if not _reads_much(f):
        return
    held_up = [one for one in f.host_idle if one.kind in (READ, DISPATCH, WAIT)]
    share = sum(one.share for one in held_up) + f.partly_idle
    if share < HOST_CAUSE:
        return
    yield Candidate(
        "device-reads",
        "Read values from the devices less often",
        "Every read waits until its value is there, so that nothing is launched ahead.",
        (
            f"reads of device values: {f.reads_per_step:.1f} a step",
            f"idle in reads and launches, and of single devices: {percent(share)} of {f.basis}",
        ),
        READ_LESS,
        share,
        AT_MOST,
    )


def causes_of_idle_time(f: Findings) -> Iterator[Candidate]:
    for cause in causes_named(f):
        identity, title, rationale, suggestions = _WORDS[cause.kind](cause, f)
        evidence = [f"all devices of a host idle meanwhile: {percent(cause.share)} of {f.basis}"]
        evidence += _occurrence(cause)
        if cause.kind == DISPATCH and f.launches_per_step is not None:
            evidence.append(f"launches from Python: {f.launches_per_step:.1f} a step")
            if f.most_launched:
                evidence.append(f"most often: {', '.join(f.most_launched)}")
        if cause.kind == READ and f.reads_per_step is not None:
            evidence.append(f"reads of device values: {f.reads_per_step:.1f} a step")
        yield Candidate(
            identity, title, rationale, tuple(evidence), suggestions, cause.share, KNOWN
        )


def _occurrence(cause: HostIdle) -> list[str]:
    if not cause.periods:
        return [f"{plural(cause.count, 'time')} in the capture"] if cause.count else []
    if not cause.steps:
        return [f"in {cause.step_count} of {plural(cause.periods, 'step')}"]
    listed = ", ".join(map(str, cause.steps[:MOST_NAMED]))
    more = ", ..." if len(cause.steps) > MOST_NAMED else ""
    often = f"every {cause.every} steps" if cause.every else "one-off" if cause.is_one_off else ""
    where = f"in {cause.step_count} of {plural(cause.periods, 'step')} ({listed}{more})"
    return [f"{where}, {often}" if often else where]


Words = tuple[str, str, str, tuple[str, ...]]


def _compile(cause: HostIdle, f: Findings) -> Words:
    return (
        "compile-in-window",
        f"Compile {cause.name or 'programs'} before the loop, once",
        "The host traced, lowered and compiled a program while the devices had nothing to run.",
        (
            "Keep shapes, dtypes and static arguments the same in every step: pad or bucket what "
            "varies.",
            "If it only compiles in the first steps, capture later.",
        ),
    )


def _event(cause: HostIdle, f: Findings) -> Words:
    suggestions: tuple[str, ...]
    if _SAVES.search(cause.name):
        suggestions = (
            "Save in the background (asynchronous checkpointing), or less often.",
            "Copy to host memory first, and write while the next steps run.",
        )
    elif _LOADS.search(cause.name):
        suggestions = (
            "Prepare batches ahead, in another thread or process, and keep some on the devices.",
            "Cache or simplify what is done for each batch.",
        )
    elif _EVALUATES.search(cause.name):
        suggestions = ("Do it less often, on fewer batches, or in a job of its own.",)
    else:
        suggestions = ("Shorten it, or move it off the thread that launches the steps.",)
    return (
        "host-event",
        f"Wait less for {cause.name}",
        "The host is in this event while all of its devices have nothing to run.",
        suggestions,
    )


def _frame(cause: HostIdle, f: Findings) -> Words:
    identity, _, rationale, _ = _event(cause, f)
    return (
        identity,
        f"Wait less for {cause.name.lstrip('$')}",
        rationale,
        ("Shorten it, or move it off the thread that launches the steps.",),
    )


def _untraced(cause: HostIdle, f: Findings) -> Words:
    where = {"inside": " inside the step markers", "between": " between the step markers"}
    return (
        "untraced-python",
        f"Find the Python code{where.get(cause.place, '')} that keeps the devices waiting",
        "The host's main thread is outside any recorded event: in Python, or waiting for data.",
        (
            "Name its parts with jax.profiler.TraceAnnotation, or capture a few steps with the "
            "Python tracer on, and look at them by name.",
            "Usual causes: the data loader, logging, .item() and what follows it, callbacks.",
        ),
    )


def _launches_much(cause: HostIdle, f: Findings) -> bool:
    """Also where a step is little more than its launches."""
    if f.launches_per_step is None:
        return cause.count >= MANY_LAUNCHES
    several = cause.share >= MOST_OF_TIME and f.launches_per_step >= 2
    return several or f.launches_per_step >= MANY_LAUNCHES


def _dispatch(cause: HostIdle, f: Findings) -> Words:
    if _launches_much(cause, f):
        return (
            "dispatch-bound",
            "Launch fewer, larger programs",
            "The devices finish what is launched before the host has launched the next program.",
            (
                "Put the eager operations of a step into one jitted function.",
                "Run several steps in one program (lax.scan), and do not wait between steps.",
            ),
        )
    return (
        "dispatch-late",
        "Launch the next step before the last one ends",
        "The devices wait while the host launches: it begins only when they have nothing to run.",
        (
            "Do not wait for results in every step (block_until_ready, .item(), logging).",
            "Keep arguments on the devices: copying or sharding them anew makes launches slow.",
        ),
    )


def _read(cause: HostIdle, f: Findings) -> Words:
    return (
        "device-reads",
        "Read values from the devices less often",
        "The host waits for values of the devices, which have nothing to run meanwhile.",
        READ_LESS,
    )


def _write(cause: HostIdle, f: Findings) -> Words:
    return (
        "device-writes",
        "Put batches on the devices ahead of time",
        "The host copies values to the devices while they have nothing to run.",
        ("Call jax.device_put for the next batch while the step runs (double buffering).",),
    )


_WORDS = {
    COMPILE: _compile,
    NAMED: _event,
    FRAME: _frame,
    UNTRACED: _untraced,
    DISPATCH: _dispatch,
    READ: _read,
    WRITE: _write,
}


def idle(f: Findings) -> Iterator[Candidate]:
    """Idle time that nothing above names, outside of running programs."""
    share = max(0.0, _left(f) - _between_ops(f))
    if share < IDLE:
        return
    evidence = [f"idle without a cause that the host's events show: {percent(share)}"]
    if f.most_delayed is not None:
        evidence += _gaps_in_words(f.most_delayed, f.basis)
    yield Candidate(
        "idle-devices",
        "Keep the devices fed",
        "Devices have nothing to run for a large part of the time.",
        tuple(evidence),
        (
            "Look at the input pipeline and at host work between steps (logging, hooks, .item()).",
            "Dispatch ahead: avoid blocking on results inside the step loop.",
            "Batch small executions into one jitted function.",
        ),
        share,
        AT_MOST,
    )


def _before_one_op(f: Findings) -> float:
    """What `gaps` claims."""
    left = _left(f)
    if f.most_delayed is None or left - _between_ops(f) >= IDLE:
        return 0.0
    share = min(f.most_delayed.share, left)
    return share if share >= GAP_BEFORE_OP else 0.0


def between_ops(f: Findings) -> Iterator[Candidate]:
    share = min(_between_ops(f), _left(f) - _before_one_op(f))
    if share < BETWEEN_OPS:
        return
    yield Candidate(
        "gaps-between-ops",
        "Give the devices fewer, larger ops",
        "The devices idle between the ops of a running program: each op costs time to start, and "
        "most are short.",
        (f"idle inside programs: {percent(share)} of {f.basis}",),
        (
            "Larger batches; fewer small ops in the program (fusion, fewer reshapes and copies).",
            "On GPUs let XLA record ops as command buffers (--xla_gpu_enable_command_buffer).",
        ),
        share,
        AT_MOST,
    )


def _between_ops(f: Findings) -> float:
    return sum(cause.share for cause in f.host_idle if cause.kind == ON_DEVICE)


def uneven_work(f: Findings) -> Iterator[Candidate]:
    if f.partly_idle < IDLE or _reads_much(f):
        return
    yield Candidate(
        UNEVEN_WORK,
        "Devices idle while others of their host work",
        "They begin or end at different times: launches reach them one after the other, they have "
        "different work, or they share processors, as CPU devices do.",
        (f"idle while another device works: {percent(f.partly_idle)} of {f.basis}",),
        ("Of CPU devices on one machine think nothing of it.",),
        f.partly_idle,
        AT_MOST,
    )


def _left(f: Findings) -> float:
    return max(0.0, f.idle - f.partly_idle - sum(cause.share for cause in causes_named(f)))


def gaps(f: Findings) -> Iterator[Candidate]:
    """Where idle time is not much, but before one op, and the host's account does not name it."""
    gaps, share = f.most_delayed, _before_one_op(f)
    if gaps is None or share == 0.0:
        return
    if gaps.is_one_off:
        yield Candidate(
            "one-long-gap",
            f"Find out what caused the long gap before {gaps.before}",
            "One long gap takes most of the time that the device idles before this op.",
            _gaps_in_words(gaps, f.basis),
            ("Look at what the host did then: a compilation, a checkpoint, a slow input batch.",),
            share,
            AT_MOST,
        )
        return
    yield Candidate(
        "gap-before-op",
        f"Find out what delays {gaps.before}",
        "The device idles before one op again and again.",
        _gaps_in_words(gaps, f.basis),
        (f"Ask for the context of `{gaps.before}` and look at what the host does meanwhile.",),
        share,
        AT_MOST,
    )


def _gaps_in_words(gaps: Gaps, basis: str) -> tuple[str, ...]:
    total = f"gaps before {gaps.before}: {percent(gaps.share)} of {basis} in {gaps.count} gaps"
    longest = f"the longest gap alone: {percent(gaps.longest)} of {basis}"
    return (total, longest) if gaps.is_one_off else (total,)
