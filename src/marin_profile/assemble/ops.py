"""Hot ops, op groups, families and regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import groupby

from marin_profile import schema
from marin_profile.analysis.families import family_totals
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.regions import region_totals
from marin_profile.analysis.repeated_regions import repeated_regions as found_repeated
from marin_profile.analysis.roofline import op_rate
from marin_profile.assemble.context import Context, each_us, per_step, us
from marin_profile.events.scopes import SEPARATOR

OP_GROUP_LIMIT = 5000
MOST_FUSED = 3
MOST_REPEATED = 100


def hot_op(context: Context, op: OpTotals) -> schema.HotOp:
    facts = op.facts
    rate = op_rate(op, context.peaks)
    return schema.HotOp(
        name=facts.name,
        canonical_name=facts.canonical,
        category=facts.kind,
        count=op.count,
        total_duration=us(op.total),
        exclusive_duration=us(op.exclusive),
        avg_duration=us(op.total) / op.count,
        shape_signature=facts.shape or None,
        source_file=facts.source or None,
        tf_op_path=facts.scope_path or None,
        module=op.module or None,
        program_id=None if op.program_id is None else str(op.program_id),
        hlo_op=facts.hlo_op or None,
        hlo_category=facts.hlo_category or None,
        pass_=facts.pass_name,
        flops=op.costs.flops,
        bytes_accessed=op.costs.bytes_accessed,
        cost_source=op.costs.source,
        achieved_tflops=rate.tflops,
        achieved_gbps=rate.gbps,
        bound_by=rate.bound_by,
        exposed_duration=us(op.exposed),
        per_step_duration=per_step(context, [op]),
        fused_with=["/".join(scope) for scope in facts.fused_with[:MOST_FUSED]],
    )


GroupKey = tuple[str, str, str, str, str]


def _group_key(op: OpTotals) -> GroupKey:
    f = op.facts
    return f.canonical, f.kind, f.shape, f.scope_path, f.pass_name


def op_groups(context: Context) -> list[schema.OpGroup]:
    largest = nsmallest(
        OP_GROUP_LIMIT,
        _groups(context.ops),
        key=lambda group: (-sum(op.exclusive for op in group[1]), group[0]),
    )
    # Where no step account says what a step costs.
    runs = {} if context.account else context.runs_by_name
    rows = [_op_group(context, key, members, runs) for key, members in largest]
    listed = {key for key, _ in largest}
    if rest := [op for op in context.ops if _group_key(op) not in listed]:
        rows.append(_op_group(context, (schema.REMAINDER, "unknown", "", "", ""), rest, runs))
    return rows


def _groups(ops: Sequence[OpTotals]) -> Iterator[tuple[GroupKey, list[OpTotals]]]:
    """One canonical name after the other: of a million, no table holds them all."""
    by_name = sorted(ops, key=lambda op: op.facts.canonical)
    for _, same in groupby(by_name, key=lambda op: op.facts.canonical):
        groups: dict[GroupKey, list[OpTotals]] = {}
        for op in same:
            groups.setdefault(_group_key(op), []).append(op)
        yield from groups.items()


def _op_group(
    context: Context,
    key: GroupKey,
    members: list[OpTotals],
    runs: Mapping[str, int],
) -> schema.OpGroup:
    canonical, kind, shape, scope, pass_name = key
    names = sorted({op.facts.name for op in members})
    steady_exclusive = sum(op.steady_exclusive for op in members)
    account = context.account
    owned = us(sum(op.owned for op in members))
    by_program: Counter[str] = Counter()
    for op in members:
        if op.module in runs and op.device_kind != SPARSECORE:
            by_program[op.module] += op.exposed
    return schema.OpGroup(
        canonical_name=canonical,
        category=kind,
        shape_signature=shape or None,
        scope=scope or None,
        pass_=pass_name or None,
        names=names[:8],
        num_names=len(names),
        count=sum(op.count for op in members),
        exclusive_duration=us(sum(op.exclusive for op in members)),
        exposed_duration=us(sum(op.exposed for op in members)),
        steady_count=sum(op.steady_count for op in members) if context.steady else None,
        steady_exclusive_duration=us(steady_exclusive) if context.steady else None,
        per_step_duration=per_step(context, members),
        account_count=sum(op.account_count for op in members) if account else None,
        owned_duration=owned if account else None,
        owned_per_step_duration=owned / (context.periods * len(account)) if account else None,
        exposed_by_program=each_us(by_program),
    )


def families(context: Context) -> list[schema.SemanticFamily]:
    rows = family_totals(context.ops)
    total = sum(row.exclusive for row in rows)
    return [
        schema.SemanticFamily(
            family=row.name,
            count=row.count,
            total_duration=us(row.total),
            exclusive_duration=us(row.exclusive),
            share_of_total=row.exclusive / total if total else 0.0,
            avg_duration=us(row.total) / max(row.count, 1),
            avg_exclusive_duration=us(row.exclusive) / max(row.count, 1),
            example_op=row.example,
            dominant_shape_signature=row.dominant_shape,
            owned_duration=us(row.owned) if context.account else None,
        )
        for row in rows
    ]


def regions(context: Context) -> list[schema.Region]:
    return [
        schema.Region(
            path=row.name,
            depth=len(row.path),
            count=row.count,
            inclusive_duration=us(row.inclusive),
            exclusive_duration=us(row.exclusive),
            inclusive_by_pass=each_us(row.by_pass),
            fused_with={
                SEPARATOR.join(scope): us(time)
                for scope, time in sorted(
                    row.fused_with.items(), key=lambda item: (-item[1], item[0])
                )[:MOST_FUSED]
            },
        )
        for row in region_totals(context.ops)
    ]


def repeated_regions(context: Context) -> list[schema.RepeatedRegion]:
    rows = []
    for row in found_repeated(context.ops)[:MOST_REPEATED]:
        largest = min(row.members, key=lambda path: (-row.members[path], path))
        rows.append(
            schema.RepeatedRegion(
                path=row.name,
                depth=len(row.path),
                count=row.count,
                inclusive_duration=us(row.inclusive),
                exclusive_duration=us(row.exclusive),
                inclusive_by_pass=each_us(row.by_pass),
                members=len(row.members),
                largest=SEPARATOR.join(largest),
                largest_duration=us(row.members[largest]),
                smallest_duration=us(min(row.members.values())),
            )
        )
    return rows
