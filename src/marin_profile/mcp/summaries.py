"""The summaries of captures: the last ones that were asked for stay in memory.

Contract: one is taken again while its files have the size and the time that they had.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.base.startup import ready_to_read
from marin_profile.cache import cached_summary, cached_with_programs
from marin_profile.mcp.roots import Found, is_unchanged
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.pipeline.programs import CapturedPrograms

MOST_KEPT = 8
Key = tuple[tuple[str, int, int, int], ...]


class Summaries:
    """`folder`: where summaries are kept for other processes; None: nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._kept: OrderedDict[Key, ProfileSummary] = OrderedDict()

    def of(self, found: Found) -> ProfileSummary:
        """Raises what summarising raises."""
        key = _key(found)
        summary = self._kept.pop(key, None)
        if summary is None:
            summary = cached_summary(
                found.capture, warmup_steps=1, folder=self._folder, about_to_read=ready_to_read
            )
            _require_unchanged(found, key)
        self._keep(key, summary)
        return summary

    def with_programs(self, found: Found) -> tuple[ProfileSummary, CapturedPrograms]:
        """Programs are not kept in memory. Raises what summarising raises."""
        key = _key(found)
        summary, programs = cached_with_programs(
            found.capture, warmup_steps=1, folder=self._folder, about_to_read=ready_to_read
        )
        _require_unchanged(found, key)
        self._kept.pop(key, None)
        self._keep(key, summary)
        return summary, programs

    def _keep(self, key: Key, summary: ProfileSummary) -> None:
        self._kept[key] = summary
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def _require_unchanged(found: Found, key: Key) -> None:
    if not is_unchanged(found) or _key(found) != key:
        raise BrokenInputError("The capture changed while it was read; ask again.")


def _key(found: Found) -> Key:
    paths = (*(file.path for file in found.files), *found.capture.contexts)
    try:
        return tuple(
            (path, facts.st_ino, facts.st_size, facts.st_mtime_ns)
            for path, facts in ((path, os.stat(path)) for path in paths)
        )
    except OSError as error:
        raise NotFoundError("A file of the capture is gone; list the captures again.") from error
