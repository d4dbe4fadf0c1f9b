"""Where device time goes, added up over devices: the numbers behind the headline.

Contract
* The headline window is the steady one where there are steps, else the whole capture.
* Shares are sum over devices / sum over devices; without device time they are None, never 0/0.
* Devices of different kinds are never mixed: one `DeviceTime` per kind, the one that was busy
  longest first; sparse cores, which only assist, come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.facts.rows import Row
from marin_profile.schema import (
    CAPTURE,
    REMAINDER,
    STEADY,
    DeviceLedger,
    ProfileSummary,
)

NOT_STATED = "not stated"
SPARSE_CORE = "sparsecore"


# What a window is divided into, in the order of the views.
TERMS = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle")


class Part(Row, frozen=True, kw_only=True):
    """Time of one kind of operation, and its share of all device time in the window."""

    kind: str
    duration: Microseconds
    share: Share | None = None


class DeviceTime(Row, frozen=True, kw_only=True):
    """The ledger terms of one or several devices; the five shares sum to 1."""

    window: str
    kind: str
    devices: Count
    window_duration: Microseconds
    compute_duration: Microseconds
    exposed_communication_duration: Microseconds
    exposed_transfer_duration: Microseconds
    unattributed_duration: Microseconds
    idle_duration: Microseconds
    overlapped_communication_duration: Microseconds
    compute_share: Share | None = None
    exposed_communication_share: Share | None = None
    exposed_transfer_share: Share | None = None
    unattributed_share: Share | None = None
    idle_share: Share | None = None
    overlapped_communication_share: Share | None = None
    exposed_communication_by_kind: list[Part]
    overlapped_communication_by_kind: list[Part]
    exposed_transfer_by_kind: list[Part]


def ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole; None where either is unknown or the whole is nothing."""
    return part / whole if part is not None and whole else None


def headline_window(summary: ProfileSummary) -> str | None:
    """The window that the headline speaks of; None without a ledger."""
    windows = {row.window for row in summary.device_ledger}
    return next((window for window in (STEADY, CAPTURE) if window in windows), None)


def ledger_rows(summary: ProfileSummary, window: str | None) -> list[DeviceLedger]:
    """With what sums up the devices that have no rows of their own."""
    return [row for row in summary.device_ledger if row.window == window]


def single_devices(summary: ProfileSummary, window: str | None) -> list[DeviceLedger]:
    return [row for row in ledger_rows(summary, window) if row.device != REMAINDER]


def left_out_of(summary: ProfileSummary, list_name: str) -> int:
    """How many rows a list would hold beside those that it does."""
    return sum(one.rows_left_out for one in summary.abridged if one.list_name == list_name)


def hosts_left_out(summary: ProfileSummary) -> str:
    """A sentence where not all hosts have an account of their activity, else ""."""
    left_out = left_out_of(summary, "host_activity")
    if not left_out:
        return ""
    return (
        f"{left_out:,} more hosts have no account here: those that compiled have, then those whose "
        "devices idle longest."
    )


def device_times(summary: ProfileSummary, window: str | None) -> list[DeviceTime]:
    """One total per device kind, the leading kind first."""
    by_kind: dict[str, list[DeviceLedger]] = {}
    for row in ledger_rows(summary, window):
        by_kind.setdefault(row.kind, []).append(row)
    totals = [total(rows) for rows in by_kind.values()]
    return sorted(totals, key=_leading_first)


def _leading_first(time: DeviceTime) -> tuple[bool, float, str]:
    return time.kind == SPARSE_CORE, time.idle_duration - time.window_duration, time.kind


def headline_time(summary: ProfileSummary) -> DeviceTime | None:
    """The total of the leading device kind in the headline window."""
    return next(iter(device_times(summary, headline_window(summary))), None)


_BY_KIND = (
    "exposed_communication_by_kind",
    "overlapped_communication_by_kind",
    "exposed_transfer_by_kind",
)


def total(rows: Sequence[DeviceLedger]) -> DeviceTime:
    """The sum over ledger rows of one window and one device kind."""
    whole = sum(row.window_duration for row in rows)
    values: dict[str, Any] = {}
    for term in (*TERMS, "overlapped_communication"):
        duration = sum(getattr(row, f"{term}_duration") for row in rows)
        values |= {f"{term}_duration": duration, f"{term}_share": ratio(duration, whole)}
    for name in _BY_KIND:
        values[name] = _parts((getattr(row, name) for row in rows), whole)
    return DeviceTime(
        window=rows[0].window,
        kind=rows[0].kind,
        devices=sum(row.devices for row in rows),
        window_duration=whole,
        **values,
    )


def _parts(maps: Iterable[dict[str, float]], whole: float) -> list[Part]:
    durations: dict[str, float] = {}
    for one in maps:
        for kind, duration in one.items():
            durations[kind] = durations.get(kind, 0.0) + duration
    ordered = sorted(durations.items(), key=lambda item: (-item[1], item[0]))
    return [
        Part(kind=kind, duration=duration, share=ratio(duration, whole))
        for kind, duration in ordered
        if duration > 0
    ]


def basis_of(summary: ProfileSummary, *lists: str) -> str:
    """The window that these lists of the summary cover; each by name where they differ."""
    bases = [summary.list_basis.get(name, NOT_STATED) for name in lists]
    if len(set(bases)) == 1:
        return bases[0]
    return ", ".join(f"{name}: {basis}" for name, basis in zip(lists, bases, strict=True))


def op_time(summary: ProfileSummary, beside: str = "op_groups") -> float | None:
    """Self time of all ops over all devices, in the window that the list `beside` covers.

    None where it is not known: without op groups, or where the two cover different windows.
    """
    covered = summary.list_basis.get("op_groups", CAPTURE)
    if summary.list_basis.get(beside, covered) != covered:
        return None
    return sum(group.exclusive_duration for group in summary.op_groups) or None
