"""What the sentence says of rows made for it."""

from __future__ import annotations

from typing import Any

import pytest

from marin_profile.verdict import sentence
from marin_profile.verdict.model import Check, Needed, SideStepTimes


def row(name: Any, change: float, half: float, result: Any = "pass", **changes: Any) -> Check:
    values: dict[str, Any] = {
        "unit": "%",
        "threshold": 5.0,
        "change": change,
        "interval": (change - half, change + half),
        "lower_bound": change - 1.5 * half,
        "upper_bound": change + 1.5 * half,
        "error_from": "steps",
    }
    return Check(check=name, result=result, **(values | changes))


def side(captures: int = 1, steps: int = 25) -> SideStepTimes:
    return SideStepTimes(captures=captures, steps=steps, steps_per_capture=(steps,))


def said(
    leading: Check,
    *others: Check,
    helped: str = "no",
    status: str | None = None,
    confidence: str = "confirmed",
    sides: tuple[SideStepTimes, SideStepTimes] | None = None,
    **parts: Any,
) -> str:
    rows = (leading, *others)
    if len({one.check for one in rows} & {"mean_step_time", "step_time"}) < 2:
        rows += (row("step_time", leading.change or 0.0, 1.0, leading.result),)
    given = {"why": "", "doubt": "", "unseen": "", "needed": None} | parts
    return sentence.judged(
        helped, status or leading.result, confidence, sides or (side(), side()), leading, rows,
        **given,
    )  # fmt: skip


def test_a_fail() -> None:
    assert said(row("mean_step_time", 10.0, 1.25, "fail")) == (
        "Helped: no. Fail (confirmed): the mean step is 10.0 % slower (95 % interval +8.8 % to "
        "+11.2 %; 25 against 25 steps), beyond the threshold of 5 %."
    )


def test_a_likely_fail_with_what_would_confirm_it() -> None:
    text = said(
        row("mean_step_time", 10.0, 1.25, "likely_fail"),
        confidence="likely",
        needed=Needed(sentence="more captures"),
    )
    assert text.startswith("Helped: no (likely). Likely fail: the mean step is 10.0 % slower ")
    assert text.endswith("beyond the threshold of 5 %; more captures.")


def test_a_pass_says_what_it_leaves_open() -> None:
    text = said(row("mean_step_time", 0.5, 1.5), helped="cannot tell", unseen="rare ones")
    assert text == (
        "Helped: cannot tell. Pass (confirmed): the mean step changed by an estimated +0.5 % "
        "(95 % interval -1.0 % to +2.0 %; 25 against 25 steps), no slowdown beyond the threshold "
        "of 5 %; rare ones."
    )
    assert "rare" not in said(row("mean_step_time", 10.0, 1.0, "fail"), unseen="rare")


def test_faster() -> None:
    text = said(row("mean_step_time", -10.0, 1.0), helped="yes", confidence="likely")
    assert text.startswith("Helped: yes (likely). Pass (likely): the mean step is 10.0 % faster ")


def test_a_bound_at_zero_is_no_direction() -> None:
    for name in ("lower_bound", "upper_bound"):
        near = row("mean_step_time", 3.0, 1.0, lower_bound=-1.0, upper_bound=7.0)
        text = said(near.model_copy(update={name: 0.0}))
        assert "changed by an estimated +3.0 %" in text


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("warn", "certain, but not beyond the threshold of 5 %"),
        (
            "inconclusive",
            "which neither shows nor rules out a slowdown beyond the threshold of 5 %",
        ),
    ],
)
def test_how_it_stands_to_the_threshold(result: Any, words: str) -> None:
    assert said(row("mean_step_time", 3.0, 1.0, result)).endswith(f" {words}.")


def test_an_interval_beyond_the_threshold_is_not_called_open() -> None:
    text = said(row("mean_step_time", 30.0, 20.0, "inconclusive", lower_bound=-1.0))
    assert "+30.0 % (95 % interval +10.0 % to +50.0 %; " in text
    assert text.endswith("beyond the threshold of 5 %, but not as certainly as a failure takes.")


def test_where_the_typical_step_differs_the_sentence_says_so_and_why() -> None:
    leading = row("mean_step_time", 20.0, 1.0, "fail")
    text = said(leading, row("step_time", 0.1, 1.0), why="every 2nd step is slow")
    assert text.endswith(
        "5 %; the typical step changed by +0.1 % (-0.9 % to +1.1 %): every 2nd step is slow."
    )
    # By 2 points, or by another result.
    assert "typical" in said(leading, row("step_time", 18.0, 1.0, "fail"))
    assert "typical" not in said(leading, row("step_time", 18.1, 1.0, "fail"))
    assert "typical" in said(leading, row("step_time", 19.9, 16.0, "inconclusive"))
    unknown = row("step_time", 0.1, 1.0, "not judged", interval=None)
    assert "the typical step changed by an estimated +0.1 %" in said(leading, unknown)
    other_way = said(row("step_time", 20.0, 1.0, "fail"), row("mean_step_time", 0.1, 1.0))
    assert "the mean step changed by +0.1 %" in other_way


def test_a_doubt_takes_the_place_of_the_threshold() -> None:
    text = said(
        row("mean_step_time", 3.0, 4.0, "inconclusive"), doubt="steps drift", why="every 2nd is"
    )
    assert text.endswith(
        "25 steps), steps drift; the typical step changed by +3.0 % (+2.0 % to +4.0 %) "
        "(every 2nd is)."
    )


def test_the_size_is_that_of_what_the_error_is_from() -> None:
    three = (side(3, 75), side(2, 1050))
    for error_from, words in (
        ("steps", "; 75 against 1,050 steps)"),
        ("captures", "; 3 against 2 captures)"),
        ("pairs", "; 3 pairs of captures)"),
    ):
        leading = row("mean_step_time", 10.0, 1.0, "fail", error_from=error_from)
        assert words in said(leading, sides=three)
    floor = row("mean_step_time", 10.0, 1.0, "fail", error_from="captures")
    assert "; 25 against 25 steps)" in said(floor)
    assert "; 25 against 1 step)" in said(floor, sides=(side(), side(1, 1)))


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("slow_steps", "% of a step", "what slow steps add to the mean rose by 7.0 % of a step"),
        ("step_p90", "%", "the p90 of the step time rose by 7.0 %"),
        ("exposed_communication", "us", "exposed communication rose by 7.0 us"),
        ("idle", "us", "idle time rose by 7.0 us"),
    ],
)
def test_other_checks_that_warn(name: Any, unit: Any, words: str) -> None:
    leading = row("mean_step_time", 0.0, 1.0)
    text = said(leading, row(name, 7.0, 1.0, "warn", unit=unit, threshold=4.5), status="warn")
    expected = f"; {words} (95 % interval +6.0 to +8.0 {unit}), beyond its threshold of 4.5 {unit}."
    assert text.endswith(expected)
    assert "rose" not in said(leading, row(name, 7.0, 9.0, "inconclusive", unit=unit))


def test_as_many_decimals_as_tell_the_numbers_apart() -> None:
    text = said(row("mean_step_time", 5.004, 0.001, "fail"))
    assert "is 5.004 % slower (95 % interval +5.003 % to +5.005 %" in text
    text = said(row("mean_step_time", 0.0, 0.0))
    assert "changed by an estimated +0.0 % (95 % interval +0.0 % to +0.0 %" in text


def test_what_blocks() -> None:
    assert sentence.blocked(["one", "two"], None) == (
        "Helped: cannot tell. Inconclusive: one; two."
    )
    assert sentence.blocked(["one"], Needed(sentence="take more")) == (
        "Helped: cannot tell. Inconclusive: one; take more."
    )
