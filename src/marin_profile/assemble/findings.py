"""What to try next, from the numbers of the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from marin_profile import schema
from marin_profile.analysis import advice
from marin_profile.analysis.ledger import HOST_KINDS, WAIT_KINDS
from marin_profile.analysis.roofline import op_rate
from marin_profile.assemble.context import Context
from marin_profile.events.classify import GROUP_COMPUTE
from marin_profile.events.scopes import RECOMPUTE


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
    op_time = sum(map(context.op_time, context.main_ops)) or 1
    for_stragglers = _wait_for_stragglers(context, late[0])
    exposed = {
        kind: value - for_stragglers.get(kind, 0)
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
    top = min(computing, key=lambda op: (-context.op_time(op), op.rank), default=None)
    gaps = [gap for gap in context.gaps if not gap.is_noise]
    gap = min(gaps, key=lambda gap: (-context.gap_time(gap), gap.payload), default=None)
    recomputed = [op for op in context.main_ops if op.facts.pass_name == RECOMPUTE]
    period = step_time.period or schema.DurationStats(count=0)
    return advice.Findings(
        window=context.window,
        exposed_communication=(
            sum(ledger.exposed_communication for ledger in ledgers) - sum(for_stragglers.values())
        )
        / window,
        exposed_wait=sum(context.collectives.exposed_wait.values()) / window,
        straggler=(
            (", ".join(names), sum(for_stragglers.values()) / window)
            if (names := schema.straggler_names(*late))
            else None
        ),
        worst_collective=None
        if worst is None
        else (worst[0], worst[1] / window, overlapped.get(worst[0], 0) / window),
        host_transfer=sum(ledger.host for ledger in ledgers) / window,
        worst_transfer=None if transfer is None else (transfer[0], transfer[1] / window),
        device_wait=sum(ledger.waits for ledger in ledgers) / window,
        worst_wait=None
        if wait is None
        else (wait[0], _largest_op(context, wait[0]), wait[1] / window),
        idle=sum(ledger.idle for ledger in ledgers) / window,
        most_delayed=None
        if gap is None
        else advice.Gaps(
            before=gap.payload,
            share=context.gap_time(gap) / window,
            longest=context.gap_longest(gap) / window,
            count=context.gap_count(gap),
        ),
        top_op=None
        if top is None
        else (top.facts.name, top.facts.scope_path, context.op_time(top) / op_time),
        top_op_bound_by=None if top is None else op_rate(top, context.peaks).bound_by,
        long_op=(long_op.name, long_op.steps) if (long_op := step_time.long_op) else None,
        recompute=sum(map(context.op_time, recomputed)) / op_time,
        step_median_us=period.median,
        step_mean_us=step_time.mean_period,
        step_p90_us=period.p90,
        slow_steps=tuple(map(_slow_steps, step_time.outlier_causes)),
        kept_steps=period.count,
        hlo_attributed=coverage.hlo_attributed_share,
    )


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
    return advice.CauseOfSlowSteps(f"{kind}{name}{before}", cause.count, cause.excess_per_period)


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
