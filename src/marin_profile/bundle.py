"""Captures before and after a change -> one folder with the verdict, what changed, and why.

Contract
* The folder is complete or absent. An existing bundle is replaced; a folder with anything else is
  an error, and stays.
* All captures of a side are judged and compared. Of several after the change, advice is from the
  one with the median step time.
* Same inputs, same bytes: nothing in it depends on the time or place of writing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeVar

from marin_profile.base.durable import new_folder
from marin_profile.base.errors import UsageError
from marin_profile.base.storage import is_url, plain
from marin_profile.capture.filenames import REPORT_FILE, SUMMARY_FILE
from marin_profile.comparison import Comparison, Programs, compare
from marin_profile.documents import html, markdown
from marin_profile.facts.step_time import step_length
from marin_profile.reports.report import render_markdown
from marin_profile.reports.verdict import change
from marin_profile.schema import ProfileSummary, canonical_json
from marin_profile.tracking import Tracked, track
from marin_profile.verdict import Thresholds

_ANY_BUNDLE_SCHEMA = "profile_bundle."
BUNDLE_SCHEMA = f"{_ANY_BUNDLE_SCHEMA}v1"
COMPARE_FILE, TRACK_FILE, MANIFEST_FILE = "compare.json", "track.json", "manifest.json"
C = TypeVar("C")
COMPARE_REPORT_FILE, COMPARE_PAGE_FILE = "compare_report.md", "compare_report.html"


@dataclass(frozen=True)
class Bundle:
    """Verdict, comparison, and the bundle's files (path below the folder -> content)."""

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
    pair: bool = False,
    sequential: bool = False,
    programs: Programs | None = None,
) -> Bundle:
    """Compare and judge; with the `programs` of the captures also say what XLA did differently.
    Raises what `track` and `compare` raise."""
    tracked = track(
        before, after, thresholds, label=label, history=history, pair=pair, sequential=sequential
    )
    comparison = _judged_alike(
        compare(
            *_as_judged(before, after, tracked),
            top_k=top_k,
            paired=bool(tracked.pairs),
            programs=None if programs is None else _as_judged(*programs, tracked),
        ),
        tracked,
    )
    advised = _median_capture(after)
    files: dict[str, str] = {}
    for name, side in (("before", before), ("after", after)):
        for at, summary in enumerate(side):
            folder = name if at == 0 else f"{name}_{at + 1}"
            files[f"{folder}/{SUMMARY_FILE}"] = summary.to_json()
            files[f"{folder}/{REPORT_FILE}"] = render_markdown(summary)
    files[COMPARE_FILE] = comparison.to_json()
    files[TRACK_FILE] = tracked.assessment.to_json()
    page = change(
        tracked.assessment, comparison, after[advised], note=_advised(advised, len(after))
    )
    files[COMPARE_REPORT_FILE] = markdown.render(page)
    files[COMPARE_PAGE_FILE] = html.render(page)
    files[MANIFEST_FILE] = canonical_json(_manifest(tracked, before, after, files))
    return Bundle(tracked, comparison, files)


def _as_judged(
    before: Sequence[C], after: Sequence[C], tracked: Tracked
) -> tuple[Sequence[C], Sequence[C]]:
    """In the order of the pairs, where there are any."""
    if not tracked.pairs:
        return before, after
    return [before[one] for one, _ in tracked.pairs], [after[two] for _, two in tracked.pairs]


def _judged_alike(comparison: Comparison, tracked: Tracked) -> Comparison:
    """Whether the step changed is the verdict's to say: it blocks on what comes back, and knows the
    history."""
    mean = tracked.assessment.check("mean_step_time")
    target = comparison.target
    if target is None or mean is None or mean.interval is None:
        return comparison
    judged = target.model_copy(update={"noise": not mean.is_certain})
    return comparison.model_copy(update={"target": judged})


def bundle_folder(named: str) -> Path:
    """The folder a bundle may be put in place of. Raises UsageError where there is something else:
    worth asking before the captures are read."""
    if is_url(plain(named)):
        raise UsageError(
            f"{named} is a URL, but a bundle is renamed into its place as a whole, which takes "
            "a local folder; name one, and copy it afterwards."
        )
    folder = Path(os.path.realpath(plain(named)))
    with _named_errors(folder):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not nearest.is_dir():
            raise UsageError(f"{nearest} is a file; name a folder for the bundle.")
        foreign = _foreign(folder)
    if foreign is not None:
        raise UsageError(
            f"{folder} holds {foreign}, which is no part of a bundle; name another folder."
        )
    return folder


def write_bundle(files: Mapping[str, str], output_dir: str) -> Path:
    """Put the files into the folder, all or none; the folder. Raises UsageError."""
    target = bundle_folder(output_dir)
    with _named_errors(target), new_folder(target) as new:
        for name, text in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(text.encode())
    return target


@contextmanager
def _named_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}.") from error


def _foreign(folder: Path) -> str | None:
    """Something in the folder that no bundle put there, or None."""
    if not folder.exists() or not os.listdir(folder):
        return None
    known = _files_of_bundle(folder / MANIFEST_FILE)
    kept_up = {str(parent) for name in known for parent in PurePath(name).parents}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    return min(found - known - kept_up, default=None)


def _files_of_bundle(manifest: Path) -> set[str]:
    """The files that a bundle's manifest lists, and itself; nothing if it is none."""
    try:
        found = json.loads(manifest.read_bytes())
        if str(found["schema_version"]).startswith(_ANY_BUNDLE_SCHEMA):
            return {*map(str, found["files"]), manifest.name}
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        pass
    return set()


def _median_capture(side: Sequence[ProfileSummary]) -> int:
    """Which capture has the median step time, of two the shorter one; without any the first."""
    known = sorted(
        (length[1].median, at)
        for at, summary in enumerate(side)
        if (length := step_length(summary)) is not None and length[1].median is not None
    )
    return known[(len(known) - 1) // 2][1] if known else 0


def _advised(at: int, captures: int) -> str | None:
    """Which capture the advice is from, where there was a choice."""
    if captures == 1:
        return None
    return (
        f"What to try next is from the capture of median step time: after {at + 1} of {captures}."
    )


def _manifest(
    tracked: Tracked,
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    files: Mapping[str, str],
) -> dict[str, Any]:
    from marin_profile.version import package_version

    return {
        "schema_version": BUNDLE_SCHEMA,
        "tool_version": package_version(),
        "label": tracked.assessment.label,
        "status": tracked.assessment.status,
        "confidence": tracked.assessment.confidence,
        "sentence": tracked.assessment.sentence,
        "doubts": list(tracked.caveats),
        "before": [_source(summary) for summary in before],
        "after": [_source(summary) for summary in after],
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
