"""Collectives, who waits in them for whom, transfers, and the gaps before ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from marin_profile import schema
from marin_profile.analysis.collectives.matching import HostShare
from marin_profile.analysis.collectives.stragglers import HostWaits, judge_devices, judge_hosts
from marin_profile.analysis.collectives.waits import (
    CollectiveTotals,
    MergedCollectives,
    bandwidth,
    merge_collectives,
)
from marin_profile.analysis.gaps import GapTotals
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.transfers import TransferTotals
from marin_profile.assemble.context import Context, us, us_or_none
from marin_profile.base.text import natural_order
from marin_profile.events.classify import V1_COLLECTIVES


def communication_ops(context: Context) -> list[schema.CommunicationOp]:
    count: Counter[str] = Counter()
    duration: Counter[str] = Counter()
    exposed: Counter[str] = Counter()
    overlapped: Counter[str] = Counter()
    for row in context.collectives.rows:
        name = V1_COLLECTIVES.get(row.kind, row.kind)
        count[name] += row.count
        duration[name] += row.duration
    for device in context.main_devices:
        for kind, value in device.capture.exposed_by_kind.items():
            exposed[V1_COLLECTIVES.get(kind, kind)] += value
        for kind, value in device.capture.overlapped_by_kind.items():
            overlapped[V1_COLLECTIVES.get(kind, kind)] += value
    return [
        schema.CommunicationOp(
            collective=name,
            count=count[name],
            total_duration=us(duration[name]),
            avg_duration=us(duration[name]) / count[name],
            exposed_duration=us(exposed[name]),
            overlapped_duration=us(overlapped[name]),
        )
        for name in sorted(count, key=lambda name: (-duration[name], name))
    ]


def collective(row: CollectiveTotals) -> schema.Collective:
    algorithm, bus = bandwidth(row)
    return schema.Collective(
        collective=row.kind,
        group_size=row.group_size,
        count=row.count,
        instances=row.instances,
        groups=row.groups,
        members_seen=row.members_seen,
        bytes=row.payload,
        duration=us(row.duration),
        exposed_duration=us(row.exposed),
        overlapped_duration=us(row.overlapped),
        wait_duration=us_or_none(row.wait),
        wait_is_lower_bound=row.wait_is_lower_bound,
        algorithm_gbps=algorithm,
        bus_gbps=bus,
        bandwidth_is_lower_bound=algorithm is not None and row.wire_is_upper_bound,
    )


def transfer(row: TransferTotals) -> schema.Transfer:
    return schema.Transfer(
        kind=row.kind,
        count=row.count,
        bytes=row.payload,
        span_duration=us(row.span),
        in_flight_duration=us(row.in_flight),
        waited_duration=us(row.waited),
        gbps=row.gbps,
        throughput_gbps=row.throughput_gbps,
    )


def merged_collectives(parts: Sequence[HostPart], *, steady: bool) -> MergedCollectives:
    """Hosts in the order of their names: so their devices are numbered in a job."""
    ordered = sorted(parts, key=lambda part: natural_order(part.host))
    return merge_collectives(
        [HostShare(part.host, part.collectives, part.steps) for part in ordered], steady=steady
    )


def judged_hosts(context: Context) -> list[HostWaits]:
    return judge_hosts(context.collectives.members, context.window_length)


def straggler_hosts(
    context: Context, host_waits: Sequence[HostWaits]
) -> list[schema.StragglerHost]:
    return [
        schema.StragglerHost(
            host=row.host,
            devices=row.devices,
            wait=us(row.wait),
            wait_caused=us(row.wait_caused),
            delay_per_step=_per_step(context, row.verdict.delay),
            is_straggler=row.verdict.is_straggler,
            z=row.verdict.z,
        )
        for row in sorted(host_waits, key=lambda row: (-row.wait_caused, row.host))
    ]


def stragglers(context: Context, host_waits: Sequence[HostWaits]) -> list[schema.Straggler]:
    members = context.collectives.members
    verdicts = judge_devices(members, host_waits, context.window_length)
    rows = [
        schema.Straggler(
            device=member.device,
            host=member.host,
            instances=member.instances,
            arrived_last=member.arrived_last,
            wait=us(member.wait),
            exposed_wait=us(member.exposed_wait),
            wait_caused=us(member.wait_caused),
            exposed_wait_caused=us(member.exposed_wait_caused),
            wait_is_lower_bound=context.collectives.waits_are_lower_bounds,
            delay_per_step=_per_step(context, verdict.delay),
            is_straggler=verdict.is_straggler,
            with_its_host=verdict.with_its_host,
            z=verdict.z,
        )
        for member, verdict in zip(members, verdicts, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row.wait_caused, row.host, natural_order(row.device)))


def _per_step(context: Context, delay: float | None) -> float | None:
    steps = len(context.kept_steps) if context.steady else 0
    return us(delay / steps) if delay is not None and steps else None


def gap_row(context: Context, gap: GapTotals) -> schema.GapBeforeOp:
    return schema.GapBeforeOp(
        name=gap.payload,
        count=gap.count,
        total_gap_duration=us(gap.total),
        max_gap_duration=us(gap.longest),
        avg_gap_duration=us(gap.total) / gap.count,
        payload_op=None if gap.is_noise else gap.payload,
        marker_op=gap.marker,
        account_count=gap.account_count if context.account else None,
        account_gap_duration=us(gap.account_total) if context.account else None,
    )


def gap_contexts(context: Context) -> list[schema.GapRegionContext]:
    rows = [
        (gap.payload, region, gap.regions[region], total)
        for gap in context.gaps
        for region, total in gap.region_time.items()
    ]
    rows.sort(key=lambda row: (-row[3], row[0], row[1]))
    return [
        schema.GapRegionContext(
            op_name=payload,
            region_path=region,
            count=count,
            total_gap_duration=us(total),
            avg_gap_duration=us(total) / count,
        )
        for payload, region, count, total in rows
    ]
