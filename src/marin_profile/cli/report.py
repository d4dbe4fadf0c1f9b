"""`marin-profile report`: a summary -> text for people."""

from __future__ import annotations

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, emit, output_option, summary_option, top_k_option

REPORT_FORMATS = ("md",)


@click.command(cls=Verb)
@summary_option
@click.option(
    "--format", "report_format", metavar="md", default="md", show_default=True, help="md: Markdown."
)
@top_k_option(10, "How many rows a list holds.")
@output_option
def command(summary_path: str | None, report_format: str, top_k: int, output: str | None) -> None:
    """Render a summary for people to read; the first line shows where the step time goes."""
    if report_format not in REPORT_FORMATS:
        raise UsageError(
            f"The report format {report_format!r} is not available; use --format md (Markdown)."
        )
    if summary_path is None:
        raise UsageError("Name the summary to report on with --summary.")
    from marin_profile.reports import render_markdown
    from marin_profile.schema import load_summary

    emit(render_markdown(load_summary(summary_path), top_k=top_k), output)
