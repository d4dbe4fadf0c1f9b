"""One of two processes of a small training: `python two_processes.py OUT INDEX PORT SCENARIO`."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import tiny_training as tiny

from marin_profile.levanter import ingestion

STEPS = 12


def slow_stop() -> None:
    stop = jax.profiler.stop_trace

    def slowly() -> None:
        stop()
        time.sleep(4)

    jax.profiler.stop_trace = slowly


def lost_capture() -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    jax.profiler.stop_trace = broken


def no_worker() -> None:
    ingestion._SAFE_PYTHON = ("false",)


# What goes wrong in the second process.
FAULTS = {"slow": slow_stop, "lost": lost_capture, "no_worker": no_worker}


def main(out: Path, index: int, port: str, name: str) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, index)
    if index == 1 and name in FAULTS:
        FAULTS[name]()
    # What never comes is not worth a long wait.
    hosts_timeout = 15.0 if name in ("lost", "no_worker") else 300.0
    settings = {"ingest": True, "hosts_timeout": hosts_timeout, "ingest_timeout": 600.0}
    log_dir = out
    if name.startswith("shared"):
        log_dir = out / f"machine_{index}"
        protocol = "local://" if name == "shared_url" else ""
        settings["shared_dir"] = f"{protocol}{out}/bucket"
    scenario = tiny.Scenario(tiny.profile(**settings), train_steps=STEPS)
    tiny.SCENARIOS[name] = scenario
    result = tiny.run_logged(name, log_dir)
    (out / f"result_{index}.json").write_text(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # what JAX does at exit when a process is missing is not asked here


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
