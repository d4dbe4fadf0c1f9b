"""The device ledger, and v1's five buckets from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from marin_profile import schema
from marin_profile.analysis.breakdown_v1 import BASIS_NAMES
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.ledger import Ledger
from marin_profile.assemble.abridged import Device
from marin_profile.assemble.context import Context, each_us, us, us_or_none

DEVICE_LEDGER = "device_ledger"


def device_ledger(context: Context, shown: AbstractSet[Device]) -> list[schema.DeviceLedger]:
    """A row for each device in `shown`, in each window; one for all others of a kind together."""
    rows = []
    others: dict[tuple[str, str], list[tuple[HostPart, Ledger]]] = {}
    for part, device in context.devices:
        steady = device.steady if context.steady else None
        for window, ledger in ((schema.STEADY, steady), (schema.CAPTURE, device.capture)):
            if ledger is None:
                continue
            if (part.host, device.name) in shown:
                named = (device.name, part.host, device.kind, window)
                rows.append(_ledger_row(*named, [(part, ledger)]))
            else:
                others.setdefault((device.kind, window), []).append((part, ledger))
    rows += [
        _ledger_row(schema.REMAINDER, "", kind, window, ledgers)
        for (kind, window), ledgers in others.items()
    ]
    return rows


def _ledger_row(
    device: str, host: str, kind: str, window: str, of_parts: Sequence[tuple[HostPart, Ledger]]
) -> schema.DeviceLedger:
    ledgers = [ledger for _, ledger in of_parts]
    return schema.DeviceLedger(
        device=device,
        host=host,
        kind=kind,
        window=window,
        window_start=us(min(ledger.start - part.first_op for part, ledger in of_parts)),
        window_duration=us(sum(ledger.end - ledger.start for ledger in ledgers)),
        compute_duration=us(sum(ledger.compute for ledger in ledgers)),
        overlapped_communication_duration=us(
            sum(ledger.overlapped_communication for ledger in ledgers)
        ),
        exposed_communication_duration=us(sum(ledger.exposed_communication for ledger in ledgers)),
        exposed_transfer_duration=us(sum(ledger.exposed_transfer for ledger in ledgers)),
        unattributed_duration=us(sum(ledger.unattributed for ledger in ledgers)),
        idle_duration=us(sum(ledger.idle for ledger in ledgers)),
        exposed_communication_by_kind=_added(ledger.exposed_by_kind for ledger in ledgers),
        overlapped_communication_by_kind=_added(ledger.overlapped_by_kind for ledger in ledgers),
        exposed_transfer_by_kind=_added(ledger.transfer_by_kind for ledger in ledgers),
        devices=len(ledgers),
    )


def _added(maps: Iterable[Mapping[str, int]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for one in maps:
        total.update(one)
    return each_us(total)


def step_account(context: Context) -> schema.StepAccount | None:
    """None without kept steps that all hosts have."""
    rows = context.account
    windows = context.parts[0].account
    if not rows or windows is None:
        return None
    ledgers = [row.ledger for row in rows]
    launches = [row.launch for row in rows if row.launch is not None]
    launch = sum(launches) if len(launches) == len(rows) else None

    kinds = {device.kind for _, device in context.devices if device.account is not None}
    return schema.StepAccount(
        basis=windows.basis,
        device_kind=", ".join(sorted(kinds)),
        devices=len(rows),
        steps=windows.steps,
        total_duration=us(sum(row.end - row.start for row in ledgers) + (launch or 0)),
        compute_duration=us(sum(row.compute for row in ledgers)),
        overlapped_communication_duration=us(sum(row.overlapped_communication for row in ledgers)),
        exposed_communication_duration=us(sum(row.exposed_communication for row in ledgers)),
        exposed_transfer_duration=us(sum(row.exposed_transfer for row in ledgers)),
        unattributed_duration=us(sum(row.unattributed for row in ledgers)),
        idle_duration=us(sum(row.idle for row in ledgers)),
        launch_duration=us_or_none(launch),
        exposed_communication_by_kind=_added(row.exposed_by_kind for row in ledgers),
        overlapped_communication_by_kind=_added(row.overlapped_by_kind for row in ledgers),
        exposed_transfer_by_kind=_added(row.transfer_by_kind for row in ledgers),
    )


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
