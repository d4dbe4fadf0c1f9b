"""Collectives, and transfers between memories."""

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


class Transfer(Record):
    """One kind (host_to_device, on_chip, ...) over all devices. `count` whole transfers were in
    flight `span_duration` together, some at once: at least one for `in_flight_duration`, summed
    over devices. `waited_duration` is the ledgers' exposed transfer of the kind. `gbps` = bytes /
    span is one transfer's rate, `throughput_gbps` = bytes / time in flight one device's, both at
    least, since a transfer may end before the op that waits for it. 1 GB is 1e9 bytes. Bytes are
    null where the size of any transfer is not known."""

    kind: str
    count: Count
    bytes: Bytes | None = None
    span_duration: Microseconds
    in_flight_duration: Microseconds
    waited_duration: Microseconds
    gbps: GigabytesPerSecond | None = None
    throughput_gbps: GigabytesPerSecond | None = None
