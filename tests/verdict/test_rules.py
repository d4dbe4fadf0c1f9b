"""The whole decision, as a table."""

from __future__ import annotations

import math

import pytest

from marin_profile.verdict.estimate import ChangeEstimate
from marin_profile.verdict.rules import (
    Bounds,
    as_difference,
    as_percent,
    helped,
    other_result,
    status_of,
    step_result,
)


def bounds(estimate: float, near: float, far: float | None = None) -> Bounds:
    far = 1.3 * near if far is None else far
    return Bounds(estimate, estimate - near, estimate + near, estimate - far, estimate + far)


NOWHERE = Bounds(6.0, -math.inf, math.inf, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (bounds(6.0, 1.0), "fail"),
        (bounds(6.0, 4.0, 5.999), "fail"),
        (bounds(6.0, 4.0, 6.0), "inconclusive"),  # the bound is not beyond zero
        (bounds(5.0, 1.0), "warn"),  # not more than the threshold
        (bounds(5.001, 1.0), "fail"),
        (bounds(3.0, 1.0), "warn"),
        (bounds(3.0, 1.9, 3.0), "pass"),
        (bounds(3.0, 2.0, 3.0), "inconclusive"),  # the interval ends at the threshold
        (bounds(-9.0, 1.0), "pass"),
        (bounds(-9.0, 20.0), "inconclusive"),
        (bounds(0.0, 0.0), "pass"),
        (NOWHERE, "inconclusive"),
        (Bounds(*[math.nan] * 5), "inconclusive"),
    ],
)
def test_what_one_estimand_says(found: Bounds, expected: str) -> None:
    assert step_result(found, 5.0, confirmed=True) == expected
    likely = {"fail": "likely_fail"}.get(expected, expected)
    assert step_result(found, 5.0, confirmed=False) == likely
    assert step_result(found, 5.0, confirmed=True, settles=False) == "inconclusive"
    other = {"fail": "warn", "warn": "inconclusive"}.get(expected, expected)
    if found.is_known and found.high < 5.0:
        other = "pass"
    assert other_result(found, 5.0) == other


@pytest.mark.parametrize(
    ("steps", "others", "expected"),
    [
        (["pass", "fail"], ["warn"], "fail"),
        (["fail", "likely_fail"], [], "fail"),
        (["likely_fail", "inconclusive"], ["warn"], "likely_fail"),
        (["inconclusive", "warn"], [], "warn"),
        (["inconclusive", "pass"], ["warn"], "warn"),
        (["pass", "inconclusive"], [], "inconclusive"),
        (["pass", "pass"], ["inconclusive", "not judged", "pass"], "pass"),
        (["pass", "pass"], ["fail"], "pass"),  # others can warn, nothing more
        (["pass", "not judged"], [], "inconclusive"),
    ],
)
def test_the_worst_counts(steps: list[str], others: list[str], expected: str) -> None:
    assert status_of(steps, others) == expected
    assert status_of(steps[::-1], others[::-1]) == expected


@pytest.mark.parametrize(
    ("mean", "typical", "expected"),
    [
        (bounds(-3.0, 1.0), bounds(-3.0, 1.0), "yes"),
        (bounds(-3.0, 1.0), bounds(3.0, 1.0), "yes"),  # training pays the mean
        (bounds(-3.0, 2.0, 3.0), bounds(0.0, 1.0), "cannot tell"),
        (bounds(3.0, 1.0), bounds(-3.0, 1.0), "no"),
        (bounds(0.0, 3.0), bounds(3.0, 1.0), "no"),
        (bounds(0.0, 0.9), bounds(0.0, 9.0), "no"),  # at best 0.9 % shorter
        (bounds(0.0, 1.0), bounds(0.0, 9.0), "cannot tell"),
        (NOWHERE, bounds(-3.0, 1.0), "cannot tell"),
    ],
)
def test_helped(mean: Bounds, typical: Bounds, expected: str) -> None:
    assert helped(mean, typical) == expected
    assert helped(mean, typical, settles=False) == "cannot tell"


def test_bounds_of_a_change() -> None:
    """Student's t with 4 degrees of freedom: 2.7764 and 4.6041."""
    found = as_difference(ChangeEstimate(3.0, 3.5, 0.1, 4.0, "steps"))
    near, far = 0.2776445, 0.4604095
    expected = [0.5, 0.5 - near, 0.5 + near, 0.5 - far, 0.5 + far]
    assert [found.estimate, found.low, found.high, found.lower, found.upper] == pytest.approx(
        expected, abs=1e-6
    )
    percent = as_percent(ChangeEstimate(3.0, 3.5, 0.1, 4.0, "steps"))
    assert [percent.estimate, percent.low, percent.high, percent.lower, percent.upper] == (
        pytest.approx([100 * (math.exp(one) - 1) for one in expected], abs=1e-4)
    )


def test_bounds_that_are_not_known() -> None:
    found = as_percent(ChangeEstimate(0.0, 0.1, math.inf, 1.0, "steps"))
    assert (found.low, found.high, found.is_known) == (-100.0, math.inf, False)
    huge = as_percent(ChangeEstimate(0.0, 800.0, 1.0, 4.0, "steps"))
    assert (huge.estimate, huge.is_known) == (math.inf, False)


def test_a_rounded_zero_has_no_sign() -> None:
    found = Bounds(-0.0001, -0.6, 0.26, -1.0, 1.0).rounded(1)
    assert found == Bounds(0.0, -0.6, 0.3, -1.0, 1.0)
    assert math.copysign(1.0, found.estimate) == 1.0


def test_what_cannot_be_relied_on_is_inconclusive_whatever_checks_say() -> None:
    assert status_of(("fail", "pass"), ["warn"], settles=False) == "inconclusive"
    assert status_of(("pass", "pass"), ["warn"], settles=True) == "warn"
