"""Loops (scan, while): what they take, how often they go round, and the time of an iteration."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share
from marin_profile.facts.device_time import basis_of, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


class LoopRow(Row, frozen=True, kw_only=True):
    program: str
    name: str
    around: list[str]
    pass_: str
    duration: Microseconds
    share_of_op_time: Share | None = None
    iterations: Count | None = None
    iterations_per_execution: Ratio | None = None
    duration_per_iteration: Microseconds | None = None
    by_scope: dict[str, Microseconds]


def loop_rows(summary: ProfileSummary) -> list[LoopRow]:
    whole = op_time(summary, "loops")
    return [
        LoopRow.of(loop, share_of_op_time=ratio(loop.duration, whole)) for loop in summary.loops
    ]


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    rows = loop_rows(summary)
    if not rows:
        return CannotAnswer(
            "No op is known to stand in a loop.",
            "A loop shows where the program has one (jax.lax.scan, while_loop) and the xplane file "
            "holds HLO protos.",
        )
    return listing(basis_of(summary, "loops"), rows, limit=parameters.limit, default_limit=5)


QUERY = Query(
    name="loops",
    description="Loops such as scans: their time, iterations and the time of an iteration.",
    example="How long does one iteration of the scan take?",
    run=run,
    rows=(LoopRow,),
    parameters=("limit",),
    gives={"share": ("share_of_op_time",)},
    intents=(intent(11, "scan|scanned|loop", unless=("copy", "init")),),
)
