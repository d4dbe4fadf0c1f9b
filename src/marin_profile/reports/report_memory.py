"""The section of the Markdown report on the memory that programs need, and that was in use."""

from __future__ import annotations

from marin_profile.base.text import share, size
from marin_profile.documents.model import Block, Paragraph, left_out, table
from marin_profile.documents.text import code, plain
from marin_profile.facts.memory import fullest
from marin_profile.reports.report_charts import memory_bars
from marin_profile.schema import MemoryBuffer, ProfileSummary, ProgramMemory

MOST_PROGRAMS = 4
MOST_BUFFERS = 5
MOST_SCOPES = 3
# Of the fullest program's peak: smaller programs do not matter.
LEAST_OF_FULLEST = 0.1
LEFT_OUT = ("smaller program or memory space", "smaller programs or memory spaces")


def memory(summary: ProfileSummary, top_k: int) -> list[Block]:
    return [*_in_use(summary, top_k), *_planned(summary, top_k)]


def _in_use(summary: ProfileSummary, top_k: int) -> list[Block]:
    """The fullest first."""
    rows = sorted(summary.allocators, key=lambda row: row.headroom_size / (row.capacity_size or 1))
    if not rows:
        return []
    headers = ["host", "memory", "in use", "most in use", "capacity", "headroom"]
    body = [
        [
            code(row.host),
            code(row.device or row.allocator or "?"),
            size(row.in_use_size),
            size(max(row.most_in_use_size, row.allocated_peak_size)),
            size(row.capacity_size),
            size(row.headroom_size),
        ]
        for row in rows[:top_k]
    ]
    return [
        Paragraph("By the allocators, which count what was reserved and allocated."),
        table(headers, body, "ll"),
        *left_out(len(rows), len(body), "allocator"),
    ]


def _planned(summary: ProfileSummary, top_k: int) -> list[Block]:
    if not summary.memory:
        return []
    least = LEAST_OF_FULLEST * summary.memory[0].peak_size
    first = fullest(summary.memory)
    large = [row for row in summary.memory if row.peak_size >= least or row is first]
    shown = large[: min(top_k, MOST_PROGRAMS)]
    headers = [
        "program",
        "memory",
        "peak",
        "parameters",
        "outputs",
        "constants",
        "temporaries",
        "at",
    ]
    padding = f" {size(first.padding_size)} of it is padding." if first.padding_size else ""
    buffers = first.buffers[: min(top_k, MOST_BUFFERS)]
    of_buffers = ["buffer", "kind", "shape", "scope", "size", "of the peak", "padding"]
    return [
        Paragraph("By XLA's plan, on each device; not what an allocator gave."),
        table(headers, [_program(row) for row in shown], "ll"),
        *left_out(len(summary.memory), len(shown), *LEFT_OUT),
        *memory_bars(first),
        Paragraph(
            f"At the peak of {_name(first)} in {plain(first.space)}, by scope: "
            f"{_scopes(first)}.{padding}"
        ),
        Paragraph("The largest buffers there:"),
        table(of_buffers, [_buffer(one, first.peak_size) for one in buffers], "llll"),
        *left_out(first.buffer_count, len(buffers), "buffer"),
    ]


def _name(row: ProgramMemory) -> str:
    return code(row.module or row.program_id)


def _scopes(row: ProgramMemory) -> str:
    return ", ".join(
        (code(one.scope) if one.scope else "buffers without one")
        + (f" ({plain(one.pass_)})" if one.pass_ and one.pass_ != "other" else "")
        + f" {size(one.size)} ({share(one.size / row.peak_size)})"
        for one in row.by_scope[:MOST_SCOPES]
    )


def _program(row: ProgramMemory) -> list[str]:
    peak = size(row.peak_size)
    return [
        _name(row),
        plain(row.space),
        peak if row.is_complete else f"at least {peak}",
        size(row.parameter_size),
        size(row.output_size),
        size(row.constant_size),
        size(row.temporary_size),
        code(row.instruction) if row.instruction else "",
    ]


def _buffer(one: MemoryBuffer, peak: int) -> list[str]:
    return [
        code(one.argument or one.instruction or "?"),
        plain(one.kind),
        code(one.shape) if one.shape else "",
        code(one.scope) if one.scope else "",
        size(one.size),
        share(one.size / peak),
        size(one.padding) if one.padding else "",
    ]
