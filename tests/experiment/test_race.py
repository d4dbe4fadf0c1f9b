"""A race of arms: bounds, Holm's levels, and what stops an arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marin_profile.experiment.expected import expected
from marin_profile.experiment.race import decide
from marin_profile.verdict.sequential import level_of_one_look
from marin_profile.verdict.student import t_quantile


def with_mean_and_sd(mean: float, sd: float, rounds: int) -> list[float]:
    values = np.arange(float(rounds))
    values = (values - values.mean()) / values.std(ddof=1)
    return [float(value) for value in mean + sd * values]


def alone(values: list[float], **options: float) -> str:
    return decide({"a": values}, **options).arms["a"].state


# --- one arm -------------------------------------------------------------------------------------


def test_one_arm_has_the_interval_of_its_own_effects() -> None:
    # Mean 3, standard error sqrt(14 / 12), 3 degrees of freedom.
    arm = decide({"a": [1.0, 2.0, 3.0, 6.0]}).arms["a"]
    width = float(t_quantile(1 - level_of_one_look(0.025), 3.0)) * math.sqrt(14 / 12)
    assert (arm.low, arm.high) == pytest.approx((3 - width, 3 + width))
    assert (arm.estimate, arm.rounds) == (pytest.approx(3.0), 4)


def test_an_arm_wins_as_soon_as_its_bound_is_below_zero() -> None:
    bound = float(t_quantile(1 - level_of_one_look(0.01), 5.0)) / math.sqrt(6)
    assert alone(with_mean_and_sd(-1.001 * bound, 1.0, 6)) == "wins"
    assert alone(with_mean_and_sd(-0.999 * bound, 1.0, 6)) == "running"


def test_an_arm_stops_where_a_gain_worth_having_is_excluded() -> None:
    bound = float(t_quantile(1 - 1 / 18, 5.0)) / math.sqrt(6)
    assert alone(with_mean_and_sd(1.001 * bound, 1.0, 6), worthwhile=0.0) == "no_win"
    assert alone(with_mean_and_sd(0.999 * bound, 1.0, 6), worthwhile=0.0) == "running"
    assert alone(with_mean_and_sd(0.999 * bound, 1.0, 6), worthwhile=-0.01) == "no_win"


def test_an_arm_is_slower_where_its_interval_is_above_zero() -> None:
    assert alone(with_mean_and_sd(0.5, 0.01, 5)) == "slower"


def test_after_the_last_round_an_arm_is_undecided() -> None:
    assert alone(with_mean_and_sd(-0.01, 0.05, 9), most_rounds=10) == "running"
    assert alone(with_mean_and_sd(-0.01, 0.05, 10), most_rounds=10) == "undecided"
    race = decide({"a": with_mean_and_sd(-0.01, 0.05, 10)}, most_rounds=10)
    assert race.is_over
    assert race.running == ()


def test_nothing_is_said_before_three_rounds() -> None:
    race = decide({"a": [-0.5, -0.5], "b": []})
    assert race.running == ("a", "b")
    assert race.arms["a"].estimate == -0.5
    assert race.arms["b"].estimate is None
    assert (race.arms["a"].low, race.arms["a"].high) == (-math.inf, math.inf)


def test_equal_effects_are_not_certain() -> None:
    """No step times repeat more exactly than 0.05 %."""
    assert alone([-0.0001] * 3) == "no_win"
    assert alone([-0.5] * 3) == "wins"


@pytest.mark.parametrize(
    ("effects", "options"), [([0.1, math.nan], {}), ([0.1, math.inf], {}), ([], {"most_rounds": 2})]
)
def test_what_cannot_be_judged(effects: list[float], options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"most_rounds is 2|of arm a is not a finite"):
        decide({"a": effects}, **options)


# --- several arms --------------------------------------------------------------------------------


def test_a_winner_leaves_its_error_to_the_others() -> None:
    """Two arms: 0.5 % for each; after the first has won, 1 % for the other."""
    half, whole = (
        float(t_quantile(1 - level_of_one_look(level), 11.0 + 0.8)) / math.sqrt(12)
        for level in (0.005, 0.01)
    )
    b = with_mean_and_sd(-0.5 * (half + whole), 1.0, 12)
    first = {"a": with_mean_and_sd(-2.0, 1.0, 12), "b": b}
    assert [arm.state for arm in decide(first).arms.values()] == ["wins", "wins"]
    other = {"a": with_mean_and_sd(-0.5, 1.0, 12), "b": b}
    assert decide(other).arms["b"].state == "running"


def test_an_arm_that_scatters_more_keeps_its_own_error() -> None:
    quiet = {f"q{at}": with_mean_and_sd(0.0, 0.01, 5) for at in range(7)}
    wild = with_mean_and_sd(-0.05, 0.05, 5)
    arm = decide({"wild": wild, **quiet}).arms["wild"]
    level = level_of_one_look(0.025 / 8)
    # Seven others count as 0.8 log2(8) degrees of freedom.
    width = float(t_quantile(1 - level, 4.0 + 2.4)) * 0.05 / math.sqrt(5)
    assert arm.high - arm.low == pytest.approx(2 * width)
    assert arm.state == "running"


def test_later_rounds_of_the_others_do_not_change_what_was_said() -> None:
    rng = np.random.default_rng(1)
    effects = {name: list(rng.normal(0, 0.014, 12)) for name in "abc"}
    early = decide({name: values[:5] for name, values in effects.items()}).arms["a"]
    late = decide({**effects, "a": effects["a"][:5]}).arms["a"]
    assert early == late


# --- planning ------------------------------------------------------------------------------------


def test_expected_rounds_grow_with_the_spread_and_the_arms() -> None:
    change = math.log1p(-0.03)
    one, many, wide = (
        expected(0.01, change, 1),
        expected(0.01, change, 8),
        expected(0.02, change, 8),
    )
    assert one.rounds is not None
    assert many.rounds is not None
    assert one.power == many.power == 1.0
    assert wide.power < 0.99
    assert wide.rounds is None or wide.rounds > many.rounds


def test_no_change_wins_in_few() -> None:
    assert expected(0.01, 0.0, 8).power <= 0.004
    assert expected(0.01, 0.0, 8).rounds is None
