"""What to try next: the summary's own findings, with their evidence."""

from __future__ import annotations

from dataclasses import field

from marin_profile.base.units import Microseconds, Share
from marin_profile.facts.device_time import NOT_STATED, headline_window
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, Query, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary

CUT = "The capture is cut or damaged: take a whole one before acting on this."


class CandidateRow(Row, frozen=True, kw_only=True):
    candidate_id: str
    title: str
    rationale: str
    why: str | None = None
    evidence: list[str]
    evidence_fields: list[str] = field(default_factory=list)
    suggestions: list[str]
    verify: str | None = None
    ceiling_per_step: Microseconds | None = None
    ceiling_share: Share | None = None
    ceiling_basis: str | None = None
    ceiling_of: str | None = None
    certainty: str | None = None
    occurs: str | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = [CandidateRow.of(one) for one in summary.optimization_candidates]
    basis = summary.list_basis.get("optimization_candidates") or headline_window(summary)
    return listing(
        basis or NOT_STATED,
        rows,
        limit=parameters.limit,
        note=_note(summary),
    )


def _note(summary: ProfileSummary) -> str | None:
    if not summary.optimization_candidates:
        return "No finding passed its threshold."
    return CUT if summary.trace_overview.suspected_truncation else None


QUERY = Query(
    name="optimization_candidates",
    description="What to try next to make the step faster, with the evidence for it.",
    example="What should we try next?",
    run=run,
    rows=(CandidateRow,),
    parameters=("limit",),
    gives={"share": ("ceiling_share",), "step": ("ceiling_per_step",)},
    intents=(
        intent(11, "next", "step|try|do|action|change"),
        intent(5, "next", "what"),
        intent(10, "optimize|suggest|improve|tune", unless=("since", "compare")),
        intent(10, "lower", "how|can|should|could"),
        intent(9, "try|fix"),
        intent(9, "faster", "make|how|go|get|run"),
        intent(7, "problem"),
    ),
)
