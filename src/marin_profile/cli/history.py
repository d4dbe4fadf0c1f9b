"""`marin-profile history`: trend, noise and changes of each configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.judging import commit_option, note_appended, now
from marin_profile.cli.options import Verb, emit, is_page, note, output_option

if TYPE_CHECKING:
    from marin_profile.history.findings import Findings

SLOWER = 1


@click.command(
    cls=Verb,
    epilog="Example: marin-profile history --history history.jsonl --add summary.json "
    "--label small",
)
@click.option(
    "--history",
    "target",
    metavar="H",
    help="A JSONL file, or a folder (also an fsspec URL) of one object per record.",
)
@click.option(
    "--add",
    "added",
    metavar="F",
    multiple=True,
    help="Append the capture of this summary first, without a verdict; repeatable.",
)
@click.option("--label", metavar="L", help="With --add: a name for what is measured.")
@commit_option("With --add: the captures' commit, where their summaries do not name it.")
@click.option("--stamp", is_flag=True, help="With --add: also keep the current time.")
@click.option(
    "--baseline",
    metavar="B",
    help="Compare the latest level with this one: a label, a commit, or records FIRST..LAST "
    "(numbers or times).",
)
@click.option(
    "--summaries",
    metavar="DIR",
    multiple=True,
    help="Look below here for the summaries around each change, to say what accounts for it.",
)
@click.option("--fail-on-change", is_flag=True, help="Exit 1 if a slowdown stands.")
@click.option("--fail-on-drift", is_flag=True, help="Exit 1 if a step time drifts to slower.")
@click.option(
    "--tail",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many of the last captures to list per configuration.",
)
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    added: tuple[str, ...],
    label: str | None,
    commit: str | None,
    stamp: bool,
    baseline: str | None,
    summaries: tuple[str, ...],
    fail_on_change: bool,
    fail_on_drift: bool,
    tail: int,
    output: str | None,
) -> None:
    """Summarize a history: counts, trend, noise floor and changes of level by configuration.

    Text for the terminal; with --output F.json figures, with F.html a page that works offline, with
    F.md Markdown. Exit code 1: what --fail-on-change or --fail-on-drift objects to.
    """
    if target is None:
        raise UsageError("Name the history with --history.")
    if not added and (label is not None or commit is not None or stamp):
        raise UsageError("--label, --commit and --stamp go with --add.")
    if added:
        _add(target, added, label, commit, stamp)
    from marin_profile.history.findings import findings_of
    from marin_profile.history.gate import objections
    from marin_profile.history.store import read
    from marin_profile.history.summaries import summary_store

    history = read(target)
    for problem in history.problems:
        note(problem)
    found = findings_of(history, baseline=baseline, summaries=summary_store(target, summaries))
    emit(_rendered(found, tail, output), output)
    said = objections(found, on_change=fail_on_change, on_drift=fail_on_drift)
    for line in said:
        note(line)
    if said:
        ctx.exit(SLOWER)


def _add(
    target: str, paths: tuple[str, ...], label: str | None, commit: str | None, stamp: bool
) -> None:
    from marin_profile.schema import load_summary
    from marin_profile.tracking import add

    loaded = [load_summary(path) for path in paths]
    when = now() if stamp else None
    count = add(target, loaded, label=label, git_sha=commit, recorded_at_utc=when)
    note_appended(target, count, len(loaded))


def _rendered(found: Findings, tail: int, output: str | None) -> str:
    name = (output or "").lower()
    if name.endswith(".json"):
        from marin_profile.history.figures import history_figures
        from marin_profile.schema import canonical_json

        return canonical_json(history_figures(found, tail=tail))
    from marin_profile.history.document import history_document

    document = history_document(found, tail=tail)
    if is_page(output):
        from marin_profile.documents.html import render
    elif name.endswith(".md"):
        from marin_profile.documents.markdown import render
    else:
        from marin_profile.documents.terminal import render
    return render(document)
