"""What a command line names -> a summary.

Contract
* A summary file is read, a profile is summarised, a W&B artifact or run is fetched first. Each
  choice made on the way is a note. A summary that was made before is taken from the cache.
* A word without an option names what is there, a file or a folder; else a page of W&B, an artifact
  by its alias, or a run by entity/project/run_id. Nothing else is looked up anywhere.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.base.startup import import_numba, return_large_blocks
from marin_profile.base.storage import is_url, open_file
from marin_profile.cli.options import note
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.wandb.download import Fetched

Kind = Literal["summary", "profile_dir", "profile", "artifact", "run_target"]
STDIN = "-"
HEAD = 1 << 16
TRACE_KEYS = (b'"traceEvents"', b'"displayTimeUnit"')
_REMOTE = re.compile(r"^[\w.\-]+/[\w.\-]+/[\w.\-]+(?P<alias>:[\w.\-]+)?$")


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


def named(word: str) -> Input:
    """What a word without an option names. Raises NotFoundError where there is no such thing."""
    if is_url(word):
        if word.startswith(("http://", "https://")) and "/runs/" in word:
            return Input("run_target", word)
        return Input(_kind_of_file(word), word)
    if word == STDIN or os.path.exists(word):
        return Input(_kind_of_file(word), word)
    remote = _REMOTE.match(word)
    if remote and not os.path.exists(word.partition("/")[0]):
        return Input("artifact" if remote["alias"] else "run_target", word)
    raise NotFoundError(
        f"There is no {word}; name a summary, a profile, a folder above one, or a W&B run as "
        "entity/project/run_id."
    )


def _kind_of_file(path: str) -> Kind:
    """JSON that does not begin as a trace is a summary: whoever reads it says what is wrong."""
    if path == STDIN:
        return "summary"
    if not path.endswith(".json") or path.endswith(".trace.json") or os.path.isdir(path):
        return "profile"
    with open_file(path) as stream:
        head = stream.read(HEAD)
    is_trace = head.lstrip().startswith(b"[") or any(key in head for key in TRACE_KEYS)
    return "profile" if is_trace else "summary"


def load_named(word: str, *, use_cache: bool = True) -> ProfileSummary:
    """The summary of what a word names."""
    given = named(word)
    return load_input(given, warmup_steps=1, wandb=Wandb(), use_cache=use_cache)


def one_summary(word: str | None, summary_path: str | None, *, use_cache: bool) -> ProfileSummary:
    """Of a verb that takes one: named by a word, or with --summary."""
    if (word is None) == (summary_path is None):
        raise UsageError("Name one summary or profile, as a word or with --summary.")
    if summary_path is None:
        return load_named(word or "", use_cache=use_cache)
    return load_input(Input("summary", summary_path), warmup_steps=1, wandb=Wandb())


def two_sides(
    words: Sequence[str], before: Sequence[str], after: Sequence[str], *, use_cache: bool
) -> tuple[list[ProfileSummary], list[ProfileSummary]]:
    """Of a verb that takes summaries before and after: named by two words, or with --before and
    --after."""
    if len(words) == 2 and not before and not after:
        one, two = (load_named(word, use_cache=use_cache) for word in words)
        return [one], [two]
    if words or not before or not after:
        raise UsageError(
            "Name a summary or profile before and one after, as two words or with --before and "
            "--after."
        )
    wandb = Wandb()
    one_side, other = (
        [load_input(Input("summary", path), warmup_steps=1, wandb=wandb) for path in side]
        for side in (before, after)
    )
    return one_side, other


def load_input(
    given: Input, *, warmup_steps: int, wandb: Wandb, use_cache: bool = True
) -> ProfileSummary:
    """The summary. Raises what reading, summarising or fetching raises."""
    if given.kind == "summary":
        from marin_profile.schema import load_summary, parse_summary

        if given.value == STDIN:
            return parse_summary(sys.stdin.buffer.read(), path="what stands on stdin")
        return load_summary(given.value)
    if given.kind in ("profile_dir", "profile"):
        return _summarised(given, warmup_steps, use_cache)
    from marin_profile.wandb.download import with_metadata

    fetched = fetch_named(given, wandb)
    summary = fetched.summary
    if summary is None:
        assert fetched.folder is not None
        summary = _summarised(Input("profile_dir", fetched.folder), warmup_steps, use_cache)
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


def _summarised(given: Input, warmup_steps: int, use_cache: bool) -> ProfileSummary:
    from marin_profile.cache import cache_folder, cached_summary
    from marin_profile.capture.sources import resolve, resolve_path
    from marin_profile.cli.progress import working_on

    is_folder = given.kind == "profile_dir"
    capture, notes = resolve(profile_dir=given.value) if is_folder else resolve_path(given.value)
    for line in notes:
        note(line)
    with working_on(capture):
        return cached_summary(
            capture,
            warmup_steps=warmup_steps,
            folder=cache_folder() if use_cache else None,
            about_to_read=_ready_to_read,
        )


def _ready_to_read() -> None:
    return_large_blocks()
    import_numba()
