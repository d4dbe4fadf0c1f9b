"""Captures before and after a change -> one folder that answers what changed, how sure that is, and
what accounts for it.

Contract
* The folder is complete or absent: it is written beside its place and renamed into it. A bundle
  that is there is replaced; any other folder that holds something is left alone, with an error.
* Of several captures a side, the one with the median step time is compared op by op; all of them
  are judged.
* Same inputs, same bytes: nothing in it depends on the clock or on where it lies.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.comparison import Comparison, compare
from marin_profile.errors import UsageError
from marin_profile.filenames import REPORT_FILE, SUMMARY_FILE
from marin_profile.history.record import record_of
from marin_profile.reports import render_markdown
from marin_profile.reports.verdict import render_change
from marin_profile.schema import ProfileSummary, canonical_json
from marin_profile.tracking import Tracked, track
from marin_profile.verdict import Thresholds

SCHEMA_VERSION = "profile_bundle.v1"
COMPARE_FILE, TRACK_FILE, MANIFEST_FILE = "compare.json", "track.json", "manifest.json"
COMPARE_REPORT_FILE = "compare_report.md"


@dataclass(frozen=True)
class Bundle:
    """What was found, and the files that tell it (path below the folder -> content)."""

    tracked: Tracked
    comparison: Comparison
    files: dict[str, str]


def make_bundle(
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    thresholds: Thresholds | None = None,
    *,
    label: str | None = None,
    history: str | None = None,
    top_k: int = 10,
) -> Bundle:
    """Compare and judge. Raises what `track` and `compare` raise."""
    tracked = track(before, after, thresholds, label=label, history=history)
    chosen = [_median_capture(side) for side in (before, after)]
    comparison = compare(before[chosen[0]], after[chosen[1]], top_k=top_k)
    files: dict[str, str] = {}
    for name, side in (("before", before), ("after", after)):
        for at, summary in enumerate(side):
            folder = name if at == 0 else f"{name}_{at + 1}"
            files[f"{folder}/{SUMMARY_FILE}"] = summary.to_json()
            files[f"{folder}/{REPORT_FILE}"] = render_markdown(summary)
    files[COMPARE_FILE] = comparison.to_json()
    files[TRACK_FILE] = tracked.assessment.to_json()
    files[COMPARE_REPORT_FILE] = render_change(tracked.assessment, comparison, after[chosen[1]])
    files[MANIFEST_FILE] = canonical_json(_manifest(tracked, chosen, before, after, files))
    return Bundle(tracked, comparison, files)


def write_bundle(files: Mapping[str, str], output_dir: Path) -> None:
    """Put the files into `output_dir`, all or none. Raises UsageError."""
    target = Path(os.path.abspath(output_dir))
    if target.exists() and not _may_be_replaced(target):
        raise UsageError(f"{target} holds something else than a bundle; name another folder.")
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        for name, text in files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if target.exists():
            target.rename(old)
        beside.rename(target)
    except OSError as error:
        if old.exists() and not target.exists():
            old.rename(target)
        raise UsageError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _may_be_replaced(folder: Path) -> bool:
    return folder.is_dir() and (
        (folder / MANIFEST_FILE).is_file() or next(folder.iterdir(), None) is None
    )


def _median_capture(side: Sequence[ProfileSummary]) -> int:
    """Which capture has the median step time, of two the shorter one; without any the first."""
    lengths = [(record_of(summary).median, at) for at, summary in enumerate(side)]
    known = sorted((length, at) for length, at in lengths if length is not None)
    return known[(len(known) - 1) // 2][1] if known else 0


def _manifest(
    tracked: Tracked,
    chosen: Sequence[int],
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    files: Mapping[str, str],
) -> dict[str, Any]:
    from marin_profile import __version__

    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "label": tracked.assessment.label,
        "status": tracked.assessment.status,
        "confidence": tracked.assessment.confidence,
        "sentence": tracked.assessment.sentence,
        "doubts": list(tracked.doubts),
        "before": [_source(summary) for summary in before],
        "after": [_source(summary) for summary in after],
        "compared": {"before": chosen[0] + 1, "after": chosen[1] + 1},
        "files": {
            name: {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text.encode())}
            for name, text in sorted(files.items())
        },
    }


def _source(summary: ProfileSummary) -> dict[str, Any]:
    run = summary.run_metadata
    return {
        "source_path": summary.source_path,
        "trace_sha256": summary.trace_provenance.trace_sha256,
        "run_path": run.run_path,
        "run_id": run.run_id,
        "artifact_ref": run.artifact_ref,
        "git_sha": run.git_sha,
        "config_hash": run.config_hash,
    }
