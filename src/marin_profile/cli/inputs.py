"""What a command line names as one side of a comparison -> a summary.

Contract: a summary file is read, a profile is summarised, a W&B artifact or run is fetched first.
Each choice made on the way is a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marin_profile.cli.options import note
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.wandb.download import Fetched

Kind = Literal["summary", "profile_dir", "artifact", "run_target"]


@dataclass(frozen=True)
class Input:
    kind: Kind
    value: str


@dataclass(frozen=True)
class Wandb:
    """Where W&B names are looked up, and downloads go."""

    entity: str | None = None
    project: str | None = None
    alias: str | None = None
    download_root: str | None = None
    trust_references: bool = False


def load_input(given: Input, *, warmup_steps: int, wandb: Wandb) -> ProfileSummary:
    """The summary. Raises what reading, summarising or fetching raises."""
    if given.kind == "summary":
        from marin_profile.schema import load_summary

        return load_summary(given.value)
    if given.kind == "profile_dir":
        return _summarised(given.value, warmup_steps)
    from marin_profile.wandb.download import with_metadata

    fetched = fetch_named(given, wandb)
    summary = fetched.summary
    if summary is None:
        assert fetched.folder is not None
        summary = _summarised(fetched.folder, warmup_steps)
    return with_metadata(summary, fetched.metadata)


def fetch_named(given: Input, wandb: Wandb) -> Fetched:
    """Fetch an artifact or a run. Raises what `wandb.download.fetch` raises."""
    from marin_profile.wandb.download import fetch
    from marin_profile.wandb.session import be_quiet

    be_quiet()
    fetched = fetch(
        artifact=given.value if given.kind == "artifact" else None,
        run_target=given.value if given.kind == "run_target" else None,
        entity=wandb.entity,
        project=wandb.project,
        alias=wandb.alias,
        download_root=wandb.download_root,
        trust_references=wandb.trust_references,
    )
    for line in fetched.notes:
        note(line)
    return fetched


def _summarised(folder: str, warmup_steps: int) -> ProfileSummary:
    from marin_profile.capture.sources import resolve
    from marin_profile.cli.progress import working_on
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    capture, notes = resolve(profile_dir=folder)
    for line in notes:
        note(line)
    with working_on(capture):
        return summarize_capture(capture, SummarizeOptions(warmup_steps=warmup_steps))
