"""What to try next: rules over a capture's figures, each with what it can save at most.

Contract
* A rule takes a Findings record and returns its candidates; it says nothing below its threshold.
* No time belongs to two candidates: shares are terms of the ledger, idle time is split by cause,
  and what two rules could both claim goes to the earlier one in RULES. They never sum to more than
  1.
* The largest share stands first, ties by id; a share that is only a bound counts half, for nobody
  saves all of it. Waits that nobody causes come last: what is uneven by chance, or because devices
  share a processor, is no advice before a cause that is seen.
* Text holds no number that the evidence does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from marin_profile.analysis.advice import capture, communication, host, ops, steps, transfers
from marin_profile.analysis.advice.model import (
    AT_MOST,
    KNOWN,
    Candidate,
    CauseOfSlowSteps,
    Findings,
    Gaps,
    HostIdle,
    HostTime,
    TopRegion,
    on_shared_processors,
)

# A region goes on in its largest part while that holds at least this much of it.
MOST_OF_REGION = 0.4

Rule = Callable[[Findings], Iterable[Candidate]]

RULES: tuple[Rule, ...] = (
    host.causes_of_idle_time,
    host.many_reads,
    steps.uneven,
    communication.straggler,
    communication.exposed,
    communication.uneven_arrival,
    communication.varying,
    transfers.with_host,
    transfers.waits,
    host.idle,
    host.gaps,
    host.between_ops,
    ops.top_region,
    ops.recompute,
    host.uneven_work,
    capture.attribution,
)


def candidates(findings: Findings) -> list[Candidate]:
    left = 1.0
    found: list[Candidate] = []
    for rule in RULES:
        for candidate in rule(findings):
            share = max(0.0, min(candidate.share, left))
            left -= share
            found.append(replace(candidate, share=share))
    return sorted(
        found, key=lambda one: (one.id in LAST, -one.share * WEIGHT[one.certainty], one.id)
    )


WEIGHT = {KNOWN: 1.0, AT_MOST: 0.5}
LAST = (
    communication.UNEVEN_ARRIVAL,
    communication.VARYING,
    host.UNEVEN_WORK,
    capture.LOW_ATTRIBUTION,
)

__all__ = [
    "MOST_OF_REGION",
    "RULES",
    "Candidate",
    "CauseOfSlowSteps",
    "Findings",
    "Gaps",
    "HostIdle",
    "HostTime",
    "TopRegion",
    "candidates",
    "on_shared_processors",
]
