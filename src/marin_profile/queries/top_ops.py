"""Which ops take the most time, optionally of one kind or one pass.

exclusive_duration is self time over all devices of the basis window; its share is of the self
time of all ops there. Rows come from `hot_ops`; where those are too few for the question, from
`op_groups` (all ops, alike ones together).
"""

from __future__ import annotations

from marin_profile.base.units import (
    Bytes,
    Count,
    FlopProxy,
    Flops,
    GigabytesPerSecond,
    Microseconds,
    Share,
    TeraflopsPerSecond,
)
from marin_profile.facts.device_time import basis_of, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import is_of_kind
from marin_profile.queries.model import (
    DEFAULT_LIMIT,
    Answer,
    CannotAnswer,
    Query,
    in_order,
    intent,
)
from marin_profile.queries.names import fold_program, path_of, within
from marin_profile.queries.parameters import LEAST, Parameters
from marin_profile.queries.time_of import nothing_of
from marin_profile.schema import REMAINDER, HotOp, OpGroup, ProfileSummary

# The row that stands for all groups beyond the summary's limit; it is no op.


class OpRow(Row, frozen=True, kw_only=True):
    """One op; with `num_names` > 1 a group of ops alike but for their numbering."""

    name: str
    canonical_name: str
    category: str
    pass_: str | None = None
    num_names: Count
    count: Count
    exclusive_duration: Microseconds
    share_of_op_time: Share | None = None
    total_duration: Microseconds | None = None
    avg_duration: Microseconds | None = None
    exposed_duration: Microseconds | None = None
    per_step_duration: Microseconds | None = None
    shape_signature: str | None = None
    tf_op_path: str | None = None
    source_file: str | None = None
    module: str | None = None
    hlo_category: str | None = None
    flop_proxy_per_invocation: FlopProxy | None = None
    flops: Flops | None = None
    bytes_accessed: Bytes | None = None
    cost_source: str | None = None
    achieved_tflops: TeraflopsPerSecond | None = None
    achieved_gbps: GigabytesPerSecond | None = None
    bound_by: str | None = None


def hot_op_row(op: HotOp, whole: float | None) -> OpRow:
    return OpRow.of(op, num_names=1, share_of_op_time=ratio(op.exclusive_duration, whole))


def group_row(group: OpGroup, whole: float | None) -> OpRow:
    return OpRow(
        name=group.names[0] if group.num_names == 1 and group.names else group.canonical_name,
        canonical_name=group.canonical_name,
        category=group.category,
        pass_=group.pass_,
        num_names=group.num_names,
        count=group.count,
        exclusive_duration=group.exclusive_duration,
        share_of_op_time=ratio(group.exclusive_duration, whole),
        exposed_duration=group.exposed_duration,
        per_step_duration=group.per_step_duration,
        shape_signature=group.shape_signature,
        tf_op_path=group.scope,
    )


def by_time(row: OpRow) -> tuple[float, str]:
    return -row.exclusive_duration, row.name


def _is_of_kind_and_pass(op: HotOp | OpGroup, parameters: Parameters) -> bool:
    return (parameters.kind is None or is_of_kind(op.category, parameters.kind)) and (
        parameters.pass_ is None or op.pass_ == parameters.pass_
    )


def _of_program(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    """Of the ops that the summary gives by itself, which alone say their program."""
    wanted = fold_program(parameters.program or "")
    in_scope = within(parameters.scope) if parameters.scope else None
    found = [
        op
        for op in summary.hot_ops
        if fold_program(op.module or "") == wanted
        and _is_of_kind_and_pass(op, parameters)
        and (in_scope is None or in_scope(path_of(op.tf_op_path or "")))
    ]
    if not found:
        return CannotAnswer(
            f"None of the ops that take most of the time is of {parameters.program}.",
            "Ask for the program itself: its answer names its largest ops.",
        )
    if parameters.order == LEAST:
        return CannotAnswer(
            "The ops of a program are known by the largest alone.", "Ask for the top ops of it."
        )
    whole = op_time(summary, "hot_ops")
    rows = sorted((hot_op_row(op, whole) for op in found), key=by_time)
    limit = DEFAULT_LIMIT if parameters.limit is None else parameters.limit
    return Answer(
        basis_of(summary, "hot_ops"),
        tuple(rows[:limit]),
        len(rows),
        "Of the ops with most time in the capture; smaller ones of the program are not listed.",
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if parameters.without and parameters.program is not None:
        return CannotAnswer(
            "The ops of all but one program are not known.", "Ask for the programs."
        )
    if parameters.by in ("bytes", "flops"):
        return CannotAnswer(
            f"The {parameters.by} of all ops are not known: ops are ordered by self time or count.",
            "Ask for the top ops: their rows hold flops and bytes_accessed of one execution.",
        )
    if parameters.program is not None:
        return _of_program(summary, parameters)
    in_scope = within(parameters.scope) if parameters.scope else None

    def is_meant(op: HotOp | OpGroup, scope: str | None) -> bool:
        is_of = _is_of_kind_and_pass(op, parameters) and (
            in_scope is None or in_scope(path_of(scope or ""))
        )
        return is_of is not parameters.without

    hot = [op for op in summary.hot_ops if is_meant(op, op.tf_op_path)]
    groups = [group for group in summary.op_groups if is_meant(group, group.scope)]
    if (parameters.pass_ or parameters.scope) and not hot and not groups:
        return nothing_of(summary, parameters)
    needs_all = parameters.order == LEAST or parameters.by == "count"
    if needs_all and any(group.canonical_name == REMAINDER for group in summary.op_groups):
        return CannotAnswer(
            "The summary holds the smallest ops as one remainder.", "Ask for the top ops by time."
        )
    total_names = sum(group.num_names for group in groups)
    groups = [group for group in groups if group.canonical_name != REMAINDER]
    limit = DEFAULT_LIMIT if parameters.limit is None else parameters.limit
    whole = op_time(summary, "hot_ops")
    if groups and (needs_all or len(hot) < min(limit, total_names)):
        rows = sorted((group_row(group, whole) for group in groups), key=by_time)
        if parameters.by == "count":
            rows.sort(key=lambda row: (-row.count, row.name))
        rows = in_order(rows, parameters.order)
        unlisted = total_names - sum(group.num_names for group in groups)
        return Answer(basis_of(summary, "op_groups"), tuple(rows[:limit]), len(rows) + unlisted)
    rows = in_order(sorted((hot_op_row(op, whole) for op in hot), key=by_time), parameters.order)
    shown = tuple(rows[:limit])
    note = None if rows else "No op of the summary is of that kind."
    if not summary.hot_ops and not summary.op_groups:
        note = "The capture holds no device op."
    return Answer(basis_of(summary, "hot_ops"), shown, max(len(rows), total_names), note)


QUERY = Query(
    name="top_ops",
    description="The ops that take the most self time, of all kinds or of one kind or pass.",
    example="What are the top 5 all-reduce ops?",
    run=run,
    rows=(OpRow,),
    parameters=("limit", "kind", "pass", "scope", "program", "order", "by", "without"),
    gives={
        "share": ("share_of_op_time",),
        "step": ("per_step_duration",),
        "call": ("avg_duration",),
    },
    intents=(
        intent(12, "op", "top", "collective|communication|transfer|compute|@kind|@pass"),
        intent(10, "op", "top|dominate", unless=("compare", "@op")),
        intent(9, "op", "time|take|share|cost", unless=("before", "between", "attribution", "@op")),
        intent(9, "hotspot"),
        intent(8, "op", "@scope|@program|@pass", unless=("@op", "gap", "before", "if")),
        intent(
            10, "@kind", "top", unless=("time", "wait", "bandwidth", "take", "byte", "idle", "gap")
        ),
        intent(5, "op", "many|count|number|often", unless=("@op", "compare")),
        intent(5, "op", "list|show|what|which|all", unless=("compare", "@op")),
    ),
)
