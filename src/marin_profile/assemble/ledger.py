"""The device ledger, and v1's five buckets from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from marin_profile import schema
from marin_profile.analysis.breakdown_v1 import BASIS_NAMES
from marin_profile.assemble.context import Context, each_us, us

DEVICE_LEDGER = "device_ledger"


def device_ledger(context: Context) -> list[schema.DeviceLedger]:
    rows = []
    for part, device in context.devices:
        for window, ledger in ((schema.STEADY, device.steady), (schema.CAPTURE, device.capture)):
            if ledger is None or (window == schema.STEADY and not context.steady):
                continue
            rows.append(
                schema.DeviceLedger(
                    device=device.name,
                    host=part.host,
                    kind=device.kind,
                    window=window,
                    window_start=us(ledger.start - part.first_op),
                    window_duration=us(ledger.end - ledger.start),
                    compute_duration=us(ledger.compute),
                    overlapped_communication_duration=us(ledger.overlapped_communication),
                    exposed_communication_duration=us(ledger.exposed_communication),
                    exposed_transfer_duration=us(ledger.exposed_transfer),
                    unattributed_duration=us(ledger.unattributed),
                    idle_duration=us(ledger.idle),
                    exposed_communication_by_kind=each_us(ledger.exposed_by_kind),
                    overlapped_communication_by_kind=each_us(ledger.overlapped_by_kind),
                    exposed_transfer_by_kind=each_us(ledger.transfer_by_kind),
                )
            )
    return rows


def time_breakdown(context: Context, mode: str) -> schema.TimeBreakdown:
    """v1's five buckets; by the ledger unless an older basis was asked for."""
    if mode != DEVICE_LEDGER:
        buckets: Counter[str] = Counter()
        for part in context.parts:
            buckets.update(part.older or {})
        return _breakdown(BASIS_NAMES[mode], buckets, schema.CAPTURE)
    ledgers = [context.headline(device) for device in context.main_devices]
    buckets = Counter(
        compute=sum(ledger.compute for ledger in ledgers),
        communication=sum(ledger.exposed_communication for ledger in ledgers),
        host=sum(ledger.host for ledger in ledgers),
        stall=sum(ledger.idle + ledger.waits for ledger in ledgers),
        other=sum(ledger.unattributed + ledger.unknown_transfer for ledger in ledgers),
    )
    return _breakdown(DEVICE_LEDGER, buckets, context.window)


def _breakdown(basis: str, buckets: Mapping[str, int], window: str) -> schema.TimeBreakdown:
    total = sum(buckets.values())

    def part(name: str) -> schema.BreakdownPart:
        value = buckets.get(name, 0)
        return schema.BreakdownPart(
            total_duration=us(value), share_of_total=value / total if total else 0.0
        )

    return schema.TimeBreakdown(
        duration_basis=basis,
        total_duration=us(total),
        compute=part("compute"),
        communication=part("communication"),
        host=part("host"),
        stall=part("stall"),
        other=part("other"),
        basis=window,
    )
