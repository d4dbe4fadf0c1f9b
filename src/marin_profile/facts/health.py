"""How sound a capture is, check by check, and what to change before the next one.

Contract
* A check says what was seen, with numbers, and, where something can be done, what, with the flag or
  the code. What the summary does not tell is "unknown", never "ok".
* "bad": figures are missing or wrong; "warn": something is not known, or less certain, for it.
* Thresholds and what to do are those of the rules of advice about the capture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from marin_profile.analysis.advice.capture import (
    ATTRIBUTED,
    DISTORTED,
    FEW_STEPS,
    LACKS,
    READING,
    WITH_SCOPE,
)
from marin_profile.base.text import duration, plural, share, visible
from marin_profile.capture.formats import XPLANE
from marin_profile.facts.device_time import left_out_of
from marin_profile.facts.rows import Row
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import ProfileSummary, Profiling

OK, WARN, BAD, UNKNOWN = "ok", "warn", "bad", "unknown"
# Kinds of devices whose ops tell opcode and scope by the HLO protos alone.
NEED_PROTOS = ("cpu", "gpu")
LISTED, LONGEST = 3, 300
_RULES = {rule.id: rule for rule in (*READING, *LACKS)}

PYTHON_FRAME = "python_frame"
TAKE_WITH = "Take captures with marin_profile.profiler, or with install() in Levanter."


class Check(Row, frozen=True, kw_only=True):
    """`state`: "ok", "warn", "bad" or "unknown"; `do`: "" where there is nothing to do."""

    check: str
    state: str
    seen: str
    do: str = ""


def health(summary: ProfileSummary) -> list[Check]:
    """All checks of a capture, those that speak for every figure first."""
    return [
        _whole(summary),
        *_doubts(summary),
        *_long_op(summary),
        _events(summary),
        _devices(summary),
        _hosts(summary),
        _clocks(summary),
        _steps(summary),
        _compilations(summary),
        _distortion(summary),
        _host_events(summary),
        _hlo_protos(summary),
        _attribution(summary),
        _scopes(summary),
        _versions(summary),
    ]


def _do(rule_id: str) -> str:
    return " ".join(_RULES[rule_id].do)


def _is_advised(summary: ProfileSummary, rule_id: str) -> bool:
    return any(one.candidate_id == rule_id for one in summary.optimization_candidates)


def _listed(names: list[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED:,} more"


# --- the files ---------------------------------------------------------------------------------


def _whole(summary: ProfileSummary) -> Check:
    trace = summary.trace_overview
    events = plural(trace.num_events_total, "event")
    if trace.suspected_truncation:
        seen = f"cut or damaged; {events} are left"
        return Check(check="whole", state=BAD, seen=seen, do=_do("capture-cut"))
    return Check(check="whole", state=OK, seen=f"{events}, nothing is known to be cut")


def _doubts(summary: ProfileSummary) -> Iterator[Check]:
    for doubt in summary.trace_overview.doubts:
        yield Check(
            check="doubt",
            state=BAD,
            seen=visible(doubt, LONGEST),
            do="Capture again; until then no figure stands without this doubt.",
        )


def _long_op(summary: ProfileSummary) -> Iterator[Check]:
    long_op, rule_id = summary.step_time.long_op, "op-longer-than-steps"
    if long_op is not None and _is_advised(summary, rule_id):
        seen = f"{visible(long_op.name)} lasts {plural(long_op.steps, 'typical step')}"
        yield Check(check="op longer than steps", state=BAD, seen=seen, do=_do(rule_id))


def _events(summary: ProfileSummary) -> Check:
    if summary.coverage is None:
        return Check(
            check="events", state=UNKNOWN, seen="the summary does not say what was left out"
        )
    dropped = summary.coverage.events_dropped
    if not dropped:
        return Check(check="events", state=OK, seen="none was left out")
    counts = ", ".join(f"{visible(name)}: {count:,}" for name, count in sorted(dropped.items()))
    return Check(
        check="events",
        state=WARN,
        seen=f"{plural(sum(dropped.values()), 'event')} left out ({counts})",
        do="Capture fewer steps; where events have impossible times, a newer JAX may write them.",
    )


def _devices(summary: ProfileSummary) -> Check:
    working = sum(len(host.devices) for host in summary.hosts)
    if summary.coverage is None or not summary.hosts:
        return Check(
            check="devices", state=UNKNOWN, seen="the summary does not say which are empty"
        )
    empty = summary.coverage.empty_devices
    if not empty:
        return Check(check="devices", state=OK, seen=f"{plural(working, 'device')}, none is empty")
    return Check(
        check="devices",
        state=WARN,
        seen=f"{len(empty):,} of {working + len(empty):,} device planes are empty: "
        f"{_listed(empty)}",
        do="If they should work, look at jax.devices() and the mesh, and capture while they do.",
    )


def _hosts(summary: ProfileSummary) -> Check:
    there = len(summary.hosts)
    if not there:
        return Check(check="hosts", state=UNKNOWN, seen="the summary does not name its hosts")
    profiling = _profiling(summary)
    known = summary.run_metadata.num_hosts
    partly = [
        one
        for one in summary.collectives
        if one.group_size and one.members_seen and one.members_seen < one.group_size
    ]
    files = plural(there, "host's file", "hosts' files")
    do = (
        "Capture on all processes (ProfilerConfig.process_index=None), and summarize the folder "
        "above all of them (ProfilerConfig.shared_dir brings them together)."
    )
    if profiling is not None and profiling.missing_processes:
        missing = _listed([str(index) for index in profiling.missing_processes])
        seen = f"of {profiling.num_processes:,} processes these left no profile: {missing}"
        return Check(check="hosts", state=BAD, seen=seen, do=do)
    if known is not None and known > there:
        seen = f"{files}, of a run of {plural(known, 'host')}"
        return Check(check="hosts", state=BAD, seen=seen, do=do)
    if partly:
        one = min(partly, key=lambda row: (row.members_seen or 0) / (row.group_size or 1))
        seen = (
            f"{files}; of {visible(one.collective)} over {one.group_size:,} devices "
            f"{one.members_seen:,} were captured"
        )
        return Check(check="hosts", state=WARN, seen=seen, do=do)
    told = profiling is not None or any(one.members_seen for one in summary.collectives)
    if profiling is not None:
        seen = f"{files}, and no process is missing"
    elif told:
        seen = f"{files}; no collective has members elsewhere"
    else:
        seen = f"{files}; nothing tells how many there should be"
    return Check(check="hosts", state=OK if told else UNKNOWN, seen=seen)


def _clocks(summary: ProfileSummary) -> Check:
    compared = [host for host in summary.hosts if host.clock_conflicts is not None]
    conflicts = [host for host in compared if host.clock_conflicts]
    if conflicts:
        count = sum(host.clock_conflicts or 0 for host in conflicts)
        widest = max((host.clock_uncertainty or 0.0 for host in conflicts), default=0.0)
        return Check(
            check="clocks",
            state=WARN,
            seen=f"{plural(count, 'launch or completion', 'launches and completions')} contradict "
            f"the devices' times, by up to {duration(widest)}",
            do="No option mends it: relate host and device times no closer than this, and take "
            "causes of idle time from a capture whose clocks agree.",
        )
    if not compared:
        return Check(
            check="clocks", state=UNKNOWN, seen="no launch or completion to compare clocks by"
        )
    return Check(check="clocks", state=OK, seen="host and devices agree")


# --- the steps ---------------------------------------------------------------------------------


def _steps(summary: ProfileSummary) -> Check:
    step_time = summary.step_time
    found, kept = len(step_time.steps), kept_steps(summary)
    if not found and not kept:
        return Check(check="steps", state=BAD, seen="none found", do=_do("no-steps"))
    # Summaries of older tools do not tell periods.
    periods = step_time.period.count if step_time.period else None
    cut = sum(step.cut for step in step_time.steps)
    seen = f"{max(found, kept):,} found, {cut:,} cut, {kept:,} kept" + (
        f"; the periods of {periods:,} are known" if periods is not None else ""
    )
    if not kept:
        return Check(check="steps", state=BAD, seen=seen, do=_do("capture-too-short"))
    if step_time.steps_without_work:
        seen += f"; {step_time.steps_without_work:,} more show no device work"
    if (kept if periods is None else periods) < FEW_STEPS:
        wanted = f" ({FEW_STEPS} are the least for statistics)"
        return Check(check="steps", state=WARN, seen=seen + wanted, do=_do("capture-too-short"))
    if step_time.linked is False:
        seen += "; device work is not tied to them"
        return Check(check="steps", state=WARN, seen=seen, do=_do("no-steps"))
    return Check(check="steps", state=OK, seen=seen)


def _profiling(summary: ProfileSummary) -> Profiling | None:
    return summary.capture.profiling if summary.capture is not None else None


def _compilations(summary: ProfileSummary) -> Check:
    profiling = _profiling(summary)
    told = [one.duration for one in profiling.compiles] if profiling is not None else []
    seen_by_host = [one.duration for host in summary.host_activity for one in host.compilations]
    lengths = told or seen_by_host
    if lengths:
        return Check(
            check="compilation",
            state=WARN,
            seen=f"JAX compiled for {duration(sum(lengths))} in the "
            + ("profiled steps" if told else "window of the hosts' accounts"),
            do="Start later (ProfilerConfig.start_step), after the last compilation; keep shapes "
            "the same from step to step.",
        )
    accounts = [host for host in summary.host_activity if host.reason is None]
    if profiling is None and not accounts:
        return Check(
            check="compilation", state=UNKNOWN, seen="no host tells what it compiled", do=TAKE_WITH
        )
    where = "in the profiled steps" if profiling is not None else "on the hosts' main threads"
    return Check(check="compilation", state=OK, seen=f"none {where}")


def _distortion(summary: ProfileSummary) -> Check:
    profiling = _profiling(summary)
    ratio = profiling.window_to_outside if profiling is not None else None
    frames = any(
        cause.cause == PYTHON_FRAME for host in summary.host_activity for cause in host.causes
    )
    tracer = "Python frames are there: the Python tracer was on" if frames else ""
    if profiling is not None and _is_number(ratio):
        seen = f"median profiled step: {ratio:.2f} times the median of " + plural(
            profiling.num_steps_outside, "other step"
        )
        seen += f"; {tracer}" if frames else ""
        if ratio is not None and ratio >= DISTORTED:
            do = _do("profiler-distortion")
            return Check(check="distortion", state=WARN, seen=seen, do=do)
        return Check(check="distortion", state=OK, seen=seen)
    if frames:
        seen = f"{tracer}, which slows what it profiles; by how much is not known"
        return Check(check="distortion", state=WARN, seen=seen, do=_do("profiler-distortion"))
    seen = "no step outside of the capture is known to compare with"
    return Check(check="distortion", state=UNKNOWN, seen=seen, do=TAKE_WITH)


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


# --- what the events say -----------------------------------------------------------------------


def _host_events(summary: ProfileSummary) -> Check:
    hosts = summary.host_activity
    without = [host for host in hosts if host.reason is not None]
    if not hosts:
        return Check(check="host events", state=UNKNOWN, seen="the summary has no account of hosts")
    if without:
        return Check(
            check="host events",
            state=WARN,
            seen=f"idle time has no account on {len(without):,} of {plural(len(hosts), 'host')}: "
            f"{visible(without[0].reason or '', LONGEST)}",
            do=""
            if _clocks(summary).state == WARN
            else "Leave host_tracer_level of jax.profiler.ProfileOptions at 2, its default, and "
            "mark the steps with jax.profiler.StepTraceAnnotation.",
        )
    there = len(hosts) + left_out_of(summary, "host_activity")
    seen = f"idle time has an account on {plural(len(hosts), 'host')}"
    if there > len(hosts):
        seen += f" of {there:,}, of which the summary tells"
    return Check(check="host events", state=OK, seen=seen)


def _hlo_protos(summary: ProfileSummary) -> Check:
    if _is_advised(summary, "no-hlo-protos"):
        seen = "not there: opcodes, scopes, costs and memory are not known"
        return Check(check="HLO protos", state=BAD, seen=seen, do=_do("no-hlo-protos"))
    if summary.source_format != XPLANE:
        seen = f"a profile of format {visible(summary.source_format)} holds none"
        do = "Keep the xplane.pb that the profiler writes beside it, and summarize that."
        return Check(check="HLO protos", state=WARN, seen=seen, do=do)
    if summary.memory:
        programs = len({row.program_id for row in summary.memory})
        seen = f"there, with plans of memory for {plural(programs, 'program')}"
        return Check(check="HLO protos", state=OK, seen=seen)
    need_them = any(row.kind in NEED_PROTOS for row in summary.device_ledger)
    if need_them and summary.coverage is not None:
        return Check(check="HLO protos", state=OK, seen="there, without plans of memory")
    return Check(
        check="HLO protos",
        state=UNKNOWN,
        seen="no plan of memory, which they hold, is known",
        do=_do("no-hlo-protos"),
    )


def _attribution(summary: ProfileSummary) -> Check:
    known = summary.coverage.hlo_attributed_share if summary.coverage is not None else None
    return _of_op_time("HLO ops", "HLO ops", known, ATTRIBUTED, "low-attribution")


def _scopes(summary: ProfileSummary) -> Check:
    known = summary.coverage.scope_attributed_share if summary.coverage is not None else None
    return _of_op_time("scopes", "scopes", known, WITH_SCOPE, "missing-scopes")


def _of_op_time(check: str, what: str, known: float | None, least: float, rule_id: str) -> Check:
    if known is None or math.isnan(known):
        return Check(check=check, state=UNKNOWN, seen=f"not known for how much time {what} are")
    seen = f"{what} are known for {share(known)} of op time"
    if known >= least:
        return Check(check=check, state=OK, seen=seen)
    seen += f" ({share(least)} is the least wanted)"
    return Check(check=check, state=WARN, seen=seen, do=_do(rule_id))


def _versions(summary: ProfileSummary) -> Check:
    details = summary.capture
    jax = details.jax_version if details is not None else None
    tool = details.tool_version if details is not None else None
    seen = f"jax {visible(jax or 'not known')}, summarized by marin-profile "
    seen += visible(tool or "of a version that is not known")
    return Check(check="versions", state=OK if jax else UNKNOWN, seen=seen)
