"""What a user names, on a command line or in Python -> a summary, or the capture itself.

Contract
* A summary file is read, a profile is summarised, a W&B artifact or run is fetched first. Each
  choice made on the way is said to `Hooks.note`. A summary that was made before is taken from the
  cache.
* A word without an option names what is there, a file or a folder; else a page of W&B
  (.../entity/project/runs/run_id), an artifact by its alias, or a run by entity/project/run_id.
  Nothing else is looked up anywhere.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marin_profile.base.errors import CannotAnswerError, NotFoundError
from marin_profile.base.storage import is_url, open_file, unsigned
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture
    from marin_profile.pipeline.programs import CapturedPrograms
    from marin_profile.pipeline.summarizing import ReadHosts
    from marin_profile.wandb.download import Fetched

Kind = Literal["summary", "profile_dir", "profile", "artifact", "run_target"]
STDIN = "-"
HEAD = 1 << 16
TRACE_KEYS = (b'"traceEvents"', b'"displayTimeUnit"')
_PAGE_OF_A_RUN = re.compile(r"^https?://[^/]+(?:/[^/]+){2,}/runs/[^/]+")
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


def _nothing(*_: object) -> None:
    pass


def _in_silence(*_: object) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Hooks:
    """What whoever reads does beside: notes, signs of life, what precedes the reading, and who
    reads the hosts (None: they are read in turn, here)."""

    note: Callable[[str], None] = _nothing
    working_on: Callable[[Capture], AbstractContextManager[None]] = _in_silence
    fetching: Callable[[], AbstractContextManager[None]] = _in_silence
    about_to_read: Callable[[], None] = _nothing
    hosts_reader: Callable[[Capture], AbstractContextManager[ReadHosts | None]] = _in_silence


NO_HOOKS = Hooks()


def named(word: str) -> Input:
    """What a word without an option names. Raises NotFoundError where there is no such thing."""
    if is_url(word):
        if _PAGE_OF_A_RUN.match(word) and "/plugins/profile" not in word:
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
    name = unsigned(path)
    if not name.endswith(".json") or name.endswith(".trace.json") or os.path.isdir(path):
        return "profile"
    with open_file(path) as stream:
        head = stream.read(HEAD)
    is_trace = head.lstrip().startswith(b"[") or any(key in head for key in TRACE_KEYS)
    return "profile" if is_trace else "summary"


def load_input(
    given: Input,
    *,
    warmup_steps: int,
    wandb: Wandb,
    use_cache: bool = True,
    hooks: Hooks = NO_HOOKS,
) -> ProfileSummary:
    """The summary. Raises what reading, summarising or fetching raises."""
    if given.kind == "summary":
        from marin_profile.schema import load_summary, parse_summary

        if given.value == STDIN:
            return parse_summary(sys.stdin.buffer.read(), path="what stands on stdin")
        return load_summary(given.value)
    if given.kind in ("profile_dir", "profile"):
        return _summarised(given, warmup_steps, use_cache, hooks)
    from marin_profile.wandb.download import with_metadata

    fetched = fetch_named(given, wandb, hooks)
    summary = fetched.summary
    if summary is None:
        assert fetched.folder is not None
        folder = Input("profile_dir", fetched.folder)
        summary = _summarised(folder, warmup_steps, use_cache, hooks)
    return with_metadata(summary, fetched.metadata)


def load_with_programs(
    given: Input,
    *,
    warmup_steps: int,
    wandb: Wandb,
    use_cache: bool = True,
    hooks: Hooks = NO_HOOKS,
) -> tuple[ProfileSummary, CapturedPrograms | None]:
    """The summary, and the programs of the profile that it is made of; None where a summary is all
    that there is. Raises what reading, summarising or fetching raises."""
    if given.kind == "summary":
        return load_input(given, warmup_steps=warmup_steps, wandb=wandb, hooks=hooks), None
    if given.kind in ("profile_dir", "profile"):
        return _with_programs(given, warmup_steps, use_cache, hooks)
    from marin_profile.wandb.download import with_metadata

    fetched = fetch_named(given, wandb, hooks)
    summary, programs = fetched.summary, None
    if fetched.folder is not None:
        folder = Input("profile_dir", fetched.folder)
        made, programs = _with_programs(folder, warmup_steps, use_cache, hooks)
        summary = summary or made
    assert summary is not None
    return with_metadata(summary, fetched.metadata), programs


def load_capture(given: Input, *, wandb: Wandb, hooks: Hooks = NO_HOOKS) -> Capture:
    """The capture itself, whose events no summary holds. Raises what finding or fetching raises,
    and CannotAnswerError where a summary is all that there is."""
    if given.kind in ("artifact", "run_target"):
        fetched = fetch_named(given, wandb, hooks)
        if fetched.folder is None:
            raise _only_a_summary(given)
        given = Input("profile_dir", fetched.folder)
    if given.kind == "summary":
        raise _only_a_summary(given)
    return _resolved(given, hooks)


def _only_a_summary(given: Input) -> CannotAnswerError:
    return CannotAnswerError(
        f"{given.value} is a summary, which holds no single events; name the profile that it was "
        "made of."
    )


def fetch_named(given: Input, wandb: Wandb, hooks: Hooks) -> Fetched:
    """Fetch an artifact or a run. Raises what `wandb.download.fetch` raises."""
    from marin_profile.wandb.download import fetch
    from marin_profile.wandb.session import be_quiet

    be_quiet()
    with hooks.fetching():
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
        hooks.note(line)
    return fetched


def _resolved(given: Input, hooks: Hooks) -> Capture:
    from marin_profile.capture.sources import resolve, resolve_path

    is_folder = given.kind == "profile_dir"
    capture, notes = resolve(profile_dir=given.value) if is_folder else resolve_path(given.value)
    for line in notes:
        hooks.note(line)
    return capture


def _with_programs(
    given: Input, warmup_steps: int, use_cache: bool, hooks: Hooks
) -> tuple[ProfileSummary, CapturedPrograms]:
    from marin_profile.cache import cache_folder, cached_with_programs

    capture = _resolved(given, hooks)
    with hooks.working_on(capture):
        return cached_with_programs(
            capture,
            warmup_steps=warmup_steps,
            folder=cache_folder() if use_cache else None,
            about_to_read=hooks.about_to_read,
        )


def _summarised(given: Input, warmup_steps: int, use_cache: bool, hooks: Hooks) -> ProfileSummary:
    from marin_profile.cache import cache_folder, cached_summary

    capture = _resolved(given, hooks)
    with hooks.working_on(capture):
        return cached_summary(
            capture,
            warmup_steps=warmup_steps,
            folder=cache_folder() if use_cache else None,
            about_to_read=hooks.about_to_read,
            hosts_reader=hooks.hosts_reader,
        )
