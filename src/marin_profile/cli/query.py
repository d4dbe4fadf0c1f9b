"""`marin-profile query`: a question in words -> a typed answer as JSON."""

from __future__ import annotations

import click

from marin_profile.base.errors import CannotAnswerError, UsageError
from marin_profile.cli.options import Verb, emit, summary_option, top_k_option


@click.command(cls=Verb)
@summary_option
@click.option("--question", metavar="TEXT", help='For example "What are the top 5 ops?"')
@top_k_option(None, "At most this many rows of each list.")
@click.option("--list", "list_only", is_flag=True, help="List the queries, with examples.")
@click.pass_context
def command(
    ctx: click.Context,
    summary_path: str | None,
    question: str | None,
    top_k: int | None,
    list_only: bool,
) -> None:
    """Ask a summary a question in words.

    The answer is JSON on stdout. Exit code 5: the summary does not hold the answer, or no query
    fits the question (the JSON names what would help).
    """
    from marin_profile.queries import answer, list_queries
    from marin_profile.schema import canonical_json, load_summary

    if list_only:
        emit(canonical_json(list_queries()), None)
        return
    if summary_path is None or question is None:
        raise UsageError("Name a --summary and a --question; --list shows the questions.")
    answered = answer(load_summary(summary_path), question, top_k=top_k)
    emit(canonical_json(answered), None)
    if "cannot_answer" in answered:
        ctx.exit(CannotAnswerError.exit_code)
