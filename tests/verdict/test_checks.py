"""The rows of a verdict, each against its own oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from builders_verdict import capture, noisy
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import Thresholds
from marin_profile.verdict.checks import (
    Sides,
    decile_shifts,
    other_checks,
    slow_steps_check,
    step_check,
)
from marin_profile.verdict.estimate import ChangeEstimate, StepChange, change_of_steps
from marin_profile.verdict.inputs import capture_series
from marin_profile.verdict.model import Check
from marin_profile.verdict.noise import NoiseFloor


def judged(before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]) -> Sides:
    one, two = ([capture_series(one, "period") for one in side] for side in (before, after))
    return one, two


def change_of(sides: Sides) -> StepChange:
    return change_of_steps(*([one.lengths for one in side] for side in sides))


def others(
    before: ProfileSummary, after: ProfileSummary, thresholds: Thresholds | None = None
) -> dict[str, Check]:
    sides = judged([before], [after])
    rows = other_checks(sides, change_of(sides), thresholds or Thresholds(), design="captures")
    return {row.check: row for row in rows}


def with_slow(values: Sequence[float], every: int, phase: int, factor: float) -> list[float]:
    return [round(one * factor, 6) if at % every == phase else one for at, one in enumerate(values)]


def test_a_row_of_the_step_time() -> None:
    """+10 % with an error of 1 % and 4 degrees of freedom: t = 2.7764 and 4.6041."""
    change = ChangeEstimate(math.log(1000), math.log(1100), 0.01, 4.0, "captures")
    row, bounds = step_check("step_time", change, 5.0, confirmed=True, settles=True)
    assert (row.check, row.result, row.unit, row.threshold) == ("step_time", "fail", "%", 5.0)
    assert (row.before, row.after, row.change) == (1000.0, 1100.0, 10.0)
    near, far = 0.027764451, 0.046040949
    assert row.interval == pytest.approx([110 * math.exp(one) - 100 for one in (-near, near)])
    assert (row.lower_bound, row.upper_bound) == pytest.approx(
        [110 * math.exp(one) - 100 for one in (-far, far)]
    )
    assert (row.error_from, row.degrees_of_freedom, row.reason) == ("captures", 4.0, None)
    assert bounds.estimate == row.change
    likely, _ = step_check("mean_step_time", change, 5.0, confirmed=False, settles=True)
    assert likely.result == "likely_fail"
    open_, _ = step_check("mean_step_time", change, 5.0, confirmed=True, settles=False)
    assert open_.result == "inconclusive"


def test_a_row_without_an_interval_is_not_judged() -> None:
    change = ChangeEstimate(math.log(1000), math.log(1100), math.inf, 1.0, "steps")
    row, _ = step_check("step_time", change, 5.0, confirmed=True, settles=True)
    assert (row.result, row.reason) == ("not judged", "too few steps for an interval")
    assert (row.change, row.interval, row.lower_bound, row.upper_bound) == (10.0, None, None, None)
    assert (row.error_from, row.degrees_of_freedom) == (None, None)


# --- slow steps ---


def slow_steps(before: Sequence[float], after: Sequence[float]) -> Check:
    return slow_steps_check(change_of(judged([capture(before)], [capture(after)])))


def test_what_a_new_comb_adds() -> None:
    """Every fifth step half as long again: 10 % of a step."""
    quiet = noisy(1, 50, variation=0.01)
    row = slow_steps(quiet, with_slow(noisy(2, 50, variation=0.01), 5, 3, 1.5))
    assert (row.result, row.unit, row.threshold) == ("warn", "% of a step", 1.0)
    assert (row.before, row.after) == (0.0, pytest.approx(10.0, abs=0.3))
    assert row.change == row.after
    assert row.lower_bound is not None
    assert row.lower_bound > 8
    # The same on both sides is none, and less of it is none.
    combs = [with_slow(noisy(seed, 50, variation=0.01), 5, 3, 1.5) for seed in (3, 4)]
    assert slow_steps(*combs).result == "pass"
    assert slow_steps(combs[0], quiet).result == "pass"


def test_a_comb_of_half_a_percent_is_no_finding() -> None:
    after = with_slow(noisy(2, 100, variation=0.001), 5, 3, 1.025)
    row = slow_steps(noisy(1, 100, variation=0.001), after)
    assert row.after == pytest.approx(0.5, abs=0.05)
    assert row.lower_bound is not None
    assert (row.result, row.lower_bound > 0) == ("pass", True)


def test_a_comb_that_may_be_chance_is_no_finding() -> None:
    """Four slow steps, every twelfth: many distances and phases were tried."""
    values = noisy(5, 48, variation=0.03)
    after = with_slow(values, 12, 5, 3.0)
    sides = judged([capture(noisy(6, 48))], [capture(after)])
    change = change_of(sides)
    [comb] = change.sides[1][0].own
    assert comb.every == 12
    assert comb.chance > 0.01
    row = slow_steps_check(change)
    assert row.lower_bound is not None
    assert (row.result, row.lower_bound > 1) == ("inconclusive", True)


# --- the other quantities ---


def test_the_p90() -> None:
    before, after = noisy(7, 50, variation=0.01), noisy(8, 50, variation=0.01, typical=1200.0)
    row = others(capture(before), capture(after))["step_p90"]
    assert row.result == "warn"
    assert row.before == pytest.approx(np.quantile(before, 0.9), abs=1e-6)
    assert row.after == pytest.approx(np.quantile(after, 0.9), abs=1e-6)
    assert row.change == pytest.approx(
        100 * (np.quantile(after, 0.9) / np.quantile(before, 0.9) - 1), abs=1e-5
    )
    generous = Thresholds(max_step_p90_regression_pct=30)
    row = others(capture(before), capture(after), generous)["step_p90"]
    assert (row.result, row.threshold) == ("pass", 30.0)


@pytest.mark.parametrize("name", ["exposed_communication", "idle"])
def test_device_time_is_microseconds_a_step(name: str) -> None:
    part = {"exposed_communication": "communication", "idle": "idle"}[name]

    def side(share: float) -> ProfileSummary:
        shares = {"communication": 0.2, "idle": 0.2} | {part: share}
        return capture([1000.0 + at % 3 for at in range(24)], name=f"{share}", **shares)

    row = others(side(0.2), side(0.3))[name]
    mean = np.mean([1000, 1001, 1002])
    assert (row.result, row.unit) == ("warn", "us")
    assert (row.before, row.after) == pytest.approx((0.2 * mean, 0.3 * mean), abs=1e-5)
    assert row.change == pytest.approx(0.1 * mean, abs=1e-5)
    # 5 % of the mean step before.
    assert row.threshold == pytest.approx(0.05 * mean, abs=1e-5)
    assert others(side(0.2), side(0.24))[name].result == "pass"
    generous = Thresholds(
        max_communication_share_regression_abs=0.2, max_stall_share_regression_abs=0.2
    )
    row = others(side(0.2), side(0.3), generous)[name]
    assert (row.result, row.threshold) == ("pass", pytest.approx(0.2 * mean, abs=1e-5))


def test_a_larger_share_of_a_shorter_step_does_not_warn() -> None:
    """26 % shorter, and 20 us less exposed communication: 24.3 % of the step after 20 %."""
    before = capture(noisy(1, 25), communication=0.2)
    after = capture(noisy(2, 25, typical=740.0), communication=0.18 / 0.74)
    row = others(before, after)["exposed_communication"]
    assert (row.before, row.after) == pytest.approx((200.0, 180.0), abs=1.0)
    assert row.result == "pass"


def test_device_time_that_varies_does_not_warn() -> None:
    def loud(seed: int, share: float) -> ProfileSummary:
        shares = np.random.default_rng(seed).uniform(share - 0.2, share + 0.2, 10).tolist()
        return capture(noisy(seed, 10), communication=shares)

    row = others(loud(1, 0.3), loud(2, 0.4))["exposed_communication"]
    assert row.change is not None
    assert row.change > row.threshold
    assert row.result == "inconclusive"


def test_what_a_capture_does_not_hold_is_not_judged() -> None:
    rows = others(capture(noisy(1, 25)), capture(noisy(2, 25), with_ledger=False))
    for name in ("exposed_communication", "idle"):
        row = rows[name]
        assert (row.result, row.change, row.interval) == ("not judged", None, None)
        assert row.reason == "a capture holds no device time per step"
        assert (row.unit, row.threshold) == ("us", pytest.approx(50, abs=1))


# --- deciles ---


def test_the_deciles_say_which_steps_became_slower() -> None:
    """Of 60 steps the 15 that were the slowest became 20 % slower, those below did not."""
    before = [1000.0 + 2 * (at * 17 % 60) for at in range(60)]
    after = [one * 1.2 if one >= 1090 else one for one in before]
    sides = judged([capture(before)], [capture(after)])
    rows = decile_shifts(sides, 0.0, design="captures")
    assert [row.decile for row in rows] == list(range(1, 10))
    for row in rows:
        quantiles = [np.quantile(one, row.decile / 10) for one in (before, after)]
        assert (row.before, row.after) == pytest.approx(quantiles, abs=1e-5)
        assert row.change == pytest.approx(100 * (quantiles[1] / quantiles[0] - 1), abs=1e-5)
        assert row.interval is not None
        low, high = row.interval
        assert low < row.change < high
        assert (low > 0) == (row.decile >= 8)


def test_deciles_of_too_few_steps_have_no_interval() -> None:
    sides = judged([capture([1000.0] * 5)], [capture(noisy(1, 25))])
    rows = decile_shifts(sides, 0.0, design="captures")
    assert [row.interval for row in rows] == [None] * 9
    assert rows[4].before == 1000.0


def test_deciles_of_pairs() -> None:
    """Every pair differs by 2 %, however far the pairs are apart."""
    before = [[1000.0 * scale + at for at in range(24)] for scale in (1, 2, 4)]
    after = [[1.02 * one for one in side] for side in before]
    sides = judged([capture(one) for one in before], [capture(one) for one in after])
    rows = decile_shifts(sides, 0.0, design="pairs")
    widths = [row.interval[1] - row.interval[0] for row in rows if row.interval]
    assert [row.change for row in rows] == pytest.approx([2.0] * 9, abs=1e-5)
    assert max(widths) < 3
    rows = decile_shifts(sides, 0.0, design="captures")
    assert min(row.interval[1] - row.interval[0] for row in rows if row.interval) > 100


def test_a_noise_floor_widens_the_p90() -> None:
    """One capture a side of 25 steps, +20 %: certain by its steps, not where runs differ by 10 %:
    t(0.995, 4) = 4.6041 times sqrt(2) x 0.1 is more than log 1.2."""
    sides = judged([capture(noisy(1, 25))], [capture(noisy(2, 25, typical=1200.0))])
    change = change_of(sides)
    by_steps, by_runs = (
        next(
            row
            for row in other_checks(sides, change, Thresholds(), design="captures", noise=noise)
            if row.check == "step_p90"
        )
        for noise in (None, NoiseFloor(5, 0.1))
    )
    assert (by_steps.result, by_steps.error_from) == ("warn", "steps")
    assert (by_runs.result, by_runs.error_from) == ("inconclusive", "captures")
    assert by_runs.change is not None
    assert by_runs.lower_bound == pytest.approx(
        100 * math.expm1(math.log1p(by_runs.change / 100) - 4.604095 * 0.1 * 2**0.5), abs=1e-3
    )
