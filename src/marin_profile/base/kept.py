"""A private folder of files that can be made or fetched again: what is used least goes.

Contract: `is_private` before anything in it is believed; files in it appear whole (durable.py).
Files that others have open stay readable for them when they go.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def is_private(folder: Path) -> bool:
    """Whether it is a folder of this user's own that nobody else may write."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not writable


def made_private(folder: Path) -> bool:
    """Make the folder if it is not there; whether it is private."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return is_private(folder)


def forget_oldest(folder: Path, pattern: str, most_bytes: int) -> None:
    """Remove files that match, those that were not asked for longest first, until the others are
    at most so large."""
    kept = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):
            kept.append((path.stat(), path))
    size = sum(found.st_size for found, _ in kept)
    for found, path in sorted(kept, key=lambda one: (one[0].st_mtime_ns, one[1].name)):
        if size <= most_bytes:
            break
        path.unlink(missing_ok=True)
        size -= found.st_size
