"""What the worker staged, into the run's tracker, whichever Levanter has: artifacts and scalars.

Contract
* An artifact of type `profile_summary` (summary, report and `metadata.json`), one of type
  `jax_profile` (the capture, or on W&B a reference to it, unless neither is wanted), and scalars
  under `profile/` through `log_summary`: trackers refuse scalars of a step that is past.
* On W&B the artifacts carry their metadata, and a table of the top ops and the report go beside
  the scalars. `publish` then returns when W&B has the artifacts; every other tracker takes copies
  before it returns. So it belongs into a thread, and what was staged is removed afterwards.
* What the tracker raises, or W&B refuses, is raised.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.levanter.staging import STAGED, TABLE_COLUMNS, TOLD_FILE, Told
from marin_profile.wandb.artifacts import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    capture_artifact_name,
    summary_artifact_name,
)

_PREFIX = "profile/"


def publish(tracker: Any, *, outputs: Path, run_id: str, seconds: float) -> Told:
    """Log what lies staged below `outputs`; on W&B wait at most so many seconds for each artifact.

    Raises what stands in the way, TimeoutError among it.
    """
    staged = outputs / STAGED
    try:
        told = msgspec.json.decode((staged / TOLD_FILE).read_bytes(), type=Told)
        run = wandb_run(tracker)
        scalars: dict[str, Any] = {f"{_PREFIX}{name}": v for name, v in told.scalars.items()}
        scalars[f"{_PREFIX}capture_upload"] = told.upload.why
        if told.capture_path is not None:
            scalars[f"{_PREFIX}capture_path"] = told.capture_path
        if run is None:
            _log_plainly(tracker, staged, told, run_id)
            tracker.log_summary(scalars)
        else:
            tracker.log_summary(scalars | _panels(told))
            _log_to_wandb(run, staged, told, run_id, seconds)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return told


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


def _log_plainly(tracker: Any, staged: Path, told: Told, run_id: str) -> None:
    name = summary_artifact_name(run_id)
    tracker.log_artifact(str(staged / "summary"), name=name, type=SUMMARY_TYPE)
    if told.upload.wanted:
        name = capture_artifact_name(run_id)
        tracker.log_artifact(str(staged / "capture"), name=name, type=CAPTURE_TYPE)


def _log_to_wandb(run: Any, staged: Path, told: Told, run_id: str, seconds: float) -> None:
    import wandb

    summary = wandb.Artifact(
        summary_artifact_name(run_id), type=SUMMARY_TYPE, metadata=told.metadata
    )
    summary.add_dir(str(staged / "summary"))
    logged = [run.log_artifact(summary)]
    capture = wandb.Artifact(
        capture_artifact_name(run_id), type=CAPTURE_TYPE, metadata=told.metadata
    )
    if told.upload.wanted:
        capture.add_dir(str(staged / "capture"))
    elif told.reference is not None:
        capture.add_reference(told.reference, checksum=False)
    if told.upload.wanted or told.reference is not None:
        logged.append(run.log_artifact(capture))
    if not run.offline:
        for artifact in logged:
            artifact.wait(timeout=max(int(seconds), 1))


def _panels(told: Told) -> dict[str, Any]:
    import wandb

    table = wandb.Table(columns=list(TABLE_COLUMNS), data=told.top_ops)
    panels = {f"{_PREFIX}top_ops": table}
    if told.report_html is not None:
        panels[f"{_PREFIX}report"] = wandb.Html(told.report_html)
    return panels
