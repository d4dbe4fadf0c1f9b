"""Tasks are done once each, in their order, whoever does them and whoever dies."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from crew_tasks import Deed, begin, do, fail, process_of, runs_of
from marin_profile.base.crew import Alone, Lost, Processes, each


@dataclass(frozen=True)
class Threads:
    """Any executor will do."""

    workers: int = 3
    deaths: tuple[type[BaseException], ...] = ()

    def executor(self) -> AbstractContextManager[ThreadPoolExecutor]:
        return ThreadPoolExecutor(self.workers)

    def watch(self) -> Callable[[], None]:
        return lambda: None


@pytest.mark.parametrize("crew", [Alone(), Threads(), Processes(2, begin)])
def test_results_come_in_the_order_of_the_tasks(crew, tmp_path):
    deeds = [Deed(number, str(tmp_path), seconds=0.02 * (number == 0)) for number in range(7)]
    told: list[int] = []
    assert list(each(do, deeds, crew, on_done=told.append)) == list(range(7))
    assert sorted(told) == list(range(1, 8))
    assert [runs_of(deed) for deed in deeds] == [1] * 7


def test_no_tasks_are_no_work():
    assert list(each(do, [], Processes(2, begin))) == []


@pytest.mark.parametrize("crew", [Alone(), Threads()])
def test_what_is_done_meanwhile_is_done_once(crew):
    """Before the first result is there to take, and however many tasks follow."""
    told: list[object] = []
    for result in each(str, range(9), crew, meanwhile=lambda: told.append("meanwhile")):
        told.append(result)
    assert told == ["meanwhile", *map(str, range(9))]


def test_processes_are_others(tmp_path):
    assert os.getpid() not in list(each(process_of, range(3), Processes(2, begin)))
    assert list(each(process_of, range(1), Alone())) == [os.getpid()]


def test_what_a_dead_process_did_is_done_again(tmp_path):
    deeds = [Deed(number, str(tmp_path), kills=int(number in (1, 4))) for number in range(6)]
    assert list(each(do, deeds, Processes(2, begin))) == list(range(6))
    assert runs_of(deeds[1]) == runs_of(deeds[4]) == 2


def test_who_always_kills_is_lost_and_takes_nobody_along(tmp_path):
    deeds = [Deed(number, str(tmp_path), kills=99 * (number == 2)) for number in range(6)]
    found = list(each(do, deeds, Processes(2, begin)))
    assert found == [0, 1, Lost(3), 3, 4, 5]
    assert runs_of(deeds[2]) == 3


def test_a_kill_is_never_blamed_on_those_beside(tmp_path):
    """Both others run for as long as the killer lives, each of its three times."""
    deeds = [
        Deed(0, str(tmp_path), seconds=0.3),
        Deed(1, str(tmp_path), kills=2),
        Deed(2, str(tmp_path), seconds=0.3),
    ]
    assert list(each(do, deeds, Processes(3, begin))) == [0, 1, 2]
    assert runs_of(deeds[1]) == 3


@pytest.mark.parametrize("crew", [Alone(), Threads(), Processes(2, begin)])
def test_what_the_function_raises_ends_the_work(crew):
    with pytest.raises(ZeroDivisionError, match="0"):
        list(each(fail, [0], crew))
