"""What a command line names as one side of a comparison -> a summary.

Contract: a summary file is read, a profile is summarised, a W&B artifact or run is fetched first.
What was chosen on the way is told to `say`, one sentence each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from marin_profile.schema import ProfileSummary

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


def load(
    given: Input, *, warmup_steps: int, wandb: Wandb, say: Callable[[str], None]
) -> ProfileSummary:
    """Raises what reading, summarising or fetching raises."""
    if given.kind == "summary":
        from marin_profile.schema import load_summary

        return load_summary(given.value)
    if given.kind == "profile_dir":
        return _summarised(given.value, warmup_steps, say)
    from marin_profile.wandb_in import fetch, with_metadata
    from marin_profile.wandb_io import be_quiet

    be_quiet()
    fetched = fetch(
        artifact=given.value if given.kind == "artifact" else None,
        run_target=given.value if given.kind == "run_target" else None,
        entity=wandb.entity,
        project=wandb.project,
        alias=wandb.alias,
        download_root=wandb.download_root,
    )
    for line in fetched.notes:
        say(line)
    if fetched.summary is not None:
        return with_metadata(fetched.summary, fetched.metadata)
    assert fetched.folder is not None
    return with_metadata(_summarised(fetched.folder, warmup_steps, say), fetched.metadata)


def _summarised(folder: str, warmup_steps: int, say: Callable[[str], None]) -> ProfileSummary:
    from marin_profile.pipeline import SummarizeOptions, summarize_capture
    from marin_profile.sources import resolve

    capture, notes = resolve(profile_dir=folder)
    for line in notes:
        say(line)
    return summarize_capture(capture, SummarizeOptions(warmup_steps=warmup_steps))
