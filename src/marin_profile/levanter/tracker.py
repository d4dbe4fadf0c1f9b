"""What the worker staged -> the run's tracker, whichever one Levanter uses.

Contract
* Figures go through `log_summary`: trackers refuse figures of a step that is past.
* Each real tracker is given what it can hold, past what wraps it: a CompositeTracker swallows
  errors, a BackgroundTracker drops what comes late. It says for each what that tracker confirmed.
* What one of several trackers raises is in its row; if no tracker holds anything and one raised,
  that is raised. It may take long, so it belongs in a thread. Staged files are removed afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from marin_profile.levanter.backends import backend_of
from marin_profile.profiling.load import Load, last_row
from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import STAGING_FOLDER


class NotLoggedError(RuntimeError):
    """None of several trackers took anything."""


class LevanterTracker:
    """The run's tracker, looked up when something is logged."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def log(self, outputs: Path, run_id: str, seconds: float) -> tuple[Logged, ...]:
        return log_staged(self._find(), outputs=outputs, run_id=run_id, seconds=seconds)


def log_staged(tracker: Any, *, outputs: Path, run_id: str, seconds: float) -> tuple[Logged, ...]:
    """Log what lies staged below `outputs`; on W&B wait at most so many seconds until it has all
    artifacts. One row for each real tracker; those that keep nothing only if none keeps anything.

    Raises what stands in the way, TimeoutError among it.
    """
    folder = outputs / STAGING_FOLDER
    try:
        load = Load.below(outputs, run_id, seconds)
        return _log_to_each(list(_real_trackers(tracker)), load)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _log_to_each(trackers: list[tuple[Any, bool]], load: Load) -> tuple[Logged, ...]:
    if not trackers:
        return (Logged("no tracker"),)
    tried = [_log_to(real, has_finished, load) for real, has_finished in trackers]
    rows = [row for row, _ in tried]
    errors = [error for _, error in tried if error is not None]
    if errors and not any(row.holds_any for row in rows):
        if len(errors) == 1:
            raise errors[0]
        raise NotLoggedError("; ".join(f"{row.tracker}: {row.error}" for row in rows if row.error))
    return tuple([row for row in rows if row.holds_any or row.error] or dict.fromkeys(rows))


def _log_to(real: Any, has_finished: bool, load: Load) -> tuple[Logged, Exception | None]:
    name = str(getattr(real, "name", type(real).__name__))

    def rows() -> Iterator[Logged]:
        if has_finished:
            raise RuntimeError(f"the {name} tracker has finished")
        yield from backend_of(real)(real, load)

    return last_row(name, rows())


def wandb_run(tracker: Any) -> Any | None:
    """The live W&B run behind a tracker, which may be wrapped, or one of several."""
    for found, _ in _real_trackers(tracker):
        if getattr(found, "name", None) == "wandb":
            run = getattr(found, "run", None)
            if run is not None and not getattr(run, "disabled", False):
                return run
    return None


def _real_trackers(tracker: Any, has_finished: bool = False) -> Iterator[tuple[Any, bool]]:
    """What is behind the wrappers, each with whether its wrapper takes nothing more."""
    inner = getattr(tracker, "wrapped", None)
    if inner is not None:
        yield from _real_trackers(inner, has_finished or bool(getattr(tracker, "_stopped", False)))
    elif hasattr(tracker, "loggers"):
        for one in tracker.loggers:
            yield from _real_trackers(one, has_finished)
    else:
        yield tracker, has_finished
