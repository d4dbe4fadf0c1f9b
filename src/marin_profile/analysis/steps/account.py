"""What the kept steps cost on each device: the windows that per-step comparisons are made over.

With several kept steps a device's window is its whole periods, from the first kept step's start to
the last one's: work between steps counts once per step, and one more step changes nothing. A lone
step is its own interval on each device, first op to last, plus its launch: the part of the module
execution before the first op and after the last one. The launch is read on the event clock, the
only one that executions have; over so short a time the clocks do not part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.ledger import Ledger
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.base.intervals import Window

PERIODS, EXECUTION = "periods", "execution"


@dataclass(frozen=True)
class DeviceAccount:
    """One device; launch is None where the file shows no executions, and for periods."""

    ledger: Ledger
    launch: int | None


@dataclass(frozen=True)
class AccountWindows:
    """Per row of the step series the window of `steps` steps; None: the device took no part."""

    basis: str
    steps: int
    windows: tuple[Window | None, ...]


def account_windows(steps: StepSeries, first: int) -> AccountWindows | None:
    """The windows of the steps from `first` on; None if there are none."""
    periods, count = steps.periods(first)
    if not periods:
        return None
    if first < steps.count - 1:
        return AccountWindows(PERIODS, count, tuple(periods))
    columns = (steps.start[:, first], steps.end[:, first], steps.present[:, first])
    own = [
        (start, end) if present else None
        for start, end, present in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return AccountWindows(EXECUTION, 1, tuple(own))


def launch_time(device: DeviceOps, window: Window) -> int | None:
    """Time inside the module executions before the window's first op and after its last."""
    executions = device.executions
    if executions is None:
        return None
    first = np.flatnonzero((device.start == window[0]) & (device.execution >= 0))
    last = np.flatnonzero((device.end == window[1]) & (device.execution >= 0))
    if not len(first) or not len(last):
        return None
    before = device.event_start[first] - executions.start[device.execution[first]]
    after = executions.end[device.execution[last]] - device.event_end[last]
    return max(0, int(before.min())) + max(0, int(after.min()))
