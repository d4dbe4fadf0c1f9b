"""One staged profile, logged to every kind of tracker: `python all_trackers.py OUT CAPTURE`.

Writes OUT/results.json: per tracker its log line and rows, and what the tracker holds.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import msgspec
from levanter.tracker import CompositeTracker, NoopTracker
from levanter.tracker.background import BackgroundTracker
from levanter.tracker.json_file import JsonFileTrackerConfig
from levanter.tracker.json_logger import JsonLoggerConfig
from levanter.tracker.tensorboard import TensorboardConfig
from levanter.tracker.tracker import Tracker
from levanter.tracker.wandb import WandbConfig, WandbTracker

from marin_profile.levanter.tracker import LevanterTracker
from marin_profile.profiling.job import Job, Publish
from marin_profile.profiling.record import CaptureRecord, State, failed, noted
from marin_profile.profiling.sentences import lacking_text, line_of
from marin_profile.profiling.worker import ingest

LONG_ID = "a-sweep-" + "x" * 120


class Broken(Tracker):
    name = "broken"

    def log_artifact(self, artifact_path, *, name=None, type=None):
        raise ConnectionError("down")

    def log_summary(self, metrics):
        raise ConnectionError("down")

    def log_hyperparameters(self, hparams):
        pass

    def log(self, metrics, *, step, commit=None):
        pass

    def finish(self):
        pass


class Lines(logging.Handler):
    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def wandb(mode: str, run_id: str) -> Tracker:
    return WandbConfig(
        entity="loop", project="p", mode=mode, save_code=False, background_finish_timeout=60
    ).init(run_id)


def suppressed() -> Tracker:
    run = wandb("disabled", "suppressed").wrapped.run
    return WandbTracker(run, suppress_logging=True)


def finished(out: Path) -> Tracker:
    tracker = BackgroundTracker(JsonFileTrackerConfig(str(out)).init("r"))
    tracker.finish()
    return tracker


def quiet_logger() -> Tracker:
    return JsonLoggerConfig(logger_name="quiet", level=logging.WARNING).init("r")


def several(out: Path) -> Tracker:
    both = [Broken(), JsonFileTrackerConfig(str(out)).init("r"), NoopTracker()]
    return CompositeTracker([BackgroundTracker(CompositeTracker(both))])


def kinds(out: Path) -> dict[str, Callable[[], Tracker]]:
    found = {
        "noop": NoopTracker,
        "noop_twice": lambda: CompositeTracker([NoopTracker(), NoopTracker()]),
        "nothing": lambda: CompositeTracker([]),
        "disabled": lambda: wandb("disabled", "disabled"),
        "suppressed": suppressed,
        "offline": lambda: wandb("offline", "offline"),
        "online": lambda: CompositeTracker([wandb("online", "online"), NoopTracker()]),
        "long": lambda: wandb("online", LONG_ID),
        "json_logger": lambda: JsonLoggerConfig().init("r"),
        "quiet_logger": quiet_logger,
        "json_file": lambda: JsonFileTrackerConfig(str(out)).init("r"),
        "several": lambda: several(out / "several"),
        "broken": lambda: CompositeTracker([Broken(), NoopTracker()]),
        "finished": lambda: finished(out / "finished"),
    }
    try:
        import tensorboardX  # noqa: F401
    except ImportError:
        return found
    return found | {"tensorboard": lambda: TensorboardConfig(logdir=str(out / "tb")).init("r")}


def log_to(tracker: Tracker, run_id: str, capture: Path) -> CaptureRecord:
    ingest(Job(capture, capture, run={"run_id": run_id}, publish=Publish(run_id, "auto", False)))
    shared = CaptureRecord(run_id=run_id, start_step=3, stop_step=6, state=State.SHARED)
    try:
        rows = LevanterTracker(lambda: tracker).log(capture, run_id, 60.0, ())
    except Exception as error:
        return failed(noted(shared, folder=str(capture)), f"{type(error).__name__}: {error}")
    if lacking := lacking_text(rows):
        return failed(noted(shared, folder=str(capture)), lacking, logged=rows)
    return msgspec.structs.replace(shared, state=State.PUBLISHED, logged=rows)


def main(out: Path, capture: Path) -> None:
    errors = Lines(logging.ERROR)
    logging.getLogger("levanter").addHandler(errors)
    json_lines = Lines()
    logging.getLogger("levanter.json_logger").addHandler(json_lines)
    results = {}
    for kind, make in kinds(out).items():
        (out / kind).mkdir(exist_ok=True)
        errors.lines.clear()
        json_lines.lines.clear()
        tracker = make()
        record = log_to(tracker, LONG_ID if kind == "long" else kind, capture)
        tracker.finish()
        line = line_of(record)
        results[kind] = {
            "line": line and [logging.getLevelName(line[0]), line[1]],
            "rows": msgspec.to_builtins(record.logged),
            "errors": list(errors.lines),
            "json": list(json_lines.lines),
        }
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
