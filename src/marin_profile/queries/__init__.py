"""Questions that a summary answers: one registry for the command line, Python and agents.

Contract
* `answer` takes a question in words, `run_query` a query's name; both return
  `{query_type, basis, units, results, returned, total_matched, truncated[, note]}` or
  `{query_type, cannot_answer: {reason, what_would_help[, candidates]}}`.
* A question that no query fits has `query_type` null; the nearest queries and the first advice
  stand in its refusal, which is no answer. An unknown query raises UsageError.
"""

from __future__ import annotations

from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.queries import (
    attribution,
    bound_by,
    capture,
    collectives,
    comparison_hint,
    compute_vs_communication,
    device_ledger,
    families,
    gap_before,
    host_activity,
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
    top_ops,
    transfers,
    what_if,
)
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query
from marin_profile.schema import ProfileSummary

MOST_SAID = 120
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
    host_activity.QUERY,
    memory.QUERY,
    programs.QUERY,
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
    """Ask a query by its name."""
    for query in QUERIES:
        if query.name == name:
            return query.ask(summary, parameters or Parameters())
    known = ", ".join(query.name for query in QUERIES)
    raise UsageError(f"There is no query '{name}'; the known ones are: {known}.")


def answer(summary: ProfileSummary, question: str, *, top_k: int | None = None) -> dict[str, Any]:
    """Ask in words. `top_k` caps the rows that the question itself asks for."""
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k is {top_k}; ask for at least one row.")
    found = router.route(summary, question, QUERIES)
    if found is None:
        return _not_understood(summary, question)
    query, parameters = found
    return query.ask(summary, router.with_limit(parameters, top_k))


def _not_understood(summary: ProfileSummary, question: str) -> dict[str, Any]:
    said = question if len(question) <= MOST_SAID else f"{question[: MOST_SAID - 1]}…"
    nearest = router.nearest_first(summary, question, QUERIES)[:MOST_NEAR]
    advice = [one.title for one in summary.optimization_candidates[:MOST_ADVICE]]
    return {
        "query_type": None,
        "cannot_answer": {
            "reason": f"No query fits {said!r}.",
            "what_would_help": "Ask one of the candidates, or look at --list; the advice is what "
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
