"""The section of the Markdown report on the programs that ran."""

from __future__ import annotations

from marin_profile.base.text import duration, number, share
from marin_profile.documents.model import Block, Paragraph, left_out, table
from marin_profile.documents.text import code
from marin_profile.queries.programs import ProgramRow, program_rows
from marin_profile.schema import ProfileSummary

MOST_PROGRAMS = 5


def programs(summary: ProfileSummary, top_k: int) -> list[Block]:
    rows = program_rows(summary)
    shown = rows[: min(top_k, MOST_PROGRAMS)]
    if not shown:
        return []
    headers = [
        "program",
        "share of device time",
        "executions",
        "calls a step",
        "median call",
        "period",
        "compute",
        "exposed communication",
        "exposed transfer",
        "idle inside",
        "top op",
    ]
    cells = [
        [
            code(row.name),
            share(row.share_of_device_time),
            number(row.executions),
            _calls(row),
            duration(row.call_median),
            "" if row.period is None else duration(row.period),
            duration(row.compute_duration),
            duration(row.exposed_communication_duration),
            duration(row.exposed_transfer_duration),
            duration(row.idle_duration),
            code(row.top_ops[0].name) if row.top_ops else "",
        ]
        for row in shown
    ]
    return [
        Paragraph("Basis: whole capture, all devices; a call is one execution on one device."),
        table(headers, cells, "lrrrrrrrrrl"),
        *left_out(len(rows), len(shown), "program"),
    ]


def _calls(row: ProgramRow) -> str:
    if row.calls_per_step is None or row.share_of_steps is None:
        return ""
    if not row.share_of_steps or row.share_of_steps == 1.0:
        return f"{row.calls_per_step:,.1f}"
    inside = row.calls_per_step / row.share_of_steps
    return f"{row.calls_per_step:,.1f} ({inside:,.1f} in {share(row.share_of_steps)} of steps)"
