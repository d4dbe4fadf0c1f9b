"""What a Levanter run knows of itself, by the names of RunMetadata.

Contract: what a run does not give is None, never an error; a commit that it does not give is the
worker's to find.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax

from marin_profile.base.config_hash import config_hash
from marin_profile.levanter.tracker import wandb_run
from marin_profile.profiling.run import Run

logger = logging.getLogger(__name__)


def facts_of(
    run: Run, trainer: Any, tracker: Any, training_config: Any | None = None
) -> dict[str, Any]:
    """`config_hash` is that of `training_config`, else of the trainer's config, in which neither
    model nor data nor optimizer are: a built optimizer cannot be compared."""
    live = _or_none(lambda: wandb_run(tracker))
    kept = _or_none(lambda: live.config.as_dict()) if live is not None else None
    return {
        "run_id": run.run_id,
        "run_path": _or_none(lambda: _run_path(live.path)) if live is not None else None,
        "hardware_type": _or_none(lambda: jax.devices()[0].device_kind),
        "mesh_or_topology": _or_none(lambda: _axes(trainer.device_mesh.shape)),
        "git_sha": (kept or {}).get("git_commit"),
        "config_hash": _or_none(lambda: training_hash(trainer, training_config)),
        "num_devices": jax.device_count(),
        "num_hosts": run.count,
    }


def _or_none(find: Callable[[], Any]) -> Any:
    try:
        return find()
    except Exception as error:
        logger.debug("not known of the run: %s", error)
        return None


def training_hash(trainer: Any, training_config: Any | None) -> str:
    """Of a config as a dataclass that draccus encodes, or a mapping; without one, of the trainer's.
    It does not depend on the tracker. Raises what draccus raises."""
    import draccus

    whole = training_config if training_config is not None else {"trainer": trainer.config}
    return config_hash(dict(draccus.encode(whole)))


def _run_path(path: str) -> str | None:
    """Offline, a run has no entity yet, so no path that W&B would know it by."""
    return path if path.count("/") == 2 else None


def _axes(shape: Any) -> str:
    return ",".join(f"{axis}={size}" for axis, size in sorted(dict(shape).items()))
