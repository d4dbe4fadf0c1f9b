"""Tables with a row for each device or host, where a pod has thousands of them.

Contract
* Up to MOST_DEVICES devices all have rows. Of more, those that stand out have: the stragglers, then
  those with most and least of each term of the ledger, then the first ones.
* Devices without a row of their own are summed in rows that are named REMAINDER, so that sums over
  a list stay exact; quantiles say how they are spread.
* Of hosts' activity and of allocators, which nobody sums, MOST_HOSTS and MOST_DEVICES rows stay:
  of hosts those that compiled, then those whose devices idle longest; of allocators the fullest.
* `abridged` says what was left out of which list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from marin_profile import schema
from marin_profile.analysis.ledger import Ledger
from marin_profile.assemble.context import Context, us
from marin_profile.assemble.host import host_activity
from marin_profile.assemble.memory import allocators
from marin_profile.base.times import PS_PER_US
from marin_profile.schema.device_time import LEDGER_TERMS

MOST_DEVICES = 512
MOST_HOSTS = 128
# Of each end of each term.
OF_EACH_END = 16
SUMMED = "the others are summed in rows named (remainder)"

Device = tuple[str, str]
R = TypeVar("R")


@dataclass(frozen=True)
class Tables:
    """devices: (host, name) of those that have rows of their own. notes: for people."""

    devices: frozenset[Device]
    quantiles: list[schema.DeviceQuantiles]
    stragglers: list[schema.Straggler]
    activity: list[schema.HostActivity]
    allocators: list[schema.AllocatorMemory]
    abridged: list[schema.Abridged]

    @property
    def notes(self) -> list[str]:
        return [
            f"{one.list_name} holds {one.rows:,} of {one.rows + one.rows_left_out:,} rows: "
            f"{one.kept}."
            for one in self.abridged
        ]


def abridged_tables(context: Context, stragglers: Sequence[schema.Straggler]) -> Tables:
    """`stragglers`: of all devices, the one that makes the others wait longest first."""
    everybody = [(part.host, device.name) for part, device in context.devices]
    shown = frozenset(everybody)
    if len(everybody) > MOST_DEVICES:
        late = [(one.host, one.device) for one in stragglers if one.is_straggler]
        ranked = dict.fromkeys((*late, *_extremes(context, everybody), *everybody))
        shown = frozenset(list(ranked)[:MOST_DEVICES])
    kept = _with_remainder(stragglers, shown)
    activity, all_activity = _first(host_activity(context), MOST_HOSTS, _most_idle)
    fullest, all_allocators = _first(allocators(context), MOST_DEVICES, _fullest)
    standing_out = f"devices that stand out have rows, {SUMMED}"
    abridged = [
        _abridged("device_ledger", len(shown), len(everybody), standing_out),
        _abridged(
            "stragglers",
            sum(row.device != schema.REMAINDER for row in kept),
            len(stragglers),
            standing_out,
        ),
        _abridged(
            "host_activity",
            len(activity),
            all_activity,
            "hosts that compiled, then those whose devices idle longest",
        ),
        _abridged("allocators", len(fullest), all_allocators, "the fullest ones"),
    ]
    return Tables(
        devices=shown,
        quantiles=_all_quantiles(context) if len(shown) < len(everybody) else [],
        stragglers=kept,
        activity=activity,
        allocators=fullest,
        abridged=[one for one in abridged if one.rows_left_out],
    )


def _abridged(name: str, rows: int, of: int, kept: str) -> schema.Abridged:
    return schema.Abridged(list_name=name, rows=rows, rows_left_out=of - rows, kept=kept)


def _extremes(context: Context, everybody: Sequence[Device]) -> Iterator[Device]:
    ledgers = [context.headline(device) for _, device in context.devices]
    for term in LEDGER_TERMS:
        shares = [_share(ledger, term) for ledger in ledgers]
        order = np.argsort(shares, kind="stable").tolist()
        for at in (*reversed(order[-OF_EACH_END:]), *order[:OF_EACH_END]):
            yield everybody[at]


def _share(ledger: Ledger, term: str) -> float:
    length = ledger.end - ledger.start
    return getattr(ledger, term) / length if length else 0.0


def _with_remainder(
    rows: Sequence[schema.Straggler], shown: frozenset[Device]
) -> list[schema.Straggler]:
    """The others as one row, or as two where some of them are stragglers."""
    kept = [row for row in rows if (row.host, row.device) in shown]
    others = [row for row in rows if (row.host, row.device) not in shown]
    for is_straggler in (True, False):
        alike = [row for row in others if row.is_straggler == is_straggler]
        if alike:
            kept.append(_summed(alike, is_straggler))
    return kept


def _summed(rows: Sequence[schema.Straggler], is_straggler: bool) -> schema.Straggler:
    return schema.Straggler(
        device=schema.REMAINDER,
        host="",
        instances=sum(row.instances for row in rows),
        arrived_last=sum(row.arrived_last for row in rows),
        wait=_sum([row.wait for row in rows]),
        exposed_wait=_sum([row.exposed_wait for row in rows]),
        wait_caused=_sum([row.wait_caused for row in rows]),
        exposed_wait_caused=_sum([row.exposed_wait_caused for row in rows]),
        wait_is_lower_bound=any(row.wait_is_lower_bound for row in rows),
        is_straggler=is_straggler,
        devices=len(rows),
    )


def _sum(microseconds: Sequence[float]) -> float:
    """Of whole picoseconds."""
    return us(sum(round(value * PS_PER_US) for value in microseconds))


def _all_quantiles(context: Context) -> list[schema.DeviceQuantiles]:
    """By kind of device, window and term."""
    rows = []
    for kind in dict.fromkeys(device.kind for _, device in context.devices):
        own = [device for _, device in context.devices if device.kind == kind]
        steady = [device.steady for device in own if device.steady is not None]
        windows = [(schema.STEADY, steady)] if context.steady else []
        for window, ledgers in (*windows, (schema.CAPTURE, [device.capture for device in own])):
            lengths = [ledger.end - ledger.start for ledger in ledgers]
            rows.append(_quantiles(kind, window, "window", lengths))
            for term in LEDGER_TERMS:
                values = [getattr(ledger, term) for ledger in ledgers]
                rows.append(_quantiles(kind, window, term, values))
    return rows


def _quantiles(kind: str, window: str, term: str, values: Sequence[int]) -> schema.DeviceQuantiles:
    p10, median, p90 = np.quantile(values, (0.1, 0.5, 0.9), method="linear").tolist()
    return schema.DeviceQuantiles(
        kind=kind,
        window=window,
        term=term,
        devices=len(values),
        min=us(min(values)),
        p10=us(p10),
        median=us(median),
        p90=us(p90),
        max=us(max(values)),
    )


def _most_idle(row: schema.HostActivity) -> tuple[bool, float]:
    return not row.compilations, -(row.idle_duration or 0.0)


def _fullest(row: schema.AllocatorMemory) -> tuple[bool, float]:
    return row.device is None, row.headroom_size / (row.capacity_size or 1)


def _first(
    rows: Sequence[R], most: int, order: Callable[[R], tuple[bool, float]]
) -> tuple[list[R], int]:
    """The first ones by an order, where they stood; and how many there were."""
    chosen = sorted(range(len(rows)), key=lambda at: (order(rows[at]), at))[:most]
    return [rows[at] for at in sorted(chosen)], len(rows)
