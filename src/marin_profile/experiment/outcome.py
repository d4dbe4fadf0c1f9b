"""What became of one run, as the journal keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

from marin_profile.experiment.journal import converted

STARTED, ENDED = "started", "ended"


class Run(msgspec.Struct, frozen=True):
    """One run of an arm in a round (below 0: for warming up); the first attempt is 1."""

    round: int
    arm: str
    attempt: int = 1

    @property
    def counts(self) -> bool:
        return self.round >= 0

    @property
    def folder(self) -> str:
        """Of its files, by name."""
        which = f"round{self.round + 1:02}" if self.counts else f"warmup{-self.round:02}"
        again = f"-{self.attempt}" if self.attempt > 1 else ""
        return f"{which}-{self.arm}{again}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds`: how long the command ran. `problem`: why the run failed, None if it left a step
    time. Step times are microseconds; `captures`: how many it left, the last of which counts."""

    run: Run
    seconds: float
    problem: str | None = None
    measure: str | None = None
    typical: float | None = None
    mean: float | None = None
    steps: int = 0
    captures: int = 0
    source_path: str | None = None
    trace_sha256: str | None = None


def started(run: Run, command: str) -> dict[str, Any]:
    """The journal's record of a run that begins."""
    return {"kind": STARTED, "run": msgspec.to_builtins(run), "command": command}


def ended(outcome: Outcome) -> dict[str, Any]:
    return {"kind": ENDED, **msgspec.to_builtins(outcome)}


def attempts_of(records: list[dict[str, Any]]) -> dict[tuple[int, str], int]:
    """How often each run was begun."""
    found: dict[tuple[int, str], int] = {}
    for record in records:
        if record.get("kind") == STARTED:
            run = converted(record.get("run"), Run)
            key = (run.round, run.arm)
            found[key] = max(found.get(key, 0), run.attempt)
    return found


def outcomes_of(records: list[dict[str, Any]]) -> list[Outcome]:
    """Raises BrokenInputError for a record that is no outcome."""
    return [converted(one, Outcome) for one in records if one.get("kind") == ENDED]
