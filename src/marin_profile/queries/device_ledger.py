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
    ledger_rows,
    total,
)
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
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


def device_rows(summary: ProfileSummary, window: str) -> list[DeviceRow]:
    """The devices of a window, the most idle first."""
    rows = [
        DeviceRow.of(total([row]), device=row.device, host=row.host, window_start=row.window_start)
        for row in ledger_rows(summary, window)
    ]
    return sorted(rows, key=lambda row: (-(row.idle_share or 0.0), row.host, row.device))


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    window = parameters.window or headline_window(summary)
    devices = device_rows(summary, window) if window else []
    if window is None or not devices:
        return NO_LEDGER
    totals = [TotalRow.of(time) for time in device_times(summary, window)]
    return listing(window, totals, devices, limit=parameters.limit, default_limit=DEVICES_LISTED)


QUERY = Query(
    name="device_ledger",
    description="Per device: compute, exposed communication and transfer, idle; they sum up.",
    example="How idle is each device?",
    run=run,
    rows=(TotalRow, DeviceRow, Part),
    parameters=("limit", "window"),
    intents=(
        intent(10, "ledger"),
        intent(9, "device", "idle|busy|time|breakdown|top|each|per|which|util|slower|much|many"),
        intent(8, "idle|busy", unless=("before",)),
        intent(6, "expose", "transfer"),
        intent(6, "transfer", "time|much|long|share|cost"),
    ),
)
