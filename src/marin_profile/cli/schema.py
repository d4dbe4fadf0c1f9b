"""`marin-profile schema`: the JSON Schema of profile_summary.v1."""

from __future__ import annotations

import click

from marin_profile.cli.options import Verb, emit, output_option


@click.command(cls=Verb, epilog="Example: marin-profile schema -o schema.json")
@output_option
def command(output: str | None) -> None:
    """Print the JSON Schema of a summary."""
    from marin_profile.schema import ProfileSummary, canonical_json

    emit(canonical_json(ProfileSummary.model_json_schema(mode="serialization")), output)
