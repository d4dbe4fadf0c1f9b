"""The W&B run that is live in this process, as the tracker of a loop that has no Trainer.

Contract
* wandb is not imported for this: where the loop did not import it, or no run is live when something
  is to be logged, nothing is.
* Artifacts count when the server has them; offline, when they are staged in the run's folder. They
  carry their metadata; a table of the top ops and the report go with the figures. What the SDK
  raises passes through, TimeoutError among it, unless W&B holds some of it: then the row says it.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from marin_profile.base.config_hash import config_hash
from marin_profile.profiling.load import PREFIX, Load, last_row
from marin_profile.profiling.record import Logged
from marin_profile.profiling.staging import STAGING_FOLDER, TABLE_COLUMNS, Staged
from marin_profile.wandb.session import load_wandb
from marin_profile.wandb.upload import log_artifacts

logger = logging.getLogger(__name__)


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


def log_to_run(
    run: Any, load: Load, update: Callable[[dict[str, Any]], object]
) -> Iterator[Logged]:
    """Log to a run that is not disabled; `update` takes what goes into its summary."""
    names: tuple[str, ...] = ()
    if run.offline:
        note = load.note(f"offline: kept for 'wandb sync {os.path.dirname(run.dir)}'")
    else:
        note = load.note("uploaded")
    for artifact in log_artifacts(run, load.uploads, seconds=load.seconds):
        names += (artifact.name,)
        yield Logged("wandb", names, note)
    update(load.figures | _panels(load.staged))
    yield Logged("wandb", names, note, len(load.figures))


class LiveRun:
    """The run that is live when something is logged."""

    def log(
        self, outputs: Path, run_id: str, seconds: float, held: tuple[Logged, ...]
    ) -> tuple[Logged, ...]:
        try:
            run = live_run()
            if run is None:
                return held
            load = Load.below(outputs, run_id, seconds)
            row, error = last_row("wandb", log_to_run(run, load, run.summary.update))
            if error is not None and not row.holds_any:
                raise error
            return (row,)
        finally:
            shutil.rmtree(outputs / STAGING_FOLDER, ignore_errors=True)


def _panels(staged: Staged) -> dict[str, Any]:
    wandb = load_wandb()
    table = wandb.Table(columns=list(TABLE_COLUMNS), data=staged.top_ops)
    # As it is: what W&B would add to the page, the page's own policy forbids.
    page = wandb.Html(staged.report_html, inject=False)
    return {f"{PREFIX}top_ops": table, f"{PREFIX}report": page}
