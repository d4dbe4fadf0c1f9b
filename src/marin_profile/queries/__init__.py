"""Questions that a summary answers: one registry for the command line, Python and agents.

Contract
* `answer` takes a question in words, `run_query` a query's name; both return
  `{query_type, basis, units, results, returned, total_matched, truncated[, note]}` or
  `{query_type, cannot_answer: {reason, what_would_help[, candidates]}}`.
* An unknown question or query raises UsageError.
"""

from __future__ import annotations

from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.queries import (
    attribution,
    bound_by,
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
    query, parameters = router.route(summary, question, QUERIES)
    return query.ask(summary, router.with_limit(parameters, top_k))


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
