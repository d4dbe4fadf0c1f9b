"""The folder that an experiment works in: its own, so that nothing else in it is ever touched."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from marin_profile.base.errors import UsageError
from marin_profile.base.text import visible
from marin_profile.experiment.lock import LOCK_FILE

JOURNAL_FILE = "journal.jsonl"


def check_folder(folder: Path, what: str, not_foreign: Collection[str] = ()) -> None:
    """Raises UsageError for a folder without a journal that holds anything but what a runner leaves
    that was killed at its very start: its lock, and `not_foreign`."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder for {what}.")
    if folder.is_dir() and not (folder / JOURNAL_FILE).exists():
        known = {LOCK_FILE, *not_foreign}
        foreign = min({one.name for one in folder.iterdir()} - known, default=None)
        if foreign is not None:
            raise UsageError(f"{folder} holds {visible(foreign)}; name another folder for {what}.")
