"""What runs next, given what became of the runs before; outcomes are made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from marin_profile.experiment.outcome import Outcome, Run
from marin_profile.experiment.plan import Plan, plan_of
from marin_profile.experiment.progress import Progress, progress_of
from marin_profile.experiment.schedule import order_of


def plan(tmp_path: Path, *arms: str, **facts) -> Plan:
    texts = {"command": ["x"], "arms": {name: {} for name in arms}, "warmup": "0", **facts}
    return plan_of(texts, named="plan", files_from=tmp_path, folder=tmp_path)


def played(
    the_plan: Plan, outcome: Callable[[Run], Outcome], most: int = 1000
) -> tuple[Progress, list[str]]:
    """Run until nothing is next: what it comes to, and who ran."""
    done: list[Outcome] = []
    while (run := progress_of(the_plan, done).next_run) is not None and len(done) < most:
        done.append(outcome(run))
    return progress_of(the_plan, done), [one.run.folder for one in done]


def good(run: Run, typical: float = 100.0, **facts) -> Outcome:
    noise = 0.1 * math.sin(7 * run.round + len(run.arm))
    return Outcome(
        run=run,
        seconds=1.0,
        **{"measure": "period", "typical": typical + noise, "mean": 2 * typical, "captures": 1}
        | facts,
    )


def bad(run: Run) -> Outcome:
    return Outcome(run=run, seconds=1.0, problem="broke")


def test_no_arm_is_run_longer_than_needed(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "fast", "same", warmup="2")
    found, ran = played(the_plan, lambda run: good(run, 80 if run.arm == "fast" else 100))
    assert ran[:6] == [
        *("warmup02-same", "warmup02-control", "warmup02-fast"),
        *("warmup01-fast", "warmup01-control", "warmup01-same"),
    ]
    assert found.race.arms["fast"].state == "wins"
    assert found.race.arms["same"].state == "no_win"
    assert found.race.arms["fast"].estimate == pytest.approx(math.log(0.8), abs=0.002)
    assert ran.count("round03-fast") == 1
    assert "round04-fast" not in ran


def test_a_first_run_that_fails_is_the_last(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a", "b", warmup="1")
    found, ran = played(the_plan, lambda run: bad(run) if run.arm == "a" else good(run))
    assert [one for one in ran if one.endswith("-a")] == ["warmup01-a"]
    assert dict(found.failed) == {"a": "broke"}
    assert found.race.arms["b"].state == "no_win"


def test_one_failure_costs_a_round_two_cost_the_arm(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a", "b")
    for failing, out in (({1}, False), ({1, 3}, True)):
        found, _ = played(
            the_plan,
            lambda run, failing=failing: (
                bad(run) if run.arm == "a" and run.round in failing else good(run, 100 + run.round)
            ),
        )
        assert ("a" in found.failed) == out
        assert found.next_run is None


def test_without_the_control_of_a_round_the_rest_of_it_is_not_run(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a")
    found, ran = played(
        the_plan,
        lambda run: (
            bad(run)
            if (run.arm, run.round) == ("control", 4)
            else good(run, 100 + 10 * (run.arm == "a") * (-1) ** run.round)
        ),
    )
    assert "round05-a" not in ran
    assert "round06-a" in ran
    assert len(found.effects["a"]) == found.rounds - 1


def test_a_control_that_fails_at_once_ends_all(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a")
    found, ran = played(the_plan, lambda run: bad(run) if run.arm == "control" else good(run))
    assert ran == ["round01-control"]
    assert dict(found.failed) == {"control": "broke"}


def test_another_kind_of_step_is_no_pair(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a")
    found, ran = played(
        the_plan, lambda run: good(run, measure="duration" if run.arm == "a" else "period")
    )
    assert found.failed["a"] == "left a step duration, where the control has a step period"
    assert ran.count("round01-a") == 1


def test_at_the_end_of_the_rounds(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a", rounds="3")
    found, ran = played(
        the_plan, lambda run: good(run, 100 * 1.5 ** (-run.round * (run.arm == "a")))
    )
    assert found.race.arms["a"].state == "undecided"
    assert len(ran) == 6
    assert found.rounds == 3


def test_the_mean_may_be_judged(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, "a", measure="mean")
    found, _ = played(the_plan, lambda run: good(run, mean=50.0 if run.arm == "a" else 100.0))
    assert found.race.arms["a"].estimate == pytest.approx(math.log(0.5))


def test_turned_orders_cancel_a_drift() -> None:
    """The place of an arm less the control's sums to zero over two rounds, and over eight rounds
    each arm is at each place twice."""
    names = ["control", "a", "b", "c"]
    rounds = [order_of(at, names, "turned", 0, names) for at in range(8)]
    assert rounds[:4] == [
        ("control", "a", "b", "c"),
        ("c", "b", "a", "control"),
        ("a", "b", "c", "control"),
        ("control", "c", "b", "a"),
    ]
    for one, two in zip(rounds[::2], rounds[1::2], strict=True):
        assert one == two[::-1]
    for place in zip(*rounds, strict=True):
        assert sorted(place) == sorted(2 * names)
    assert order_of(-1, names, "turned", 0, names) == rounds[7]
    assert order_of(1, names, "turned", 0, {"control", "b"}) == ("b", "control")


@pytest.mark.parametrize("seed", [0, 7])
def test_latin_orders_have_each_arm_at_each_place(seed: int) -> None:
    names = ["control", "a", "b", "c"]
    for cycle in range(3):
        rows = [order_of(4 * cycle + at, names, "latin", seed, names) for at in range(4)]
        for row in (*rows, *zip(*rows, strict=True)):
            assert sorted(row) == sorted(names)
    assert rows == [order_of(8 + at, names, "latin", seed, names) for at in range(4)]
    assert rows != [order_of(8 + at, names, "latin", seed + 1, names) for at in range(4)]
