"""What a user names -> the captures of a fleet: a folder, a text file with a name on each line, or
the runs of a W&B project.

Contract: each capture below a named folder is one of the fleet. What a line names and is not there
is one too, with why. Names are paths below the folder, those that the lines hold, or those of runs,
whose captures are fetched when they are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_profile.base.errors import NotFoundError, ProfileError
from marin_profile.base.storage import is_url, plain, read_at_most
from marin_profile.capture.formats import format_ending
from marin_profile.capture.sources import Capture, captures_in, find_captures, resolve_path

if TYPE_CHECKING:
    from marin_profile.wandb.listing import ListedRun

LARGEST_LIST = 10_000_000  # bytes
COMMENT = "#"
WANDB = "wandb:"


@dataclass(frozen=True)
class Named:
    """A capture, the run that has one, or why there is none where a line names one."""

    name: str
    capture: Capture | None
    problem: str = ""
    run: ListedRun | None = None


def captures_named(target: str, note: Callable[[str], None] = lambda text: None) -> list[Named]:
    """In the order of the lines, of each folder or project the oldest first; `note` is told what is
    left out. Raises NotFoundError where there is nothing at all."""
    if target.startswith(WANDB):
        return _of_project(target, note)
    target = plain(target)
    if _is_list(target):
        folder = os.path.dirname(target)
        found = [named for line in _lines(target) for named in _of_line(line, folder)]
    else:
        found = [Named(_below(one.root, target), one) for one in captures_in(target)]
    if not found:
        raise NotFoundError(f"{target} names no capture.")
    return found


def _of_project(target: str, note: Callable[[str], None]) -> list[Named]:
    from marin_profile.wandb.listing import list_runs, project_of

    found = list_runs(project_of(target))
    if not found.runs:
        raise NotFoundError(f"{target} names no run; check the filters.")
    if found.left_out:
        note(
            f"The newest {len(found.runs):,} runs are taken and {found.left_out:,} older ones left "
            "out; filters after a ? choose others."
        )
    return [Named(run.name, None, run=run) for run in found.runs]


def _is_list(target: str) -> bool:
    if is_url(target):
        return target.endswith(".txt")
    return os.path.isfile(target) and format_ending(target) is None


def _lines(target: str) -> Iterator[str]:
    text = read_at_most(target, LARGEST_LIST).decode("utf-8", "surrogateescape")
    for line in text.splitlines():
        name = line.partition(f" {COMMENT}")[0].strip()
        if name and not name.startswith(COMMENT):
            yield name


def _of_line(line: str, folder: str) -> Sequence[Named]:
    """Relative names count from the list's folder."""
    path = line if is_url(line) or is_url(folder) else os.path.join(folder, line)
    try:
        if format_ending(path) is not None:
            return [Named(line, resolve_path(path)[0])]
        found = find_captures(path)
    except ProfileError as error:
        return [Named(line, None, str(error))]
    if not found:
        return [Named(line, None, f"There is no profile in {line}.")]
    return [Named(_joined(line, _below(one.root, path)), one) for one in found]


def _below(root: str, folder: str) -> str:
    """The capture's folder without what all captures have: what is above, and
    plugins/profile/."""
    inner = os.path.relpath(root, folder) if not is_url(root) else root.removeprefix(folder)
    parts = [part for part in inner.replace(os.sep, "/").split("/") if part not in ("", ".")]
    return "/".join(part for part in parts if part not in ("plugins", "profile"))


def _joined(line: str, inner: str) -> str:
    return f"{line.rstrip('/')}/{inner}" if inner else line
