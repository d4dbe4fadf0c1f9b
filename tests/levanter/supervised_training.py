"""A training under Levanter's supervisor, which hangs once: `python supervised_training.py OUT
STATE...`.

In the first attempt the training hangs once the record of its capture shows STATE on disk; the
supervisor then sends SIGTERM to the process group that it made, and starts the training again.
`worker` as STATE is `ingesting`, with a SIGTERM for the worker too, which has a group of its own.
OUT/results.json holds per state what the supervisor says of it, OUT/STATE what interrupted_training
writes.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import interrupted_training as alone
from levanter.recovery.detection import DetectionConfig
from levanter.recovery.supervisor import ENV_ATTEMPT, ENV_HEARTBEAT_PATH, GPUHangSupervisor

from patience import PATIENCE, running_with, wait_until

WORKER = "marin_profile.profiling.worker"


class Supervised(alone.Start):
    """One attempt; in the first one `fault` is "hang"."""

    def after(self, step: int) -> None:
        Path(os.environ[ENV_HEARTBEAT_PATH]).write_text(str(step))
        super().after(step)

    def meet(self) -> None:
        if self.out.name == "worker":
            (worker,) = running_with(WORKER, str(self.out))
            os.kill(worker, signal.SIGTERM)
            wait_until(lambda: any("not summarised" in line for line in self.told["log"]))
        self.tell()
        os.utime(os.environ[ENV_HEARTBEAT_PATH], (0, 0))  # long ago
        time.sleep(PATIENCE)


def attempt(config: tuple[str, str]) -> None:
    """In the supervisor's child."""
    out, state = config
    is_first = os.environ[ENV_ATTEMPT] == "1"
    Supervised(Path(out), *(("hang", state) if is_first else ())).run()


def main(out: Path, names: list[str]) -> None:
    import supervised_training  # the child finds `attempt` by its module's name

    results = {}
    with GPUHangSupervisor(
        detection=DetectionConfig(),
        deadman_timeout=100 * PATIENCE,
        poll_interval=0.2,
        startup_timeout=PATIENCE,
        gpu_health_gate=False,
        snapshot_tmpfs_base=str(out / "snapshots"),
        work_dir=str(out / "supervisor"),
    ) as supervisor:
        for name in names:
            (out / name).mkdir()
            state = "ingesting" if name == "worker" else name
            config = (str(out / name), state)
            ended = supervisor.run(supervised_training.attempt, config, label=name)
            codes = [fault.returncode for fault in ended.faults]
            results[name] = {"outcome": str(ended.outcome), "codes": codes}
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
