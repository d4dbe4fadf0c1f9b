"""What a bisection found: a function of its journal alone; and its answer in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any, Literal

from marin_profile.base.text import plural
from marin_profile.experiment.bisect_journal import Kept
from marin_profile.experiment.bisection import (
    Direction,
    Standing,
    Try,
    measurements,
    standing,
)
from marin_profile.experiment.commits import Commit
from marin_profile.experiment.plan import Measure

State = Literal["found", "no_change", "unsure", "failed"]
SCHEMA = "profile_bisect.v1"
# A probability of no change that leaves it open whether there is anything to be found.
DOUBT = 0.05
_INTERVAL = 0.975


@dataclass(frozen=True)
class CommitRow:
    """`probability`: that it is the first one after the change. `step_time`: the median of its
    captures in microseconds."""

    commit: str
    subject: str
    is_merge: bool
    probability: float | None
    captures: int
    step_time: float | None
    skipped: str | None


@dataclass(frozen=True)
class Change:
    """The step time's relative change from before to after, with its 95 % interval (None: too few
    captures), over all captures on both sides; step times are geometric means in microseconds."""

    ratio: float
    low: float | None
    high: float | None
    before: float
    after: float


@dataclass(frozen=True)
class BisectResult:
    """`found`, `before` and `after` are indices of `commits`: of the commit found, and of those
    that the change lies between. `confidence` is that of what `state` says. `ends`: the change
    between the good and the bad end."""

    state: State
    direction: Direction
    measure: Measure
    least_change: float
    commits: tuple[CommitRow, ...]
    merged: int
    found: int | None
    before: int
    after: int
    confidence: float | None
    none: float | None
    change: Change | None
    ends: Change | None
    tries: tuple[Try, ...]
    lost_end: int | None

    @property
    def captures(self) -> tuple[Try, ...]:
        return tuple(one for one in self.tries if one.outcome == "measured")

    @property
    def skipped(self) -> tuple[CommitRow, ...]:
        return tuple(one for one in self.commits if one.skipped is not None)

    def newest_capture(self, at: int) -> str | None:
        """Of a commit, as a path below the bisection's folder."""
        own = [one.capture for one in self.captures if one.commit == self.commits[at].commit]
        return own[-1] if own else None


def result_of(kept: Kept) -> BisectResult:
    """Also of one that is not over: it is unsure then."""
    commits, question, tries = kept.commits, kept.question, kept.tries
    now = standing(commits, question, tries)
    search = now.search
    times: dict[str, list[float]] = {one.sha: [] for one in commits.commits}
    for one in tries:
        length = one.step_time(question.measure)
        if one.outcome == "measured" and length is not None:
            times[one.commit].append(length)
    rows = tuple(_row(one, at, times[one.sha], now) for at, one in enumerate(commits.commits))
    before, after = search.between if search else (0, commits.last)
    state = _state(now)
    logs = [
        (one.commit, one.log_step_time if question.direction == "slower" else -one.log_step_time)
        for one in measurements(commits, question, tries)
    ]
    return BisectResult(
        state=state,
        direction=question.direction,
        measure=question.measure,
        least_change=math.expm1(question.least_change),
        commits=rows,
        merged=commits.merged,
        found=after if state == "found" else None,
        before=before,
        after=after,
        confidence=search.confidence if search else None,
        none=search.no_slowdown if search else None,
        change=_change(logs, before, after) if state in ("found", "unsure") else None,
        ends=_change(logs, 0, commits.last),
        tries=tries,
        lost_end=now.lost_end,
    )


def _row(commit: Commit, at: int, times: Sequence[float], now: Standing) -> CommitRow:
    return CommitRow(
        commit=commit.sha,
        subject=commit.subject,
        is_merge=commit.is_merge,
        probability=now.search.posterior[at] if now.search and at else None,
        captures=len(times),
        step_time=median(times) if times else None,
        skipped=now.skipped.get(at),
    )


def _state(now: Standing) -> State:
    if now.search is None:
        return "failed"
    states: Mapping[str, State] = {"found": "found", "no_slowdown": "no_change"}
    return states.get(now.search.state, "unsure")


def _change(logs: Sequence[tuple[int, float]], before: int, after: int) -> Change | None:
    """From the captures up to `before` to those from `after` on."""
    one = [value for at, value in logs if at <= before]
    two = [value for at, value in logs if at >= after]
    if not one or not two:
        return None
    center = fmean(two) - fmean(one)
    low = high = None
    freedom = len(one) + len(two) - 2
    if freedom > 0:
        from marin_profile.verdict.student import t_quantile

        squares = sum((v - fmean(side)) ** 2 for side in (one, two) for v in side)
        error = math.sqrt(squares / freedom * (1 / len(one) + 1 / len(two)))
        width = float(t_quantile(_INTERVAL, float(freedom))) * error
        low, high = math.expm1(center - width), math.expm1(center + width)
    return Change(math.expm1(center), low, high, math.exp(fmean(one)), math.exp(fmean(two)))


# --- in words ---


def sentence(result: BisectResult) -> str:
    """The answer."""
    taken = plural(len(result.captures), "capture")
    if result.state == "failed":
        assert result.lost_end is not None
        which = "bad" if result.lost_end else "good"
        return (
            f"The {which} commit {name(result, result.lost_end)} cannot be measured: "
            f"{result.commits[result.lost_end].skipped}."
        )
    assert result.confidence is not None
    told = f"{sure(result.confidence)}, {taken}"
    if result.state == "found":
        assert result.found is not None
        assert result.change is not None
        return (
            f"Commit {name(result, result.found)} made the step {by(result.change.ratio)} ({told})."
        )
    ends = f"{name(result, 0)} and {name(result, len(result.commits) - 1)}"
    least = f"{percent(result.least_change)} {result.direction}"
    if result.state == "no_change":
        return f"No commit between {ends} made the step {least} or more ({told})."
    between = f"{name(result, result.before)} and {name(result, result.after)}"
    if result.none is not None and result.none > DOUBT:
        return (
            f"Unsure between {between}: it may be that no commit made the step {least} or more "
            f"({100 * result.none:.0f} %, {taken})."
        )
    return (
        f"Unsure between {between}: the step got {result.direction} after the first of them, and "
        f"no later than with the second ({told})."
    )


def name(result: BisectResult, at: int) -> str:
    row = result.commits[at]
    return f"{Commit(row.commit, row.subject).short} '{row.subject}'"


def by(ratio: float) -> str:
    """ "30 % slower"."""
    return f"{percent(abs(ratio))} {'slower' if ratio > 0 else 'faster'}"


def percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %" if ratio >= 0.0995 else f"{round(100 * ratio, 1):g} %"


def sure(probability: float) -> str:
    """Rounded down: nothing is 100 % sure."""
    return f"{min(99, math.floor(100 * probability))} % sure"


def figures(result: BisectResult) -> dict[str, Any]:
    """For programs."""
    told = asdict(result)
    told |= {
        "schema_version": SCHEMA,
        "sentence": sentence(result),
        "commits": [asdict(row) for row in result.commits],
        "tries": [_builtins(one) for one in result.tries],
    }
    return told


def _builtins(tried: Try) -> dict[str, Any]:
    import msgspec

    built: dict[str, Any] = msgspec.to_builtins(tried)
    return built
