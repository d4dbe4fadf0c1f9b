"""How far an experiment is: a pure function of its plan and of what became of the runs so far.

Contract
* `next_run` is the run to make now, None when all is over: so a runner that is killed goes on where
  it was, and the same outcomes give the same answer.
* An arm is out when its first run fails, when two of its runs fail, or when the race is over for
  it. What fails is out for itself alone; without a control there is nothing to judge by, and all is
  over. Where the control fails in a round, the rest of that round is not run.
* An effect is the logarithm of the arm's step time by the control's of the same round. A round in
  which one of both failed gives none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from marin_profile.experiment.outcome import Outcome, Run
from marin_profile.experiment.plan import Measure, Plan, gain
from marin_profile.experiment.race import Race, decide
from marin_profile.experiment.schedule import order_of

MOST_FAILURES = 2


@dataclass(frozen=True)
class Progress:
    """`failed`: the arms that are out by failing, and why, in words. `outcomes` are those that
    count, by round and arm; `effects` of every arm besides the control."""

    next_run: Run | None
    rounds: int
    race: Race
    failed: Mapping[str, str]
    outcomes: Mapping[tuple[int, str], Outcome]
    effects: Mapping[str, tuple[float, ...]]

    def of_arm(self, arm: str) -> list[Outcome]:
        """In the order of rounds; those that failed, too."""
        return [one for (_, name), one in sorted(self.outcomes.items()) if name == arm]

    def measured(self, arm: str) -> list[Outcome]:
        """Of the rounds that count."""
        return [one for one in self.of_arm(arm) if one.run.counts and one.problem is None]


def progress_of(plan: Plan, outcomes: Sequence[Outcome]) -> Progress:
    known = _checked(plan, outcomes)
    names = [arm.name for arm in plan.arms]
    failures: dict[str, list[Outcome]] = {name: [] for name in names}
    seen: dict[str, int] = dict.fromkeys(names, 0)

    def is_out(name: str) -> bool:
        wrong = failures[name]
        return len(wrong) >= MOST_FAILURES or (len(wrong) == 1 and seen[name] == 1)

    next_run, rounds = None, 0
    for number in range(-plan.warmup_rounds, plan.rounds):
        race = _race(plan, known, number)
        running = {name for name in race.running if not is_out(name)}
        control = plan.control.name
        if not running or is_out(control):
            break
        order = order_of(number, names, plan.order, plan.seed, running | {control})
        for name in order:
            outcome = known.get((number, name))
            if outcome is None:
                next_run = Run(number, name)
                break
            seen[name] += 1
            if outcome.problem is not None:
                failures[name].append(outcome)
                if name == control:
                    break
        if next_run is not None:
            break
        rounds = max(0, number + 1)
    return Progress(
        next_run=next_run,
        rounds=rounds,
        race=_race(plan, known, plan.rounds),
        failed={name: _why(failures[name]) for name in names if is_out(name)},
        outcomes=known,
        effects=effects_of(plan, known, plan.measure, plan.rounds),
    )


def effects_of(
    plan: Plan, known: Mapping[tuple[int, str], Outcome], measure: Measure, before: int
) -> dict[str, tuple[float, ...]]:
    """Of the rounds before that one."""
    return {
        arm.name: tuple(_effects(plan, known, arm.name, measure, before)) for arm in plan.others
    }


def step_time(outcome: Outcome, measure: Measure) -> float | None:
    return outcome.mean if measure == "mean" else outcome.typical


def _race(plan: Plan, known: Mapping[tuple[int, str], Outcome], before: int) -> Race:
    return decide(
        effects_of(plan, known, plan.measure, before),
        worthwhile=gain(plan),
        most_rounds=plan.rounds,
    )


def _effects(
    plan: Plan,
    known: Mapping[tuple[int, str], Outcome],
    arm: str,
    measure: Measure,
    before: int,
) -> Iterator[float]:
    for number in range(before):
        sides = [known.get((number, name)) for name in (arm, plan.control.name)]
        times = [
            step_time(one, measure) for one in sides if one is not None and one.problem is None
        ]
        if len(times) == 2 and times[0] and times[1]:
            yield math.log(times[0] / times[1])


def _checked(plan: Plan, outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Outcome]:
    """The last outcome of each run; what only the other runs show to be wrong is a problem, too. A
    step time of another kind than the control's measures something else: a period holds what lies
    between steps, a duration does not."""
    found = {(one.run.round, one.run.arm): one for one in outcomes}
    measures = [
        one.measure for one in outcomes if one.run.arm == plan.control.name and one.problem is None
    ]
    first: dict[str, Outcome] = {}
    for key, one in found.items():
        if one.problem is not None:
            continue
        same = first.setdefault(one.trace_sha256, one) if one.trace_sha256 else one
        if same is not one:
            where = f"{same.run.folder} did"
            found[key] = _failed(one, f"left the very same capture as {where}")
        elif measures and one.measure != measures[0]:
            problem = f"left a step {one.measure}, where the control has a step {measures[0]}"
            found[key] = _failed(one, problem)
    return found


def _failed(outcome: Outcome, problem: str) -> Outcome:
    return msgspec.structs.replace(outcome, problem=problem)


def _why(failures: Sequence[Outcome]) -> str:
    """The last one's, and how many there were before."""
    last = failures[-1].problem or ""
    return last if len(failures) == 1 else f"{last} (its second failure)"
