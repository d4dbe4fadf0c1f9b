"""One run: its command to its end, then the step time of the capture that it left.

Contract
* Whatever goes wrong with a run is the problem of its outcome, in words that follow the arm's name.
* Its folder holds its log, what the command left (unless that goes elsewhere) and the summary. In
  the log and in problems the values of the plan's variables are masked (`commands`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from marin_profile.base.storage import is_url, write_file
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.experiment.commands import mask_file, why_failed
from marin_profile.experiment.launching import launch
from marin_profile.experiment.lock import Lock
from marin_profile.experiment.measured import left_in
from marin_profile.experiment.outcome import Outcome, Run
from marin_profile.experiment.plan import Plan
from marin_profile.experiment.process import Command, run

RUNS_FOLDER, OUT_FOLDER, LOG_FILE = "runs", "out", "log.txt"


def out_of(plan: Plan, this: Run, output: Path) -> str:
    """Where a run is to leave its capture."""
    if plan.outputs is not None:
        return f"{plan.outputs.rstrip('/')}/{this.folder}"
    return str(output.absolute() / RUNS_FOLDER / this.folder / OUT_FOLDER)


def summary_path(this: Run, output: Path) -> Path:
    return output / RUNS_FOLDER / this.folder / SUMMARY_FILE


def measure(plan: Plan, this: Run, folder: Path, output: Path, lock: Lock) -> Outcome:
    """Run it in `folder`, and judge what it left."""
    arm, out = plan.arm(this.arm), out_of(plan, this, output)
    own = output / RUNS_FOLDER / this.folder
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    if not is_url(out):
        Path(out).mkdir(parents=True, exist_ok=True)
    made = launch(plan, arm, out=out, folder=folder)
    log = own / LOG_FILE
    ended = run(
        Command(made.arguments, made.folder, log, made.environment, timeout=arm.timeout), lock
    )
    mask_file(log, plan.environment_of(arm).values())
    if not ended.succeeded:
        return Outcome(run=this, seconds=ended.seconds, problem=why_failed(ended, arm.timeout, log))
    left = left_in(out, warmup_steps=plan.warmup_steps)
    if left.summary is None or left.length is None:
        return Outcome(
            run=this, seconds=ended.seconds, problem=left.problem, captures=left.captures
        )
    write_file(str(summary_path(this, output)), left.summary.to_json().encode())
    return Outcome(
        run=this,
        seconds=ended.seconds,
        measure=left.length.measure,
        typical=left.length.typical,
        mean=left.length.mean,
        steps=left.length.steps,
        captures=left.captures,
        source_path=left.summary.source_path,
        trace_sha256=left.summary.trace_provenance.trace_sha256,
    )
