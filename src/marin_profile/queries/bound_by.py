"""Is the program bound by compute or by memory: utilisation of the peaks by the roofline model.

bound_by is the resource with the larger utilisation. Without static costs (flops, bytes) or peaks
in the file there is nothing to say, and nothing is guessed from op names.
"""

from __future__ import annotations

from marin_profile.base.units import Share, ShareOfOpTime
from marin_profile.facts.device_time import basis_of, op_time
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.queries.top_ops import OpRow, by_time, hot_op_row
from marin_profile.schema import ProfileSummary

NO_COSTS = CannotAnswer(
    "No op carries costs (flops, bytes accessed), so neither resource's utilisation is known.",
    "Summarize the xplane.pb of a TPU capture: it carries op costs and the chip's peaks.",
)
NO_PEAKS = CannotAnswer(
    "The ops carry costs, but the file does not tell the device's peak rates.",
    "Summarize the xplane.pb of the capture: its device planes carry the peaks.",
)
CONTRADICTION = CannotAnswer(
    "The file gives costs and peaks, but a peak is missing or a rate comes out above its peak.",
    "Read the achieved rates with care: the costs or the peaks of this file are wrong.",
)


class Quantity(Row, frozen=True, kw_only=True):
    name: str
    value: float


class BoundRow(Row, frozen=True, kw_only=True, tag_field="record", tag="program"):
    """Quantities are named with their units; utilisations are shares of the peaks."""

    bound_by: str
    mfu: Share | None = None
    coverage: ShareOfOpTime | None = None
    utilization: list[Quantity]
    achieved: list[Quantity]
    peaks: list[Quantity]


class BoundOpRow(OpRow, frozen=True, kw_only=True, tag_field="record", tag="op"):
    """One op that one of the two resources binds."""


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    roofline = summary.roofline
    if roofline is None or not (roofline.achieved or roofline.utilization):
        return NO_COSTS
    if roofline.bound_by is None:
        return CONTRADICTION if roofline.peaks else NO_PEAKS
    program = BoundRow.of(
        roofline,
        utilization=_quantities(roofline.utilization),
        achieved=_quantities(roofline.achieved),
        peaks=_quantities(roofline.peaks),
    )
    whole = op_time(summary, "hot_ops")
    ops = sorted((hot_op_row(op, whole) for op in summary.hot_ops if op.bound_by), key=by_time)
    return listing(
        basis_of(summary, "hot_ops"),
        [program],
        [BoundOpRow.of(row) for row in ops],
        limit=parameters.limit,
    )


def _quantities(values: dict[str, float]) -> list[Quantity]:
    return [Quantity(name=name, value=values[name]) for name in sorted(values)]


QUERY = Query(
    name="bound_by",
    description="Whether the program is compute- or memory-bound: roofline utilisation and MFU.",
    example="Is it memory-bound or compute-bound?",
    run=run,
    rows=(BoundRow, BoundOpRow),
    parameters=("limit",),
    intents=(
        intent(11, "bound", "memory|bandwidth|flop", unless=("communication", "collective")),
        intent(10, "bound", "compute|what|by|which", unless=("communication", "collective")),
        intent(10, "roofline|mfu|intensity"),
        intent(8, "memory", "bandwidth", unless=("collective", "@collective")),
        intent(8, "flop", "util|achieve|second|peak|much|many|what"),
    ),
)
