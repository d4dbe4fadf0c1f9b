"""Collectives, and transfers between memories."""

from __future__ import annotations

from collections.abc import Iterable

from marin_profile.base.units import Bytes, Count, Devices, GigabytesPerSecond, Microseconds, Ratio
from marin_profile.schema.ops import REMAINDER
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
    """One (kind, group size). `count`: executions on devices; `instances`: executions by a group
    (a permute: by a pair of source and target), over all hosts; `members_seen`: of the group that
    was captured least. They are null where it is not known who meets whom.

    `exposed_duration`: time that devices spend in its ops and no compute covers;
    `overlapped_duration`: time in flight beside compute. `wait_duration`: time spent waiting for
    the last to arrive; with members missing it is "at least" (`wait_is_lower_bound`), and there is
    no bandwidth. Bandwidths in GB/s (1e9 bytes) over wire time by the nccl-tests convention; of
    start/done pairs they are "at least" (`bandwidth_is_lower_bound`): compute may hide the wire."""

    collective: str
    group_size: Devices | None = None
    count: Count
    instances: Count | None = None
    groups: Count | None = None
    members_seen: Devices | None = None
    bytes: Bytes | None = None
    duration: Microseconds
    exposed_duration: Microseconds
    overlapped_duration: Microseconds
    wait_duration: Microseconds | None = None
    wait_is_lower_bound: bool = False
    algorithm_gbps: GigabytesPerSecond | None = None
    bus_gbps: GigabytesPerSecond | None = None
    bandwidth_is_lower_bound: bool = False


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


class Straggler(Record):
    """One device in the collectives whose members are known (`instances`), the one that makes the
    others wait longest first. `wait`: its own; `wait_caused`: what the others waited for it where
    it `arrived_last`; `exposed_*`: the part that no compute covers; `delay_per_step`: what a device
    of its own host (alone there: any other) waits for it. `is_straggler`: it stands out by the
    modified `z`, of two by 5 % of the window, or its host does and it with it (`with_its_host`). Of
    more than 512 devices those without a row are summed in "(remainder)", see DeviceLedger."""

    device: str
    host: str
    instances: Count
    arrived_last: Count
    wait: Microseconds
    exposed_wait: Microseconds
    wait_caused: Microseconds
    exposed_wait_caused: Microseconds
    wait_is_lower_bound: bool = False
    delay_per_step: Microseconds | None = None
    is_straggler: bool = False
    with_its_host: bool = False
    z: Ratio | None = None
    devices: Devices = 1


class StragglerHost(Record):
    """One host's devices together; `wait_caused`: what devices of other hosts waited for its;
    `delay_per_step`: the same for one of them and one step."""

    host: str
    devices: Devices
    wait: Microseconds
    wait_caused: Microseconds
    delay_per_step: Microseconds | None = None
    is_straggler: bool = False
    z: Ratio | None = None


def straggler_names(devices: Iterable[Straggler], hosts: Iterable[StragglerHost]) -> list[str]:
    """Devices that stand out ("host /device:TPU:1"), and hosts that do without one that does."""
    late = [
        one
        for one in devices
        if one.is_straggler and not one.with_its_host and one.device != REMAINDER
    ]
    explained = {one.host for one in late}
    names = [host.host for host in hosts if host.is_straggler and host.host not in explained]
    return names + [f"{one.host} {one.device}" for one in late]
