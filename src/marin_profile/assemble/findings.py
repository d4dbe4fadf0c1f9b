"""What to try next, from the numbers of the summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from marin_profile import schema
from marin_profile.analysis import advice
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.host_account import HostAccount, HostCause
from marin_profile.analysis.ledger import HOST_KINDS, WAIT_KINDS
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.roofline import op_rate
from marin_profile.assemble.context import Context, us
from marin_profile.assemble.host import occurrence
from marin_profile.events.classify import GROUP_COMPUTE
from marin_profile.events.scopes import COMBINED, RECOMPUTE

_DIGITS = re.compile(r"[0-9]+")


def advice_section(
    context: Context,
    step_time: schema.StepTime,
    coverage: schema.Coverage,
    late: tuple[list[schema.Straggler], list[schema.StragglerHost]],
) -> list[schema.OptimizationCandidate]:
    """`late`: the devices and the hosts with their verdicts."""
    return [
        schema.OptimizationCandidate(
            candidate_id=candidate.id,
            title=candidate.title,
            rationale=candidate.rationale,
            evidence=[*candidate.evidence],
            suggestions=[*candidate.suggestions],
            ceiling_share=candidate.share,
            ceiling_per_step=(
                None if step_time.mean_period is None else candidate.share * step_time.mean_period
            ),
            certainty=candidate.certainty,
        )
        for candidate in advice.candidates(_findings(context, step_time, coverage, late))
    ]


def _findings(
    context: Context,
    step_time: schema.StepTime,
    coverage: schema.Coverage,
    late: tuple[list[schema.Straggler], list[schema.StragglerHost]],
) -> advice.Findings:
    ledgers = [context.headline(device) for device in context.main_devices]
    window = sum(ledger.end - ledger.start for ledger in ledgers) or 1
    for_stragglers = _wait_for_stragglers(context, late[0])
    waits, varying = context.collectives.exposed_wait, context.collectives.exposed_varying
    exposed = {
        kind: max(0, value - waits.get(kind, 0) - varying.get(kind, 0))
        for kind, value in _summed(ledger.exposed_by_kind for ledger in ledgers).items()
    }
    overlapped = _summed(ledger.overlapped_by_kind for ledger in ledgers)
    transfers = _summed(ledger.transfer_by_kind for ledger in ledgers)
    host_transfers = {kind: value for kind, value in transfers.items() if kind in HOST_KINDS}
    worst = _largest(exposed)
    transfer = _largest(host_transfers)
    wait = _largest(
        {kind: value for kind, value in transfers.items() if kind in WAIT_KINDS and value}
    )
    computing = [op for op in context.main_ops if op.facts.group == GROUP_COMPUTE]
    gaps = [gap for gap in context.gaps if not gap.is_noise]
    gap = min(gaps, key=lambda gap: (-context.gap_time(gap), gap.payload), default=None)
    recomputed = [op for op in context.main_ops if op.facts.pass_name == RECOMPUTE]
    period = step_time.period or schema.DurationStats(count=0)
    found = advice.Findings(
        window=context.window,
        basis="device time",
        exposed_communication=sum(exposed.values()) / window,
        exposed_wait=sum(waits.values()) / window,
        exposed_varying=sum(varying.values()) / window,
        straggler=(
            (", ".join(names), sum(for_stragglers.values()) / window)
            if (names := schema.straggler_names(*late))
            else None
        ),
        worst_collective=None
        if worst is None
        else (worst[0], worst[1] / window, overlapped.get(worst[0], 0) / window),
        worst_collective_scope="" if worst is None else _scope_of(context, worst[0]),
        host_transfer=sum(ledger.host for ledger in ledgers) / window,
        worst_transfer=None if transfer is None else (transfer[0], transfer[1] / window),
        device_wait=sum(ledger.waits for ledger in ledgers) / window,
        worst_wait=None
        if wait is None
        else (wait[0], _largest_op(context, wait[0]), wait[1] / window),
        idle=sum(ledger.idle for ledger in ledgers) / window,
        partly_idle=_partly_idle(context),
        host_idle=_host_idle(context),
        launches_per_step=_per_step(context, lambda one: sum(count for _, count in one.launches)),
        most_launched=_most_launched(context),
        reads_per_step=_per_step(context, lambda one: one.reads),
        most_delayed=None
        if gap is None
        else advice.Gaps(
            before=gap.payload,
            share=context.gap_time(gap) / window,
            longest=context.gap_longest(gap) / window,
            count=context.gap_count(gap),
        ),
        top_region=_top_region(context, computing, window),
        long_op=_long_op(context, step_time.long_op, window),
        recompute=sum(map(context.op_time, recomputed)) / window,
        step_median_us=period.median,
        step_mean_us=step_time.mean_period,
        step_p90_us=period.p90,
        slow_steps=tuple(map(_slow_steps, step_time.outlier_causes)),
        kept_steps=period.count,
        hlo_attributed=coverage.hlo_attributed_share,
    )
    shared = [part.shared for part in context.parts if part.shared is not None]
    if len(shared) < len(context.parts):
        return found
    length = sum(one.length for one in shared) or 1
    return advice.on_shared_processors(
        found,
        advice.HostTime(
            compute=sum(one.compute for one in shared) / length,
            communication=sum(one.communication for one in shared) / length,
            idle=sum(one.idle for one in shared) / length,
            ledger_compute=sum(ledger.compute for ledger in ledgers) / window,
            ledger_communication=sum(ledger.exposed_communication for ledger in ledgers) / window,
        ),
    )


def _scope_of(context: Context, kind: str) -> str:
    """Of the collectives of this kind, the scope that costs most: numbered layers are one ("*");
    "" for what XLA combined from several."""
    times: Counter[str] = Counter()
    for op in context.main_ops:
        if op.facts.kind == kind:
            combined = COMBINED in op.facts.scope
            times["" if combined else _DIGITS.sub("*", op.facts.scope_path)] += context.op_time(op)
    largest = _largest(times)
    return "" if largest is None else largest[0]


def _top_region(
    context: Context, computing: Sequence[OpTotals], window: int
) -> advice.TopRegion | None:
    """Of what is not recomputed: from the whole to its largest part again and again, as long as
    that holds most of it; where no part of the program does, the largest op."""
    ops = [op for op in computing if op.facts.pass_name != RECOMPUTE]
    top = min(ops, key=lambda op: (-context.op_time(op), op.rank), default=None)
    if top is None:
        return None
    path: tuple[str, ...] = ()
    held = sum(map(context.op_time, ops))
    while True:
        parts: Counter[str] = Counter()
        for op in ops:
            if len(op.facts.scope) > len(path):
                parts[op.facts.scope[len(path)]] += context.op_time(op)
        largest = _largest(parts)
        if largest is None or largest[1] < advice.MOST_OF_REGION * held:
            break
        path, held = (*path, largest[0]), largest[1]
        ops = [op for op in ops if op.facts.scope[: len(path)] == path]
    if len(path) < 2:
        path, held = (), context.op_time(top)
    else:
        top = min(ops, key=lambda op: (-context.op_time(op), op.rank))
    bound_by = op_rate(top, context.peaks).bound_by
    return advice.TopRegion("/".join(path), top.facts.name, held / window, bound_by)


def _long_op(
    context: Context, long_op: schema.LongOp | None, window: int
) -> tuple[str, int, float] | None:
    if long_op is None:
        return None
    each = us(window) / len(context.main_devices)
    return long_op.name, long_op.steps, min(1.0, long_op.duration / each)


def _accounts(context: Context) -> list[tuple[HostPart, HostAccount]]:
    accounts = [(part, part.account_of_idle) for part in context.parts]
    return [(part, account) for part, account in accounts if account is not None]


def _partly_idle(context: Context) -> float:
    """Of device time in the accounts' windows."""
    accounts = _accounts(context)
    whole = sum(account.length * part.main_devices for part, account in accounts)
    return sum(account.some_idle for _, account in accounts) / whole if whole else 0.0


def _host_idle(context: Context) -> tuple[advice.HostIdle, ...]:
    """By kind and name, over all hosts that have an account; shares of the hosts' windows. The
    steps are those of the host that it costs most."""
    accounts = _accounts(context)
    whole = sum(account.length for _, account in accounts) or 1
    rows: dict[tuple[str, str], list[tuple[HostPart, HostAccount, list[HostCause]]]] = {}
    for part, account in accounts:
        own: dict[tuple[str, str], list[HostCause]] = {}
        for row in account.causes:
            own.setdefault((row.kind, row.name), []).append(row)
        for key, causes in own.items():
            rows.setdefault(key, []).append((part, account, causes))
    found = []
    for (kind, name), members in sorted(rows.items()):
        part, account, causes = max(members, key=lambda one: sum(row.idle for row in one[2]))
        where = occurrence(part, account, causes)
        place = max(causes, key=lambda row: row.idle).inside
        found.append(
            advice.HostIdle(
                kind=kind,
                name=name,
                place="" if place is None else "inside" if place else "between",
                share=sum(row.idle for _, _, own_rows in members for row in own_rows) / whole,
                count=causes[0].count,
                steps=where.steps,
                step_count=where.count,
                periods=len(account.steps),
                every=where.every,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.share, one.kind, one.name)))


def _per_step(context: Context, counted: Callable[[HostAccount], int]) -> float | None:
    """What is counted a step on one host, the mean over hosts."""
    accounts = [account for _, account in _accounts(context) if account.steps]
    periods = sum(len(account.steps) for account in accounts)
    return sum(map(counted, accounts)) / periods if periods else None


def _most_launched(context: Context) -> tuple[str, ...]:
    accounts = _accounts(context)
    return tuple(name for name, _ in accounts[0][1].launches[:3]) if accounts else ()


def _largest_op(context: Context, kind: str) -> str:
    ops = [op for op in context.main_ops if op.facts.kind == kind]
    return min(ops, key=lambda op: (-context.op_time(op), op.rank)).facts.name


def _wait_for_stragglers(context: Context, devices: list[schema.Straggler]) -> dict[str, int]:
    """The exposed wait that stragglers cause, per kind of collective."""
    late = {(one.host, one.device) for one in devices if one.is_straggler}
    is_late = [(one.host, one.device) in late for one in context.collectives.members]
    return {
        kind: sum(value for value, counts in zip(caused, is_late, strict=True) if counts)
        for kind, caused in context.collectives.exposed_wait_caused.items()
    }


def _slow_steps(cause: schema.OutlierCause) -> advice.CauseOfSlowSteps:
    kind = (cause.cause or "cause not known").replace("_", " ")
    name = f" {cause.cause_name}" if cause.cause_name else ""
    before = f" before {cause.before_op}" if cause.before_op else ""
    return advice.CauseOfSlowSteps(
        cause=f"{kind}{name}{before}",
        count=cause.count,
        excess_us=cause.excess_per_period,
        kind=cause.cause or "",
        name=cause.cause_name or "",
        every=cause.periodicity,
    )


def _summed(maps: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for values in maps:
        total.update(values)
    return dict(total)


def _largest(values: Mapping[str, int]) -> tuple[str, int] | None:
    if not values:
        return None
    name = min(values, key=lambda kind: (-values[kind], kind))
    return name, values[name]
