"""What the worker staged -> the run's tracker, whichever one Levanter uses: artifacts and scalars.

Contract
* An artifact of type `profile_summary` (summary, report and `metadata.json`), one of type
  `jax_profile` (the capture, or on W&B a reference to it, unless neither is wanted), and scalars
  under `profile/` through `log_summary`: trackers refuse scalars of a step that is past.
* On W&B the artifacts carry their metadata, and a table of the top ops and the report go with
  the scalars. `log_staged` then returns when W&B has the artifacts; every other tracker takes
  copies before it returns. It may take long, so it belongs in a thread. Staged files are removed
  afterwards.
* What the tracker raises, or W&B refuses, is raised.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import (
    STAGED_FILE,
    STAGING_FOLDER,
    TABLE_COLUMNS,
    Staged,
)
from marin_profile.wandb.artifacts import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    capture_artifact_name,
    summary_artifact_name,
)
from marin_profile.wandb.session import load_wandb
from marin_profile.wandb.upload import Upload, log_artifacts

_PREFIX = "profile/"


class LevanterTracker:
    """The run's tracker, looked up when something is logged."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def log(self, outputs: Path, run_id: str, seconds: float) -> tuple[Logged, ...]:
        tracker = self._find()
        staged, names = log_staged(tracker, outputs=outputs, run_id=run_id, seconds=seconds)
        note = f"{'with' if staged.decision.wanted else 'without'} its capture"
        name = str(getattr(tracker, "name", type(tracker).__name__))
        return (Logged(name, tuple(names), f"{note} ({staged.decision.why})"),)


def log_staged(
    tracker: Any, *, outputs: Path, run_id: str, seconds: float
) -> tuple[Staged, list[str]]:
    """Log what lies staged below `outputs`; on W&B wait at most so many seconds for each artifact.
    What was staged, and the artifacts that were logged.

    Raises what stands in the way, TimeoutError among it.
    """
    folder = outputs / STAGING_FOLDER
    try:
        staged = msgspec.json.decode((folder / STAGED_FILE).read_bytes(), type=Staged)
        uploads = _uploads(folder, staged, run_id)
        run = wandb_run(tracker)
        scalars: dict[str, Any] = {f"{_PREFIX}{name}": v for name, v in staged.scalars.items()}
        scalars[f"{_PREFIX}capture_upload"] = staged.decision.why
        if staged.capture_path is not None:
            scalars[f"{_PREFIX}capture_path"] = staged.capture_path
        if run is None:
            uploads = [upload for upload in uploads if upload.folder is not None]
            for upload in uploads:
                tracker.log_artifact(str(upload.folder), name=upload.name, type=upload.type)
            tracker.log_summary(scalars)
        else:
            tracker.log_summary(scalars | _panels(staged))
            log_artifacts(run, uploads, seconds=seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return staged, [upload.name for upload in uploads]


def wandb_run(tracker: Any) -> Any | None:
    """The live W&B run behind a tracker, which may be wrapped, or one of several."""
    for found in _unwrapped(tracker):
        if getattr(found, "name", None) == "wandb":
            run = getattr(found, "run", None)
            if run is not None and not getattr(run, "disabled", False):
                return run
    return None


def _unwrapped(tracker: Any) -> Iterator[Any]:
    yield tracker
    inner = getattr(tracker, "wrapped", None)
    for found in (*getattr(tracker, "loggers", ()), *([inner] if inner is not None else ())):
        yield from _unwrapped(found)


def _uploads(folder: Path, staged: Staged, run_id: str) -> list[Upload]:
    """The summary; the capture, or a reference to it, where one is wanted."""
    summary = Upload(
        name=summary_artifact_name(run_id),
        type=SUMMARY_TYPE,
        metadata=staged.metadata,
        folder=folder / "summary",
    )
    if not staged.decision.wanted and staged.reference is None:
        return [summary]
    capture = Upload(
        name=capture_artifact_name(run_id),
        type=CAPTURE_TYPE,
        metadata=staged.metadata,
        folder=folder / "capture" if staged.decision.wanted else None,
        reference=None if staged.decision.wanted else staged.reference,
    )
    return [summary, capture]


def _panels(staged: Staged) -> dict[str, Any]:
    wandb = load_wandb()
    table = wandb.Table(columns=list(TABLE_COLUMNS), data=staged.top_ops)
    panels = {f"{_PREFIX}top_ops": table}
    if staged.report_html is not None:
        panels[f"{_PREFIX}report"] = wandb.Html(staged.report_html)
    return panels
