"""Collectives."""

from __future__ import annotations

from marin_profile.base.units import Bytes, Count, Devices, GigabytesPerSecond, Microseconds
from marin_profile.schema.record import Record


class CommunicationOp(Record):
    """One collective kind over all devices; a start/done pair counts once."""

    collective: str
    count: Count
    total_duration: Microseconds
    avg_duration: Microseconds
    exposed_duration: Microseconds | None = None
    overlapped_duration: Microseconds | None = None


class Collective(Record):
    """One (kind, group size). `wait_duration` is the time devices spent waiting for the last to
    arrive; bandwidths in GB/s (1e9 bytes) over wire time by the nccl-tests convention."""

    collective: str
    group_size: Devices | None = None
    count: Count
    bytes: Bytes | None = None
    duration: Microseconds
    exposed_duration: Microseconds
    overlapped_duration: Microseconds
    wait_duration: Microseconds | None = None
    algorithm_gbps: GigabytesPerSecond | None = None
    bus_gbps: GigabytesPerSecond | None = None
