"""How often, after which waits, and for what."""

from __future__ import annotations

import random

import pytest

from marin_profile.base.retries import GaveUp, Retries


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def always(_: Exception) -> bool:
    return True


def retries(time: Time, seed: int = 1, **settings: float) -> Retries:
    return Retries(sleep=time.sleep, clock=time.clock, jitter=random.Random(seed), **settings)  # type: ignore[arg-type]


def failing(times: int, then: str = "done", error: Exception | None = None):
    left = [error or OSError("no")] * times

    def action() -> str:
        if left:
            raise left.pop()
        return then

    return action


def test_what_works_is_called_once_and_nobody_waits():
    time = Time()
    assert retries(time).call(failing(0), always) == "done"
    assert time.slept == []


def test_waits_double_up_to_a_limit_and_are_half_random():
    time = Time()
    assert retries(time, tries=8, first_wait=1, longest_wait=8).call(failing(7), always) == "done"
    most = [1, 2, 4, 8, 8, 8, 8]
    assert all(top / 2 <= wait <= top for wait, top in zip(time.slept, most, strict=True))
    assert len(set(time.slept)) == 7


def test_the_seed_decides():
    times = [Time(), Time(), Time()]
    for time, seed in zip(times, (1, 1, 2), strict=True):
        retries(time, seed).call(failing(4), always)
    assert times[0].slept == times[1].slept != times[2].slept


def test_it_gives_up_after_so_many_tries():
    time = Time()
    with pytest.raises(GaveUp) as raised:
        retries(time, tries=3).call(failing(99), always)
    assert (raised.value.tried, raised.value.of, str(raised.value.error)) == (3, 3, "no")
    assert len(time.slept) == 2


def test_it_gives_up_after_so_much_time():
    time = Time()

    def slow() -> None:
        time.now += 25
        raise OSError("no answer")

    with pytest.raises(GaveUp) as raised:
        retries(time, tries=9, most_seconds=60).call(slow, always)
    assert raised.value.tried == 3  # 25, 50, 75


def test_what_does_not_pass_is_raised_as_it_is():
    time = Time()
    error = PermissionError("not yours")
    with pytest.raises(PermissionError) as raised:
        retries(time).call(failing(1, error=error), lambda one: one is not error)
    assert raised.value is error
    assert time.slept == []
