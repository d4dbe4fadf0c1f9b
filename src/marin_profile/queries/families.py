"""How the time divides over families of ops (attention, matmul, normalization, copy, ...)."""

from __future__ import annotations

from marin_profile.base.units import Count, FlopProxy, Microseconds, MicrosecondsPerFlop, Share
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.model import SUBJECTS, Answer, Query, in_order, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


class FamilyRow(Row, frozen=True, kw_only=True):
    family: str
    count: Count
    exclusive_duration: Microseconds
    total_duration: Microseconds
    share_of_total: Share
    avg_duration: Microseconds
    avg_exclusive_duration: Microseconds
    example_op: str | None = None
    dominant_shape_signature: str | None = None
    flop_proxy_total: FlopProxy | None = None
    time_per_flop_proxy: MicrosecondsPerFlop | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = [
        FamilyRow.of(one)
        for one in summary.semantic_families
        if parameters.family is None or one.family == parameters.family
    ]
    rows.sort(key=lambda row: (-row.exclusive_duration, row.family))
    rows = in_order(rows, parameters.order)
    return listing(
        basis_of(summary, "semantic_families"),
        rows,
        limit=parameters.limit,
        default_limit=50,
        note=None if rows else "The summary holds no op families.",
    )


QUERY = Query(
    name="semantic_families",
    description="Time by family of ops: attention, matmul, normalization, copy and others.",
    example="Which families of ops take the most time?",
    run=run,
    rows=(FamilyRow,),
    parameters=("limit", "family", "order"),
    gives={"share": ("share_of_total",)},
    intents=(
        intent(13, "family"),
        intent(12, "op", "kind", "top|time|share|breakdown|take|what|which"),
        intent(12, "@family", unless=SUBJECTS),
    ),
)
