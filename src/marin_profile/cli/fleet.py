"""`marin-profile fleet`: many captures -> one table and document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.text import plural
from marin_profile.cli.crews import crew_of, jobs_options, telling
from marin_profile.cli.options import (
    FLEET,
    Verb,
    cache_option,
    emit,
    note,
    output_option,
    top_k_option,
    trust_option,
    warmup_option,
)

if TYPE_CHECKING:
    from marin_profile.fleet.findings import Fleet

SOME_FAILED = 1
MOST_ROWS = 1000


@click.command(cls=Verb, epilog="Example: marin-profile fleet runs -o fleet.html --jobs 4")
@click.argument("target", metavar=FLEET)
@jobs_options
@cache_option
@warmup_option("How many steps at the start of each window to leave out.")
@click.option(
    "--label",
    metavar="L",
    help="All captures repeat this: compare them whatever their configs are.",
)
@click.option(
    "--table", "table", metavar="F.parquet", help="Write the rows as Parquet, too (extra: fleet)."
)
@trust_option
@top_k_option(None, "How many rows a list holds; default: 20, and 1,000 in HTML.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    jobs: int | None,
    scheduler: str | None,
    use_cache: bool,
    warmup_steps: int,
    label: str | None,
    table: str | None,
    trust_references: bool,
    top_k: int | None,
    output: str | None,
) -> None:
    """Compare many captures: step time, busy time, memory and advice, who stands out, and how it
    developed.

    Name a folder, whose captures are all taken, a text file with a folder or a profile on each
    line, or a W&B project as wandb:entity/project, whose runs may be chosen:
    '?state=S&tag=T&group=G&display_name=N&config.KEY=V&created_after=YYYY-MM-DD'. The output's name
    tells its format: .md (default), .html or .json. What cannot be summarised is named and left
    out, and the exit code is 1 then.
    """
    ending = (output or "").lower()
    if table is not None and not table.lower().endswith(".parquet"):
        raise UsageError(f"--table writes Parquet; name it *.parquet, not {table}.")
    from marin_profile.base.resumable import Nowhere
    from marin_profile.cache import kept_rows
    from marin_profile.fleet.captures import captures_named
    from marin_profile.fleet.findings import fleet_of
    from marin_profile.fleet.reading import rows_of
    from marin_profile.pipeline.jobs import default_jobs, processors

    captures = captures_named(target, note)
    hosts = [host for one in captures if one.capture for host in one.capture.hosts]
    if jobs is None:
        jobs = processors() if scheduler is not None else default_jobs(hosts)
    size = sum(host.size for host in hosts) + sum(one.run.size for one in captures if one.run)
    store = kept_rows() if use_cache else Nowhere()
    with crew_of(jobs, scheduler, size) as crew:
        rows = rows_of(
            captures,
            crew,
            store,
            warmup_steps=warmup_steps,
            trust_references=trust_references,
            on_progress=telling("capture"),
        )
    if table is not None:
        from marin_profile.base.storage import write_file
        from marin_profile.fleet.parquet import parquet_of

        write_file(table, parquet_of(rows))
    found = fleet_of(rows, label=label)
    emit(_rendered(found, ending, top_k), output)
    if found.broken:
        note(f"{plural(len(found.broken), 'capture')} could not be summarised.")
        ctx.exit(SOME_FAILED)


def _rendered(found: Fleet, ending: str, top_k: int | None) -> str:
    from marin_profile.fleet.document import fleet_document, fleet_figures

    if ending.endswith(".json"):
        from marin_profile.schema import canonical_json

        return canonical_json(fleet_figures(found))
    if ending.endswith((".html", ".htm")):
        from marin_profile.documents import html

        return html.render(fleet_document(found, top_k=top_k or MOST_ROWS))
    from marin_profile.documents import markdown

    return markdown.render(fleet_document(found, top_k=top_k or 20))
