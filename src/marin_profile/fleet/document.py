"""A fleet as a document, and as figures for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from marin_profile.base.text import NOT_KNOWN, duration, number, plural, share, size, visible
from marin_profile.documents.model import (
    Block,
    Document,
    Paragraph,
    Series,
    bullets,
    left_out,
    sections,
    table,
)
from marin_profile.documents.text import code, plain, strong
from marin_profile.fleet.findings import Fleet, Group, Outlier
from marin_profile.fleet.row import FleetRow
from marin_profile.history.development import LINE

NAMED_FIRST = 5
HASH = 16


def fleet_document(fleet: Fleet, *, top_k: int) -> Document:
    """Lists hold `top_k` rows at most."""
    return Document(
        title="Fleet report",
        lead=_lead(fleet),
        sections=sections(
            (
                ("Groups", _groups(fleet, top_k)),
                ("Captures that stand out", _outliers(fleet, top_k)),
                ("Hosts", _hosts(fleet, top_k)),
                ("Over time", _over_time(fleet, top_k)),
                ("First advice", _advice(fleet, top_k)),
                ("Captures", _captures(fleet, top_k)),
                ("Not summarised", _broken(fleet, top_k)),
            )
        ),
    )


def _lead(fleet: Fleet) -> tuple[Block, ...]:
    slow = [one for one in fleet.outliers if one.is_slow]
    told = f"{plural(len(fleet.rows), 'capture')} in {plural(len(fleet.groups), 'group')}"
    told += f"; {len(slow):,} slow" if slow else "; none stands out as slow"
    told += f"; {strong(f'{len(fleet.broken):,} could not be summarised')}" if fleet.broken else ""
    return (
        Paragraph(f"{told}."),
        *bullets(
            f"{code(one.row.name)}: {duration(one.row.step_typical)} a step, {_beyond(one)}"
            for one in slow[:NAMED_FIRST]
        ),
        *left_out(len(slow), min(len(slow), NAMED_FIRST), "slow capture"),
        *bullets(
            f"Not summarised: {code(row.name)}: {plain(row.problem, 300)}"
            for row in fleet.broken[:NAMED_FIRST]
        ),
        *left_out(len(fleet.broken), min(len(fleet.broken), NAMED_FIRST), "capture"),
    )


def _beyond(one: Outlier) -> str:
    how = "above" if one.is_slow else "below"
    return f"{100 * abs(one.ratio - 1):.1f} % {how} the median of its group"


def _groups(fleet: Fleet, top_k: int) -> list[Block]:
    if not fleet.groups:
        return []
    rows = [
        [
            plain(group.hardware or NOT_KNOWN),
            number(group.devices),
            number(group.hosts),
            code(group.config, HASH) if group.config else NOT_KNOWN,
            code(group.program) if group.program else NOT_KNOWN,
            number(len(group.rows)),
            duration(_median(group.lengths)),
            share(_median([row.busy_share for row in group.rows])),
            share(_median([row.exposed_communication_share for row in group.rows])),
            _largest_memory(group.rows),
            number(sum(one.is_slow for one in group.outliers)),
        ]
        for group in fleet.groups[:top_k]
    ]
    headers = [
        "hardware",
        "devices",
        "hosts",
        "config",
        "largest program",
        "captures",
        "typical step",
        "busy",
        "exposed communication",
        "memory at the peak",
        "slow",
    ]
    return [
        Paragraph(
            "Captures are compared with those of the same hardware, devices, hosts, config, "
            "largest program and measure of a step. Figures are medians of captures, of memory "
            "the largest."
        ),
        table(headers, rows, "lrrll"),
        *left_out(len(fleet.groups), len(rows), "group"),
    ]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _largest_memory(rows: Sequence[FleetRow]) -> str:
    known = [row.memory_peak_size for row in rows if row.memory_peak_size is not None]
    return size(max(known)) if known else NOT_KNOWN


def _outliers(fleet: Fleet, top_k: int) -> list[Block]:
    found = fleet.outliers
    if not found:
        return []
    rows = [
        [
            code(one.row.name),
            plain(", ".join(one.row.hosts[:2])),
            duration(one.row.step_typical),
            _beyond(one),
            f"{one.z:+.1f}",
            share(one.row.busy_share),
            plain(one.row.advice or ""),
        ]
        for one in found[:top_k]
    ]
    headers = ["capture", "hosts", "typical step", "stands", "z", "busy", "first advice"]
    return [table(headers, rows, "llrlrrl"), *left_out(len(found), len(rows), "capture")]


def _hosts(fleet: Fleet, top_k: int) -> list[Block]:
    if not fleet.hosts:
        return []
    rows = [
        [code(one.host), number(one.captures), number(one.straggler_in), number(one.slow)]
        for one in fleet.hosts[:top_k]
    ]
    headers = ["host", "captures", "straggler in", "the one host of slow ones"]
    return [table(headers, rows), *left_out(len(fleet.hosts), len(rows), "host")]


def _over_time(fleet: Fleet, top_k: int) -> list[Block]:
    """Of groups with a known config, whose captures repeat one measurement."""
    blocks: list[Block] = []
    for group in fleet.groups[:top_k]:
        if len(group.timed) > 1 and group.config is not None:
            points = tuple(
                (f"{row.time[:19]} {row.name}", row.step_typical or 0.0, duration(row.step_typical))
                for row in group.timed
            )
            name = f"{group.hardware or NOT_KNOWN}, config {visible(group.config, HASH)}"
            blocks += [
                Paragraph(f"{plain(name)}: {_developed(group)}."),
                Series(f"Typical step of {name}", points),
            ]
    return blocks


def _developed(group: Group) -> str:
    first, last = group.timed[0], group.timed[-1]
    told = [
        f"{duration(first.step_typical)} at first, {duration(last.step_typical)} at last, "
        f"{plural(len(group.timed), 'capture')}"
    ]
    for change in group.development.changes:
        row = group.timed[change.index]
        how = "slower" if change.ratio > 1 else "faster"
        told.append(f"{100 * abs(change.ratio - 1):.1f} % {how} from {row.time[:19]} on")
    drift = group.development.drift
    if drift is not None:
        along = "along a line" if drift.kind == LINE else "wandering"
        change_of_drift = 100 * math.expm1(drift.log_change)
        told.append(
            f"a drift of {change_of_drift:+.1f} % since {group.timed[drift.start].time[:19]}, "
            f"{along}"
        )
    if len(told) == 1:
        told.append("no change and no drift is seen")
    return "; ".join(told)


def _advice(fleet: Fleet, top_k: int) -> list[Block]:
    if not fleet.advice:
        return []
    rows = [
        [plain(one.advice, 200), number(one.captures), share(one.saves_share)]
        for one in fleet.advice[:top_k]
    ]
    headers = ["advice", "first in captures", "saves at most, median"]
    return [table(headers, rows), *left_out(len(fleet.advice), len(rows), "advice", "advices")]


def _captures(fleet: Fleet, top_k: int) -> list[Block]:
    if not fleet.rows:
        return []
    rows = [
        [
            code(row.name),
            row.time[:19] or NOT_KNOWN,
            plain(row.hardware or NOT_KNOWN),
            number(row.devices),
            duration(row.step_typical),
            duration(row.step_mean),
            share(row.busy_share),
            share(row.exposed_communication_share),
            size(row.memory_peak_size) if row.memory_peak_size is not None else NOT_KNOWN,
            plain(row.advice or "", 200),
            number(row.num_doubts),
        ]
        for row in fleet.rows[:top_k]
    ]
    headers = [
        "capture",
        "taken",
        "hardware",
        "devices",
        "typical step",
        "mean step",
        "busy",
        "exposed communication",
        "memory at the peak",
        "first advice",
        "doubts",
    ]
    return [
        table(headers, rows, "lllrrrrrrlr"),
        *left_out(len(fleet.rows), len(rows), "capture"),
    ]


def _broken(fleet: Fleet, top_k: int) -> list[Block]:
    if not fleet.broken:
        return []
    rows = [[code(row.name), plain(row.problem, 500)] for row in fleet.broken[:top_k]]
    return [
        table(["capture", "why"], rows, "ll"),
        *left_out(len(fleet.broken), len(rows), "capture"),
    ]


def fleet_figures(fleet: Fleet) -> dict[str, Any]:
    """For programs: the rows, who stands out, and what could not be summarised."""
    return {
        "rows": [row.to_dict() for row in fleet.rows],
        "broken": [{"name": row.name, "problem": row.problem} for row in fleet.broken],
        "outliers": [
            {"name": one.row.name, "ratio": one.ratio, "z": one.z} for one in fleet.outliers
        ],
        "hosts": [asdict(one) for one in fleet.hosts],
    }
