"""Before an experiment, or in it: the schedule, and what it takes to find a gain.

Contract: what is not stated and not measured is not known, and the forecast says how to know it.
Spread is the standard deviation of step times from run to run, per cent; costs are for all arms
running to the end of a round: arms that are decided earlier cost less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, variance

from marin_profile.base.text import plural
from marin_profile.experiment.expected import expected
from marin_profile.experiment.launching import shown
from marin_profile.experiment.measuring import out_of
from marin_profile.experiment.outcome import Run
from marin_profile.experiment.plan import Plan
from marin_profile.experiment.progress import Progress
from marin_profile.experiment.schedule import order_of

GAINS = (1, 2, 3, 5, 10)
ROUNDS_SHOWN = 4


@dataclass(frozen=True)
class Costs:
    """What a run takes and how far step times scatter; None: not known."""

    minutes: float | None = None
    spread: float | None = None


def measured_costs(progress: Progress) -> Costs:
    """By the runs so far."""
    good = [one.seconds for one in progress.outcomes.values() if one.problem is None]
    known = [values for values in progress.effects.values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in known)
    spread = None
    if freedom:
        total = math.fsum((len(values) - 1) * variance(values) for values in known)
        spread = 100 * math.sqrt(total / freedom / 2) or None
    return Costs(median(good) / 60 if good else None, spread)


def forecast(
    plan: Plan, costs: Costs, output: Path, folders: Mapping[str, Path], done: int = 0
) -> Iterator[str]:
    """Lines of text; `done`: how many rounds are."""
    names = [arm.name for arm in plan.arms]
    each = len(names)
    yield (
        f"{plural(each, 'arm')} with the control; {plural(plan.warmup_rounds, 'round')} to warm "
        f"up, then at most {plan.rounds}, each arm until it is decided (from the third round on)."
    )
    if done:
        yield f"Done: {plural(done, 'round')}."
    numbers = range(-plan.warmup_rounds, plan.rounds)
    for number in [*numbers[:ROUNDS_SHOWN]]:
        order = order_of(number, names, plan.order, plan.seed, names)
        which = (
            f"round {number + 1}" if number >= 0 else f"warm-up {number + plan.warmup_rounds + 1}"
        )
        yield f"  {which}: {', '.join(order)}"
    if len(numbers) > ROUNDS_SHOWN:
        how = "every second one backwards" if plan.order == "turned" else "shuffled by the seed"
        yield f"  ... {how}"
    yield "Commands:"
    for arm in plan.arms:
        out = out_of(plan, Run(0, arm.name), output)
        yield f"  {arm.name}: {shown(plan, arm, out=out, folder=folders[arm.name])}"
    yield from _needs(plan, costs)


def _needs(plan: Plan, costs: Costs) -> Iterator[str]:
    each = len(plan.arms)
    most = (plan.warmup_rounds + plan.rounds) * each
    yield f"At most {plural(most, 'run')}{_minutes(costs, most)}."
    if costs.spread is None:
        yield (
            "After how many rounds a gain is found is not known: say with --spread by how many per "
            "cent step times differ from run to run, or let some rounds run and ask again."
        )
    else:
        for per_cent in GAINS:
            change = math.log1p(-per_cent / 100)
            found = expected(costs.spread / 100, change, each - 1, most_rounds=plan.rounds)
            if found.rounds is None:
                yield (
                    f"-{per_cent} %: found in {100 * found.power:.0f} % of experiments of "
                    f"{plan.rounds} rounds."
                )
            else:
                runs = (plan.warmup_rounds + found.rounds) * each
                yield (
                    f"-{per_cent} % needs about {found.rounds} rounds: "
                    f"{plural(runs, 'run')}{_minutes(costs, runs)}."
                )
    if costs.minutes is None:
        yield "How long a run takes is not known: say it with --minutes, or let a round run."


def _minutes(costs: Costs, runs: int) -> str:
    if costs.minutes is None:
        return ""
    total = runs * costs.minutes
    return f", {total:,.0f} minutes" if total >= 10 else f", {total:.1f} minutes"
