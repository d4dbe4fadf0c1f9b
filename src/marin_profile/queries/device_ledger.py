"""Where each device's time went; per device the five terms sum to its window.

The total of each device kind comes first, then the devices, the most idle first.
"""

from __future__ import annotations

from marin_profile.base.units import Microseconds
from marin_profile.facts.device_time import (
    DeviceTime,
    Part,
    device_times,
    headline_window,
    left_out_of,
    single_devices,
    total,
)
from marin_profile.queries.model import Answer, CannotAnswer, Query, in_order, intent, listing
from marin_profile.queries.parameters import LEAST, Parameters
from marin_profile.queries.settle import number_of
from marin_profile.schema import ProfileSummary

NO_LEDGER = CannotAnswer(
    "The summary holds no device ledger.",
    "Summarize the profile again with this tool, from a capture that holds device ops.",
)
DEVICES_LISTED = 256


class TotalRow(DeviceTime, frozen=True, kw_only=True, tag_field="record", tag="total"):
    """All devices of one kind."""


class DeviceRow(DeviceTime, frozen=True, kw_only=True, tag_field="record", tag="device"):
    device: str
    host: str
    window_start: Microseconds


def device_rows(summary: ProfileSummary, window: str, by: str = "idle") -> list[DeviceRow]:
    """The devices of a window, the most idle first, or those with most of another term."""
    rows = [
        DeviceRow.of(total([row]), device=row.device, host=row.host, window_start=row.window_start)
        for row in single_devices(summary, window)
    ]
    return sorted(rows, key=lambda row: (-_amount(row, by), row.host, row.device))


def _amount(row: DeviceRow, by: str) -> float:
    if by == "busy":
        return -(row.idle_share or 0.0)
    name = f"exposed_{by}" if by in ("communication", "transfer") else by
    return float(getattr(row, f"{name}_share") or 0.0)


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    window = parameters.window or headline_window(summary)
    by = parameters.by or "idle"
    devices = device_rows(summary, window, by) if window else []
    if window is None or not devices:
        return NO_LEDGER
    totals = [TotalRow.of(time) for time in device_times(summary, window)]
    if parameters.device is not None:
        totals = []
        devices = [row for row in devices if number_of(row.device) == parameters.device]
        if not devices:
            return CannotAnswer(
                f"The ledger has no row for device {parameters.device} in this window.",
                "Ask for the ledger of the whole capture.",
            )
    ordered = in_order(devices, parameters.order)
    first = f"{'least' if parameters.order == LEAST else 'most'} {_CALLED.get(by, by)} first"
    return listing(
        window,
        totals,
        ordered,
        limit=parameters.limit,
        default_limit=DEVICES_LISTED,
        note=_note(summary, first if parameters.by or parameters.order else ""),
    )


def _note(summary: ProfileSummary, order: str) -> str | None:
    notes = [f"Devices: {order}."] if order else []
    if left_out := left_out_of(summary, "device_ledger"):
        notes.append(
            f"{left_out:,} devices have no row of their own: they are in the totals, and those "
            "that stand out have rows."
        )
    return " ".join(notes) or None


_CALLED = {"communication": "exposed communication", "transfer": "exposed transfer"}


QUERY = Query(
    name="device_ledger",
    description="Per device: compute, exposed communication and transfer, idle; they sum up.",
    example="How idle is each device?",
    run=run,
    rows=(TotalRow, DeviceRow, Part),
    parameters=("limit", "window", "device", "by", "order"),
    gives={
        "share": ("idle_share", "compute_share"),
        "device": ("idle_duration", "compute_duration", "idle_share"),
    },
    intents=(
        intent(10, "ledger"),
        intent(
            12,
            "@device",
            "time|idle|busy|compute|communication|transfer|share|long|much|breakdown|do|spend|where",
            unless=(
                "if",
                "wait",
                "without",
                "memory",
                "op",
                "region",
                "family",
                "program",
                "collective",
            ),
        ),
        intent(
            11, "device", "top", "busy|idle|compute|communication|transfer", unless=("op", "@op")
        ),
        intent(9, "device", "idle|busy|time|breakdown|top|each|per|which|util|slower|much|many"),
        intent(9, "device", "rank|sort|order|compare|list|show"),
        intent(8, "idle|busy", unless=("before",)),
        intent(6, "expose", "transfer"),
        intent(6, "transfer", "time|much|long|share|cost"),
    ),
)
