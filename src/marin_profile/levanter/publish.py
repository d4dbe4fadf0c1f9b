"""A summarised capture into the run's tracker, whichever Levanter has: artifacts and scalars.

Contract
* An artifact of type `profile_summary` (summary, report and `metadata.json`), one of type
  `jax_profile` (the capture, unless it is too large or not wanted), and scalars under `profile/`
  through `log_summary`: trackers refuse scalars of a step that is past.
* Trackers take copies before they return, so what is put together for them is removed again.
* What the tracker raises is raised; whether an upload succeeds is the tracker's affair.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.artifact import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    capture_artifact_name,
    summary_artifact_name,
)
from marin_profile.filenames import (
    CONTEXT_FILE,
    FIGURES_FILE,
    METADATA_FILE,
    PROFILE_FOLDERS,
    REPORT_FILE,
    SUMMARY_FILE,
)

# The largest artifact that Levanter's W&B tracker of November 2026 takes; larger ones it drops.
LARGEST_AUTO_UPLOAD = 20_000_000
_CAPTURE_SUFFIXES = (".xplane.pb", ".trace.json.gz", ".json.gz", CONTEXT_FILE)


@dataclass(frozen=True)
class Upload:
    """Whether a capture is uploaded, and why."""

    wanted: bool
    why: str


def decide_upload(choice: str, size: int) -> Upload:
    if choice == "auto":
        fits = size <= LARGEST_AUTO_UPLOAD
        relation = "at most" if fits else "more than"
        return Upload(fits, f"auto: {size:,} bytes are {relation} {LARGEST_AUTO_UPLOAD:,}")
    return Upload(choice == "always", f"as configured: {choice}")


def publish(
    tracker: Any, *, outputs: Path, capture: Path, run: Mapping[str, Any], upload: str
) -> Upload:
    """Log the outputs of ingestion, and the capture if it is to be uploaded.

    `run` are facts of the run by the names of RunMetadata; `run_id` is one of them.
    """
    run_id = str(run["run_id"])
    told = json.loads((outputs / FIGURES_FILE).read_text())
    files = [path for path in sorted(capture.iterdir()) if path.name.endswith(_CAPTURE_SUFFIXES)]
    decision = decide_upload(upload, sum(path.stat().st_size for path in files))
    metadata = told["metadata"] | run | {"capture_upload": decision.why}
    if upload != "never":
        metadata |= {"capture_path": str(capture)}
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=outputs) as folder:
        summary = Path(folder) / "summary"
        _gather(summary, [outputs / SUMMARY_FILE, outputs / REPORT_FILE])
        (summary / METADATA_FILE).write_text(json.dumps(metadata, indent=1, sort_keys=True) + "\n")
        tracker.log_artifact(str(summary), name=summary_artifact_name(run_id), type=SUMMARY_TYPE)
        if decision.wanted:
            # Below the folders that the profiler makes, so that a download is a capture again.
            whole = Path(folder) / "capture"
            _gather(whole.joinpath(*PROFILE_FOLDERS, capture.name), files)
            tracker.log_artifact(str(whole), name=capture_artifact_name(run_id), type=CAPTURE_TYPE)
    scalars = {f"profile/{name}": value for name, value in told["figures"].items()}
    told_in_words = {"profile/capture_upload": decision.why}
    if not decision.wanted and upload != "never":
        told_in_words["profile/capture_path"] = str(capture)
    tracker.log_summary(scalars | told_in_words)
    return decision


def _gather(folder: Path, files: Iterable[Path]) -> None:
    folder.mkdir(parents=True)
    for file in files:
        try:
            os.link(file, folder / file.name)
        except OSError:
            shutil.copyfile(file, folder / file.name)
