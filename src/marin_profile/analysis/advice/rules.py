"""What to try next: rules over a capture's figures, each with what it can save at most.

Contract
* A rule takes a Findings record and yields what it found; it says nothing below its threshold.
* No time belongs to two candidates: each claims a part of one term of device time, and no more of
  it than earlier rules in RULES left. They never sum to more than there is of any term.
* First stands what changes the reading of everything, without a ceiling. Then the largest share,
  ties by rule; a share that is only a bound counts half, for nobody saves all of it. Waits that
  nobody causes come behind causes that are seen: what is uneven by chance, or because devices
  share a processor, is no advice before them. Last stands what saves no time itself.
* Text holds no number that the evidence does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_profile.analysis.advice import capture, communication, host, ops, steps, transfers
from marin_profile.analysis.advice.model import (
    COMMUNICATION,
    COMPUTE,
    IDLE,
    KNOWN,
    STEP,
    TERMS,
    TRANSFER,
    VARYING,
    WAIT,
    Candidate,
    CauseOfSlowSteps,
    Exposed,
    Findings,
    Found,
    Gaps,
    HostIdle,
    HostTime,
    Late,
    OpShare,
    Padding,
    Rule,
    on_shared_processors,
)

# In the order in which they claim.
RULES: tuple[Rule, ...] = (
    *capture.READING,
    *host.NAMED_CAUSES,
    *steps.RULES,
    *communication.WAITED_FOR,
    *communication.ON_THE_WIRE,
    *communication.UNEVEN_WORK,
    *transfers.RULES,
    *host.UNNAMED,
    *ops.RULES,
    host.APART,
    steps.UNEVEN,
    *capture.LACKS,
)

# Of a claim: where earlier rules left less of it, it is theirs.
LEAST_LEFT = 0.5


def candidates(findings: Findings) -> list[Candidate]:
    left = dict(findings.terms)
    made: list[Candidate] = []
    for rule in RULES:
        for found in rule.find(findings):
            if rule.term is None or found.share is None:
                made.append(Candidate(rule, found, None))
                continue
            claim = _claim(rule.term, found, left)
            share = sum(claim.values())
            if share > 0 and share >= LEAST_LEFT * found.share:
                for term, part in claim.items():
                    left[term] -= part
                made.append(Candidate(rule, found, share))
    return sorted(made, key=_rank)


def _claim(term: str, found: Found, left: Mapping[str, float]) -> dict[str, float]:
    """By term, no more than is left. A claim on the whole step takes what is of no term by name
    from the others in proportion."""
    also = {name: max(0.0, min(part, left[name])) for name, part in found.also.items() if part}
    wanted = (found.share or 0.0) - sum(found.also.values())
    if term != STEP:
        return {term: max(0.0, min(wanted, left[term])), **also}
    others = {name: share for name, share in left.items() if name not in found.also}
    whole = sum(others.values())
    part = min(1.0, wanted / whole) if whole > 0 else 0.0
    return {**also, **{name: share * part for name, share in others.items()}}


def _rank(one: Candidate) -> tuple[int, float, str]:
    share, found = one.share or 0.0, one.found
    weight = share if found.certainty == KNOWN else share / 2
    if found.weight is not None:
        weight = min(found.weight, share)
    return one.rule.place, -weight, one.rule.id


__all__ = [
    "COMMUNICATION",
    "COMPUTE",
    "IDLE",
    "RULES",
    "STEP",
    "TERMS",
    "TRANSFER",
    "VARYING",
    "WAIT",
    "Candidate",
    "CauseOfSlowSteps",
    "Exposed",
    "Findings",
    "Found",
    "Gaps",
    "HostIdle",
    "HostTime",
    "Late",
    "OpShare",
    "Padding",
    "Rule",
    "candidates",
    "on_shared_processors",
]
