"""The report on a summary: the answer first, then what it rests on.

Contract
* Deterministic: the same summary and `top_k` give the same document.
* The first paragraph answers "where does the step time go"; every list states the window that it
  covers, how many rows are left out, and, if it is empty, why.
* Numbers come from the summary and the queries; nothing is computed here but sums for display.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from marin_profile.base.text import NOT_KNOWN, at_least, duration, number, share
from marin_profile.documents import markdown
from marin_profile.documents.model import (
    Block,
    Document,
    Paragraph,
    Section,
    bullets,
    facts,
    left_out,
    sections,
    table,
)
from marin_profile.documents.text import code, plain, strong
from marin_profile.queries.bound_by import device_time_parts
from marin_profile.queries.next_steps import CUT
from marin_profile.reports.charts import ledger_bar
from marin_profile.reports.first import ceiling, first_advice, uncosted
from marin_profile.reports.headline import headline
from marin_profile.reports.report_charts import roofline_chart
from marin_profile.reports.report_host import host_activity
from marin_profile.reports.report_lists import (
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
from marin_profile.reports.report_memory import memory
from marin_profile.reports.report_programs import programs
from marin_profile.reports.report_time import ledger, steps
from marin_profile.schema import (
    EPOCH_UTC,
    Host,
    OptimizationCandidate,
    ProfileSummary,
    Profiling,
    Roofline,
    UnattributedOp,
)

MOST_HOSTS = 16
MOST_WARNINGS = 20
FIRST = 3
ROOFLINE_ROWS = 5  # of a kind: regions and families have tables of their own


Build = Callable[[ProfileSummary, int], list[Block]]


MOST_ROWS, FEWEST_ROWS = 5000, 50
MOST_BYTES = 1_500_000


def render_html(summary: ProfileSummary, *, top_k: int | None = None) -> str:
    """The report as one page that works offline. Its tables are paged, so lists are long: without
    `top_k` as long as the page then stays within MOST_BYTES."""
    from marin_profile.documents import html

    rows = top_k or MOST_ROWS
    while True:
        page = html.render(report(summary, top_k=rows))
        if top_k is not None or rows <= FEWEST_ROWS or len(page.encode()) <= MOST_BYTES:
            return page
        rows //= 2


def render_markdown(summary: ProfileSummary, *, top_k: int = 10) -> str:
    """The whole report; lists of ops, gaps, regions and devices hold `top_k` rows at most."""
    return markdown.render(report(summary, top_k=top_k))


def report(summary: ProfileSummary, *, top_k: int = 10) -> Document:
    """The report as a document; see `render_markdown`."""
    return Document(
        title="Profile report",
        lead=lead(summary),
        sections=sections((title, build(summary, top_k)) for title, build in SECTIONS),
    )


def lead(summary: ProfileSummary) -> tuple[Block, ...]:
    """Where the step time goes, what speaks against it, and what to try first."""
    return (
        Paragraph(plain(headline(summary), None)),
        *_doubts(summary),
        *ledger_bar(summary),
        *_uncosted(summary),
        *_first(summary),
    )


def _doubts(summary: ProfileSummary) -> list[Block]:
    doubts = summary.trace_overview.doubts
    shown = doubts[:FIRST]
    return [
        *bullets(f"Doubt: {plain(doubt)}" for doubt in shown),
        *left_out(len(doubts), len(shown), "doubt"),
    ]


def _uncosted(summary: ProfileSummary) -> list[Block]:
    said = uncosted(summary)
    return [Paragraph(f"{plain(said, None)}.")] if said else []


def _first(summary: ProfileSummary) -> list[Block]:
    rows = bullets(
        (
            f"{plain(one.title, 200)}: {one.saves + '; ' if one.saves else ''}{plain(one.why, 200)}"
            for one in first_advice(summary, FIRST)
        ),
        numbered=True,
    )
    return [Paragraph("What to try first, and what it saves:"), *rows] if rows else []


def _run(summary: ProfileSummary, top_k: int) -> list[Block]:
    named = [
        (name.replace("_", " "), value)
        for name, value in summary.run_metadata
        if name in type(summary.run_metadata).model_fields and value is not None
    ]
    return facts((name, code(str(value))) for name, value in named) or [
        Paragraph("The profile does not name its run.")
    ]


def _profiling(profiling: Profiling) -> list[tuple[str, str]]:
    """How training saw the capture."""
    verdict = {True: "yes", False: strong("no"), None: "not known"}[profiling.representative]
    start, stop = duration(profiling.start_trace_duration), duration(profiling.stop_trace_duration)
    return [
        ("taken because", plain(profiling.trigger.replace("_", " "))),
        ("representative of the run", f"{verdict}: {plain(profiling.reason)}"),
        ("the profiler took", f"{start} to start, {stop} to stop"),
    ]


def _provenance(summary: ProfileSummary, top_k: int) -> list[Block]:
    capture = summary.capture
    known = [
        ("source", code(summary.source_path, 200)),
        ("format", code(summary.source_format)),
        ("sha256", code(summary.trace_provenance.trace_sha256 or NOT_KNOWN)),
        ("profile taken", _time(summary.generated_at_utc)),
    ]
    if capture and capture.stop:
        known.append(("profile ended", plain(capture.stop)))
    if capture and capture.tool_version:
        known.append(("summarized by", f"marin-profile {plain(capture.tool_version)}"))
    if capture and capture.profiling:
        known += _profiling(capture.profiling)
    rows = [
        [
            code(host.host),
            code(host.file.rsplit("/", 1)[-1]),
            code(host.source_format or summary.source_format),
            plain(host.chosen_because or NOT_KNOWN),
            code(host.sha256[:12]),
            number(len(host.devices)),
            _clock_offset(host),
        ]
        for host in summary.hosts[:MOST_HOSTS]
    ]
    headers = ["host", "file", "format", "why this file", "sha256", "devices", "clock offset"]
    return [
        *facts(known),
        *([table(headers, rows, "lllll")] if rows else []),
        *left_out(len(summary.hosts), len(rows), "host"),
    ]


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


def _coverage(summary: ProfileSummary, top_k: int) -> list[Block]:
    coverage = summary.coverage
    blocks: list[Block] = []
    if summary.trace_overview.suspected_truncation:
        what = "The trace looks cut or damaged: totals are lower bounds and steps may be missing."
        blocks.append(Paragraph(strong(what)))
    if coverage:
        known = [
            ("device op time with an HLO op", share(coverage.hlo_attributed_share)),
            ("with a scope", share(coverage.scope_attributed_share)),
        ]
        for name, values in (
            ("devices without events", coverage.empty_devices),
            ("lines not analysed", coverage.lines_not_analysed),
        ):
            if values:
                known.append((name, _names(sorted(values), top_k)))
        for reason, events in sorted(coverage.events_dropped.items()):
            known.append(("events dropped", f"{number(events)} ({plain(reason, 200)})"))
        known += [("the format lacks", plain(lack, 200)) for lack in coverage.format_lacks]
        if coverage.overlapping_events:
            known.append(("events that partly overlap", number(coverage.overlapping_events)))
        blocks += facts(known)
    warnings = [*summary.trace_overview.quality_warnings] + [
        f"{host.host}: {warning}"
        for host in summary.hosts
        for warning in host.warnings
        if warning not in summary.trace_overview.quality_warnings
    ]
    shown = warnings[:MOST_WARNINGS]
    blocks += bullets(f"Warning: {plain(warning)}" for warning in shown)
    blocks += left_out(len(warnings), len(shown), "warning")
    if coverage and coverage.unattributed_ops:
        blocks += _unattributed(coverage.unattributed_ops, top_k)
    return blocks or [Paragraph("The summary states no coverage and no warnings.")]


def _unattributed(unattributed: Sequence[UnattributedOp], top_k: int) -> list[Block]:
    ops = sorted(unattributed, key=lambda op: (-op.exclusive_duration, op.name))
    rows = [
        [code(op.name), plain(op.reason), number(op.count), duration(op.exclusive_duration)]
        for op in ops[:top_k]
    ]
    headers = ["op without HLO attribution", "reason", "count", "self time"]
    return [table(headers, rows, "ll"), *left_out(len(ops), len(rows), "op")]


def _roofline(summary: ProfileSummary, top_k: int) -> list[Block]:
    roofline = summary.roofline
    if roofline is None:
        return []
    known = [
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
        known.append(("device time", "; ".join(parts)))
    shares = {name: share(value) for name, value in roofline.utilization.items()}
    achieved, peaks = (
        {name: f"{value:,.2f}" for name, value in values.items()}
        for values in (roofline.achieved, roofline.peaks)
    )
    for title, values in (("utilization", shares), ("achieved", achieved), ("peak", peaks)):
        if values:
            listed = (f"{plain(name)} {values[name]}" for name in sorted(values))
            known.append((title, "; ".join(listed)))
    return [
        *facts(known),
        *roofline_chart(summary),
        *roofline_rows(summary, min(top_k, ROOFLINE_ROWS)),
    ]


def _bound(name: str | None) -> str:
    return code(name) if name else NOT_KNOWN


def _known(value: str, unknown_because: str | None) -> str:
    return value if unknown_because is None else f"{NOT_KNOWN}: {plain(unknown_because)}"


def _utilization(roofline: Roofline, value: float | None) -> str:
    if value is None:
        return _known(NOT_KNOWN, roofline.mfu_unknown_because)
    return at_least(value) if roofline.mfu_is_lower_bound else share(value)


def _advice(summary: ProfileSummary, top_k: int) -> list[Block]:
    candidates = summary.optimization_candidates
    if not candidates:
        return [Paragraph("No finding passed its threshold.")]
    is_cut = summary.trace_overview.suspected_truncation
    return [
        *([Paragraph(CUT)] if is_cut else []),
        *(_candidate(one) for one in candidates[:top_k]),
        *left_out(len(candidates), min(len(candidates), top_k), "finding"),
    ]


def _candidate(one: OptimizationCandidate) -> Section:
    saved = ceiling(one)
    blocks: list[Block] = [
        Paragraph(plain(one.rationale) + (f" It can save {saved}." if saved else ""))
    ]
    for title, items in (("Evidence", one.evidence), ("Suggestions", one.suggestions)):
        if items:
            blocks += [Paragraph(f"{title}:"), *bullets(map(plain, items))]
    if one.verify:
        blocks.append(Paragraph(f"Afterwards: {plain(one.verify)}."))
    return Section(plain(one.title, 200), tuple(blocks))


def _time(stamp: str) -> str:
    return "not stated" if stamp == EPOCH_UTC else plain(stamp)


def _names(names: Sequence[str], limit: int) -> str:
    shown = ", ".join(code(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


SECTIONS: tuple[tuple[str, Build], ...] = (
    ("What to try next", _advice),
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
    ("Coverage and warnings", _coverage),
    ("Run", _run),
    ("Provenance", _provenance),
)
