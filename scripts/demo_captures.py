"""Captures of scripts/demo.py's model, each from a training of its own process on the CPU.

The processes are forked from one that has imported the libraries, and share a folder of compiled
programs: most of what a short training costs is paid once. A capture that is there
already is not taken again, so that what was cut goes on.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

CONFIG = Path(__file__).parent.parent / "configs" / "demo.yaml"
COMPILED = Path(tempfile.gettempdir()) / "marin-profile-demo-programs"
START_STEP = 5
KEPT_STEPS = 25
_DONE = "done"
_OUTPUT = "output.txt"


def take_capture(folder: Path, *flags: str, kept_steps: int = KEPT_STEPS) -> Path:
    """Train with Levanter's `flags` and capture `kept_steps` steps, one before them, which is taken
    for warm-up, and one behind, so that the last has a period. The folder to summarise."""
    profiles = folder / "capture" / "profiler"
    if is_taken(folder):
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
    arguments = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    child = processes().Process(target=_train, args=([*arguments, *flags], folder / _OUTPUT))
    child.start()
    child.join()
    if child.exitcode:
        sys.exit(f"a training failed:\n{(folder / _OUTPUT).read_text()[-4000:]}")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    (folder / _DONE).touch()
    return profiles


def is_taken(folder: Path) -> bool:
    return (folder / _DONE).exists()


@cache
def processes() -> ForkServerContext:
    os.environ.update(
        {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            "WANDB_MODE": "disabled",
            "JAX_COMPILATION_CACHE_DIR": str(COMPILED),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "demo"])
    return context


def _train(arguments: list[str], output: Path) -> None:
    """Ends the process: what JAX and its libraries do at exit takes seconds."""
    with output.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    code = 0
    try:
        demo, config = map(importlib.import_module, ("demo", "levanter.config"))
        config.main(args=arguments)(demo.train)()
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
