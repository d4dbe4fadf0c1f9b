"""One run: its command to its end, then the step time of the capture that it left.

Contract
* Whatever goes wrong with a run is the problem of its outcome, in words that follow the arm's name.
* Its folder holds its log, what the command left (unless that goes elsewhere) and the summary. In
  the log and in problems the values of the plan's variables are masked (`commands`).
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from marin_profile.base.errors import NotFoundError, ProfileError
from marin_profile.base.storage import is_url, write_file
from marin_profile.base.text import visible
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.capture.sources import find_captures
from marin_profile.experiment.commands import last_line, mask_file
from marin_profile.experiment.launching import launch
from marin_profile.experiment.lock import Lock
from marin_profile.experiment.outcome import Outcome, Run
from marin_profile.experiment.plan import Plan
from marin_profile.experiment.process import Command, Ended, run
from marin_profile.facts.step_time import typical_and_mean
from marin_profile.schema import ProfileSummary

RUNS_FOLDER, OUT_FOLDER, LOG_FILE = "runs", "out", "log.txt"
_MOST_QUOTED = 200


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
    values = plan.environment_of(arm).values()
    mask_file(log, values)
    if not ended.succeeded:
        return Outcome(run=this, seconds=ended.seconds, problem=_why(ended, arm.timeout, log))
    found = _measured(plan, this, out, ended)
    if isinstance(found, Outcome):
        return found
    summary, outcome = found
    write_file(str(summary_path(this, output)), summary.to_json().encode())
    return outcome


def _measured(
    plan: Plan, this: Run, out: str, ended: Ended
) -> Outcome | tuple[ProfileSummary, Outcome]:
    """The outcome alone where there is nothing to measure."""
    from marin_profile.pipeline import SummarizeOptions, summarize_capture
    from marin_profile.verdict.inputs import objections

    seconds = ended.seconds
    captures = []
    try:
        with suppress(NotFoundError):
            captures = find_captures(out)
        if not captures:
            return Outcome(run=this, seconds=seconds, problem="left no profile")
        options = SummarizeOptions(warmup_steps=plan.warmup_steps)
        summary = summarize_capture(captures[-1], options)
    except ProfileError as error:
        problem = f"left a profile that cannot be used: {visible(str(error), 500)}"
        return Outcome(run=this, seconds=seconds, problem=problem, captures=len(captures))
    length = typical_and_mean(summary)
    wrong = [one.removeprefix("before ") for one in objections([summary], [])]
    if length is None or wrong:
        why = wrong[0] if wrong else "holds no step's length"
        problem = f"left a profile that {why}"
        return Outcome(run=this, seconds=seconds, problem=problem, captures=len(captures))
    outcome = Outcome(
        run=this,
        seconds=seconds,
        measure=length.measure,
        typical=length.typical,
        mean=length.mean,
        steps=length.steps,
        captures=len(captures),
        source_path=summary.source_path,
        trace_sha256=summary.trace_provenance.trace_sha256,
    )
    return summary, outcome


def _why(ended: Ended, timeout: float | None, log: Path) -> str:
    why = ended.why_not(timeout)
    last = visible(last_line(log), _MOST_QUOTED)
    return f"{why}; the log ends: {last}" if last else why
