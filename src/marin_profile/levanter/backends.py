"""What each kind of tracker can hold of a profile, and how it confirms that.

Contract
* A backend takes a real tracker, past all wrappers, and yields its row as it grows: the last one
  before an error is what the tracker holds. A kind that is not known here is given the artifacts
  and figures through Levanter's interface; then what returns counts as held.
* W&B: artifacts count when the server has them; offline, when they are staged in the run's folder.
  The artifacts carry their metadata; a table of the top ops and the report go with the figures.
* TensorBoard takes files and figures, and swallows errors: the files are written to its folder
  here. JSON trackers, trackio and telemetry take figures alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.base.storage import files_below, write_file
from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import TABLE_COLUMNS, Staged
from marin_profile.wandb.session import load_wandb
from marin_profile.wandb.upload import Upload, log_artifacts

_PREFIX = "profile/"


@dataclass(frozen=True)
class Load:
    """What is to be logged; `seconds`: how long W&B has to confirm it."""

    staged: Staged
    uploads: tuple[Upload, ...]
    seconds: float

    @property
    def figures(self) -> dict[str, Any]:
        """By name, with where the rest lies, for trackers that take no files."""
        staged = self.staged
        named: dict[str, Any] = {f"{_PREFIX}{name}": v for name, v in staged.scalars.items()}
        named[f"{_PREFIX}capture_upload"] = staged.decision.why
        named[f"{_PREFIX}output_path"] = staged.output_path
        if staged.capture_path is not None:
            named[f"{_PREFIX}capture_path"] = staged.capture_path
        if (digest := staged.metadata.get("config_hash")) is not None:
            named[f"{_PREFIX}config_hash"] = digest
        return named

    @property
    def numbers(self) -> dict[str, float]:
        return {f"{_PREFIX}{name}": value for name, value in self.staged.scalars.items()}

    @property
    def folders(self) -> list[tuple[Upload, Path]]:
        return [(upload, upload.folder) for upload in self.uploads if upload.folder is not None]

    def note(self, *parts: str) -> str:
        """With why the capture is not uploaded, where it is not."""
        decision = self.staged.decision
        left_out = () if decision.wanted else (f"without the capture: {decision.why}",)
        return "; ".join((*parts, *left_out))


Backend = Callable[[Any, Load], Iterator[Logged]]


def backend_of(tracker: Any) -> Backend:
    return _BACKENDS.get(str(getattr(tracker, "name", "")), _by_interface)


def _by_interface(tracker: Any, load: Load) -> Iterator[Logged]:
    name = str(getattr(tracker, "name", type(tracker).__name__))
    artifacts: tuple[str, ...] = ()
    note = load.note()
    for upload, folder in load.folders:
        tracker.log_artifact(str(folder), name=upload.name, type=upload.type)
        artifacts += (upload.name,)
        yield Logged(name, artifacts, note)
    tracker.log_summary(load.figures)
    yield Logged(name, artifacts, note, len(load.figures))


def _noop(tracker: Any, load: Load) -> Iterator[Logged]:
    yield Logged(tracker.name, note="it keeps nothing")


def _wandb(tracker: Any, load: Load) -> Iterator[Logged]:
    run = tracker.run
    if getattr(tracker, "_suppress_logging", False):
        yield Logged(tracker.name, note="this process does not log to W&B")
        return
    if getattr(run, "disabled", False):
        yield Logged(tracker.name, note="W&B is disabled")
        return
    names: tuple[str, ...] = ()
    if run.offline:
        note = load.note(f"offline: kept for 'wandb sync {os.path.dirname(run.dir)}'")
    else:
        note = load.note("uploaded")
    for artifact in log_artifacts(run, load.uploads, seconds=load.seconds):
        names += (artifact.name,)
        yield Logged(tracker.name, names, note)
    tracker.log_summary(load.figures | _panels(load.staged))
    yield Logged(tracker.name, names, note, len(load.figures))


def _panels(staged: Staged) -> dict[str, Any]:
    wandb = load_wandb()
    table = wandb.Table(columns=list(TABLE_COLUMNS), data=staged.top_ops)
    panels = {f"{_PREFIX}top_ops": table}
    if staged.report_html is not None:
        panels[f"{_PREFIX}report"] = wandb.Html(staged.report_html)
    return panels


def _tensorboard(tracker: Any, load: Load) -> Iterator[Logged]:
    writer = tracker.writer
    if not getattr(writer, "_write_to_disk", True):
        yield Logged(tracker.name, note="it writes nothing to disk")
        return
    root = str(writer.logdir).rstrip("/")
    names: tuple[str, ...] = ()
    note = load.note(f"in {root}")
    for upload, folder in load.folders:
        for path, _ in files_below(str(folder)):
            write_file(f"{root}/{upload.name}/{path}", (folder / path).read_bytes())
        names += (upload.name,)
        yield Logged(tracker.name, names, note)
    tracker.log_summary(load.figures)
    writer.flush()
    yield Logged(tracker.name, names, note, len(load.figures))


def _json_logger(tracker: Any, load: Load) -> Iterator[Logged]:
    if not tracker.logger.isEnabledFor(logging.INFO):
        yield Logged(tracker.name, note="its logger drops INFO")
        return
    tracker.log_summary(load.figures)
    yield Logged(tracker.name, note="it takes no files", figures=len(load.figures))


def _json_file(tracker: Any, load: Load) -> Iterator[Logged]:
    tracker.log_summary(load.figures)
    yield Logged(
        tracker.name,
        note=f"it takes no files, and writes to {tracker.output_path} when the run finishes",
        figures=len(load.figures),
    )


def _trackio(tracker: Any, load: Load) -> Iterator[Logged]:
    tracker.log_summary(load.figures)
    yield Logged(tracker.name, note="it takes no files", figures=len(load.figures))


def _telemetry(tracker: Any, load: Load) -> Iterator[Logged]:
    tracker.log_summary(load.numbers)
    note = "numbers alone, which it does not confirm"
    yield Logged(tracker.name, note=note, figures=len(load.numbers))


_BACKENDS: dict[str, Backend] = {
    "noop": _noop,
    "wandb": _wandb,
    "tensorboard": _tensorboard,
    "json_logger": _json_logger,
    "json_file": _json_file,
    "trackio": _trackio,
    "telemetry": _telemetry,
}
