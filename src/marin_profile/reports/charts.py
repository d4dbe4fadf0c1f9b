"""Charts of a summary: the ledger, each device's, and the steps in order of time."""

from __future__ import annotations

from marin_profile.base.text import duration
from marin_profile.documents.model import Bars, Block, Series
from marin_profile.documents.text import plain
from marin_profile.facts.device_time import (
    TERMS,
    DeviceTime,
    device_times,
    headline_window,
    ledger_rows,
)
from marin_profile.queries.device_ledger import device_rows
from marin_profile.schema import ProfileSummary

PARTS = tuple(term.replace("_", " ") for term in TERMS)
MOST_DEVICES = 64
MOST_STEPS = 400


def term_shares(time: DeviceTime) -> tuple[float, ...]:
    """The terms of TERMS as shares of the window; together 1."""
    return tuple(getattr(time, f"{term}_share") or 0.0 for term in TERMS)


def ledger_bar(summary: ProfileSummary) -> list[Block]:
    """A bar for each kind of device."""
    times = device_times(summary, headline_window(summary))
    rows = tuple((f"{time.kind}, all devices", term_shares(time)) for time in times)
    return [Bars("Where device time goes", PARTS, rows, of="kind of device")] if rows else []


def device_bars(summary: ProfileSummary, window: str, kind: str) -> list[Block]:
    """A bar for each device, the most idle first; nothing for one alone."""
    devices = [row for row in device_rows(summary, window) if row.kind == kind]
    if len(devices) < 2:
        return []
    shown = devices[:MOST_DEVICES]
    rows = tuple((plain(f"{row.host} {row.device}".strip()), term_shares(row)) for row in shown)
    there = sum(row.devices for row in ledger_rows(summary, window) if row.kind == kind)
    more = f", {len(shown)} of {there:,}" if there > len(shown) else ""
    return [Bars(f"Each device{more}", PARTS, rows)]


def step_series(summary: ProfileSummary) -> list[Block]:
    """The periods of the kept steps; outliers stand out, and say why."""
    kept = [step for step in summary.step_time.steps if step.kept and step.period is not None]
    if len(kept) < 2:
        return []
    causes = {
        one.index: (one.cause or "cause not known").replace("_", " ")
        for one in summary.step_time.outliers
    }
    shown = kept[:MOST_STEPS]
    points = tuple(
        (
            f"step {step.index if step.step_num is None else step.step_num}",
            step.period or 0.0,
            duration(step.period),
        )
        for step in shown
    )
    more = f", the first {len(points)} of {len(kept):,}" if len(kept) > len(points) else ""
    outlying = [causes.get(step.index) for step in shown]
    marked = frozenset(at for at, cause in enumerate(outlying) if cause)
    notes = tuple(f"an outlier: {plain(cause)}" if cause else "" for cause in outlying)
    title = f"Period of each kept step{more}"
    return [Series(title, points, marked=marked, notes=notes if marked else ())]
