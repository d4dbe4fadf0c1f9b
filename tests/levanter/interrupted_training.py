"""A Levanter training that meets a fault, and its next start: `python interrupted_training.py OUT
[--finish] FAULT-STATE...`.

Each scenario is two processes, forked from this one, which has imported everything and started
nothing: the first meets FAULT once the record of its capture shows STATE on disk, the second is the
next start of the same run, from Levanter's own checkpoint. OUT/FAULT-STATE holds for each its exit
status, the steps that hooks saw and the log lines (first.json, second.json), and what it printed.
Before the next start, files like those of a writer that was killed are left in the run's folders.

`again`: the first process trains twice, and both trainings raise at STATE. With `--finish` a copy
of what a kill left, in OUT/FAULT-STATE.moved, is given to `marin-profile finish`.
"""

import json
import logging
import os
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import haliax as hax
import jax
import numpy as np
from levanter.callbacks.watch import WatchConfig
from levanter.checkpoint import CheckpointerConfig
from levanter.data.dataset import ListAsyncDataset
from levanter.optim.config import AdamConfig
from levanter.tracker.tracker import Tracker, TrackerConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.cli import run as run_command
from marin_profile.levanter import ProfilerConfig, Window, install
from marin_profile.profiling.worker import yield_to_training  # noqa: F401  # imported before a fork
from patience import PATIENCE, running_with, wait_until

Features = hax.Axis("features", 16)
Outputs = Features.alias("outputs")
BATCH_SIZE = 4
START, STEPS = 5, 3  # the window
TRAIN_STEPS = 20
# The step after which a capture of the window can be in that state, and stay there.
STEP_OF = {"planned": 3, "tracing": 6, "settling": 8, "ingesting": 13, "shared": 13}
FULL = "full"  # the folder, below OUT, whose disk is filled
GONE = "tracker_gone"
LEFT = ".marin-profile-0123456789abcdef.tmp"  # as a writer that was killed leaves it
AGAIN = (Window(START, STEPS), Window(10, STEPS))  # one for each of the two that raise


class KeepingTracker(Tracker):
    """Keeps the names of artifacts in a file."""

    name = "keeping"

    def __init__(self, out: Path, how: str) -> None:
        self._out, self._how = out, how

    def log_artifact(self, artifact_path, *, name=None, type=None):
        if self._how == "stuck":
            time.sleep(PATIENCE)
        if self._how == "gone":
            wait_until((self._out / GONE).exists)  # the capture is seen as not logged before that
            raise ConnectionError("gone")
        with open(self._out / "logged", "a") as file:
            file.write(f"{name}\n")

    def log_summary(self, metrics):
        pass

    def log_hyperparameters(self, hparams):
        pass

    def log(self, metrics, *, step, commit=None):
        pass

    def finish(self):
        pass


@dataclass(frozen=True)
class KeepingConfig(TrackerConfig):
    out: Path
    how: str

    def init(self, run_id):
        return KeepingTracker(self.out, self.how)


class Start:
    """One start of a run; `fault` and `state` are None where nothing goes wrong."""

    def __init__(self, out: Path, fault: str | None = None, state: str | None = None) -> None:
        self.out, self.fault, self.state = out, fault, state
        self.name = "first" if fault is not None else "second"
        self.fault_step = STEP_OF.get(state)
        self.windows = AGAIN if fault == "again" else ()
        self.told = {"steps": [], "log": [], "errors": []}
        self.captures = out / "run" / "profiler" / "plugins" / "profile"
        # What the training itself writes does not lie on the disk that is full.
        self.beside = out.parent.parent if out.parent.name == FULL else out.parent
        self.checkpoints = self.beside / f"{out.name}.checkpoints"

    def tell(self) -> None:
        """So that it is there however the process ends."""
        told = self.beside / f"{self.out.name}.{self.name}.json"
        told.write_text(json.dumps(self.told))

    def say(self, record: logging.LogRecord) -> None:
        self.told["log"].append(f"{record.levelname} {record.getMessage()}")
        self.tell()

    # --- the fault -------------------------------------------------------------------------------

    def after(self, step: int) -> None:
        if self.fault is None or self.state is None:
            return
        if step == self.fault_step:
            wait_until(self.is_there)
            wait_until(lambda: any(map(is_written, self.checkpoints.rglob("metadata.json"))))
            self.meet()
        elif step == self.fault_step + STEPS + 2 and self.fault == "profiler":
            with suppress(RuntimeError):
                jax.profiler.stop_trace()

    def is_there(self) -> bool:
        records = list(self.captures.glob("*/capture_record.json"))
        if self.state == "planned":
            return not records
        return any(json.loads(one.read_text())["state"] == self.state for one in records)

    def meet(self) -> None:
        if self.fault in ("raise", "again"):
            raise RuntimeError("crash")
        if self.fault in ("term", "kill"):
            self.tell()
            os.kill(os.getpid(), getattr(signal, f"SIG{self.fault.upper()}"))
            time.sleep(PATIENCE)
        if self.fault == "worker":
            for pid in running_with("marin_profile.profiling.worker", str(self.out)):
                os.kill(pid, signal.SIGKILL)
        if self.fault == "profiler":
            try:
                jax.profiler.start_trace(str(self.out / "other"))
            except RuntimeError as error:
                self.told["errors"].append(str(error))
        if self.fault == "tracker":
            (self.out / GONE).touch()
        if self.fault == "disk":
            fill(self.out / "run" / "filler")

    # --- the training ----------------------------------------------------------------------------

    def run(self) -> None:
        logger = logging.getLogger("marin_profile")
        logger.setLevel(logging.INFO)
        handler = logging.Handler()
        handler.emit = self.say
        logger.addHandler(handler)
        if self.fault is not None and self.state == "ingesting":
            os.environ["INGEST_FAULT"] = "wait"
        how = "works"
        if self.fault is not None and self.state == "shared":
            how = "gone" if self.fault == "tracker" else "stuck"
        (self.out / "run" / "filler").unlink(missing_ok=True)
        train(self, KeepingConfig(self.out, how))


def again(first: Start) -> None:
    """Two trainings that raise, in one process; JAX's profiler is free after each."""
    for step in (first.fault_step, first.fault_step + AGAIN[1].start_step - START):
        start = Start(first.out, first.fault, first.state)
        start.fault_step = step
        start.told = first.told
        with suppress(RuntimeError):
            start.run()
            first.told["errors"].append("it did not raise")
        try:
            jax.profiler.start_trace(str(first.beside / f"{first.out.name}.other"))
            jax.profiler.stop_trace()
        except RuntimeError as error:
            first.told["errors"].append(str(error))
    first.tell()


def fill(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(b"0")


def loss_fn(model, batch, *, key=None):
    return hax.mean((model(batch) - batch.rename({"features": "outputs"})) ** 2)


def train(start: Start, tracker: TrackerConfig) -> None:
    config = TrainerConfig(
        id="run",
        log_dir=start.out,
        tracker=tracker,
        watch=WatchConfig(watch_targets=[]),
        num_train_steps=TRAIN_STEPS,
        train_batch_size=BATCH_SIZE,
        checkpointer=CheckpointerConfig(
            base_path=str(start.checkpoints), save_interval=None, keep=[{"every": 2}]
        ),
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    rows = np.random.default_rng(0).standard_normal((64, Features.size), dtype=np.float32)
    named = [hax.named(row, Features) for row in rows]
    data = ListAsyncDataset([named[i % 64] for i in range(BATCH_SIZE * TRAIN_STEPS)])
    profiler = ProfilerConfig(
        start_step=START,
        num_steps=STEPS,
        windows=list(start.windows),
        min_free_disk_gb=0.0,
        # What a tracker or a full disk holds up is left behind soon.
        ingest_timeout=PATIENCE if start.fault in (None, "worker", "profiler") else 5.0,
    )
    with Trainer(config, AdamConfig().build(TRAIN_STEPS), loss_fn) as trainer:
        install(trainer, profiler)
        trainer.add_hook(lambda info: start.told["steps"].append(int(info.step)), every=1)
        trainer.add_hook(lambda info: start.after(int(info.step)), every=1)
        state = trainer.initial_state(
            jax.random.PRNGKey(0),
            model_init=lambda: hax.nn.Linear.init(Features, Outputs, key=jax.random.PRNGKey(1)),
        )
        trainer.train(state, trainer.data_loader(data))
    start.tell()


def forked(start: Start) -> int:
    """The exit status, negative for a signal, of a process that does this start."""
    start.out.mkdir(exist_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        log = os.open(start.beside / f"{start.out.name}.{start.name}.out", os.O_CREAT | os.O_RDWR)
        os.dup2(log, 1)
        os.dup2(log, 2)
        (again if start.fault == "again" else Start.run)(start)
        sys.exit(0)  # as a training's process does, with what runs at exit
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def leave_partial_files(out: Path) -> None:
    for folder in (out / "run", *out.glob("run/profiler/plugins/profile/*")):
        if folder.is_dir():
            (folder / LEFT).touch()


def is_written(path: Path) -> bool:
    """Also while Levanter takes it away."""
    with suppress(FileNotFoundError):
        return path.stat().st_size > 0
    return False


def drop_torn_checkpoints(checkpoints: Path) -> None:
    """Levanter does not start beside a checkpoint of its own that a kill left half written."""
    for metadata in [*checkpoints.rglob("metadata.json")]:
        if not is_written(metadata):
            shutil.rmtree(metadata.parent)


def finished(start: Start) -> int:
    """The exit status of `marin-profile finish` on a copy of the run, elsewhere."""
    moved = start.beside / f"{start.out.name}.moved"
    shutil.copytree(start.out / "run", moved / "run")
    pid = os.fork()
    if pid == 0:
        log = os.open(start.beside / f"{start.out.name}.finish.out", os.O_CREAT | os.O_RDWR)
        os.dup2(log, 1)
        os._exit(run_command(["finish", str(moved)]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(out: Path, names: list[str], finish: bool = False) -> None:
    statuses = {}
    for name in names:
        fault, state = re.fullmatch(r"(\w+)-(\w+)", name).groups()
        folder = out / FULL / name if fault == "disk" else out / name
        first, second = Start(folder, fault, state), Start(folder)
        second.windows = first.windows
        statuses[name] = [forked(first)]
        if fault != "disk":
            leave_partial_files(folder)
        if finish and fault == "kill" and state != "planned":
            statuses[f"{name}.finish"] = finished(first)
        drop_torn_checkpoints(second.checkpoints)
        statuses[name].append(forked(second))
    (out / "statuses.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        [name for name in sys.argv[2:] if name != "--finish"],
        "--finish" in sys.argv,
    )
