"""Collectives, transfers and the gaps before ops."""

from __future__ import annotations

from collections import Counter

from marin_profile import schema
from marin_profile.analysis.collectives import CollectiveTotals, bandwidth
from marin_profile.analysis.gaps import GapTotals
from marin_profile.analysis.transfers import TransferTotals
from marin_profile.assemble.context import Context, us, us_or_none
from marin_profile.events.classify import V1_COLLECTIVES


def communication_ops(context: Context) -> list[schema.CommunicationOp]:
    count: Counter[str] = Counter()
    duration: Counter[str] = Counter()
    exposed: Counter[str] = Counter()
    overlapped: Counter[str] = Counter()
    for row in context.collectives:
        name = V1_COLLECTIVES.get(row.kind, row.kind)
        count[name] += row.count
        duration[name] += row.duration
    for _, device in context.devices:
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
        bytes=row.payload,
        duration=us(row.duration),
        exposed_duration=us(row.exposed),
        overlapped_duration=us(row.overlapped),
        wait_duration=us_or_none(row.wait),
        algorithm_gbps=algorithm,
        bus_gbps=bus,
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
