"""Totals per op over all devices of a host: whole capture, steady window, and the step account.

Contract: an op is a (name, HLO op, module, program id) with its static facts; totals are integer
picoseconds and add up across devices and hosts. self <= total for every op.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.costs import ZERO_COSTS, Costs
from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.executions import Program
from marin_profile.analysis.ledger import DeviceIntervals
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.planes import GPU
from marin_profile.base.columns import counts_of, sum_by, unique_pairs
from marin_profile.base.intervals import Window
from marin_profile.events.classify import GROUP_COMPUTE
from marin_profile.events.timeline import Int64s


@dataclass(frozen=True, slots=True)
class OpTotals:
    """One op. `exposed`: the time that it owns (see `ownership`), so that the ops of a ledger term
    sum to the term. steady_*: the part inside the steady window; period_*: inside the device's
    whole periods, from the first kept step's start to the last one's; account_count and owned:
    executions that start in the step account's window, and the time owned in it. cost_count,
    period_cost_count: the executions of the HLO op whose costs it bears: of several kernels, that
    with most self time."""

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
    cost_count: int
    period_cost_count: int
    account_count: int = 0
    owned: int = 0

    @property
    def costs(self) -> Costs:
        """Per execution: nothing where another kernel of the HLO op bears its costs."""
        return self.facts.costs if self.cost_count else ZERO_COSTS

    @property
    def rank(self) -> tuple[int, str, tuple[str, ...], str, int]:
        """Most self time first; ties by name, then by what tells ops of one name apart."""
        program = -1 if self.program_id is None else self.program_id
        return -self.exclusive, self.facts.name, self.facts.sort_key, self.module, program


def merge_op_totals(parts: Iterable[OpTotals]) -> list[OpTotals]:
    """The sums, in the order of their ranks."""
    merged: dict[tuple[str, int | None, str], dict[OpFacts, OpTotals]] = {}
    for part in parts:
        ops = merged.setdefault((part.module, part.program_id, part.device_kind), {})
        known = ops.get(part.facts)
        ops[part.facts] = part if known is None else _add(known, part)
    return _ranked(chain.from_iterable(ops.values() for ops in merged.values()))


def _ranked(ops: Iterable[OpTotals]) -> list[OpTotals]:
    """By rank. Only ops of one name and time pay for what else tells them apart."""
    by_name = sorted(ops, key=lambda op: op.facts.name)
    by_name.sort(key=lambda op: op.exclusive, reverse=True)
    ordered: list[OpTotals] = []
    for _, group in groupby(by_name, key=lambda op: (op.exclusive, op.facts.name)):
        tied = list(group)
        ordered += sorted(tied, key=lambda op: op.rank) if len(tied) > 1 else tied
    return ordered


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
        cost_count=a.cost_count + b.cost_count,
        period_cost_count=a.period_cost_count + b.period_cost_count,
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
    known: dict[Program, Program] = {}
    for op, module in zip(ops.tolist(), keys.tolist(), strict=True):
        fact = facts[op]
        around: Program = modules[module] if module >= 0 else ("", None)
        program_id = fact.program_id if fact.program_id is not None else around[1]
        program: Program = (fact.module or names.get(program_id, around[0]), program_id)
        programs.append(known.setdefault(program, program))
    return programs, inverse


def op_totals(
    facts: tuple[OpFacts, ...],
    device: DeviceOps,
    time: DeviceIntervals,
    steady: Window | None,
    periods: Window | None = None,
    account: Window | None = None,
) -> list[OpTotals]:
    """One device's ops, in no particular order; the windows are on the device clock."""
    programs, index = programs_of(device, facts)
    size = len(programs)
    op_of = np.zeros(size, np.int64)
    op_of[index] = device.op
    count = counts_of(index, size)
    total = sum_by(index, device.end - device.start, size)
    exclusive = sum_by(index, device.self_time, size)
    steady_count, steady_exclusive = _inside(device, index, size, steady)
    period_count, period_exclusive = _inside(device, index, size, periods)
    bears = _cost_bearers(device.kind, [facts[op] for op in op_of.tolist()], programs, exclusive)
    if time.is_serial:
        exposed = exclusive
        same = account == periods
        account_count, owned = (
            (period_count, period_exclusive) if same else _inside(device, index, size, account)
        )
    else:
        exposed = sum_by(index[time.owned.owner], time.owned.end - time.owned.start, size)
        account_count = _starts(device, index, size, account)
        owned = sum_by(index[time.owned.owner], time.owned.inside(account or (0, 0)), size)
    columns = (
        op_of,
        count,
        total,
        exclusive,
        exposed,
        steady_count,
        steady_exclusive,
        period_count,
        period_exclusive,
        count if bears.all() else count * bears,
        period_count if bears.all() else period_count * bears,
        account_count,
        owned,
    )
    return [
        OpTotals(
            facts=facts[op],
            module=module,
            program_id=program_id,
            count=values[0],
            total=values[1],
            exclusive=values[2],
            exposed=values[3],
            steady_count=values[4],
            steady_exclusive=values[5],
            period_count=values[6],
            period_exclusive=values[7],
            device_kind=device.kind,
            cost_count=values[8],
            period_cost_count=values[9],
            account_count=values[10],
            owned=values[11],
        )
        for (module, program_id), (op, *values) in zip(programs, _rows(columns), strict=True)
    ]


# Rows that are Python numbers at once: there may be a million ops.
_BLOCK = 1 << 14


def _rows(columns: Sequence[Int64s]) -> Iterator[tuple[int, ...]]:
    """The columns, row by row; equal ones share their numbers."""
    for at in range(0, len(columns[0]), _BLOCK):
        lists: list[list[int]] = []
        parts = [column[at : at + _BLOCK] for column in columns]
        for k, part in enumerate(parts):
            same = next((j for j in range(k) if np.array_equal(parts[j], part)), None)
            lists.append(part.tolist() if same is None else lists[same])
        yield from zip(*lists, strict=True)


def _cost_bearers(
    device_kind: str, facts: Sequence[OpFacts], programs: Sequence[Program], exclusive: Int64s
) -> NDArray[np.bool_]:
    """Per group whether it bears the costs of its op. A GPU may run one HLO op as several kernels,
    each execution of which is no execution of the op."""
    bears = np.ones(len(facts), np.bool_)
    kernels: dict[tuple[Program, str], dict[str, int]] = {}
    if device_kind != GPU:
        return bears
    rows = [
        (index, (program, fact.hlo_op), fact.name)
        for index, (program, fact) in enumerate(zip(programs, facts, strict=True))
        if fact.hlo_op and fact.group == GROUP_COMPUTE
    ]
    for index, op, name in rows:
        times = kernels.setdefault(op, {})
        times[name] = times.get(name, 0) + int(exclusive[index])
    for index, op, name in rows:
        times = kernels[op]
        bears[index] = name == min(times, key=lambda kernel: (-times[kernel], kernel))
    return bears


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


def _starts(device: DeviceOps, index: Int64s, size: int, window: Window | None) -> Int64s:
    """Per group the executions that start inside the window."""
    if window is None:
        return np.zeros(size, np.int64)
    starts = (device.start >= window[0]) & (device.start < window[1])
    return counts_of(index[starts], size)
