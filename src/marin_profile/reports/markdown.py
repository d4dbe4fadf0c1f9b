"""The report as Markdown: the answer first, then what it rests on.

Contract
* Deterministic: the same summary and `top_k` give the same text.
* The first paragraph answers "where does the step time go"; every list states the window that it
  covers, how many rows are left out, and, if it is empty, why.
* Numbers come from the summary and the queries; nothing is computed here but sums for display.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from marin_profile.base.text import (
    NOT_KNOWN,
    at_least,
    code,
    duration,
    left_out,
    number,
    prose,
    share,
    table,
)
from marin_profile.queries.bound_by import device_time_parts
from marin_profile.queries.next_steps import CUT
from marin_profile.reports.first import ceiling, first_advice
from marin_profile.reports.headline import headline
from marin_profile.reports.markdown_host import host_activity
from marin_profile.reports.markdown_lists import (
    collectives,
    families,
    gap_contexts,
    gaps,
    regions,
    roofline_rows,
    stragglers,
    top_ops,
    transfers,
)
from marin_profile.reports.markdown_memory import memory
from marin_profile.reports.markdown_programs import programs
from marin_profile.reports.markdown_time import ledger, steps
from marin_profile.schema import (
    EPOCH_UTC,
    Host,
    ProfileSummary,
    Profiling,
    Roofline,
)

MOST_HOSTS = 16
MOST_WARNINGS = 20
FIRST = 3
ROOFLINE_ROWS = 5  # of a kind: regions and families have tables of their own


def render_markdown(summary: ProfileSummary, *, top_k: int = 10) -> str:
    """The whole report; lists of ops, gaps, regions and devices hold `top_k` rows at most."""
    sections: list[tuple[str, Callable[[ProfileSummary, int], list[str]]]] = [
        ("Run", _run),
        ("Provenance", _provenance),
        ("Coverage and warnings", _coverage),
        ("Steps", steps),
        ("Device time", ledger),
        ("Idle time and the host", host_activity),
        ("Programs", programs),
        ("Regions", regions),
        ("Top ops", top_ops),
        ("Op families", families),
        ("Collectives", collectives),
        ("Transfers", transfers),
        ("Stragglers", stragglers),
        ("Gaps", gaps),
        ("Gaps by region", gap_contexts),
        ("Roofline", _roofline),
        ("Memory", memory),
        ("What to try next", _advice),
    ]
    lines = ["# Profile report", "", prose(headline(summary), None), ""]
    lines += [*_doubts(summary), *_first(summary)]
    for title, render in sections:
        body = render(summary, top_k)
        if body:
            lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines)


def _doubts(summary: ProfileSummary) -> list[str]:
    doubts = summary.trace_overview.doubts
    shown = doubts[:FIRST]
    lines = [f"- Doubt: {prose(doubt)}" for doubt in shown]
    lines += left_out(len(doubts), len(shown), "doubt")
    return [*lines, ""] if lines else []


def _first(summary: ProfileSummary) -> list[str]:
    rows = [
        f"{at}. {prose(one.title, 200)}: {one.saves + '; ' if one.saves else ''}"
        f"{prose(one.why, 200)}"
        for at, one in enumerate(first_advice(summary, FIRST), 1)
    ]
    return ["What to try first, and what it saves:", "", *rows, ""] if rows else []


def _run(summary: ProfileSummary, top_k: int) -> list[str]:
    named = [
        (name.replace("_", " "), value)
        for name, value in summary.run_metadata
        if name in type(summary.run_metadata).model_fields and value is not None
    ]
    return _facts((name, code(str(value))) for name, value in named) or [
        "The profile does not name its run."
    ]


def _profiling(profiling: Profiling) -> list[tuple[str, str]]:
    """How training saw the capture."""
    verdict = {True: "yes", False: "**no**", None: "not known"}[profiling.representative]
    start, stop = duration(profiling.start_trace_duration), duration(profiling.stop_trace_duration)
    return [
        ("taken because", prose(profiling.trigger.replace("_", " "))),
        ("representative of the run", f"{verdict}: {prose(profiling.reason)}"),
        ("the profiler took", f"{start} to start, {stop} to stop"),
    ]


def _provenance(summary: ProfileSummary, top_k: int) -> list[str]:
    capture = summary.capture
    facts = [
        ("source", code(summary.source_path, 200)),
        ("format", code(summary.source_format)),
        ("sha256", code(summary.trace_provenance.trace_sha256 or NOT_KNOWN)),
        ("profile taken", _time(summary.generated_at_utc)),
    ]
    if capture and capture.stop:
        facts.append(("profile ended", prose(capture.stop)))
    if capture and capture.tool_version:
        facts.append(("summarized by", f"marin-profile {prose(capture.tool_version)}"))
    if capture and capture.profiling:
        facts += _profiling(capture.profiling)
    rows = [
        [
            code(host.host),
            code(host.file.rsplit("/", 1)[-1]),
            code(host.source_format or summary.source_format),
            prose(host.chosen_because or NOT_KNOWN),
            code(host.sha256[:12]),
            number(len(host.devices)),
            _clock_offset(host),
        ]
        for host in summary.hosts[:MOST_HOSTS]
    ]
    headers = ["host", "file", "format", "why this file", "sha256", "devices", "clock offset"]
    lines = _facts(facts)
    if rows:
        lines += ["", *table(headers, rows, "lllll")]
    return lines + left_out(len(summary.hosts), len(rows), "host")


def _clock_offset(host: Host) -> str:
    if host.clock_conflicts == 0:
        return "none seen"
    if host.clock_offset is None:
        unsteady = host.clock_uncertainty
        return NOT_KNOWN if unsteady is None else f"changes by up to {duration(unsteady)}"
    least = duration(host.clock_offset)
    if host.clock_offset_limit is None:
        return f"at least {least}"
    return f"{least} to {duration(host.clock_offset_limit)}"


def _coverage(summary: ProfileSummary, top_k: int) -> list[str]:
    coverage = summary.coverage
    lines: list[str] = []
    if summary.trace_overview.suspected_truncation:
        lines.append(
            "**The trace looks cut or damaged: totals are lower bounds and steps may be missing.**",
        )
    if coverage:
        facts = [
            ("device op time with an HLO op", share(coverage.hlo_attributed_share)),
            ("with a scope", share(coverage.scope_attributed_share)),
        ]
        for name, values in (
            ("devices without events", coverage.empty_devices),
            ("lines not analysed", coverage.lines_not_analysed),
        ):
            if values:
                facts.append((name, _names(sorted(values), top_k)))
        for reason, events in sorted(coverage.events_dropped.items()):
            facts.append(("events dropped", f"{number(events)} ({prose(reason, 200)})"))
        facts += [("the format lacks", prose(lack, 200)) for lack in coverage.format_lacks]
        if coverage.overlapping_events:
            facts.append(("events that partly overlap", number(coverage.overlapping_events)))
        lines += ([""] if lines else []) + _facts(facts)
    warnings = [*summary.trace_overview.quality_warnings] + [
        f"{host.host}: {warning}"
        for host in summary.hosts
        for warning in host.warnings
        if warning not in summary.trace_overview.quality_warnings
    ]
    if warnings:
        shown = warnings[:MOST_WARNINGS]
        lines += ([""] if lines else []) + [f"- Warning: {prose(warning)}" for warning in shown]
        lines += left_out(len(warnings), len(shown), "warning")
    if coverage and coverage.unattributed_ops:
        lines += _unattributed(summary, top_k)
    return lines or ["The summary states no coverage and no warnings."]


def _unattributed(summary: ProfileSummary, top_k: int) -> list[str]:
    assert summary.coverage is not None
    ops = sorted(
        summary.coverage.unattributed_ops, key=lambda op: (-op.exclusive_duration, op.name)
    )
    rows = [
        [
            code(op.name),
            prose(op.reason),
            number(op.count),
            duration(op.exclusive_duration),
        ]
        for op in ops[:top_k]
    ]
    headers = ["op without HLO attribution", "reason", "count", "self time"]
    return ["", *table(headers, rows, "ll"), *left_out(len(ops), len(rows), "op")]


def _roofline(summary: ProfileSummary, top_k: int) -> list[str]:
    roofline = summary.roofline
    if roofline is None:
        return []
    facts = [
        ("bound by", _known(_bound(roofline.bound_by), roofline.bound_by_unknown_because)),
        ("compute time with known costs", share(roofline.coverage)),
        ("MFU", _utilization(roofline, roofline.mfu)),
        ("HFU", _utilization(roofline, roofline.hfu)),
    ]
    parts = [
        f"{share(part.share_of_device_time)} {part.name.replace('_', ' ')}"
        for part in device_time_parts(summary)
    ]
    if parts:
        facts.append(("device time", "; ".join(parts)))
    shares = {name: share(value) for name, value in roofline.utilization.items()}
    achieved, peaks = (
        {name: f"{value:,.2f}" for name, value in values.items()}
        for values in (roofline.achieved, roofline.peaks)
    )
    for title, values in (("utilization", shares), ("achieved", achieved), ("peak", peaks)):
        if values:
            listed = (f"{prose(name)} {values[name]}" for name in sorted(values))
            facts.append((title, "; ".join(listed)))
    return [*_facts(facts), *roofline_rows(summary, min(top_k, ROOFLINE_ROWS))]


def _bound(name: str | None) -> str:
    return code(name) if name else NOT_KNOWN


def _known(value: str, unknown_because: str | None) -> str:
    return value if unknown_because is None else f"{NOT_KNOWN}: {prose(unknown_because)}"


def _utilization(roofline: Roofline, value: float | None) -> str:
    if value is None:
        return _known(NOT_KNOWN, roofline.mfu_unknown_because)
    return at_least(value) if roofline.mfu_is_lower_bound else share(value)


def _advice(summary: ProfileSummary, top_k: int) -> list[str]:
    if not summary.optimization_candidates:
        return ["No finding passed its threshold."]
    lines: list[str] = []
    if summary.trace_overview.suspected_truncation:
        lines.append(CUT)
    for one in summary.optimization_candidates[:top_k]:
        lines += [
            *([""] if lines else []),
            f"### {prose(one.title, 200)}",
            "",
            prose(one.rationale) + (f" It can save {saved}." if (saved := ceiling(one)) else ""),
        ]
        for title, items in (("Evidence", one.evidence), ("Suggestions", one.suggestions)):
            if items:
                lines += ["", f"{title}:", "", *(f"- {prose(item)}" for item in items)]
        if one.verify:
            lines += ["", f"Afterwards: {prose(one.verify)}."]
    total = len(summary.optimization_candidates)
    return lines + left_out(total, min(total, top_k), "finding")


def _facts(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"- {name}: {value}" for name, value in facts]


def _time(stamp: str) -> str:
    return "not stated" if stamp == EPOCH_UTC else prose(stamp)


def _names(names: Sequence[str], limit: int) -> str:
    shown = ", ".join(code(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"
