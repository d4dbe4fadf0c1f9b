"""Sections of the Markdown report that divide time: steps and the device ledger."""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration, number, plural, share
from marin_profile.documents.model import Block, Paragraph, bullets, left_out, table
from marin_profile.documents.text import code, plain, strong
from marin_profile.facts.device_time import (
    DeviceTime,
    Part,
    device_times,
    headline_window,
)
from marin_profile.facts.step_time import (
    cost_text,
    outlier_costs,
    typical_and_mean,
    why_they_differ,
)
from marin_profile.queries.device_ledger import DeviceRow, device_rows
from marin_profile.queries.step_time import NO_STEPS
from marin_profile.reports.charts import device_bars, step_series
from marin_profile.reports.headline import do_overlap, window_name
from marin_profile.schema import CAPTURE, DurationStats, ProfileSummary

STEPS_LISTED = 32


SEE = "marin-profile trace CAPTURE --step N"


def steps(summary: ProfileSummary, top_k: int) -> list[Block]:
    step_time = summary.step_time
    total = max(step_time.all_steps.count, len(step_time.steps))
    if not total:
        return [Paragraph(f"{NO_STEPS.reason} {NO_STEPS.what_would_help}")]
    source = f"Source: {code(step_time.source)}" if step_time.source else "Source not stated"
    if step_time.annotation:
        source += f" {code(step_time.annotation)}"
    cut = sum(step.cut for step in step_time.steps)
    told = (
        f"{source}. {plural(total, 'step')}, of which "
        f"{number(step_time.warmup_steps_ignored)} dropped as warm-up"
        + (f" and {cut} cut by the capture." if cut else ".")
    )
    if step_time.linked is False:
        told += " Device work could not be tied to the steps: only the period is known."
    blocks: list[Block] = [Paragraph(told), *_typical_and_mean(summary), *step_series(summary)]
    rows = [
        [name, *_stats_cells(stats)]
        for name, stats in (
            ("period", step_time.period),
            ("duration", step_time.steady_state_steps),
            ("critical path", step_time.critical_path),
        )
        if stats is not None and stats.median is not None
    ]
    headers = ["", "count", "median", "mean", "p90", "min", "max"]
    if rows:
        blocks.append(table(headers, rows))
    if len(step_time.classes) > 1:
        rows = [
            [
                code(one.name),
                share(one.fraction_of_steady),
                number(one.periodicity),
                *_stats_cells(one.period_stats or one.duration_stats),
            ]
            for one in step_time.classes
        ]
        by = "period" if all(one.period_stats for one in step_time.classes) else "duration"
        named = [f"class by {by}", "share of steps", "every", *headers[1:]]
        blocks.append(table(named, rows))
    return [*blocks, *_outliers(summary, top_k), *_step_table(summary)]


def _typical_and_mean(summary: ProfileSummary) -> list[Block]:
    """Both, and why, where they differ."""
    length, why = typical_and_mean(summary), why_they_differ(summary)
    if length is None or not why:
        return []
    over = "" if length.periods is None else f" over {plural(length.periods, 'whole period')}"
    return [
        Paragraph(
            f"Typical {length.measure} (median) {duration(length.typical)}, mean "
            f"{duration(length.mean)}{over}: {plain(why, None)}."
        )
    ]


def _outliers(summary: ProfileSummary, top_k: int) -> list[Block]:
    outliers = summary.step_time.outliers
    if not outliers:
        return []
    costs = outlier_costs(summary)
    shown = sorted(outliers, key=lambda one: (-one.excess, one.index))[:top_k]
    rows = [
        [
            number(one.index) if one.step_num is None else str(one.step_num),
            duration(one.period),
            duration(one.excess),
            (one.cause or "not known").replace("_", " "),
            duration(one.cause_duration),
            code(one.cause_name) if one.cause_name else "",
            code(one.before_op) if one.before_op else "",
        ]
        for one in shown
    ]
    headers = ["step", "period", "beyond the median", "cause", "grew by", "name", "before"]
    noise = "more than 10 % and 5 standard deviations"
    return [
        Paragraph(f"{plural(len(outliers), 'outlier')}, longer than the median by {noise}:"),
        *bullets(plain(cost_text(cost), None) for cost in costs[:top_k]),
        *left_out(len(costs), min(len(costs), top_k), "cause"),
        table(headers, rows, "rrrlrll"),
        *left_out(len(outliers), len(shown), "outlier"),
        Paragraph(f"{code(SEE)} shows one in its trace, in Perfetto."),
    ]


def _step_table(summary: ProfileSummary) -> list[Block]:
    steps = summary.step_time.steps
    rows = [
        [
            number(step.index),
            NOT_KNOWN if step.step_num is None else str(step.step_num),
            "yes" if step.kept else "cut" if step.cut else "no",
            duration(step.start),
            duration(step.period),
            duration(step.duration),
            duration(step.critical_path),
            code(step.step_class) if step.step_class else "",
        ]
        for step in steps[:STEPS_LISTED]
    ]
    if not rows:
        return []
    headers = ["step", "number", "kept", "start", "period", "duration", "critical path", "class"]
    return [table(headers, rows, "rrlrrrrl"), *left_out(len(steps), len(rows), "step")]


def _stats_cells(stats: DurationStats) -> list[str]:
    values = (stats.median, stats.mean, stats.p90, stats.min, stats.max)
    return [number(stats.count), *(duration(value) for value in values)]


def ledger(summary: ProfileSummary, top_k: int) -> list[Block]:
    window = headline_window(summary)
    if window is None:
        return _breakdown(summary)
    blocks = _window(summary, window, top_k)
    if window != CAPTURE and any(row.window == CAPTURE for row in summary.device_ledger):
        blocks += _window(summary, CAPTURE, top_k)
    return blocks


def _window(summary: ProfileSummary, window: str, top_k: int) -> list[Block]:
    blocks: list[Block] = []
    for time in device_times(summary, window):
        devices = [row for row in device_rows(summary, window) if row.kind == time.kind]
        shown = devices[:top_k]
        rows = [[strong("all"), *_ledger_cells(time)]]
        rows += [[_device_name(row), *_ledger_cells(row)] for row in shown]
        headers = [
            f"{code(time.kind)} device",
            "window",
            "compute",
            "exposed communication",
            "exposed transfer",
            "unattributed",
            "idle",
            "overlapped communication",
        ]
        order = ", the most idle first" if len(devices) > 1 else ""
        title = plain(window_name(window).capitalize())
        blocks += [
            Paragraph(
                f"{title}, {plural(time.devices, 'device')}{order}. Compute, exposed communication "
                "and transfer, unattributed and idle sum to the window."
            ),
            *device_bars(summary, window, time.kind),
            table(headers, rows),
            *left_out(time.devices, len(shown), "device"),
            *_by_kind(time),
        ]
    return blocks


def _device_name(row: DeviceRow) -> str:
    return code(f"{row.host} {row.device}")


def _ledger_cells(time: DeviceTime) -> list[str]:
    return [
        duration(time.window_duration),
        share(time.compute_share),
        share(time.exposed_communication_share),
        share(time.exposed_transfer_share),
        share(time.unattributed_share),
        share(time.idle_share),
        share(time.overlapped_communication_share),
    ]


def _by_kind(time: DeviceTime) -> list[Block]:
    exposed = {part.kind: part for part in time.exposed_communication_by_kind}
    overlapped = {part.kind: part for part in time.overlapped_communication_by_kind}
    rows = [
        [code(kind), *_part_cells(exposed.get(kind)), *_part_cells(overlapped.get(kind))]
        for kind in exposed | overlapped
    ]
    rows += [
        [code(part.kind), *_part_cells(part), NOT_KNOWN, NOT_KNOWN]
        for part in time.exposed_transfer_by_kind
    ]
    headers = ["kind, all devices", "exposed", "share", "overlapped", "share"]
    if not rows:
        return []
    overlap = do_overlap(
        time.exposed_communication_by_kind, time.exposed_communication_duration
    ) or do_overlap(time.exposed_transfer_by_kind, time.exposed_transfer_duration)
    note = Paragraph("Kinds run partly at the same time: their sum exceeds their union above.")
    return [table(headers, rows), *([note] if overlap else [])]


def _part_cells(part: Part | None) -> list[str]:
    return [duration(part.duration), share(part.share)] if part else [duration(0.0), share(0.0)]


def _breakdown(summary: ProfileSummary) -> list[Block]:
    breakdown = summary.time_breakdown
    if breakdown.total_duration <= 0:
        return [Paragraph("No device time was recorded, so there is nothing to divide.")]
    rows = [
        [name, duration(part.total_duration), share(part.share_of_total)]
        for name in ("compute", "communication", "host", "stall", "other")
        for part in [getattr(breakdown, name)]
    ]
    basis = code(breakdown.duration_basis)
    return [
        Paragraph(f"The summary holds no device ledger; this is its {basis} breakdown."),
        table(["part", "time", "share"], rows),
    ]
