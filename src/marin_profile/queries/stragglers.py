"""Who makes the others wait in collectives, and how much of communication is waiting.

The whole first, then the kinds of collectives, the hosts and the devices; of hosts and devices the
one that makes the others wait longest first. Waits of kinds are of their list's window.
"""

from __future__ import annotations

from marin_profile.base.units import (
    Count,
    Devices,
    Microseconds,
    Ratio,
    Share,
    ShareOfCommunication,
)
from marin_profile.facts.device_time import basis_of, headline_window, ratio
from marin_profile.facts.rows import Row
from marin_profile.facts.waits import CommunicationWait, communication_wait
from marin_profile.queries.device_ledger import device_rows
from marin_profile.queries.kinds import is_of_kind
from marin_profile.queries.model import Answer, CannotAnswer, Query, in_order, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.per_step import in_a_step
from marin_profile.queries.settle import number_of
from marin_profile.schema import REMAINDER, Collective, ProfileSummary

NOBODY_RAN = CannotAnswer(
    "No collective was found among the device ops, so no device waits for another in one.",
    "Ask for the device ledger: it shows how busy each device was.",
)
_UNKNOWN_GROUPS = CannotAnswer(
    "It is not known which of the captured devices meet in the collectives.",
    "Capture all hosts of the job at the same time, as XPlane files, which name the groups.",
)


class WholeRow(CommunicationWait, frozen=True, kw_only=True, tag_field="record", tag="whole"):
    pass


class CollectiveWaitRow(Row, frozen=True, kw_only=True, tag_field="record", tag="collective"):
    """`wait_share`: of the time that devices are in it; `wait_per_step_duration`: of one device
    in a whole step, the mean."""

    collective: str
    group_size: Devices | None = None
    members_seen: Devices | None = None
    duration: Microseconds
    wait_duration: Microseconds
    wait_share: ShareOfCommunication | None
    wait_is_lower_bound: bool
    wait_per_step_duration: Microseconds | None


class HostRow(Row, frozen=True, kw_only=True, tag_field="record", tag="host"):
    """`wait_caused`: what devices of other hosts waited for its; `delay_per_step`: one of them, in
    one step."""

    host: str
    is_straggler: bool
    devices: Devices
    wait: Microseconds
    wait_caused: Microseconds
    delay_per_step: Microseconds | None
    z: Ratio | None


class WaitingDeviceRow(Row, frozen=True, kw_only=True, tag_field="record", tag="device"):
    """`delay_per_step`: what a device of its own host waits for it (alone there: any other)."""

    host: str
    device: str
    is_straggler: bool
    with_its_host: bool
    instances: Count
    arrived_last: Count
    wait: Microseconds
    wait_caused: Microseconds
    exposed_wait_caused: Microseconds
    delay_per_step: Microseconds | None
    z: Ratio | None


def waiting_host_rows(summary: ProfileSummary) -> list[HostRow]:
    return [HostRow.of(host) for host in summary.straggler_hosts]


def waiting_device_rows(summary: ProfileSummary) -> list[WaitingDeviceRow]:
    return [WaitingDeviceRow.of(one) for one in summary.stragglers if one.device != REMAINDER]


def _per_step(summary: ProfileSummary, one: Collective) -> float | None:
    found = in_a_step(summary, one.collective)
    alike = sum(other.collective == one.collective for other in summary.collectives) == 1
    if found is None or not alike or not found.is_even or one.wait_duration is None:
        return None
    return one.wait_duration * found.part


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    whole = communication_wait(summary)
    if whole is None and parameters.kind is None and parameters.by is not None:
        by_ledger = _by_ledger(summary, parameters)
        if by_ledger is not None:
            return by_ledger
    if whole is None:
        return _UNKNOWN_GROUPS if summary.collectives or summary.communication_ops else NOBODY_RAN
    kinds = [
        CollectiveWaitRow.of(
            one,
            wait_duration=one.wait_duration,
            wait_share=ratio(one.wait_duration, one.duration),
            wait_per_step_duration=_per_step(summary, one),
        )
        for one in summary.collectives
        if one.wait_duration is not None
        and (parameters.kind is None or is_of_kind(one.collective, parameters.kind))
    ]
    hosts = waiting_host_rows(summary) if parameters.device is None else []
    devices = [
        row
        for row in waiting_device_rows(summary)
        if parameters.device in (None, number_of(row.device))
    ]
    return listing(
        basis_of(summary, "stragglers", "collectives"),
        [WholeRow.of(whole)],
        kinds,
        in_order(hosts, parameters.order),
        in_order(devices, parameters.order),
        limit=parameters.limit,
        note=None if whole.stragglers else "No host and no device stands out.",
    )


class SlowDeviceRow(Row, frozen=True, kw_only=True, tag_field="record", tag="ledger"):
    """Where nobody waits in a collective that is known, a device's own time."""

    host: str
    device: str
    compute_duration: Microseconds
    compute_share: Share | None
    idle_duration: Microseconds
    idle_share: Share | None


def _by_ledger(summary: ProfileSummary, parameters: Parameters) -> Answer | None:
    """Who computes longest, which is not to say that others wait for it; None of one device."""
    window = headline_window(summary)
    rows = device_rows(summary, window, "compute") if window else []
    if len(rows) < 2:
        return None
    chosen = [row for row in rows if parameters.device in (None, number_of(row.device))]
    found = _UNKNOWN_GROUPS if summary.collectives or summary.communication_ops else NOBODY_RAN
    return listing(
        str(window),
        [SlowDeviceRow.of(row) for row in in_order(chosen, parameters.order)],
        limit=parameters.limit,
        note=f"{found.reason} By the ledger: the one that computes longest first.",
    )


_OTHER = (
    "input",
    "before",
    "sparsecore",
    "transfer",
    "idle",
    "busy",
    "util",
    "time",
    "op",
    "@op",
    "gap",
    "region",
    "step",
    "ledger",
)

QUERY = Query(
    name="stragglers",
    description="Who arrives late in collectives, and how much of communication is waiting.",
    example="Which device is slow, and how long do the others wait for it?",
    run=run,
    rows=(WholeRow, CollectiveWaitRow, HostRow, WaitingDeviceRow, SlowDeviceRow),
    parameters=("limit", "kind", "device", "by", "order"),
    leaves_out=("wire",),
    gives={
        "share": ("exposed_wait_share", "wait_share"),
        "step": ("delay_per_step", "wait_per_step_duration"),
    },
    intents=(
        intent(14, "straggler"),
        intent(12, "device|host", "wait", unless=(*_OTHER, "@kind")),
        intent(11, "device|host", "top|slower|late|behind|arrive|delay", unless=_OTHER),
        intent(
            12,
            "device|host|straggler",
            "wait|lose|delay",
            "top|slower|straggler|late",
            unless=("op", "@op", "gap", "idle", "before", "transfer", "region"),
        ),
        intent(10, "communication|collective|@collective", "wait", unless=_OTHER),
        intent(
            13,
            "@device",
            "late|slower|straggler|behind|wait|delay|top",
            unless=("if", "op", "@op", "idle", "busy", "compute"),
        ),
    ),
)
