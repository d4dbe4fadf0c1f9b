"""The summaries of a history's captures, where they are at hand.

Contract: a summary belongs to a record if both name the same trace digest. Looked through are JSON
files below the named folders, those in a folder `summaries` beside the history, and a
`profile_summary.json` beside or above the record's own source. The first by name counts; a file
that is no summary is passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import files_below, is_url, plain, read_at_most
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.history.record import HistoryRecord
from marin_profile.schema import LARGEST_SUMMARY, ProfileSummary, parse_summary

BESIDE = "summaries"
LEVELS_ABOVE = 4
_DIGEST = re.compile(rb'"trace_sha256":\s*"([^"]+)"')


@dataclass(frozen=True)
class SummaryStore:
    """Where summaries may be."""

    folders: tuple[str, ...] = ()

    def find(self, records: Collection[HistoryRecord]) -> dict[str, ProfileSummary]:
        """Trace digest -> summary, of those that are there."""
        wanted = {one.trace_sha256 for one in records if one.trace_sha256 is not None}
        found: dict[str, ProfileSummary] = {}
        for path in (*self._named(), *_beside_sources(records)):
            if not wanted - found.keys():
                break
            summary = _summary(path, wanted - found.keys())
            if summary is not None and summary.trace_provenance.trace_sha256 is not None:
                found.setdefault(summary.trace_provenance.trace_sha256, summary)
        return {digest: found[digest] for digest in sorted(wanted & found.keys())}

    def _named(self) -> Iterator[str]:
        for folder in self.folders:
            root = plain(folder).rstrip("/")
            yield from (f"{root}/{name}" for name, _ in files_below(root) if name.endswith(".json"))


def summary_store(target: str, named: Sequence[str] = ()) -> SummaryStore:
    """For the history `target`. Named folders must exist, the one beside the history need not."""
    target = plain(target)
    if is_url(target):
        return SummaryStore(tuple(named))
    folder = Path(target) if os.path.isdir(target) else Path(target).parent
    beside = folder / BESIDE
    return SummaryStore((*named, *([str(beside)] if beside.is_dir() else [])))


def _beside_sources(records: Collection[HistoryRecord]) -> Iterator[str]:
    for record in records:
        if record.source_path is None or is_url(record.source_path):
            continue
        source = Path(record.source_path)
        for folder in (source, *list(source.parents)[:LEVELS_ABOVE]):
            path = folder / SUMMARY_FILE
            if path.is_file():
                yield str(path)


def _summary(path: str, wanted: Collection[str]) -> ProfileSummary | None:
    """The file's summary, if it may be a wanted one."""
    try:
        content = read_at_most(path, LARGEST_SUMMARY)
        if not any(one.decode("ascii", "replace") in wanted for one in _DIGEST.findall(content)):
            return None
        return parse_summary(content, path=path)
    except ProfileError:
        return None
