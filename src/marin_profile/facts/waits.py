"""How much of the exposed communication is waiting for the last to arrive, and for whom.

Contract: of the headline window; None where the summary knows no waits. Time that devices wait
for a straggler is not time of the network.
"""

from __future__ import annotations

from marin_profile.base.units import Microseconds, Share, ShareOfCommunication
from marin_profile.facts.device_time import ledger_rows, ratio
from marin_profile.facts.rows import Row
from marin_profile.schema import STEADY, ProfileSummary, straggler_names


class CommunicationWait(Row, frozen=True, kw_only=True):
    """`exposed_wait_duration` is a part of the exposed communication, `wait_for_stragglers` a part
    of that; with `is_lower_bound` both are "at least". All devices together."""

    exposed_communication_duration: Microseconds
    exposed_wait_duration: Microseconds
    exposed_wait_share: ShareOfCommunication | None
    stragglers: list[str]
    wait_for_stragglers: Microseconds
    wait_for_stragglers_share: Share | None
    is_lower_bound: bool


def communication_wait(summary: ProfileSummary) -> CommunicationWait | None:
    if not summary.stragglers:
        return None
    rows = ledger_rows(summary, summary.list_basis.get("stragglers", STEADY))
    exposed = sum(row.exposed_communication_duration for row in rows)
    window = sum(row.window_duration for row in rows)
    wait = sum(one.exposed_wait for one in summary.stragglers)
    for_stragglers = sum(one.exposed_wait_caused for one in summary.stragglers if one.is_straggler)
    return CommunicationWait(
        exposed_communication_duration=exposed,
        exposed_wait_duration=wait,
        exposed_wait_share=ratio(wait, exposed),
        stragglers=straggler_names(summary.stragglers, summary.straggler_hosts),
        wait_for_stragglers=for_stragglers,
        wait_for_stragglers_share=ratio(for_stragglers, window),
        is_lower_bound=any(one.wait_is_lower_bound for one in summary.stragglers),
    )
