"""profile_experiment.v1: what an experiment came to, as frozen pydantic models, and how it is
found.

Contract
* A pure function of plan, sources, journal and summaries: same journal, same bytes.
* Effects are per cent of the control's step time, negative is faster; intervals are 95 %, of all
  arms and looks together. Null means not known.
* Rows are ranked: arms that win, then the others by their effect, then those without one. Ties go
  by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median, stdev
from typing import Literal

from marin_profile.comparison import Comparison, comparability, compare
from marin_profile.comparison.model import HloChanges
from marin_profile.experiment.expected import expected
from marin_profile.experiment.launching import again
from marin_profile.experiment.outcome import Outcome
from marin_profile.experiment.places import INSIDE, Sources
from marin_profile.experiment.plan import Measure, Plan, gain
from marin_profile.experiment.progress import Progress, effects_of, step_time
from marin_profile.schema import ProfileSummary, Record, canonical_json
from marin_profile.version import package_version

EXPERIMENT_SCHEMA = "profile_experiment.v1"

# "not_comparable": faster, but its step is no measure of the same work.
Standing = Literal["wins", "no_win", "slower", "undecided", "failed", "not_comparable", "running"]
Load = Callable[[Outcome], ProfileSummary | None]
Explain = Callable[[Outcome, Outcome], Comparison | None]
# Of several shares of what changed most, the first of these lists that has a row.
OF_TOP = 5


class Changed(Record):
    """What of an arm's mean step changed most against the control's, over its pairs of captures:
    microseconds per step and device."""

    name: str
    kind: Literal["region", "op"]
    delta: float
    share_of_change: float | None = None


class MemoryPeak(Record):
    """XLA's plan of the fullest program, in bytes on one device."""

    space: str
    control_size: int
    size: int
    delta_size: int


class ArmResult(Record):
    """`effect`, `low` and `high`: per cent of the control's step time. `other_effect`: of the other
    measure (mean or typical), without an interval. `step_time`: the median of the captures,
    microseconds; `spread`: of a step time from run to run, per cent. `hlo`: what XLA compiled
    otherwise than for the control, by the median captures of both. `captures` were spent on it,
    `pairs` of them count against the control's. `needed`: rounds that would settle it if it stays
    as estimated. `median_run`: the run of median step time, whose files lie in `runs/`. `caveats`:
    why its step may not be compared with the control's. `problems`: of its runs that failed.
    `command`: what runs it again."""

    rank: int
    arm: str
    standing: Standing
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    other_effect: float | None = None
    pairs: int = 0
    captures: int = 0
    seconds: float = 0.0
    step_time: float | None = None
    spread: float | None = None
    needed: int | None = None
    median_run: str | None = None
    memory: MemoryPeak | None = None
    changed: Changed | None = None
    why_not_changed: str | None = None
    hlo: HloChanges | None = None
    caveats: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    patch: str | None = None
    commit: str | None = None
    command: str


class ControlResult(Record):
    """As of the arms."""

    arm: str
    captures: int
    seconds: float
    step_time: float | None = None
    median_run: str | None = None
    problem: str | None = None
    problems: tuple[str, ...] = ()
    command: str


class Experiment(Record):
    """`rounds`: those that are complete, besides those for warming up. `is_over`: nothing is left
    to run. `worthwhile`: the least gain looked for, per cent."""

    schema_version: str = EXPERIMENT_SCHEMA
    tool_version: str
    measure: Measure
    worthwhile: float
    rounds: int
    most_rounds: int
    warmup_rounds: int
    is_over: bool
    control: ControlResult
    arms: tuple[ArmResult, ...]

    @property
    def captures(self) -> int:
        return self.control.captures + sum(arm.captures for arm in self.arms)

    @property
    def seconds(self) -> float:
        return self.control.seconds + sum(arm.seconds for arm in self.arms)

    def of(self, standing: Standing) -> list[ArmResult]:
        return [arm for arm in self.arms if arm.standing == standing]

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))


def findings(
    plan: Plan, sources: Sources, progress: Progress, load: Load, explain: Explain
) -> Experiment:
    """`load`: the summary of a run; `explain`: the comparison of two runs by their profiles; None
    where these are gone."""
    other: Measure = "mean" if plan.measure == "typical" else "typical"
    others = effects_of(plan, progress.outcomes, other, plan.rounds)
    rows = [
        _arm(plan, sources, progress, arm.name, others[arm.name], load, explain)
        for arm in plan.others
    ]
    rows.sort(key=lambda row: (row.standing != "wins", row.effect is None, row.effect, row.arm))
    control = plan.control.name
    return Experiment(
        tool_version=package_version(),
        measure=plan.measure,
        worthwhile=plan.worthwhile,
        rounds=progress.rounds,
        most_rounds=plan.rounds,
        warmup_rounds=plan.warmup_rounds,
        is_over=progress.next_run is None,
        control=ControlResult(
            arm=control,
            captures=_captures(progress, control),
            seconds=_seconds(progress, control),
            step_time=_median_time(progress, control, plan.measure),
            median_run=_median_run(progress, control, plan.measure),
            problem=progress.failed.get(control),
            problems=_problems(progress, control),
            command=_again(plan, sources, control),
        ),
        arms=tuple(row.model_copy(update={"rank": at}) for at, row in enumerate(rows, 1)),
    )


def _arm(
    plan: Plan,
    sources: Sources,
    progress: Progress,
    name: str,
    other_effects: Sequence[float],
    load: Load,
    explain: Explain,
) -> ArmResult:
    arm, effects = plan.arm(name), progress.effects[name]
    found, standing = progress.race.arms[name], _standing(progress, name)
    spread = stdev(effects) if len(effects) > 1 else None
    comparison = _comparison(plan, progress, name, load)
    changed, why_not = _changed(comparison)
    caveats = comparison.comparability.blocking if comparison else []
    if standing == "wins" and caveats:
        standing = "not_comparable"
    return ArmResult(
        rank=0,
        arm=name,
        standing=standing,
        effect=_percent(found.estimate),
        low=_percent(found.low),
        high=_percent(found.high),
        other_effect=_percent(math.fsum(other_effects) / len(other_effects))
        if other_effects
        else None,
        pairs=len(effects),
        captures=_captures(progress, name),
        seconds=_seconds(progress, name),
        step_time=_median_time(progress, name, plan.measure),
        spread=None if spread is None else 100 * spread / math.sqrt(2),
        needed=_needed(plan, found.estimate, spread) if standing == "undecided" else None,
        median_run=_median_run(progress, name, plan.measure),
        memory=_memory(comparison),
        changed=changed,
        why_not_changed=why_not,
        hlo=_hlo(plan, progress, name, explain),
        caveats=tuple(one.sentence for one in caveats),
        problems=_problems(progress, name),
        environment=tuple(sorted(plan.environment_of(arm))),
        patch=None if arm.patch is None else arm.patch.name,
        commit=sources.commits.get(name),
        command=_again(plan, sources, name),
    )


def _standing(progress: Progress, name: str) -> Standing:
    state = progress.race.arms[name].state
    if name in progress.failed and state == "running":
        return "failed"
    return "undecided" if state == "running" and progress.next_run is None else state


def _percent(log_ratio: float | None) -> float | None:
    if log_ratio is None or not math.isfinite(log_ratio):
        return None
    return 100 * math.expm1(log_ratio)


def _needed(plan: Plan, estimate: float | None, spread: float | None) -> int | None:
    """None where no number of rounds that a race has would do."""
    if estimate is None or not spread or estimate > gain(plan):
        return None
    return expected(spread / math.sqrt(2), estimate, len(plan.others)).rounds


def _changed(found: Comparison | None) -> tuple[Changed | None, str | None]:
    if found is None:
        return None, "the summaries to compare are not there"
    if found.attribution is None:
        return None, found.cannot_attribute
    for kind, rows in (
        ("region", found.attribution.headline.rows),
        ("op", found.attribution.ops.rows),
    ):
        named = [
            row for row in rows if row.delta and not row.noise and not row.name.startswith("(")
        ]
        for row in named[:1]:
            return (
                Changed(
                    name=row.name,
                    kind="region" if kind == "region" else "op",
                    delta=row.delta or 0.0,
                    share_of_change=row.share_of_target,
                ),
                None,
            )
    return None, "no part of the mean step is told from noise"


def _memory(found: Comparison | None) -> MemoryPeak | None:
    if found is None or found.memory is None:
        return None
    return MemoryPeak(
        space=found.memory.space,
        control_size=found.memory.before_size,
        size=found.memory.after_size,
        delta_size=found.memory.delta_size,
    )


def _comparison(plan: Plan, progress: Progress, name: str, load: Load) -> Comparison | None:
    """Of the arm's captures with the control's of the same rounds, as pairs. Whether they can be
    compared is asked of the first pair: all others are of the same commands."""
    controls = {one.run.round: one for one in progress.measured(plan.control.name)}
    sides: tuple[list[ProfileSummary], list[ProfileSummary]] = ([], [])
    for one in progress.measured(name):
        if one.run.round in controls:
            before, after = load(controls[one.run.round]), load(one)
            if before is not None and after is not None:
                sides[0].append(before)
                sides[1].append(after)
    if not sides[0]:
        return None
    first = comparability(sides[0][0], sides[1][0])
    found = compare(*sides, top_k=OF_TOP, paired=True)
    return found.model_copy(update={"comparability": first})


def _hlo(plan: Plan, progress: Progress, name: str, explain: Explain) -> HloChanges | None:
    control, own = (_median(progress, one, plan.measure) for one in (plan.control.name, name))
    found = None if control is None or own is None else explain(control, own)
    return None if found is None else found.hlo


def _median_run(progress: Progress, name: str, measure: Measure) -> str | None:
    found = _median(progress, name, measure)
    return None if found is None else found.run.folder


def _median(progress: Progress, name: str, measure: Measure) -> Outcome | None:
    """The run of the median step time, of two the shorter one."""
    ordered = sorted(
        progress.measured(name), key=lambda one: (step_time(one, measure) or 0.0, one.run.round)
    )
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _median_time(progress: Progress, name: str, measure: Measure) -> float | None:
    known = [time for one in progress.measured(name) if (time := step_time(one, measure))]
    return median(known) if known else None


def _captures(progress: Progress, name: str) -> int:
    return sum(one.captures > 0 for one in progress.of_arm(name))


def _seconds(progress: Progress, name: str) -> float:
    return math.fsum(one.seconds for one in progress.of_arm(name))


def _problems(progress: Progress, name: str) -> tuple[str, ...]:
    return tuple(
        f"{one.run.folder} {one.problem}"
        for one in progress.of_arm(name)
        if one.problem is not None
    )


def _again(plan: Plan, sources: Sources, name: str) -> str:
    return again(plan, plan.arm(name), {**sources.commits, INSIDE: sources.inside})
