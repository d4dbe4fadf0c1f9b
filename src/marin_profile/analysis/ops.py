"""Totals per op over all devices of a host: whole capture, steady window, and the step account.

Contract: an op is a (name, HLO op, module, program id) with its static facts; totals are integer
picoseconds and add up across devices and hosts. self <= total for every op.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.ledger import DeviceTime, Ledger
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.ownership import owned_time
from marin_profile.base.columns import counts_of, sum_by, unique_pairs
from marin_profile.events.classify import GROUP_COMMUNICATION, GROUP_TRANSFER
from marin_profile.events.timeline import Int64s

Program = tuple[str, int | None]
Window = tuple[int, int]
_SUMS = (
    "count",
    "total",
    "exclusive",
    "exposed",
    "steady_count",
    "steady_exclusive",
    "period_count",
    "period_exclusive",
)


@dataclass(frozen=True)
class Account:
    """What owned times need of one device: the ledger of the account's window, the device's async
    spans, and the order of names (`ownership.name_ranks`)."""

    ledger: Ledger
    spans: AsyncSpans
    ranks: Int64s


@dataclass(frozen=True, slots=True)
class OpTotals:
    """One op. `exposed`: self time that no compute covers (and no communication, for transfers);
    for compute it is the self time. steady_*: the part inside the steady window; period_*: inside
    the device's whole periods, from the first kept step's start to the last one's; account_count
    and owned: executions that start in the step account's window, and the time owned in it. An op
    that only the async line shows has no executions (count 0)."""

    facts: OpFacts
    module: str
    program_id: int | None
    count: int
    total: int
    exclusive: int
    exposed: int
    steady_count: int
    steady_exclusive: int
    period_count: int
    period_exclusive: int
    device_kind: str
    account_count: int = 0
    owned: int = 0

    @property
    def key(self) -> tuple[str, str, str, int | None, OpFacts, str]:
        facts = self.facts
        return facts.name, facts.hlo_op, self.module, self.program_id, facts, self.device_kind

    @property
    def rank(self) -> tuple[int, str, tuple[str, ...], str, int]:
        """Most self time first; ties by name, then by what tells ops of one name apart."""
        program = -1 if self.program_id is None else self.program_id
        return -self.exclusive, self.facts.name, self.facts.sort_key, self.module, program


def merge_op_totals(parts: Iterable[OpTotals]) -> list[OpTotals]:
    merged: dict[tuple[str, str, str, int | None, OpFacts, str], OpTotals] = {}
    for part in parts:
        known = merged.get(part.key)
        merged[part.key] = part if known is None else _add(known, part)
    return sorted(merged.values(), key=lambda op: op.rank)


def _add(a: OpTotals, b: OpTotals) -> OpTotals:
    return replace(
        a,
        count=a.count + b.count,
        total=a.total + b.total,
        exclusive=a.exclusive + b.exclusive,
        exposed=a.exposed + b.exposed,
        steady_count=a.steady_count + b.steady_count,
        steady_exclusive=a.steady_exclusive + b.steady_exclusive,
        period_count=a.period_count + b.period_count,
        period_exclusive=a.period_exclusive + b.period_exclusive,
        account_count=a.account_count + b.account_count,
        owned=a.owned + b.owned,
    )


def programs_of(device: DeviceOps, facts: tuple[OpFacts, ...]) -> tuple[list[Program], Int64s]:
    """Each op execution's program: what the op says, completed by the module execution it is in."""
    executions = device.executions
    modules = list(executions.modules) if executions is not None else []
    names = {program_id: name for name, program_id in modules}
    key = np.full(len(device.op), -1, np.int64)
    if executions is not None and len(executions.key):
        inside = device.execution >= 0
        key[inside] = executions.key[device.execution[inside]]
    ops, keys, inverse = unique_pairs(device.op, key)
    programs = []
    for op, module in zip(ops.tolist(), keys.tolist(), strict=True):
        fact = facts[op]
        around: Program = modules[module] if module >= 0 else ("", None)
        program_id = fact.program_id if fact.program_id is not None else around[1]
        programs.append((fact.module or names.get(program_id, around[0]), program_id))
    return programs, inverse


def op_totals(
    facts: tuple[OpFacts, ...],
    device: DeviceOps,
    time: DeviceTime,
    steady: Window | None,
    periods: Window | None = None,
    account: Account | None = None,
) -> list[OpTotals]:
    """One device's ops, in no particular order; the windows are on the device clock."""
    programs, index = programs_of(device, facts)
    size = len(programs)
    op_of = np.zeros(size, np.int64)
    op_of[index] = device.op
    piece_index = index[device.piece_owner]
    length = device.piece_end - device.piece_start
    exposed = length - _covered(facts, device, time)
    count = counts_of(index, size)
    total = sum_by(index, device.end - device.start, size)
    exclusive = sum_by(piece_index, length, size)
    exposed_sum = sum_by(piece_index, exposed, size)
    steady_count, steady_exclusive = _inside(device, index, size, steady)
    period_count, period_exclusive = _inside(device, index, size, periods)
    account_count = owned = np.zeros(size, np.int64)
    lone: list[OpTotals] = []
    if account is not None:
        shares = owned_time(
            device, facts, account.spans, index, size, account.ledger, account.ranks
        )
        owned = shares.of_group
        window = (account.ledger.start, account.ledger.end)
        same = window == periods
        account_count = period_count if same else _starts(device, index, size, window)
        lone = [_lone(facts[op], device.kind, time) for op, time in shares.of_lone.items() if time]
    return lone + [
        OpTotals(
            facts=facts[op_of[i]],
            module=programs[i][0],
            program_id=programs[i][1],
            count=int(count[i]),
            total=int(total[i]),
            exclusive=int(exclusive[i]),
            exposed=int(exposed_sum[i]),
            steady_count=int(steady_count[i]),
            steady_exclusive=int(steady_exclusive[i]),
            period_count=int(period_count[i]),
            period_exclusive=int(period_exclusive[i]),
            device_kind=device.kind,
            account_count=int(account_count[i]),
            owned=int(owned[i]),
        )
        for i in range(size)
    ]


def _lone(facts: OpFacts, device_kind: str, owned: int) -> OpTotals:
    """An op that only the async line shows."""
    nothing = dict.fromkeys(_SUMS, 0)
    return OpTotals(
        facts=facts,
        module=facts.module,
        program_id=facts.program_id,
        device_kind=device_kind,
        owned=owned,
        **nothing,
    )


def _inside(
    device: DeviceOps, index: Int64s, size: int, window: Window | None
) -> tuple[Int64s, Int64s]:
    """Per group: executions that start inside the window, and self time inside it."""
    if window is None:
        return np.zeros(size, np.int64), np.zeros(size, np.int64)
    clipped = np.minimum(device.piece_end, window[1]) - np.maximum(device.piece_start, window[0])
    return (
        _starts(device, index, size, window),
        sum_by(index[device.piece_owner], np.maximum(clipped, 0), size),
    )


def _starts(device: DeviceOps, index: Int64s, size: int, window: Window) -> Int64s:
    """Per group the executions that start inside the window."""
    starts = (device.start >= window[0]) & (device.start < window[1])
    return counts_of(index[starts], size)


def _covered(facts: tuple[OpFacts, ...], device: DeviceOps, time: DeviceTime) -> Int64s:
    """How much of each self piece other work hides."""
    groups = np.array([fact.group for fact in facts], np.int64)[device.op[device.piece_owner]]
    covered = np.zeros(len(groups), np.int64)
    for group, cover in (
        (GROUP_COMMUNICATION, lambda: time.compute),
        (GROUP_TRANSFER, lambda: time.busy_without_transfer),
    ):
        chosen = groups == group
        if chosen.any():
            covered[chosen] = cover().covered(device.piece_start[chosen], device.piece_end[chosen])
    return covered
