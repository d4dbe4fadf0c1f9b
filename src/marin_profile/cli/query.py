"""`marin-profile query`: a question in words, or a query by its name -> a typed answer as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from marin_profile.base.errors import CannotAnswerError, UsageError
from marin_profile.cli.crews import jobs_options
from marin_profile.cli.options import Verb, cache_option, emit, summary_option, top_k_option
from marin_profile.queries.parameters import DECLARED

if TYPE_CHECKING:
    from marin_profile.schema import ProfileSummary

# What else a parameter is called on the command line.
ALSO = {"scope": "--region"}


def _summary(
    target: str | None,
    summary_path: str | None,
    *,
    use_cache: bool,
    jobs: int | None,
    scheduler: str | None,
) -> ProfileSummary:
    """What finds captures is not loaded where a summary is named: it takes a third of the time."""
    if target is None and summary_path not in (None, "-"):
        from marin_profile.schema import load_summary

        return load_summary(summary_path)
    from marin_profile.cli.inputs import one_summary

    return one_summary(target, summary_path, use_cache=use_cache, jobs=jobs, scheduler=scheduler)


def _why(
    before: str, after: str | None, question: str, top_k: int | None, use_cache: bool
) -> dict[str, Any]:
    from marin_profile.cli.inputs import load_sides
    from marin_profile.comparison import compare
    from marin_profile.comparison.why import DEFAULT_LIMIT, why
    from marin_profile.inputs import named

    if after is None:
        raise UsageError("Name the summary or profile after the change too.")
    one, two, programs = load_sides(([named(before)], [named(after)]), use_cache=use_cache)
    rows = top_k or DEFAULT_LIMIT
    return why(compare(one, two, top_k=rows, programs=programs), question, limit=rows)


def parameter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each parameter that any query takes."""
    for one in reversed(list(DECLARED.values())):
        names = [f"--{one.name}", *filter(None, [ALSO.get(one.name)]), f"given_{one.name}"]
        is_flag = one.kind == "flag"
        choices = f" One of {', '.join(one.choices)}." if one.choices else ""
        option = click.option(
            *names,
            is_flag=is_flag,
            default=None,
            metavar=None if is_flag else {"number": "N", "text": "TEXT"}[one.kind],
            help=f"{one.doc}{choices}",
        )
        command = option(command)
    return command


@click.command(
    cls=Verb,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="Examples: marin-profile query runs/mine 'top 5 ops'; marin-profile query runs/mine "
    "--name top_ops --limit 3 --kind all-reduce",
)
@click.argument("target", required=False, metavar="[TARGET]")
@click.argument("words", required=False)
@summary_option
@click.option(
    "--before",
    metavar="F",
    help="A summary or profile from before a change: asks why it got slower or faster.",
)
@cache_option
@jobs_options
@click.option("--question", metavar="TEXT", help='For example "What are the top 5 ops?"')
@click.option("--name", metavar="QUERY", help="Ask this query, with the parameters that it takes.")
@parameter_options
@top_k_option(None, "At most this many rows of each list.")
@click.option("--compact", "is_compact", is_flag=True, help="One short line of JSON, for agents.")
@click.option("--full", is_flag=True, help="With --compact: all rows, nothing cut.")
@click.option("--list", "list_only", is_flag=True, help="List the queries and their parameters.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    words: str | None,
    summary_path: str | None,
    before: str | None,
    use_cache: bool,
    question: str | None,
    name: str | None,
    jobs: int | None,
    scheduler: str | None,
    top_k: int | None,
    is_compact: bool,
    full: bool,
    list_only: bool,
    **given: Any,
) -> None:
    """Ask a summary, or a profile, a question in words, or a query by its name.

    The answer is JSON on stdout. Exit code 5: the summary does not hold the answer, or no query
    fits the question (the JSON names what would help).
    """
    from marin_profile.queries import answer, list_queries, query_named, run_query
    from marin_profile.queries.parameters import typed, with_limit
    from marin_profile.schema import canonical_json

    if list_only:
        emit(canonical_json(list_queries()), None)
        return
    given_words = [word for word in (target, words, *ctx.args) if word is not None]
    unknown = next((word for word in given_words if word.startswith("-") and word != "-"), None)
    if unknown is None and words is None and summary_path is not None and target is not None:
        target, words = None, target
    asked = words if question is None else question
    parameters = {
        key.removeprefix("given_"): "" if value is True else str(value)
        for key, value in given.items()
        if value is not None
    }
    if unknown is not None:
        parameters = {unknown.partition("=")[0].lstrip("-"): "", **parameters}
    elif (asked is None) == (name is None) or (words and question) or ctx.args:
        raise UsageError("Ask one --question, or one query by --name; --list shows the queries.")
    if full and not is_compact:
        raise UsageError("--full goes with --compact: without it nothing is cut.")
    of_capture = partial(_summary, use_cache=use_cache, jobs=jobs, scheduler=scheduler)
    if before is not None:
        if name is not None or parameters:
            raise UsageError("With --before, ask a question in words.")
        answered = _why(before, summary_path or target, asked or "", top_k, use_cache)
    elif name is None:
        if parameters:
            stray = next(iter(parameters))
            raise UsageError(f"A question in words takes no --{stray}; --name QUERY takes some.")
        summary = of_capture(target, summary_path)
        answered = answer(summary, asked or "", top_k=top_k)
    else:
        taken = query_named(name).takes
        checked = with_limit(typed(name, taken, parameters), top_k if "limit" in taken else None)
        summary = of_capture(target, summary_path)
        answered = run_query(summary, name, checked)
    if is_compact:
        from marin_profile.queries.compact import compact_json

        emit(compact_json(answered, full=full), None)
    else:
        emit(canonical_json(answered), None)
    if "cannot_answer" in answered:
        ctx.exit(CannotAnswerError.exit_code)
