"""Runs an experiment to its end, from wherever it is.

Contract
* One run at a time, and one runner in a folder. What the journal holds is never run again; a run
  that was under way when the runner was killed is, once nothing is left of it.
* Nothing is started, and no journal begun, unless plan, patches and commits are sound.
* A journal that is of another plan is an error that names what changed, the values of variables
  included, of which it holds a salted hash alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marin_profile.experiment.commands import digest_of
from marin_profile.experiment.folder import JOURNAL_FILE, check_folder
from marin_profile.experiment.journal import Journal, read_journal
from marin_profile.experiment.launching import shown
from marin_profile.experiment.lock import Lock, only_runner
from marin_profile.experiment.measuring import measure, out_of
from marin_profile.experiment.outcome import Outcome, Run, attempts_of, ended, outcomes_of, started
from marin_profile.experiment.places import WORKTREES_FOLDER, Sources, places_of, sources_of
from marin_profile.experiment.plan import Plan
from marin_profile.experiment.progress import Progress, progress_of

JOURNAL_SCHEMA = "experiment_journal.v1"

Told = Callable[[Run, "Outcome | None"], None]


def conduct(plan: Plan, output: Path, told: Told = lambda run, outcome: None) -> Sources:
    """Go on until nothing is left to run; `told` of each run before it (None) and after it. Raises
    UsageError, also where another runner is at work, and BrokenInputError for a damaged journal."""
    check_folder(output, "the experiment", [WORKTREES_FOLDER])
    sources = sources_of(plan)
    with only_runner(output) as lock:
        path = output / JOURNAL_FILE
        known = read_journal(path)
        salt = str(known[0].get("salt", "")) if known else secrets.token_hex(8)
        head = _head(plan, sources, salt)
        if known and _so_far(plan, Journal(path, head)).next_run is None:
            return sources
        with places_of(plan, sources, output) as places:
            journal = Journal(path, head)
            while (run := _so_far(plan, journal).next_run) is not None:
                _run(plan, run, places[run.arm], output, lock, journal, told)
    return sources


def _run(
    plan: Plan,
    run: Run,
    folder: Path,
    output: Path,
    lock: Lock,
    journal: Journal,
    told: Told,
) -> None:
    earlier = attempts_of(journal.records).get((run.round, run.arm), 0)
    run = Run(run.round, run.arm, earlier + 1)
    arm = plan.arm(run.arm)
    command = shown(plan, arm, out=out_of(plan, run, output), folder=folder)
    journal.append(started(run, command))
    told(run, None)
    outcome = measure(plan, run, folder, output, lock)
    journal.append(ended(outcome))
    told(run, outcome)


def journal_of(output: Path) -> list[dict[str, Any]]:
    """The records behind the head; none where there is no journal yet."""
    return read_journal(output / JOURNAL_FILE)[1:]


def progress_in(plan: Plan, output: Path) -> Progress:
    """Raises BrokenInputError for a damaged journal."""
    return progress_of(plan, outcomes_of(journal_of(output)))


def _so_far(plan: Plan, journal: Journal) -> Progress:
    return progress_of(plan, outcomes_of(journal.records))


def _head(plan: Plan, sources: Sources, salt: str) -> dict[str, Any]:
    return {
        "kind": "experiment",
        "schema_version": JOURNAL_SCHEMA,
        "salt": salt,
        "plan": plan.described(),
        "environment_values": digest_of(_values(plan), salt),
        "commits": dict(sources.commits),
        "patches": dict(sources.patches),
    }


def _values(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    return {arm.name: sorted(plan.environment_of(arm).items()) for arm in plan.arms}
