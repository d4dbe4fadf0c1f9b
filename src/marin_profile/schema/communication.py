"""Collectives."""

from __future__ import annotations

from marin_profile.schema.record import Record


class CommunicationOp(Record):
    """One collective kind over all devices; a start/done pair counts once."""

    collective: str
    count: int
    total_duration: float
    avg_duration: float
    exposed_duration: float | None = None
    overlapped_duration: float | None = None


class Collective(Record):
    """One (kind, group size). `wait_duration` is the time devices spent waiting for the last to
    arrive; bandwidths in GB/s (1e9 bytes) over wire time by the nccl-tests convention."""

    collective: str
    group_size: int | None = None
    count: int
    bytes: int | None = None
    duration: float
    exposed_duration: float
    overlapped_duration: float
    wait_duration: float | None = None
    algorithm_gbps: float | None = None
    bus_gbps: float | None = None
