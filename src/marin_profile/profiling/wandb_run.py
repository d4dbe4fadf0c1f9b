"""The W&B run that is live in this process, as the tracker of a loop that has no Trainer.

Contract
* wandb is not imported for this: where the loop did not import it, or no run is live when something
  is to be logged, nothing is.
* The artifacts, scalars and panels are those that a Levanter run on W&B gets. `log` returns when
  W&B has the artifacts; what the SDK raises passes through, TimeoutError among it.
"""

from __future__ import annotations

import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import STAGED_FILE, STAGING_FOLDER, TABLE_COLUMNS, Staged
from marin_profile.wandb.artifacts import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    capture_artifact_name,
    config_hash,
    summary_artifact_name,
)
from marin_profile.wandb.session import load_wandb
from marin_profile.wandb.upload import Upload, log_artifacts

logger = logging.getLogger(__name__)

_PREFIX = "profile/"


def live_run() -> Any | None:
    """`wandb.run`, if wandb is imported and the run is one that keeps what it is given."""
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    return None if run is None or getattr(run, "disabled", False) else run


def wandb_facts() -> dict[str, Any]:
    """What the live run knows, by the names of RunMetadata."""
    run = live_run()
    if run is None:
        return {}
    try:
        settings = dict(run.config.as_dict())
        path = str(run.path)
        return {
            # Offline, a run has no entity yet, so no path that W&B would know it by.
            "run_path": path if path.count("/") == 2 else None,
            "git_sha": settings.get("git_commit"),
            "config_hash": config_hash(settings) if settings else None,
        }
    except Exception as error:
        logger.debug("not known of the run: %s", error)
        return {}


class LiveRun:
    """The run that is live when something is logged."""

    def log(self, outputs: Path, run_id: str, seconds: float) -> tuple[Logged, ...]:
        folder = outputs / STAGING_FOLDER
        try:
            run = live_run()
            if run is None:
                return ()
            staged = msgspec.json.decode((folder / STAGED_FILE).read_bytes(), type=Staged)
            uploads = _uploads(folder, staged, run_id)
            run.summary.update(_values(staged))
            log_artifacts(run, uploads, seconds=seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        note = f"{'with' if staged.decision.wanted else 'without'} its capture"
        names = tuple(upload.name for upload in uploads)
        return (Logged("wandb", names, f"{note} ({staged.decision.why})"),)


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


def _values(staged: Staged) -> dict[str, Any]:
    wandb = load_wandb()
    values: dict[str, Any] = {f"{_PREFIX}{name}": value for name, value in staged.scalars.items()}
    values[f"{_PREFIX}capture_upload"] = staged.decision.why
    values[f"{_PREFIX}top_ops"] = wandb.Table(columns=list(TABLE_COLUMNS), data=staged.top_ops)
    if staged.capture_path is not None:
        values[f"{_PREFIX}capture_path"] = staged.capture_path
    if staged.report_html is not None:
        values[f"{_PREFIX}report"] = wandb.Html(staged.report_html)
    return values
