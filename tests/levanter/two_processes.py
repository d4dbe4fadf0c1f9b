"""One of two processes of a small training: `python two_processes.py OUT INDEX PORT SCENARIO`."""

import json
import os
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import jax
import tiny_training as tiny
from jax.experimental import multihost_utils
from levanter.callbacks import Callback

from marin_profile.profiling import ingestion, medium

STEPS = 12
INSTALL = tiny.install


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


class Meeting(Callback):
    """Of all processes when training has ended, as in the collectives of other hooks."""

    def __init__(self, held: Path) -> None:
        self._held = held

    def on_step(self, info: object, force: bool = False) -> None:
        if force:
            multihost_utils.sync_global_devices("end")
            self._held.touch()


def hold_workers_until_all_met(out: Path) -> None:
    """No capture is summarised before every process's hooks are through."""
    met = out / "met"
    code = (
        "import os, sys, time\n"
        f"while not os.path.exists({str(met)!r}): time.sleep(0.05)\n"
        "os.execv(sys.executable, [sys.executable, '-P', '-m', *sys.argv[1:]])"
    )
    ingestion._SAFE_PYTHON = (sys.executable, "-c", code)

    def install(trainer: Any, config: Any) -> None:
        INSTALL(trainer, config)
        trainer.add_hook(Meeting(met), every=1)

    tiny.install = install


# A file that is touched in the first process's folder, and which the other one sees so much later.
SECONDS_LATER = 2.0
STEP_SECONDS = 0.05


def touched_late(out: Path, index: int, train_steps: int) -> tiny.Scenario:
    """Each process has a folder of its own, where the second one's lags behind the first one's."""
    tiny.SLEEPS[:] = [STEP_SECONDS] * 10_000

    def touch(_: object) -> None:
        there, here = (out / f"machine_{i}/run/profile_now" for i in (0, index))
        if index == 0:
            here.touch()
            return
        time.sleep(SECONDS_LATER)
        while not there.exists():
            time.sleep(0.05)
        here.touch()
        os.utime(here, ns=(there.stat().st_atime_ns, there.stat().st_mtime_ns))

    settings = {"ingest": True, "shared_dir": str(out / "bucket"), "hosts_timeout": 300.0}
    config = tiny.profile(start_step=train_steps, triggered_steps=2, **settings)
    do = {10: lambda run_dir: threading.Thread(target=touch, args=(run_dir,), daemon=True).start()}
    return tiny.Scenario(config, train_steps, do=do)


def slow_steps() -> tiny.Scenario:
    """Two, the second one after the capture that the first one led to."""
    tiny.SLEEPS[:] = [STEP_SECONDS] * 10_000
    config = tiny.profile(start_step=150, anomaly_factor=20, max_anomalies=1, triggered_steps=2)
    return tiny.Scenario(config, train_steps=150, do={at: tiny.in_step(3) for at in (20, 120)})


class LaggingFolder(medium.SharedFolder):
    """Shows what was there `SECONDS_LATER` ago."""

    def __init__(self, root: str, count: int) -> None:
        super().__init__(root, count)
        self._seen: deque[tuple[float, dict[int, str]]] = deque()

    def read(self, process: int) -> str | None:
        return self.read_all().get(process)

    def read_all(self) -> dict[int, str]:
        now = time.monotonic()
        self._seen.append((now, super().read_all()))
        while len(self._seen) > 1 and self._seen[1][0] <= now - SECONDS_LATER:
            self._seen.popleft()
        first, notes = self._seen[0]
        return notes if first <= now - SECONDS_LATER else {}


def use_lagging_folder() -> None:
    medium.coordination_client = lambda: None
    medium.SharedFolder = LaggingFolder


def scenario_of(out: Path, index: int, name: str) -> tiny.Scenario:
    settings = {"ingest": True, "hosts_timeout": 300.0, "ingest_timeout": 600.0}
    if name.startswith("shared"):
        protocol = "local://" if name == "shared_url" else ""
        settings["shared_dir"] = f"{protocol}{out}/bucket"
    return tiny.Scenario(tiny.profile(**settings), train_steps=STEPS)


def run(out: Path, index: int, name: str) -> dict:
    if name == "slow_step":
        tiny.SCENARIOS[name] = slow_steps()
    elif name == "touched":
        tiny.SCENARIOS[name] = touched_late(out, index, 120)
    elif name == "touched_folder":
        use_lagging_folder()
        tiny.SCENARIOS[name] = touched_late(out, index, 300)
    else:
        if name == "meeting":
            hold_workers_until_all_met(out)
        tiny.SCENARIOS[name] = scenario_of(out, index, name)
    has_own_disk = name.startswith(("shared", "touched"))
    return tiny.run_logged(name, out / f"machine_{index}" if has_own_disk else out)


def main(out: Path, index: int, port: str, names: list[str]) -> None:
    """With several names each has a folder of its own."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, index)
    for name in names:
        if index == 1 and name in FAULTS:
            FAULTS[name]()
        below = out / name if len(names) > 1 else out
        result = run(below, index, name)
        client = medium.coordination_client()
        result["keys"] = client.key_value_dir_get("marin_profile/") if client else []
        (below / f"result_{index}.json").write_text(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # what JAX does at exit when a process is missing is not asked here


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
