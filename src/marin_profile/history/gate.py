"""What of a history should fail a job.

Contract: a slowdown that stands (`TrendFindings.is_slower`), and a drift at whose end the step is
at least 1 % slower than at its start; one sentence for each configuration and estimand.
"""

from __future__ import annotations

from marin_profile.history import words
from marin_profile.history.findings import Findings


def objections(findings: Findings, *, on_change: bool, on_drift: bool) -> list[str]:
    said = []
    for one in findings.groups:
        title = words.title(one.group.configuration)
        for found in one.trends:
            step = words.STEPS[found.trend.estimand]
            if on_change and found.is_slower:
                said.append(f"{title}: the {step} is slower: {words.slowdown(found)}.")
            if on_drift and found.drifts_slower:
                said.append(f"{title}: the {step} gets slower: {words.drift(found.trend)}.")
    return said
