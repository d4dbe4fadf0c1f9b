"""The verdict as one sentence.

Contract: it begins with whether the change helped, and leads with the estimand that decides. Every
number in it is one of the record's, with as many decimals (1 to 6) as keep the numbers distinct
that the rules treat as distinct; "slower" and "faster" stand only for a change whose one-sided
99.5 % bound has that sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.base.text import plural
from marin_profile.verdict.estimate import PAIRS, STEPS
from marin_profile.verdict.model import Check, Needed, SideStepTimes
from marin_profile.verdict.rules import FAIL, LIKELY_FAIL, PASS, WARN

NAMES = {
    "mean_step_time": "mean step",
    "step_time": "typical step",
    "slow_steps": "what slow steps add to the mean",
    "step_p90": "the p90 of the step time",
    "exposed_communication": "exposed communication",
    "idle": "idle time",
}
STEP_CHECKS = ("mean_step_time", "step_time")
# Estimands further apart than this (points) disagree, and the sentence says why.
LEAST_DISAGREEMENT = 2.0
_TITLES = {LIKELY_FAIL: "Likely fail"}


def blocked(reasons: Sequence[str], needed: Needed | None) -> str:
    tail = f"; {needed.sentence}" if needed else ""
    return f"Helped: cannot tell. Inconclusive: {'; '.join(reasons)}{tail}."


def judged(
    helped: str,
    status: str,
    confidence: str,
    sides: tuple[SideStepTimes, SideStepTimes],
    leading: Check,
    checks: Sequence[Check],
    *,
    why: str,
    doubt: str,
    unseen: str,
    needed: Needed | None,
) -> str:
    """`why`: what makes mean and typical step differ; `doubt`: why the interval is not to be
    relied on; `unseen`: what a pass leaves open."""
    other_step = next(
        row for row in checks if row.check in STEP_CHECKS and row.check != leading.check
    )
    likely = " (likely)" if confidence == "likely" and helped != "cannot tell" else ""
    sure = f" ({confidence})" if status in (FAIL, WARN, PASS) else ""
    text = f"Helped: {helped}{likely}. {_TITLES.get(status, status.capitalize())}{sure}: "
    text += f"{_step(leading, _size(sides, leading))}, {doubt or _standing(leading)}"
    if doubt or _disagree(leading, other_step):
        text += f"; {_beside(other_step)}"
    if why:
        text += f": {why}" if not doubt else f" ({why})"
    text += "".join(f"; {_other(row)}" for row in checks if _warned(row))
    if status == PASS and unseen:
        text += f"; {unseen}"
    if needed:
        text += f"; {needed.sentence}"
    return text + "."


def _size(sides: tuple[SideStepTimes, SideStepTimes], row: Check) -> str:
    if row.error_from == PAIRS:
        return plural(sides[0].captures, "pair") + " of captures"
    if row.error_from == STEPS or max(side.captures for side in sides) == 1:
        return f"{sides[0].steps:,} against {plural(sides[1].steps, 'step')}"
    return f"{sides[0].captures:,} against {plural(sides[1].captures, 'capture')}"


def _disagree(leading: Check, other: Check) -> bool:
    apart = abs((leading.change or 0.0) - (other.change or 0.0))
    return apart >= LEAST_DISAGREEMENT or leading.result != other.result


def _step(row: Check, size: str) -> str:
    change, low, high, _ = _figures(row)
    interval = f"(95 % interval {low} % to {high} %; {size})"
    if row.is_certain:
        word = "slower" if (row.change or 0.0) > 0 else "faster"
        return f"the {NAMES[row.check]} is {change.lstrip('+-')} % {word} {interval}"
    return f"the {NAMES[row.check]} changed by an estimated {change} % {interval}"


def _beside(row: Check) -> str:
    change, low, high, _ = _figures(row)
    if row.interval is None:
        return f"the {NAMES[row.check]} changed by an estimated {change} %"
    return f"the {NAMES[row.check]} changed by {change} % ({low} % to {high} %)"


def _standing(row: Check) -> str:
    threshold = f"the threshold of {_figures(row)[3]} %"
    if row.result in (FAIL, LIKELY_FAIL):
        return f"beyond {threshold}"
    if row.result == PASS:
        return f"no slowdown beyond {threshold}"
    if row.result == WARN:
        return f"certain, but not beyond {threshold}"
    if row.interval is not None and row.interval[0] > row.threshold:
        return f"beyond {threshold}, but not as certainly as a failure takes"
    return f"which neither shows nor rules out a slowdown beyond {threshold}"


def _warned(row: Check) -> bool:
    return row.result == WARN and row.check not in STEP_CHECKS


def _other(row: Check) -> str:
    change, low, high, threshold = _figures(row)
    return (
        f"{NAMES[row.check]} rose by {change.lstrip('+')} {row.unit} (95 % interval {low} to "
        f"{high} {row.unit}), beyond its threshold of {threshold} {row.unit}"
    )


def _figures(row: Check) -> tuple[str, str, str, str]:
    """Change, interval and threshold, with enough decimals to keep them and 0 apart."""
    low, high = row.interval or (0.0, 0.0)
    values = [row.change or 0.0, low, high, row.threshold]
    apart = len({*values, 0.0})
    decimals = next(
        (d for d in range(1, 6) if len({round(value, d) for value in (*values, 0.0)}) == apart), 6
    )
    signed = [f"{value + 0.0:+.{decimals}f}" for value in values[:3]]
    return signed[0], signed[1], signed[2], f"{values[3]:.{decimals}f}".rstrip("0").rstrip(".")
