"""What goes to the tracker, put together by the worker, so that training only hands it over.

Contract: `<output>/.publish/` holds `summary/` and, if it is to be uploaded, `capture/`, each the
content of one artifact, and `staged.json` (Staged). The folder appears whole; training removes it.
With `redact` all of it is redacted, and the summary is made from the redacted capture, so that
whoever downloads the capture gets the same summary.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from marin_profile.base.durable import new_folder
from marin_profile.base.storage import (
    base_name,
    files_below,
    is_url,
    open_file,
    path_parts,
)
from marin_profile.capture.filenames import (
    METADATA_FILE,
    PAGE_FILE,
    PROFILE_FOLDERS,
    REPORT_FILE,
    SUMMARY_FILE,
)
from marin_profile.profiling.hosts import CAPTURE_SUFFIXES
from marin_profile.profiling.job import Job, Publish
from marin_profile.profiling.scalars import scalars_of
from marin_profile.redact import Redactor, redact_summary
from marin_profile.reports.report import render_html, render_markdown
from marin_profile.wandb.artifacts import artifact_metadata

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture
    from marin_profile.schema import ProfileSummary

STAGING_FOLDER = ".publish"
STAGED_FILE = "staged.json"
# The largest artifact that Levanter's W&B tracker of November 2026 takes; larger ones it drops.
LARGEST_AUTO_UPLOAD = 20_000_000
_BLOCK = 1 << 20
TABLE_COLUMNS = ("op", "kind", "count", "self time (us)", "per step (us)", "exposed (us)", "scope")


@dataclass(frozen=True)
class UploadDecision:
    """Whether a capture is uploaded, and why."""

    wanted: bool
    why: str


@dataclass(frozen=True)
class Staged:
    """What is logged besides the artifacts' files. `scalars` by name; `output_path`: where summary
    and report lie; `capture_path`: where the capture lies, logged in place of a capture that is not
    uploaded; `reference`: the same as a URL, unless names in it are redacted or its files will go;
    `top_ops`: rows of TABLE_COLUMNS; `report_html`: the report as a page."""

    decision: UploadDecision
    metadata: dict[str, Any]
    scalars: dict[str, float]
    output_path: str
    capture_path: str | None
    reference: str | None
    top_ops: list[list[Any]]
    report_html: str


def decide_upload(choice: str, size: int) -> UploadDecision:
    if choice == "auto":
        fits = size <= LARGEST_AUTO_UPLOAD
        relation = "at most" if fits else "more than"
        return UploadDecision(fits, f"auto: {size:,} bytes are {relation} {LARGEST_AUTO_UPLOAD:,}")
    return UploadDecision(choice == "always", f"as configured: {choice}")


def stage(job: Job, capture: Capture, summary: ProfileSummary, *, ingest_seconds: float) -> None:
    """Fill the staging folder below the job's output folder."""
    assert job.publish is not None
    with new_folder(job.output_dir / STAGING_FOLDER) as folder:
        _fill(folder, job, job.publish, capture, summary, ingest_seconds)


def _fill(
    folder: Path,
    job: Job,
    publish: Publish,
    capture: Capture,
    summary: ProfileSummary,
    ingest_seconds: float,
) -> None:
    files = _files_of(capture)
    decision = decide_upload(publish.upload, sum(file.size for file in files))
    uploaded = folder / "capture" if decision.wanted else None
    redactor = None
    if not publish.redact:
        if uploaded is not None:
            _copy(files, uploaded)
    else:
        with tempfile.TemporaryDirectory(prefix=".raw-", dir=folder) as raw:
            redactor, summary = _redacted(files, Path(raw), uploaded, summary)
    page = render_html(summary)
    metadata = artifact_metadata(summary) | {"capture_upload": decision.why}
    path = reference = None
    if not decision.wanted and publish.upload != "never":
        root = capture.root if job.gather is not None else job.shared or capture.root
        path = redactor.text(root) if redactor else root
        metadata |= {"capture_path": path}
        names = [root, *(base_name(file.path) for file in files)]
        is_told = redactor is None or all(redactor.text(name) == name for name in names)
        if publish.files_stay and is_told:
            reference = path if is_url(path) else f"file://{os.path.abspath(path)}"
    artifact = folder / "summary"
    artifact.mkdir()
    (artifact / SUMMARY_FILE).write_text(summary.to_json())
    (artifact / REPORT_FILE).write_text(render_markdown(summary))
    (artifact / PAGE_FILE).write_text(page)
    (artifact / METADATA_FILE).write_text(json.dumps(metadata, indent=1, sort_keys=True) + "\n")
    output_path = job.shared or str(job.output_dir)
    staged = Staged(
        decision=decision,
        metadata=metadata,
        scalars=scalars_of(summary) | {"ingest_seconds": round(ingest_seconds, 3)},
        output_path=redactor.text(output_path) if redactor else output_path,
        capture_path=path,
        reference=reference,
        top_ops=[_table_row(op) for op in summary.hot_ops],
        report_html=page,
    )
    (folder / STAGED_FILE).write_bytes(msgspec.json.encode(staged))


@dataclass(frozen=True)
class _File:
    """A file of the capture, and the folders that it belongs in, as the profiler makes them."""

    path: str
    size: int
    below: tuple[str, ...]


def _files_of(capture: Capture) -> list[_File]:
    """Every file of the capture, with those of each host that were not read."""
    found = []
    for folder in sorted({host.path.rpartition("/")[0] for host in capture.hosts}):
        process, _, _, stamp = ("", "", "", *path_parts(folder))[-4:]
        below = (process,) if process.startswith("process_") else ()
        for name, size in files_below(folder):
            if "/" not in name and name.endswith(CAPTURE_SUFFIXES):
                found.append(_File(f"{folder}/{name}", size, (*below, *PROFILE_FOLDERS, stamp)))
    return found


def _copy(files: Iterable[_File], into: Path) -> list[Path]:
    copies = []
    for file in files:
        copy = into.joinpath(*file.below, base_name(file.path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open_file(file.path) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, _BLOCK)
        copies.append(copy)
    return copies


def _redacted(
    files: Sequence[_File], raw: Path, uploaded: Path | None, summary: ProfileSummary
) -> tuple[Redactor, ProfileSummary]:
    """Redacts the capture, if it is to be uploaded, and the summary."""
    from marin_profile.pipeline import summarize
    from marin_profile.redact.capture import capture_host_names, redact_capture

    if any(is_url(file.path) for file in files):
        sources = _copy(files, raw)
    else:
        sources = [Path(file.path) for file in files]
    redactor = Redactor.here(capture_host_names(sources))
    masked = redact_summary(summary, redactor)
    if uploaded is None:
        return redactor, masked
    for source, file in zip(sources, files, strict=True):
        redact_capture([source], uploaded.joinpath(*file.below), redactor)
    again = summarize(uploaded)
    return redactor, again.model_copy(update={"run_metadata": masked.run_metadata})


def _table_row(op: Any) -> list[Any]:
    return [
        op.name,
        op.category,
        op.count,
        op.exclusive_duration,
        op.per_step_duration,
        op.exposed_duration,
        op.tf_op_path or "",
    ]


__all__ = [
    "STAGED_FILE",
    "STAGING_FOLDER",
    "TABLE_COLUMNS",
    "Staged",
    "UploadDecision",
    "decide_upload",
    "stage",
]
