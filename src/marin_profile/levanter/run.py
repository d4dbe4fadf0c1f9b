"""The run that is profiled: its folders, and its metadata.

Contract: metadata that a run does not give are None, never an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import levanter.tracker

from marin_profile.levanter.hosts import process_folder
from marin_profile.levanter.tracker import wandb_run
from marin_profile.wandb.artifacts import config_hash

logger = logging.getLogger(__name__)

# pathlib makes one slash of the two of a URL.
_URL_AS_PATH = re.compile(r"^([a-z][a-z0-9+.-]+):/(?=[^/])")


@dataclass(frozen=True)
class Run:
    """`log_dir` is the run's log folder on this machine; `shared`: the URL of its profiler folder
    that all processes see, if there is one; `index` of `count`: this process."""

    run_id: str
    log_dir: Path
    num_train_steps: int
    index: int
    count: int
    shared: str | None = None
    recompiles_at: int | None = None

    @property
    def profile_dir(self) -> Path:
        return self.log_dir / "profiler"

    @property
    def own_dir(self) -> Path:
        """Where this process puts its captures: no two processes meet in one folder."""
        return self.profile_dir / process_folder(self.index) if self.count > 1 else self.profile_dir

    @property
    def own_shared(self) -> str | None:
        if self.shared is None or self.count == 1:
            return self.shared
        return f"{self.shared}/{process_folder(self.index)}"


def shared_profile_dir(log_dir: Path, shared_dir: str | None, run_id: str) -> str | None:
    """The URL of the run's profiler folder, where the config names one or the log folder is one."""
    url = shared_dir or str(log_dir)
    url = _URL_AS_PATH.sub(r"\1://", url)
    if shared_dir is None and "://" not in url:
        return None
    return f"{url.rstrip('/')}/{run_id}/profiler"


def run_facts(run: Run, trainer: Any) -> dict[str, Any]:
    """What the run knows, by the names of RunMetadata; a commit that it does not is the worker's to
    find."""
    live = _or_none(lambda: wandb_run(levanter.tracker.current_tracker()))
    config = _or_none(lambda: live.config.as_dict()) if live is not None else None
    if config is None:
        config = _or_none(lambda: _plain_config(trainer.config))
    return {
        "run_id": run.run_id,
        "run_path": _or_none(lambda: _run_path(live.path)) if live is not None else None,
        "hardware_type": _or_none(lambda: jax.devices()[0].device_kind),
        "mesh_or_topology": _or_none(lambda: _axes(trainer.device_mesh.shape)),
        "git_sha": (config or {}).get("git_commit"),
        "config_hash": _or_none(lambda: config_hash(config)) if config else None,
        "num_devices": jax.device_count(),
        "num_hosts": run.count,
    }


def _or_none(find: Callable[[], Any]) -> Any:
    try:
        return find()
    except Exception as error:
        logger.debug("not known of the run: %s", error)
        return None


def _plain_config(config: Any) -> dict[str, Any]:
    import draccus

    encoded = draccus.encode(config)
    return dict(encoded)


def _run_path(path: str) -> str | None:
    """Offline, a run has no entity yet, so no path that W&B would know it by."""
    return path if path.count("/") == 2 else None


def _axes(shape: Any) -> str:
    return ",".join(f"{axis}={size}" for axis, size in sorted(dict(shape).items()))
