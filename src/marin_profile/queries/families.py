"""How the time divides over families of ops (attention, matmul, normalization, copy, ...)."""

from __future__ import annotations

from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row, as_count, as_share, in_us, measured
from marin_profile.queries.model import Answer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary


class FamilyRow(Row):
    family: str
    count: int = as_count()
    exclusive_duration: float = in_us()
    total_duration: float = in_us()
    share_of_total: float = as_share()
    avg_duration: float = in_us()
    avg_exclusive_duration: float = in_us()
    example_op: str | None = None
    dominant_shape_signature: str | None = None
    flop_proxy_total: float | None = measured("flop", default=None)
    time_per_flop_proxy: float | None = measured("us/flop", default=None)


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = [
        FamilyRow(
            family=one.family,
            count=one.count,
            exclusive_duration=one.exclusive_duration,
            total_duration=one.total_duration,
            share_of_total=one.share_of_total,
            avg_duration=one.avg_duration,
            avg_exclusive_duration=one.avg_exclusive_duration,
            example_op=one.example_op,
            dominant_shape_signature=one.dominant_shape_signature,
            flop_proxy_total=one.flop_proxy_total,
            time_per_flop_proxy=one.time_per_flop_proxy,
        )
        for one in summary.semantic_families
        if parameters.family is None or one.family == parameters.family
    ]
    rows.sort(key=lambda row: (-row.exclusive_duration, row.family))
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
    parameters=("limit", "family"),
    intents=(
        intent(13, "family"),
        intent(12, "op", "kind", "top|time|share|breakdown|take|what|which"),
        intent(9, "@family", "time|take|share|long|much|spend|cost|show", unless=("op",)),
    ),
)
