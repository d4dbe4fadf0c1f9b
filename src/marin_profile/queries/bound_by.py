"""Is the program bound by compute or by memory: utilisation of the peaks by the roofline model.

Contract: `device_time` speaks of all device time: waits and idle time beside the compute that each
resource bounds. compute_bound_by is the resource with the larger utilisation while ops compute; it
is given only where half of that time or more has known costs, and `coverage` says how much. Nothing
is guessed from op names.
"""

from __future__ import annotations

from marin_profile.base.units import (
    Bytes,
    Flops,
    FlopsPerByte,
    GigabytesPerSecond,
    Microseconds,
    Share,
    ShareOfComputeTime,
    TeraflopsPerSecond,
)
from marin_profile.facts.device_time import basis_of, headline_time, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import (
    find_op,
    fold_program,
    known_ops,
    no_such_op,
    path_of,
    within,
)
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.top_ops import OpRow, by_time, hot_op_row
from marin_profile.schema import HotOp, ProfileSummary, Roofline

_NO_COSTS = CannotAnswer(
    "No op carries costs (flops, bytes accessed), so neither resource's utilisation is known.",
    "Summarize the xplane.pb of the capture: it holds op costs, or the HLO protos that give them.",
)
_FEW_COSTS = CannotAnswer(
    "Less than half of the compute time is of ops with known costs; most of the rest are custom "
    "calls that XLA cannot see into.",
    "Give the custom calls a cost estimate with flops and bytes (pallas_call(cost_estimate=...)) "
    "and capture again.",
)
_NO_PEAKS = CannotAnswer(
    "The ops carry costs, but the file does not state the device's peak rates.",
    "Summarize the xplane.pb of the capture: its device planes carry the peaks.",
)
_CONTRADICTION = CannotAnswer(
    "The costs and peaks of the file give a utilisation above the peak.",
    "Read the achieved rates with care: the costs or the peaks of this file are wrong.",
)


TERMS_BESIDE_COMPUTE = ("exposed_communication", "exposed_transfer", "unattributed", "idle")


class Quantity(Row, frozen=True, kw_only=True):
    name: str
    value: float


class TimePart(Row, frozen=True, kw_only=True):
    name: str
    share_of_device_time: Share


class BoundRow(Row, frozen=True, kw_only=True, tag_field="record", tag="program"):
    """Quantities are named with their units; utilisations are shares of the peaks. `bound_by` is
    the largest term of the device's time where that is not compute (the program then waits more
    than either resource binds it), else the resource; `compute_bound_by` is always the resource."""

    bound_by: str
    compute_bound_by: str
    coverage: ShareOfComputeTime | None = None
    device_time: list[TimePart]
    mfu: Share | None = None
    hfu: Share | None = None
    mfu_is_lower_bound: bool | None = None
    mfu_unknown_because: str | None = None
    utilization: list[Quantity]
    achieved: list[Quantity]
    peaks: list[Quantity]


class BoundPartRow(Row, frozen=True, kw_only=True, tag_field="record", tag="part"):
    """What the compute ops of one program, pass, family or region do."""

    by: str
    name: str
    duration: Microseconds
    coverage: ShareOfComputeTime | None = None
    bound_by: str | None = None
    flops: Flops | None = None
    bytes_accessed: Bytes | None = None
    achieved_tflops: TeraflopsPerSecond | None = None
    achieved_gbps: GigabytesPerSecond | None = None
    mfu: Share | None = None
    hfu: Share | None = None


class BoundOpRow(OpRow, frozen=True, kw_only=True, tag_field="record", tag="op"):
    """One op that one of the two resources binds. `flops_per_byte`: its arithmetic intensity."""

    flops_per_byte: FlopsPerByte | None = None


def _bound_op(op: HotOp, whole: float | None) -> BoundOpRow:
    intensity = ratio(op.flops, op.bytes_accessed)
    return BoundOpRow.of(hot_op_row(op, whole), flops_per_byte=intensity)


def _of_op(summary: ProfileSummary, asked: str) -> Answer | CannotAnswer:
    match = find_op(asked, known_ops(summary), summary)
    if match.name is None:
        return no_such_op(asked, match)
    whole = op_time(summary, "hot_ops")
    found = [op for op in summary.hot_ops if op.name == match.name]
    costs = [op for op in found if op.flops is not None or op.bytes_accessed is not None]
    if not costs:
        return CannotAnswer(
            f"The costs of {match.name} (flops, bytes accessed) are not known"
            + ("." if found else ": it is none of the ops that take most of the time."),
            "Summarize the xplane.pb of the capture: it holds op costs, or the HLO protos that "
            "give them. A custom call needs a cost estimate.",
        )
    if not any(op.bound_by for op in costs):
        return CannotAnswer(
            f"What binds {match.name} is not known: the file states no peak rates of the device.",
            "Its flops and bytes stand in the answer of gap_region_context for it; the xplane.pb "
            "of a TPU or GPU carries the peaks.",
        )
    return listing(
        basis_of(summary, "hot_ops"),
        [_bound_op(op, whole) for op in costs],
        limit=None,
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if parameters.op is not None:
        return _of_op(summary, parameters.op)
    roofline = summary.roofline
    if roofline is None or roofline.bound_by is None:
        return _why_not(roofline)
    largest = _largest_term(summary)
    waits = largest is not None and largest != "compute"
    program = BoundRow.of(
        roofline,
        bound_by=largest if waits else roofline.bound_by,
        compute_bound_by=roofline.bound_by,
        device_time=device_time_parts(summary),
        utilization=_quantities(roofline.utilization),
        achieved=_quantities(roofline.achieved),
        peaks=_quantities(roofline.peaks),
    )
    named = _part_asked_for(parameters)
    if named is not None:
        return _of_part(summary, roofline, *named, parameters.limit)
    whole = op_time(summary, "hot_ops")
    ops = sorted((_bound_op(op, whole) for op in summary.hot_ops if op.bound_by), key=by_time)
    return listing(
        basis_of(summary, "roofline", "hot_ops"),
        [program],
        [BoundPartRow.of(row) for row in roofline.by],
        ops,
        limit=parameters.limit,
        note="Neither compute nor memory: most of the time the device does not compute."
        if waits
        else None,
    )


def _part_asked_for(parameters: Parameters) -> tuple[str, str] | None:
    asked = {
        "program": parameters.program,
        "pass": parameters.pass_,
        "family": parameters.family,
        "region": parameters.scope,
    }
    return next(((by, name) for by, name in asked.items() if name is not None), None)


def _of_part(
    summary: ProfileSummary, roofline: Roofline, by: str, name: str, limit: int | None
) -> Answer | CannotAnswer:
    is_meant = within(name) if by == "region" else None
    rows = [
        BoundPartRow.of(row)
        for row in roofline.by
        if row.by == by
        and (
            is_meant(path_of(row.name))
            if is_meant
            else fold_program(row.name) == fold_program(name)
        )
    ]
    if not rows:
        return CannotAnswer(
            f"The costs of {by} {name} are not known by themselves.",
            "Ask what the program is bound by; the candidates are known.",
            tuple(row.name for row in roofline.by if row.by == by)[:5],
        )
    return listing(basis_of(summary, "roofline"), rows, limit=limit)


def _why_not(roofline: Roofline | None) -> CannotAnswer:
    if roofline is not None and roofline.coverage and roofline.coverage < 1 / 2:
        return _FEW_COSTS
    if roofline is None or not roofline.achieved:
        return _NO_COSTS
    return _CONTRADICTION if len(roofline.peaks) > 1 else _NO_PEAKS


def device_time_parts(summary: ProfileSummary) -> list[TimePart]:
    """The terms of the headline's device time, largest first; compute by what bounds it."""
    time, roofline = headline_time(summary), summary.roofline
    if time is None or time.compute_share is None:
        return []
    shares = {name: getattr(time, f"{name}_share") for name in TERMS_BESIDE_COMPUTE}
    # compute_duration holds the ops of unknown kind too.
    working = time.compute_share + (time.unattributed_share or 0.0)
    scale = ratio(working, roofline.compute_duration) if roofline else None
    if roofline is None or scale is None:
        shares["compute"] = time.compute_share
    else:
        by_compute = scale * (roofline.compute_bound_duration or 0.0)
        by_memory = scale * (roofline.memory_bound_duration or 0.0)
        shares["compute, bound by compute"] = by_compute
        shares["compute, bound by memory"] = by_memory
        shares["compute, bound unknown"] = max(0.0, time.compute_share - by_compute - by_memory)
    ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return [TimePart(name=name, share_of_device_time=share) for name, share in ordered if share]


def _largest_term(summary: ProfileSummary) -> str | None:
    time = headline_time(summary)
    if time is None or time.compute_share is None:
        return None
    shares = {name: getattr(time, f"{name}_share") for name in ("compute", *TERMS_BESIDE_COMPUTE)}
    return min(shares, key=lambda name: (-shares[name], name))


def _quantities(values: dict[str, float]) -> list[Quantity]:
    return [Quantity(name=name, value=values[name]) for name in sorted(values)]


QUERY = Query(
    name="bound_by",
    description="Whether the program is compute- or memory-bound: roofline utilisation and MFU.",
    example="Is it memory-bound or compute-bound?",
    run=run,
    rows=(BoundRow, TimePart, BoundPartRow, BoundOpRow),
    parameters=("limit", "program", "pass", "family", "scope", "op"),
    gives={
        "share": ("mfu", "hfu", "device_time", "utilization"),
        "second": ("achieved", "achieved_tflops", "achieved_gbps"),
    },
    intents=(
        intent(11, "bound", "memory|bandwidth|flop", unless=("communication", "collective")),
        intent(12, "@op", "bound|roofline|intensity|flop|mfu"),
        intent(10, "bound", "compute|what|by|which", unless=("communication", "collective")),
        intent(10, "roofline|mfu|intensity"),
        intent(6, "bandwidth", unless=("collective", "@collective", "transfer", "@kind", "op")),
        intent(8, "memory", "bandwidth", unless=("collective", "@collective")),
        intent(8, "flop", "util|achieve|second|peak|much|many|what"),
    ),
)
