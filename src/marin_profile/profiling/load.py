"""What the worker staged, as a tracker is given it, and the row that says what it confirmed.

Contract
* An artifact of type `profile_summary` (summary, report and `metadata.json`), one of type
  `jax_profile` (the capture, or a reference to it, unless neither is wanted), and figures under
  `profile/`.
* A backend yields its row as it grows: the last one before an error is what the tracker holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import STAGED_FILE, STAGING_FOLDER, Staged
from marin_profile.wandb.artifacts import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    capture_artifact_name,
    summary_artifact_name,
)
from marin_profile.wandb.upload import Upload

PREFIX = "profile/"


@dataclass(frozen=True)
class Load:
    """What is to be logged; `seconds`: how long W&B has to confirm it."""

    staged: Staged
    uploads: tuple[Upload, ...]
    seconds: float

    @staticmethod
    def below(outputs: Path, run_id: str, seconds: float) -> Load:
        """What is staged there. Raises OSError or msgspec.DecodeError."""
        folder = outputs / STAGING_FOLDER
        staged = msgspec.json.decode((folder / STAGED_FILE).read_bytes(), type=Staged)
        return Load(staged, tuple(_uploads(folder, staged, run_id)), seconds)

    @property
    def figures(self) -> dict[str, Any]:
        """By name, with where the rest lies, for trackers that take no files."""
        staged = self.staged
        named: dict[str, Any] = {f"{PREFIX}{name}": v for name, v in staged.scalars.items()}
        named[f"{PREFIX}capture_upload"] = staged.decision.why
        named[f"{PREFIX}output_path"] = staged.output_path
        if staged.capture_path is not None:
            named[f"{PREFIX}capture_path"] = staged.capture_path
        if (digest := staged.metadata.get("config_hash")) is not None:
            named[f"{PREFIX}config_hash"] = digest
        return named

    @property
    def numbers(self) -> dict[str, float]:
        return {f"{PREFIX}{name}": value for name, value in self.staged.scalars.items()}

    @property
    def folders(self) -> list[tuple[Upload, Path]]:
        return [(upload, upload.folder) for upload in self.uploads if upload.folder is not None]

    def note(self, *parts: str) -> str:
        """With why the capture is not uploaded, where it is not."""
        decision = self.staged.decision
        left_out = () if decision.wanted else (f"without the capture: {decision.why}",)
        return "; ".join((*parts, *left_out))


def last_row(name: str, rows: Iterator[Logged]) -> tuple[Logged, Exception | None]:
    """What the tracker of that name holds in the end, and what it raised."""
    row = Logged(name)
    try:
        for grown in rows:
            row = grown
    except Exception as error:
        return msgspec.structs.replace(row, error=f"{type(error).__name__}: {error}"), error
    return row, None


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
