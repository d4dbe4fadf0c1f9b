"""Where device time went: buckets, ledgers, and what one step costs."""

from __future__ import annotations

from marin_profile.base.units import Devices, Microseconds, Share, Steps
from marin_profile.schema.record import Record

# The durations of a ledger, overlapped communication inside compute.
LEDGER_TERMS = (
    "compute",
    "overlapped_communication",
    "exposed_communication",
    "exposed_transfer",
    "unattributed",
    "idle",
)


class BreakdownPart(Record):
    """One bucket: its time over all devices, and its share of the sum of the buckets."""

    total_duration: Microseconds
    share_of_total: Share


class TimeBreakdown(Record):
    """Five buckets over all devices. `basis` names the window ("steady" or "capture")."""

    duration_basis: str
    total_duration: Microseconds
    compute: BreakdownPart
    communication: BreakdownPart
    host: BreakdownPart
    stall: BreakdownPart
    other: BreakdownPart
    basis: str | None = None


class DeviceLedger(Record):
    """Where one device's time went in one window; the five terms sum to `window_duration`:
    compute + exposed communication + exposed transfer + unattributed + idle. Of more than 512
    devices those that stand out have rows; the others of a kind are summed in a row that is named
    "(remainder)", with their number as `devices`."""

    device: str
    host: str
    kind: str
    window: str
    window_start: Microseconds
    window_duration: Microseconds
    compute_duration: Microseconds
    overlapped_communication_duration: Microseconds
    exposed_communication_duration: Microseconds
    exposed_transfer_duration: Microseconds
    unattributed_duration: Microseconds
    idle_duration: Microseconds
    exposed_communication_by_kind: dict[str, Microseconds] = {}
    overlapped_communication_by_kind: dict[str, Microseconds] = {}
    exposed_transfer_by_kind: dict[str, Microseconds] = {}
    devices: Devices = 1


class DeviceQuantiles(Record):
    """How a term of the ledger is spread over all `devices` of a kind, where not all have rows of
    their own; `term` "window" is the length of the window."""

    kind: str
    window: str
    term: str
    devices: Devices
    min: Microseconds
    p10: Microseconds
    median: Microseconds
    p90: Microseconds
    max: Microseconds


class StepAccount(Record):
    """What one step costs, ready to be compared: sums over `devices` of `steps` each; divided by
    both they are per step and device. total = compute + exposed communication + exposed transfer +
    unattributed + idle + launch. `basis` "periods": from the first kept step's start to the last
    one's, on each device (time between steps is idle); "execution": the one kept step's interval on
    each device and its launch, the part of the module execution before its first op and after its
    last one (None: the file does not show it, or for periods)."""

    basis: str
    device_kind: str
    devices: Devices
    steps: Steps
    total_duration: Microseconds
    compute_duration: Microseconds
    overlapped_communication_duration: Microseconds
    exposed_communication_duration: Microseconds
    exposed_transfer_duration: Microseconds
    unattributed_duration: Microseconds
    idle_duration: Microseconds
    launch_duration: Microseconds | None = None
    exposed_communication_by_kind: dict[str, Microseconds] = {}
    overlapped_communication_by_kind: dict[str, Microseconds] = {}
    exposed_transfer_by_kind: dict[str, Microseconds] = {}
