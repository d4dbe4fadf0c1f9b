"""A Levanter training of two processes of which one meets a fault, and its next start:
`python interrupted_processes.py OUT FAULT-PROCESS-STATE...`.

Each scenario is two pairs of processes, forked from this one, which has imported everything and
started nothing. In the first pair PROCESS meets FAULT once the records of both processes show STATE
on disk; the second is the next start of the run. `bare` as STATE: the same fault in a training that
is not profiled, and no next start. OUT/FAULT-PROCESS-STATE holds for each process what it was told
(first_0.json, ...) and what it printed; OUT/statuses.json the exit statuses.
"""

import json
import logging
import os
import re
import signal
import socket
import sys
from pathlib import Path

import haliax as hax
import interrupted_training as alone
import jax
import numpy as np
from levanter.callbacks.watch import WatchConfig
from levanter.checkpoint import CheckpointerConfig
from levanter.data.dataset import ListAsyncDataset
from levanter.optim.config import AdamConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter import ProfilerConfig, install
from patience import PATIENCE, wait_until

BARE_STEP = 10
# The next start has one training step to spare: nothing but a lost capture is to be taken again.
FEW_STEPS = 4


class Start:
    """One process of a start of a run; `fault` and `state` are None where nothing goes wrong."""

    def __init__(self, out: Path, index: int, fault: str | None, state: str | None) -> None:
        self.out, self.index, self.fault, self.state = out, index, fault, state
        self.name = "first"
        self.num_steps = alone.TRAIN_STEPS
        self.told: dict[str, list] = {"steps": [], "log": []}

    def tell(self) -> None:
        (self.out / f"{self.name}_{self.index}.json").write_text(json.dumps(self.told))

    def say(self, record: logging.LogRecord) -> None:
        self.told["log"].append(f"{record.levelname} {record.getMessage()}")
        self.tell()

    def after(self, step: int) -> None:
        self.told["steps"].append(step)
        if self.fault is None:
            return
        if self.state == "bare":
            if step == BARE_STEP:
                self.meet()
        elif step == alone.STEP_OF[self.state]:
            wait_until(self.is_there)
            self.meet()

    def is_there(self) -> bool:
        wanted = [{self.state}, {"published"} if self.state == "shared" else {self.state}]
        return [self.states(index) for index in (0, 1)] == wanted

    def states(self, index: int) -> set[str]:
        records = self.out.glob(f"run/profiler/process_{index}/**/capture_record.json")
        return {json.loads(record.read_text())["state"] for record in records}

    def meet(self) -> None:
        self.tell()
        if self.fault == "raise":
            raise RuntimeError("crash")
        os.kill(os.getpid(), signal.SIGKILL)

    def run(self, port: int) -> None:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        # How soon JAX ends a process of which another one is gone.
        seconds = PATIENCE if self.name == "second" else 10
        jax.distributed.initialize(
            f"127.0.0.1:{port}",
            2,
            self.index,
            heartbeat_timeout_seconds=int(seconds),
            shutdown_timeout_seconds=int(seconds),
        )
        logger = logging.getLogger("marin_profile")
        logger.setLevel(logging.INFO)
        handler = logging.Handler()
        handler.emit = self.say
        logger.addHandler(handler)
        if self.state == "ingesting":
            os.environ["INGEST_FAULT"] = "wait"
        train(self, alone.KeepingConfig(self.out, "stuck" if self.state == "shared" else "works"))


def train(start: Start, tracker: alone.KeepingConfig) -> None:
    config = TrainerConfig(
        id="run",
        log_dir=start.out,
        tracker=tracker,
        watch=WatchConfig(watch_targets=[]),
        num_train_steps=start.num_steps,
        train_batch_size=alone.BATCH_SIZE,
        checkpointer=CheckpointerConfig(
            base_path=str(start.out / "checkpoints"), save_interval=None, keep=[]
        ),
        load_checkpoint=False,
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    rows = np.random.default_rng(0).standard_normal((64, alone.Features.size), dtype=np.float32)
    named = [hax.named(row, alone.Features) for row in rows]
    count = alone.BATCH_SIZE * start.num_steps
    data = ListAsyncDataset([named[i % len(named)] for i in range(count)])
    profiler = ProfilerConfig(
        start_step=alone.START,
        num_steps=alone.STEPS,
        min_free_disk_gb=0.0,
        hosts_timeout=PATIENCE,
        ingest_timeout=PATIENCE,
    )
    with Trainer(config, AdamConfig().build(start.num_steps), alone.loss_fn) as trainer:
        if start.state != "bare":
            install(trainer, profiler)
        trainer.add_hook(lambda info: start.after(int(info.step)), every=1)
        state = trainer.initial_state(
            jax.random.PRNGKey(0),
            model_init=lambda: hax.nn.Linear.init(
                alone.Features, alone.Outputs, key=jax.random.PRNGKey(1)
            ),
        )
        trainer.train(state, trainer.data_loader(data))
    start.tell()


def forked(start: Start, port: int) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        log = os.open(start.out / f"{start.name}_{start.index}.out", os.O_CREAT | os.O_RDWR)
        os.dup2(log, 1)
        os.dup2(log, 2)
        start.run(port)
        sys.exit(0)
    return pid


def run_pair(starts: list[Start]) -> list[int]:
    """The exit status of each process, negative for a signal."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    pids = [forked(start, port) for start in starts]
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def next_start(out: Path, index: int, state: str) -> Start:
    start = Start(out, index, None, None)
    start.name = "second"
    if state != "tracing":
        start.num_steps = FEW_STEPS
    return start


def main(out: Path, names: list[str]) -> None:
    statuses = {}
    for name in names:
        fault, process, state = re.fullmatch(r"(\w+)-([01])-(\w+)", name).groups()
        folder = out / name
        folder.mkdir()
        faults = [fault if index == int(process) else None for index in (0, 1)]
        statuses[name] = [run_pair([Start(folder, i, faults[i], state) for i in (0, 1)])]
        if state != "bare":
            statuses[name].append(run_pair([next_start(folder, i, state) for i in (0, 1)]))
    (out / "statuses.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
