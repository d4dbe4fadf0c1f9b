"""Captures of scripts/demo.py's model, each from a training of its own process on the CPU.

`python scripts/demo_captures.py FLAGS` trains, and captures, with Levanter's flags. A capture that
is there already is not taken again, so that what was cut goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONFIG = Path(__file__).parent.parent / "configs" / "demo.yaml"
START_STEP = 5
KEPT_STEPS = 25
_DONE = "done"


def take_capture(folder: Path, *flags: str, kept_steps: int = KEPT_STEPS) -> Path:
    """Train with Levanter's `flags` and capture `kept_steps` steps, one before them, which is taken
    for warm-up, and one behind, so that the last has a period. The folder to summarise."""
    profiles = folder / "capture" / "profiler"
    if (folder / _DONE).exists():
        return profiles
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    window = kept_steps + 2
    settings = {
        "config_path": CONFIG,
        "trainer.id": "capture",
        "trainer.log_dir": folder,
        "trainer.checkpointer.base_path": folder / "checkpoints",
        "trainer.num_train_steps": START_STEP + window + 1,
        "profiler.start_step": START_STEP,
        "profiler.num_steps": window,
        "profiler.output_dir": folder,
        "profiler.ingest": "false",
    }
    command = [sys.executable, __file__]
    for name, value in settings.items():
        command += [f"--{name}", str(value)]
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "WANDB_MODE": "disabled",
    }
    child = subprocess.run([*command, *flags], env=environment, capture_output=True, text=True)
    if child.returncode:
        sys.exit(f"a training failed:\n{child.stderr[-4000:]}")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    (folder / _DONE).touch()
    return profiles


def main() -> None:
    import demo
    import levanter.config

    levanter.config.main(args=sys.argv[1:])(demo.train)()


if __name__ == "__main__":
    main()
