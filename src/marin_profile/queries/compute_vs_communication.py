"""Does compute or communication dominate, and which collective is the worst?

Compute is the time with compute running; communication the *exposed* part, with no compute beside
it; `wait` says how much of that is waiting for the last to arrive, and for whom. The worst
collective is the kind with the most exposed time; all figures are of one window. A program without
communication has no share to compare: the answer says "n/a", it does not divide by nothing.
"""

from __future__ import annotations

from marin_profile.base.units import Microseconds, Share, ShareOfCommunication
from marin_profile.facts.device_time import NOT_STATED, DeviceTime, headline_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.facts.waits import CommunicationWait, communication_wait
from marin_profile.queries.collectives import CollectiveRow, collective_rows
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary

NO_COMMUNICATION = "n/a: no communication op ran in this window"


class WorstCollective(Row, frozen=True, kw_only=True):
    """The kind of collective with the most exposed time in the window."""

    collective: str
    exposed_duration: Microseconds
    exposed_share: Share | None = None
    overlapped_duration: Microseconds


class DominanceRow(Row, frozen=True, kw_only=True):
    """`dominant` is "compute", "communication" or "neither"; `largest` the largest ledger term."""

    dominant: str
    largest: str
    compute_duration: Microseconds
    compute_share: Share | None = None
    communication_duration: Microseconds | None = None
    communication_share: Share | None = None
    overlapped_communication_duration: Microseconds | None = None
    overlapped_share_of_communication: ShareOfCommunication | None = None
    unattributed_share: Share | None = None
    idle_share: Share | None = None
    communication: str
    wait: CommunicationWait | None = None
    worst_collective: WorstCollective | CollectiveRow | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    time = headline_time(summary)
    if time is not None and time.window_duration > 0:
        terms = {
            "compute": time.compute_duration,
            "communication": time.exposed_communication_duration,
            "transfer": time.exposed_transfer_duration,
            "unattributed": time.unattributed_duration,
            "idle": time.idle_duration,
        }
        overlapped = time.overlapped_communication_duration
        wait = communication_wait(summary)
        row = _compare(terms, time.window_duration, overlapped, _worst(time), wait)
        return Answer(time.window, (row,), 1)
    breakdown = summary.time_breakdown
    if breakdown.total_duration > 0:
        terms = {
            name: getattr(breakdown, name).total_duration
            for name in ("compute", "communication", "stall", "host", "other")
        }
        collectives = collective_rows(summary)
        worst = collectives[0] if collectives else None
        row = _compare(terms, breakdown.total_duration, None, worst)
        return Answer(breakdown.basis or NOT_STATED, (row,), 1)
    return CannotAnswer(
        "The summary holds no device time.",
        "Profile a run that executes on the device, with the device tracer on.",
    )


def _worst(time: DeviceTime) -> WorstCollective | None:
    overlapped = {part.kind: part.duration for part in time.overlapped_communication_by_kind}
    ran = [
        part
        for part in time.exposed_communication_by_kind
        if part.duration > 0 or overlapped.get(part.kind, 0.0) > 0
    ]
    if not ran:
        return None
    worst = min(ran, key=lambda part: (-part.duration, part.kind))
    return WorstCollective(
        collective=worst.kind,
        exposed_duration=worst.duration,
        exposed_share=worst.share,
        overlapped_duration=overlapped.get(worst.kind, 0.0),
    )


def _compare(
    terms: dict[str, float],
    whole: float,
    overlapped: float | None,
    worst: WorstCollective | CollectiveRow | None,
    wait: CommunicationWait | None = None,
) -> DominanceRow:
    compute, exposed = terms["compute"], terms["communication"]
    has_communication = worst is not None or exposed > 0 or bool(overlapped)
    idle = terms.get("idle", terms.get("stall"))
    return DominanceRow(
        dominant=(
            "neither" if compute == exposed else "communication" if exposed > compute else "compute"
        ),
        largest=max(terms, key=lambda term: terms[term]),
        compute_duration=compute,
        compute_share=ratio(compute, whole),
        communication_duration=exposed if has_communication else None,
        communication_share=ratio(exposed, whole) if has_communication else None,
        overlapped_communication_duration=overlapped if has_communication else None,
        overlapped_share_of_communication=(
            ratio(overlapped, exposed + overlapped) if overlapped is not None else None
        ),
        unattributed_share=ratio(terms.get("unattributed"), whole),
        idle_share=ratio(idle, whole),
        communication="present" if has_communication else NO_COMMUNICATION,
        wait=wait,
        worst_collective=worst,
    )


QUERY = Query(
    name="compute_vs_communication",
    description="Whether compute or exposed communication dominates, and the worst collective.",
    example="Is communication or compute dominating, and what is the worst collective?",
    run=run,
    rows=(DominanceRow, WorstCollective, CollectiveRow, CommunicationWait),
    gives={"share": ("compute_share", "communication_share")},
    intents=(
        intent(11, "communication|collective", "compute", unless=("op",)),
        intent(11, "communication|collective", "dominate", unless=("op",)),
        intent(11, "communication|collective", "bound|bottleneck"),
        intent(9, "communication", "share", unless=("wait", "op", "@op")),
        intent(10, "communication|collective", "expose|overlap|hide"),
    ),
)
