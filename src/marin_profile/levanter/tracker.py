"""What the worker staged -> the run's tracker, whichever one Levanter uses.

Contract
* Figures go through `log_summary`: trackers refuse figures of a step that is past.
* Each real tracker is given what it can hold, past what wraps it: a CompositeTracker swallows
  errors, a BackgroundTracker drops what comes late. It says for each what that tracker confirmed.
* What one of several trackers raises is in its row; if no tracker holds anything and one raised,
  that is raised. A tracker that holds all of it from an earlier time is left alone.
* It may take long, so it belongs in a thread. Staged files are removed afterwards.
"""

from __future__ import annotations

import shutil
from collections import deque
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

    def log(
        self, outputs: Path, run_id: str, seconds: float, held: tuple[Logged, ...]
    ) -> tuple[Logged, ...]:
        return log_staged(self._find(), outputs, run_id, seconds, held)


def log_staged(
    tracker: Any, outputs: Path, run_id: str, seconds: float, held: tuple[Logged, ...] = ()
) -> tuple[Logged, ...]:
    """Log what lies staged below `outputs` to the trackers that do not hold all of it by the rows
    `held`, which of one name are in the trackers' order; on W&B wait at most so many seconds until
    it has all artifacts. One row for each real tracker; those that keep nothing only if none keeps
    anything.

    Raises what stands in the way, TimeoutError among it.
    """
    folder = outputs / STAGING_FOLDER
    try:
        load = Load.below(outputs, run_id, seconds)
        return _log_to_each(list(_real_trackers(tracker)), load, held)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _log_to_each(
    trackers: list[tuple[Any, bool]], load: Load, held: tuple[Logged, ...]
) -> tuple[Logged, ...]:
    if not trackers:
        return held or (Logged("no tracker"),)
    known: dict[str, deque[Logged]] = {}
    for row in held:
        known.setdefault(row.tracker, deque()).append(row)
    rows, errors = [], []
    for real, has_finished in trackers:
        before = known.get(_name(real))
        earlier = before.popleft() if before else None
        if earlier is not None and earlier.holds_all:
            rows.append(earlier)
            continue
        row, error = _log_to(real, has_finished, load)
        rows.append(row)
        if error is not None:
            errors.append(error)
    # Those that the run has no more.
    rows += [row for left in known.values() for row in left if row.holds_all]
    if errors and not any(row.holds_any for row in rows):
        if len(errors) == 1:
            raise errors[0]
        raise NotLoggedError("; ".join(f"{row.tracker}: {row.error}" for row in rows if row.error))
    return tuple([row for row in rows if row.holds_any or row.error] or dict.fromkeys(rows))


def _name(real: Any) -> str:
    return str(getattr(real, "name", type(real).__name__))


def _log_to(real: Any, has_finished: bool, load: Load) -> tuple[Logged, Exception | None]:
    name = _name(real)

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
