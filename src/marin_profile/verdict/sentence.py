"""The verdict as one sentence.

Contract: every number in it is one of the record's, with as many decimals (1 to 6) as keep the
numbers distinct that the rules treat as distinct; "slower" and "faster" stand only for a change
whose one-sided 99.5 % bound has that sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.base.text import plural
from marin_profile.verdict.model import Check, Needed, SideStepTimes
from marin_profile.verdict.rules import FAIL, INCONCLUSIVE, PASS, WARN

NAMES = {
    "step_p90": "the p90 of the step time",
    "communication_share": "the share of exposed communication",
    "stall_share": "the share of idle time",
}


def blocked(reasons: Sequence[str], needed: Needed | None) -> str:
    tail = f"; {needed.sentence}" if needed else ""
    return f"Inconclusive: {'; '.join(reasons)}{tail}."


def judged(
    status: str,
    confidence: str,
    sides: tuple[SideStepTimes, SideStepTimes],
    error_from: str,
    checks: Sequence[Check],
    needed: Needed | None,
) -> str:
    step, *others = checks
    size = (
        f"{sides[0].captures:,} against {plural(sides[1].captures, 'capture')}"
        if error_from == "captures" and max(side.captures for side in sides) > 1
        else f"{sides[0].steps:,} against {plural(sides[1].steps, 'step')}"
    )
    warned = [row for row in others if row.result == WARN]
    sure = "" if status == INCONCLUSIVE else f" ({confidence})"
    text = f"{status.capitalize()}{sure}: {_step(step, size)}, {_standing(step)}"
    text += "".join(f"; {_other(row)}" for row in warned)
    if needed:
        text += f"; {needed.sentence}"
    return text + "."


def _step(row: Check, size: str) -> str:
    change, low, high, _ = _figures(row)
    interval = f"(95 % interval {low} % to {high} %; {size})"
    if _is_certain(row):
        word = "slower" if (row.change or 0.0) > 0 else "faster"
        return f"the step is {change.lstrip('+-')} % {word} {interval}"
    return f"the step time changed by an estimated {change} % {interval}"


def _is_certain(row: Check) -> bool:
    return (row.lower_bound or 0.0) > 0 or (row.upper_bound or 0.0) < 0


def _standing(row: Check) -> str:
    threshold = f"the threshold of {_figures(row)[3]} %"
    if row.result == FAIL:
        return f"beyond {threshold}"
    if row.result == PASS:
        return f"no slowdown beyond {threshold}"
    if row.result == WARN:
        return f"certain, but not beyond {threshold}"
    return f"which neither shows nor rules out a slowdown beyond {threshold}"


def _other(row: Check) -> str:
    scale, unit = (1.0, "%") if row.unit == "%" else (100.0, "points")
    change, low, high, threshold = _figures(row, scale)
    return (
        f"{NAMES[row.check]} rose by {change.lstrip('+')} {unit} (95 % interval {low} to {high} "
        f"{unit}), beyond its threshold of {threshold} {unit}"
    )


def _figures(row: Check, scale: float = 1.0) -> tuple[str, str, str, str]:
    """Change, interval and threshold, with enough decimals to keep them and 0 apart."""
    low, high = row.interval or (0.0, 0.0)
    values = [scale * value for value in (row.change or 0.0, low, high, row.threshold)]
    apart = len({*values, 0.0})
    decimals = next(
        (d for d in range(1, 6) if len({round(value, d) for value in (*values, 0.0)}) == apart), 6
    )
    signed = [f"{value + 0.0:+.{decimals}f}" for value in values[:3]]
    return signed[0], signed[1], signed[2], f"{values[3]:.6f}".rstrip("0").rstrip(".")
