"""Combs of slow steps, against rank sums in plain loops and cases worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict.patterns import Comb, best_phase, find_combs, shares
from marin_profile.verdict.student import two_sided_p


def found(values: Sequence[float], numbers: Sequence[int] | None = None) -> list[tuple[int, int]]:
    given = range(len(values)) if numbers is None else numbers
    return [(one.every, one.phase) for one in _combs(values, given)]


def _combs(values: Sequence[float], numbers: Sequence[int]) -> tuple[Comb, ...]:
    return find_combs(np.array(values, np.float64), np.array(numbers, np.int64))


def with_slow(values: Sequence[float], every: int, phase: int, factor: float) -> list[float]:
    return [value * factor if at % every == phase else value for at, value in enumerate(values)]


def rank_scores_by_hand(values: Sequence[float], numbers: Sequence[int], every: int) -> list[float]:
    """Rank sums less their means, over their standard deviations; of ties the mean rank."""
    n = len(values)
    ranks = [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]
    spread = sum((rank - (n + 1) / 2) ** 2 for rank in ranks) / (n - 1)
    scores = []
    for phase in range(every):
        members = [rank for rank, at in zip(ranks, numbers, strict=True) if at % every == phase]
        m = len(members)
        if m < 4 or n - m < 6:
            scores.append(0.0)
        else:
            above = sum(members) - m * (n + 1) / 2
            scores.append(above / math.sqrt(spread * m * (n - m) / n))
    return scores


def clearest_by_hand(values: Sequence[float], numbers: Sequence[int]) -> tuple[int, int, float]:
    """Distance, phase, and Bonferroni's bound on the chance."""
    n = len(values)
    scores = {
        (every, phase): score
        for every in range(2, n // 4 + 1)
        for phase, score in enumerate(rank_scores_by_hand(values, numbers, every))
    }
    (every, phase), best = max(scores.items(), key=lambda item: abs(item[1]))
    t = abs(best) * math.sqrt((n - 2) / (n - 1 - best**2))
    return every, phase, two_sided_p(t, n - 2) * len(scores)


def test_the_chance_of_twelve_alternating_steps() -> None:
    """Ranks 1 to 6 against 7 to 12: the sum is 18 above its mean, of variance 13 x 6 x 6 / 12 = 39;
    t^2 = 10 x 108 / 35 with 10 degrees of freedom; two phases were tried, and three of three."""
    cos2 = 35 / 143
    series = 1 + cos2 / 2 + 3 / 8 * cos2**2 + 5 / 16 * cos2**3 + 35 / 128 * cos2**4
    chance = 5 * (1 - math.sqrt(1 - cos2) * series)
    [comb] = _combs([at // 2 + 1.0 + 6.0 * (at % 2) for at in range(12)], range(12))
    assert (comb.every, comb.phase) == (2, 1)
    assert comb.chance == pytest.approx(chance)


@pytest.mark.parametrize("seed", range(8))
def test_the_clearest_comb_in_plain_loops(seed: int) -> None:
    values = with_slow([round(one) for one in noisy(seed, 33)], 7, seed % 7, 1.1)
    numbers = [3 * seed + at + (at > 11) for at in range(33)]  # one number is missing
    every, phase, chance = clearest_by_hand(values, numbers)
    combs = _combs(values, numbers)
    assert bool(combs) == (chance < 0.1)
    if combs:
        assert (combs[0].every, combs[0].phase) == (every, phase)
        assert combs[0].chance == pytest.approx(chance)


def test_both_findings_occur_in_the_plain_loops() -> None:
    chances = [clearest_by_hand(noisy(seed, 33), range(33))[2] for seed in range(60)]
    assert min(chances) < 0.1 < max(chances)
    for seed, chance in enumerate(chances):
        assert bool(found(noisy(seed, 33))) == (chance < 0.1)


def test_every_fifth_step_of_25() -> None:
    assert found(with_slow(noisy(1, 25, variation=0.01), 5, 3, 1.4))[0] == (5, 3)
    assert found(with_slow(noisy(1, 25, variation=0.01), 5, 3, 0.7))[0] == (5, 3)


def test_of_halves_the_slower_one_is_the_comb() -> None:
    for phase in (0, 1):
        assert found(with_slow([1000.0 + at for at in range(20)], 2, phase, 1.4))[0] == (2, phase)


def test_two_combs() -> None:
    values = with_slow(with_slow(noisy(1, 120, variation=0.01), 7, 2, 3.0), 5, 1, 1.5)
    assert set(found(values)[:2]) == {(5, 1), (7, 2)}


def test_no_more_than_three_combs() -> None:
    values = noisy(3, 400, variation=0.001)
    for every, factor in ((7, 3.0), (9, 2.0), (11, 1.6), (13, 1.3)):
        values = with_slow(values, every, 1, factor)
    assert len(found(values)) == 3


def test_a_gap_in_the_numbers_shifts_no_phase() -> None:
    numbers = [at for at in range(40) if at not in (7, 8, 21)]
    values = [1400.0 + at if at % 5 == 3 else 1000.0 + at for at in numbers]
    assert found(values, numbers)[0] == (5, 3)
    # By their places the steps after the gaps are in other phases.
    assert (5, 3) not in found(values)


def test_a_comb_needs_four_cycles() -> None:
    values = [2.0 if at % 5 == 0 else 1.0 for at in range(40)]
    assert found(values[1:16], range(1, 16)) == []  # 5, 10, 15
    assert found(values[:16]) == []  # 4 of them, but 16 / 4 < 5
    assert found(values[1:21], range(1, 21)) == [(5, 0)]
    assert found([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]) == []


def test_six_steps_are_left_beside_a_comb() -> None:
    alternating = [1.0, 2.0] * 6
    assert found(alternating) == [(2, 1)]
    # Of 11 steps 6 are slow and 5 are others: what is left are the slow ones.
    assert found(alternating[1:], range(11)) == [(2, 1)]
    assert found(alternating[2:], range(10)) == []


@pytest.mark.parametrize(
    ("others", "every"),
    [(24.0, (8, 3)), (800.0, (8, 3)), (1100.0, (4, 3)), (1900.0, (4, 3))],
)
def test_of_a_comb_the_part_that_is_unlike_the_rest(others: float, every: tuple[int, int]) -> None:
    """Of 32 steps every fourth has a high rank; every eighth is 2000 above the usual ones, those
    between are `others` above 1000: the comb is the eighth where that is less than half as far."""
    usual = iter(range(24))
    values = [
        {3: 3000.0, 7: 1000.0 + others}.get(at % 8, 0.0) + at / 100
        if at % 4 == 3
        else 1000.0 + next(usual) * 7 % 24
        for at in range(32)
    ]
    assert found(values)[0] == every


def test_one_giant_step_is_no_comb() -> None:
    values = noisy(1, 40)
    assert found(values) == []
    assert found([*values[:17], 1e9, *values[18:]]) == []


def test_equal_steps_hold_no_comb() -> None:
    assert found([5.0] * 40) == []
    assert found([]) == []


def test_the_unit_does_not_matter() -> None:
    values = np.array(with_slow(noisy(1, 40), 5, 3, 1.4))
    numbers = np.arange(40)
    assert find_combs(values, numbers) == find_combs(np.log(1e6 * values), numbers)


def test_where_a_comb_would_stand() -> None:
    values = np.array(with_slow(noisy(1, 40), 5, 3, 1.4))
    assert best_phase(values, np.arange(40), 5) == Comb(5, 3)
    assert best_phase(values, np.arange(2, 42), 5) == Comb(5, 0)
    scores = rank_scores_by_hand(values.tolist(), range(40), 7)
    assert best_phase(values, np.arange(40), 7).phase == int(np.argmax(np.abs(scores)))

    # Where nothing tells them apart.
    assert best_phase(np.ones(40), np.arange(40), 5) == Comb(5, 0)
    assert best_phase(np.ones(1), np.arange(1), 5) == Comb(5, 0)


def test_which_steps_a_comb_holds() -> None:
    assert Comb(3, 1).holds(np.arange(8)).tolist() == [at in (1, 4, 7) for at in range(8)]


@pytest.mark.parametrize(
    "combs",
    [
        [],
        [(5, 3)],
        [(5, 3), (4, 1)],
        [(4, 1), (6, 0)],  # never in one step
        [(4, 1), (6, 3)],
        [(2, 0), (3, 1), (5, 4)],
        [(4, 2), (8, 3), (8, 7)],
    ],
)
def test_shares_by_counting(combs: list[tuple[int, int]]) -> None:
    counts = [0] * len(combs)
    for step in range(240):
        first = next((at for at, (every, phase) in enumerate(combs) if step % every == phase), None)
        if first is not None:
            counts[first] += 1
    expected = [count / 240 for count in counts]
    assert shares([Comb(*one) for one in combs]) == pytest.approx(expected)


def test_no_cycle_is_longer_than_a_thousand_steps() -> None:
    """A window of 12,000 steps holds each a dozen times."""
    values = np.random.default_rng(1).standard_normal(12_000) * 0.01
    for every, found in ((1000, [1000]), (1001, [])):
        slow = np.where(np.arange(12_000) % every == 7, values + 1.0, values)
        combs = find_combs(slow, np.arange(12_000))
        assert [comb.every for comb in combs if comb.every > 500] == found
