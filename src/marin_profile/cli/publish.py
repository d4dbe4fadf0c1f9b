"""`marin-profile publish`: a summary and its report -> W&B."""

from __future__ import annotations

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, emit, summary_option


@click.command(cls=Verb, epilog="Example: marin-profile publish --summary summary.json --dry-run")
@summary_option
@click.option("--report", "report_path", metavar="F", help="The report to upload with it.")
@click.option(
    "--alias", "aliases", metavar="A", multiple=True, help="Alias besides latest; repeatable."
)
@click.option("--entity", metavar="E", help="Default: that of the run that was profiled.")
@click.option("--project", metavar="P", help="Default: that of the run that was profiled.")
@click.option("--artifact-name", metavar="N", help="Default: profile-summary-<run_id>.")
@click.option("--no-redact", is_flag=True, help="Upload home folders, user and host names too.")
@click.option("--dry-run", is_flag=True, help="Print what would be uploaded; needs no account.")
def command(
    summary_path: str | None,
    report_path: str | None,
    aliases: tuple[str, ...],
    entity: str | None,
    project: str | None,
    artifact_name: str | None,
    no_redact: bool,
    dry_run: bool,
) -> None:
    """Publish a summary to W&B as an artifact of type profile_summary.

    Prints as JSON what was uploaded, and where; offline (WANDB_MODE=offline) also the command that
    uploads it later.
    """
    if summary_path is None:
        raise UsageError("Name the summary to publish with --summary.")
    from marin_profile.schema import canonical_json
    from marin_profile.wandb.publish import publish
    from marin_profile.wandb.session import be_quiet

    be_quiet()
    outcome = publish(
        summary_path,
        report_path,
        aliases=aliases,
        entity=entity,
        project=project,
        artifact_name=artifact_name,
        dry_run=dry_run,
        redact=not no_redact,
    )
    emit(canonical_json(outcome), None)
