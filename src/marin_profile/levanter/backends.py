"""What each kind of tracker can hold of a profile, and how it confirms that.

Contract
* A backend takes a real tracker, past all wrappers. A kind that is not known here is given the
  artifacts and figures through Levanter's interface; then what returns counts as held.
* TensorBoard takes files and figures, and swallows errors: the files are written to its folder
  here. JSON trackers, trackio and telemetry take figures alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from marin_profile.base.storage import files_below, write_file
from marin_profile.profiling.load import Load
from marin_profile.profiling.record import Logged
from marin_profile.profiling.wandb_run import log_to_run

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
    yield from log_to_run(run, load, tracker.log_summary)


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
