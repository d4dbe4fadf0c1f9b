"""What an experiment came to, in sentences; numbers are the findings' own.

Contract: the first sentence says which arm wins and by how much; else that none does, or what is
undecided and what it would take.
"""

from __future__ import annotations

from collections.abc import Iterable

from marin_profile.base.text import NOT_KNOWN, duration, plural, size, visible
from marin_profile.experiment.findings import ArmResult, Experiment
from marin_profile.experiment.plan import MOST_ROUNDS

STEPS = {"typical": "typical step", "mean": "mean step"}
OTHER = {"typical": "mean", "mean": "typical"}
NAMED = 4


def headline(found: Experiment) -> str:
    """The answer, what failed included."""
    parts = [_answer(found)]
    failed = found.of("failed")
    if failed and found.control.problem is None:
        parts.append(f"{_names(failed)} failed.")
    return " ".join(parts)


def _answer(found: Experiment) -> str:
    if found.control.problem is not None:
        return f"Nothing can be judged: the control {_sentence(found.control.problem)}"
    winners, unsound = found.of("wins"), found.of("not_comparable")
    undecided = found.of("undecided")
    if winners:
        text = _win(found, winners)
    elif unsound:
        text = f"No arm is known to win: {_apart(found, unsound[0])}"
    elif not found.is_over:
        return f"Not done yet: {plural(found.rounds, 'round')} of at most {found.most_rounds}."
    elif undecided:
        text = "Undecided: " + "; ".join(_undecided(found, arm) for arm in undecided[:NAMED]) + "."
        undecided = []
    elif found.of("no_win") or found.of("slower"):
        text = f"No arm wins: {_none(found)}."
    else:
        text = "No arm could be judged."
    if undecided:
        text += f" {_names(undecided)} {_is(undecided)} undecided."
    return text


def _win(found: Experiment, winners: list[ArmResult]) -> str:
    first, step = winners[0], STEPS[found.measure]
    text = (
        f"{visible(first.arm)} wins: its {step} is {longer(first.effect)} than the control's "
        f"({interval(first)}), by {plural(first.pairs, 'pair')} of captures."
    )
    if contradiction := _contradiction(found, first):
        text += f" But {contradiction}."
    if len(winners) > 1:
        others = ", ".join(f"{visible(arm.arm)} ({change(arm.effect)})" for arm in winners[1:])
        text += f" So {'does' if len(winners) == 2 else 'do'} {others}; winners are not compared "
        text += "with each other."
    return text


def _contradiction(found: Experiment, arm: ArmResult) -> str:
    """Of the measure that is not judged."""
    if arm.other_effect is None or arm.other_effect < 0:
        return ""
    return f"its {OTHER[found.measure]} step is {longer(arm.other_effect)} than the control's"


def _apart(found: Experiment, arm: ArmResult) -> str:
    return (
        f"the {STEPS[found.measure]} of {visible(arm.arm)} is {longer(arm.effect)} than the "
        f"control's, but the two cannot be compared: {_sentence(arm.caveats[0])}"
    )


def _undecided(found: Experiment, arm: ArmResult) -> str:
    if arm.effect is None:
        return f"{visible(arm.arm)} has no pair of captures"
    stands = f"{visible(arm.arm)} stands at {change(arm.effect)} ({interval(arm)})"
    return f"{stands}: {needed(found, arm)}"


def needed(found: Experiment, arm: ArmResult) -> str:
    """What would settle an arm that is undecided."""
    if arm.needed is not None and arm.needed > found.most_rounds:
        return f"about {arm.needed} rounds would settle it if it stays so"
    spread = f" (now {arm.spread:.1f} % from run to run)" if arm.spread is not None else ""
    more = f"more rounds (up to {MOST_ROUNDS}), " if found.most_rounds < MOST_ROUNDS else ""
    return f"it takes {more}longer captures or less noise{spread}"


def _none(found: Experiment) -> str:
    parts = []
    if no_win := found.of("no_win"):
        parts.append(
            f"{_names(no_win)} {'has' if len(no_win) == 1 else 'have'} no gain of "
            f"{found.worthwhile:g} % or more"
        )
    if slower := found.of("slower"):
        parts.append(f"{_names(slower)} {_is(slower)} slower")
    return "; ".join(parts)


def verdict(found: Experiment, arm: ArmResult) -> str:
    """Of one arm, in a few words."""
    if arm.standing == "undecided":
        return f"undecided: {needed(found, arm)}" if arm.pairs else "undecided: no pair of captures"
    return {
        "wins": "wins",
        "failed": "failed",
        "not_comparable": "shorter, but not comparable",
        "no_win": f"no gain of {found.worthwhile:g} %",
        "slower": "slower",
        "running": "not decided yet",
    }[arm.standing]


def change(percent: float | None) -> str:
    return NOT_KNOWN if percent is None else f"{percent:+.1f} %"


def longer(percent: float | None) -> str:
    if percent is None:
        return NOT_KNOWN
    return f"{abs(percent):.1f} % {'longer' if percent > 0 else 'shorter'}"


def interval(arm: ArmResult) -> str:
    if arm.low is None or arm.high is None:
        return "no interval before the third pair"
    return f"95 % interval {arm.low:+.1f} to {arm.high:+.1f} %"


def memory(arm: ArmResult) -> str:
    if arm.memory is None:
        return NOT_KNOWN
    delta = arm.memory.delta_size
    if delta == 0:
        return f"{size(arm.memory.size)}, the same"
    sign = "+" if delta > 0 else "-"
    relative = (
        f", {100 * delta / arm.memory.control_size:+.1f} %" if arm.memory.control_size else ""
    )
    return f"{size(arm.memory.size)} ({sign}{size(abs(delta))}{relative})"


def changed(arm: ArmResult) -> str:
    """The part of the step that changed most."""
    if arm.changed is None:
        return NOT_KNOWN
    sign = "+" if arm.changed.delta > 0 else ""
    return f"{visible(arm.changed.name)} {sign}{duration(arm.changed.delta)}"


def _names(arms: Iterable[ArmResult]) -> str:
    names = [visible(arm.arm) for arm in arms]
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is(arms: list[ArmResult]) -> str:
    return "is" if len(arms) == 1 else "are"


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."
