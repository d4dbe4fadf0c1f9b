"""What a host did while all its devices idled, what it compiled and launched."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share, Steps
from marin_profile.schema.record import Record


class HostCause(Record):
    """Idle time of all devices of the host with one cause, in the window. `cause`: "on_device"
    (between ops of a running program), "queued" (launched and not begun), "untraced" (Python
    outside any event), "compile", "device_read", "device_write", "device_wait", "dispatch",
    "host_event" (an annotation) or "python_frame"; `name` says which. `place`: "inside" or
    "between" step markers, null without them. `count`: such events in the window. `step_count`
    steps it costs more than a tenth of what it costs a step on average; `steps` names them, by
    number or index, unless it is all of them; `periodicity`: it is every k-th."""

    cause: str
    name: str | None = None
    place: str | None = None
    idle_duration: Microseconds
    idle_per_step: Microseconds | None = None
    share_of_window: Share
    count: Count
    step_count: Steps | None = None
    steps: list[int] = []
    periodicity: Steps | None = None


class Compilation(Record):
    """One compilation on the main thread, with tracing and lowering; `step`: in whose period."""

    function: str | None = None
    duration: Microseconds
    step: int | None = None


class Launched(Record):
    """Calls of one jitted function, or of one eager operation, from Python."""

    function: str
    count: Count
    per_step: Ratio | None = None


class HostActivity(Record):
    """One host over whole periods of the kept steps (`whole_periods`), else over its capture. The
    rows of `causes` sum to `idle_duration`, the time in which all devices of the host idle.
    `partly_idle_duration`: idle while another device works, the mean over devices.
    `rounds_per_step`: how often in a typical step the host waits for a device, or reads from it,
    and then launches again. Without an account `reason` says why."""

    host: str
    window_duration: Microseconds | None = None
    whole_periods: Count | None = None
    idle_duration: Microseconds | None = None
    partly_idle_duration: Microseconds | None = None
    causes: list[HostCause] = []
    compilations: list[Compilation] = []
    device_reads: Count | None = None
    rounds_per_step: Count | None = None
    launches: list[Launched] = []
    reason: str | None = None
