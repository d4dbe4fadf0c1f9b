"""How the time divides over the passes of a training step: forward, backward, recompute, optimizer.

Self time of the ops of each pass, over all devices and the basis window.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.facts.device_time import basis_of, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, in_order, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.time_of import UNKNOWN_PASS, no_such_pass
from marin_profile.schema import ProfileSummary


class PassRow(Row, frozen=True, kw_only=True):
    pass_: str
    count: Count
    exclusive_duration: Microseconds
    share_of_op_time: Share | None = None
    per_step_duration: Microseconds | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if not any(group.pass_ for group in summary.op_groups):
        return no_such_pass(parameters.pass_ or "", [])
    whole = op_time(summary)
    rows = []
    for name in sorted({group.pass_ or UNKNOWN_PASS for group in summary.op_groups}):
        groups = [group for group in summary.op_groups if (group.pass_ or UNKNOWN_PASS) == name]
        if parameters.pass_ not in (None, name):
            continue
        duration = sum(group.exclusive_duration for group in groups)
        per_step = [one.per_step_duration for one in groups if one.per_step_duration is not None]
        rows.append(
            PassRow(
                pass_=name,
                count=sum(group.count for group in groups),
                exclusive_duration=duration,
                share_of_op_time=ratio(duration, whole),
                per_step_duration=sum(per_step) if per_step else None,
            )
        )
    if parameters.pass_ is not None and not rows:
        return no_such_pass(
            parameters.pass_, sorted({one.pass_ for one in summary.op_groups if one.pass_})
        )
    rows.sort(key=lambda row: (-row.exclusive_duration, row.pass_))
    return listing(
        basis_of(summary, "op_groups"), in_order(rows, parameters.order), limit=parameters.limit
    )


QUERY = Query(
    name="passes",
    description="Time by pass: forward, backward, recompute, optimizer.",
    example="How much time does the backward pass take?",
    run=run,
    rows=(PassRow,),
    parameters=("limit", "pass", "order"),
    gives={"share": ("share_of_op_time",), "step": ("per_step_duration",)},
    intents=(
        intent(10, "pass", "@pass|time|share|what|which|top|breakdown", unless=("op", "region")),
        intent(10, "@pass", "time|take|share|long|much|spend|cost", unless=("op", "region")),
    ),
)
