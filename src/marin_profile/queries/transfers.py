"""Transfers by kind: how much they move, how fast, and how long devices wait for them.

The longest waited for comes first. Rates are lower bounds: a transfer may end before the
op that waits for it.
"""

from __future__ import annotations

from marin_profile.base.units import (
    Bytes,
    BytesPerStep,
    Count,
    GigabytesPerSecond,
    Microseconds,
    Ratio,
    Share,
)
from marin_profile.facts.device_time import basis_of, device_times, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import is_of_kind
from marin_profile.queries.model import Answer, CannotAnswer, Query, in_order, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.per_step import in_a_step
from marin_profile.schema import CAPTURE, ProfileSummary, Transfer


class TransferRow(Row, frozen=True, kw_only=True):
    """`waited_share` is of device time in the capture; figures per step: of one device in a whole
    step, the mean."""

    kind: str
    count: Count
    bytes: Bytes | None = None
    span_duration: Microseconds
    in_flight_duration: Microseconds
    waited_duration: Microseconds
    waited_share: Share | None = None
    gbps: GigabytesPerSecond | None = None
    throughput_gbps: GigabytesPerSecond | None = None
    count_per_step: Ratio | None = None
    bytes_per_step: BytesPerStep | None = None
    waited_per_step_duration: Microseconds | None = None


def transfer_rows(summary: ProfileSummary, kind: str | None = None) -> list[TransferRow]:
    time = next(iter(device_times(summary, CAPTURE)), None)
    whole = time.window_duration if time else None
    rows = [
        TransferRow.of(
            one, waited_share=ratio(one.waited_duration, whole), **_per_step(summary, one)
        )
        for one in summary.transfers
        if kind is None or is_of_kind(one.kind, kind)
    ]
    return sorted(rows, key=lambda row: (-row.waited_duration, -row.span_duration, row.kind))


_PER_STEP = ("count_per_step", "bytes_per_step", "waited_per_step_duration")


def _per_step(summary: ProfileSummary, one: Transfer) -> dict[str, float | None]:
    """Of one device in a whole step, the mean; unknown where steps differ in what they move."""
    found = in_a_step(summary, one.kind)
    if found is None or not found.is_even:
        return dict.fromkeys(_PER_STEP)
    return {
        "count_per_step": one.count * found.part,
        "bytes_per_step": one.bytes * found.part if one.bytes is not None else None,
        "waited_per_step_duration": one.waited_duration * found.part,
    }


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if "transfers" not in summary.list_basis:
        return CannotAnswer(
            "The summary does not list transfers.",
            "Summarize the profile again with this version.",
        )
    rows = transfer_rows(summary, parameters.kind)
    return listing(
        basis_of(summary, "transfers"),
        in_order(rows, parameters.order),
        limit=parameters.limit,
        note=None if rows else "No such transfer was found among the device ops.",
    )


QUERY = Query(
    name="transfers",
    description="Transfers by kind: bytes, time in flight, time waited for them, GB/s.",
    example="How fast are host transfers?",
    run=run,
    rows=(TransferRow,),
    parameters=("limit", "kind", "order"),
    gives={
        "share": ("waited_share",),
        "second": ("gbps", "throughput_gbps"),
        "step": ("bytes_per_step", "count_per_step", "waited_per_step_duration"),
    },
    intents=(
        intent(9, "transfer", "fast|faster|bandwidth|wait|kind|size|many|top|byte"),
        intent(9, "@kind", "fast|faster|bandwidth|wait|byte", unless=("@collective",)),
        intent(7, "transfer", "time|much|long|share|cost"),
        intent(6, "@kind", "time|much|long|share|cost|many", unless=("@collective", "op", "@op")),
        intent(5, "transfer"),
    ),
)
