"""`marin-profile report`: a summary -> text for people."""

from __future__ import annotations

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.crews import jobs_options
from marin_profile.cli.inputs import one_summary
from marin_profile.cli.options import (
    Verb,
    cache_option,
    emit,
    is_page,
    output_option,
    summary_option,
    top_k_option,
)

REPORT_FORMATS = ("md", "html")


@click.command(cls=Verb, epilog="Example: marin-profile report runs/mine -o report.md")
@click.argument("target", required=False, metavar="[TARGET]")
@summary_option
@cache_option
@jobs_options
@click.option(
    "--format",
    "report_format",
    metavar="md|html",
    help="md: Markdown; html: one page that works offline. Default: by the name of the output.",
)
@top_k_option(None, "How many rows a list holds; default: 10, and 5,000 in HTML.")
@output_option
def command(
    target: str | None,
    summary_path: str | None,
    use_cache: bool,
    jobs: int | None,
    scheduler: str | None,
    report_format: str | None,
    top_k: int | None,
    output: str | None,
) -> None:
    """Render a summary, or a profile's, for people to read; the first line shows where the step
    time goes."""
    if report_format is None:
        report_format = "html" if is_page(output) else "md"
    if report_format not in REPORT_FORMATS:
        raise UsageError(
            f"The report format {report_format!r} is not available; use one of "
            f"{', '.join(REPORT_FORMATS)}."
        )
    summary = one_summary(target, summary_path, use_cache=use_cache, jobs=jobs, scheduler=scheduler)
    from marin_profile.reports.report import render_html, render_markdown

    render = render_html if report_format == "html" else render_markdown
    emit(render(summary) if top_k is None else render(summary, top_k=top_k), output)
