"""Questions that a summary answers: one registry for the command line, Python and agents.

Contract
* `answer` takes a question in words, `run_query` a query's name; both return
  `{query_type, basis, units, results, returned, total_matched, truncated}`, where there is some
  also `limit`, `per`, `note` and `read_as`, or
  `{query_type, cannot_answer: {reason, what_would_help[, candidates]}}`.
* A question that no query fits has `query_type` null; the nearest queries and the first advice
  stand in its refusal, which is no answer. An unknown query raises UsageError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.queries import (
    attribution,
    bound_by,
    capture,
    collectives,
    comparison_hint,
    compilations,
    compute_vs_communication,
    device_ledger,
    donation,
    families,
    gap_before,
    host_activity,
    launches,
    loops,
    memory,
    next_steps,
    op_context,
    overview,
    passes,
    programs,
    regions,
    router,
    step_time,
    stragglers,
    time_of,
    top_ops,
    transfers,
    what_if,
)
from marin_profile.queries.model import Answer, CannotAnswer, Query, refused
from marin_profile.queries.parameters import Parameters, with_limit
from marin_profile.queries.settle import settle
from marin_profile.schema import ProfileSummary

MOST_SAID = 80
MOST_NEAR = 5
MOST_ADVICE = 3

QUERIES: tuple[Query, ...] = (
    overview.QUERY,
    step_time.QUERY,
    compute_vs_communication.QUERY,
    device_ledger.QUERY,
    top_ops.QUERY,
    collectives.QUERY,
    transfers.QUERY,
    stragglers.QUERY,
    launches.QUERY,
    compilations.QUERY,
    host_activity.QUERY,
    memory.QUERY,
    donation.QUERY,
    programs.QUERY,
    time_of.QUERY,
    gap_before.QUERY,
    op_context.QUERY,
    regions.QUERY,
    loops.QUERY,
    families.QUERY,
    passes.QUERY,
    bound_by.QUERY,
    what_if.QUERY,
    attribution.QUERY,
    capture.QUERY,
    next_steps.QUERY,
    comparison_hint.QUERY,
)


def list_queries() -> list[dict[str, Any]]:
    """Name, description, example and parameters of every query."""
    return [query.to_dict() for query in QUERIES]


def run_query(
    summary: ProfileSummary, name: str, parameters: Parameters | None = None
) -> dict[str, Any]:
    """Ask a query by its name. Raises UsageError for a parameter that it does not take."""
    query = query_named(name)
    asked = parameters or Parameters()
    lacking = set(asked.given()) - set(query.takes)
    if lacking:
        known = ", ".join(query.takes) or "none"
        raise UsageError(f"{name} takes no {', '.join(sorted(lacking))}; its parameters: {known}.")
    return _ask(summary, query, asked)


def query_named(name: str) -> Query:
    for query in QUERIES:
        if query.name == name:
            return query
    known = ", ".join(query.name for query in QUERIES)
    raise UsageError(f"There is no query '{name}'; the known ones are: {known}.")


def answer(summary: ProfileSummary, question: str, *, top_k: int | None = None) -> dict[str, Any]:
    """Ask in words. `top_k` caps the rows that the question itself asks for."""
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k is {top_k}; ask for at least one row.")
    found = router.route(summary, question, QUERIES)
    if found.refusal is not None and found.query is not None:
        return refused(found.query.name, found.refusal)
    if found.query is None:
        return _not_understood(summary, question, found.refusal)
    answers = [
        _ask(summary, found.query, with_limit(parameters, top_k)) for parameters in found.parameters
    ]
    answered = next((one for one in answers if "cannot_answer" in one), None) or _joined(answers)
    if found.asked and found.asked.read_as:
        answered["read_as"] = dict(found.asked.read_as)
    return answered


def _ask(summary: ProfileSummary, query: Query, parameters: Parameters) -> dict[str, Any]:
    settled = settle(summary, parameters)
    if isinstance(settled, CannotAnswer):
        return refused(query.name, settled)
    return query.ask(summary, settled)


def _joined(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same query asked of several things, as one answer."""
    if len(answers) == 1:
        return answers[0]
    results = [row for one in answers for row in one["results"]]
    total = sum(one["total_matched"] for one in answers)
    notes = list(dict.fromkeys(one["note"] for one in answers if "note" in one))
    return {
        **answers[0],
        "results": results,
        "returned": len(results),
        "total_matched": total,
        "truncated": len(results) < total,
        **({"note": " ".join(notes)} if notes else {}),
    }


def _not_understood(
    summary: ProfileSummary, question: str, why: CannotAnswer | None
) -> dict[str, Any]:
    said = question if len(question) <= MOST_SAID else f"{question[: MOST_SAID - 1]}…"
    nearest = router.nearest_first(summary, question, QUERIES)[:MOST_NEAR]
    advice = [one.title for one in summary.optimization_candidates[:MOST_ADVICE]]
    because = f": {why.reason}" if why else "."
    return {
        "query_type": None,
        "cannot_answer": {
            "reason": f"No query fits {said!r}{because}",
            "what_would_help": why.what_would_help
            if why
            else "Ask one of the candidates, or look at --list; the advice is what "
            "stands out in this profile, no answer to the question.",
            "candidates": [f"{query.name}: {query.example}" for query in nearest],
            "advice": advice,
        },
    }


__all__ = [
    "QUERIES",
    "Answer",
    "CannotAnswer",
    "Parameters",
    "Query",
    "answer",
    "list_queries",
    "run_query",
]
