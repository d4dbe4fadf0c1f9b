"""Requests by file and by SIGUSR2; the signal with Python's and faulthandler's own uses of it."""

import os
import signal
import subprocess
import sys

import pytest

from marin_profile.profiling.triggers import NEVER, Requests


@pytest.fixture
def no_handler():
    before = signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGUSR2, before)


def test_the_signal_asks_for_a_capture_and_is_given_back(tmp_path, no_handler):
    requests = Requests(tmp_path)
    assert requests.due == NEVER
    os.kill(os.getpid(), signal.SIGUSR2)
    assert requests.due == 0
    assert requests.take(7) == "on_demand"
    assert requests.due == NEVER
    requests.give_back()
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


def test_a_handler_of_the_script_is_left_alone(tmp_path, no_handler):
    seen = []
    signal.signal(signal.SIGUSR2, lambda *_: seen.append("script"))
    requests = Requests(tmp_path)
    os.kill(os.getpid(), signal.SIGUSR2)
    assert (seen, requests.due) == (["script"], NEVER)
    requests.give_back()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert seen == ["script", "script"]


def test_a_handler_that_the_script_set_later_is_left_alone(tmp_path, no_handler):
    requests = Requests(tmp_path)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    requests.give_back()
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN


def test_two_of_one_process_leave_the_signal_to_the_first(tmp_path, no_handler):
    first, second = Requests(tmp_path / "a"), Requests(tmp_path / "b")
    second.give_back()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert (first.due, second.due) == (0, NEVER)
    first.give_back()
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


BESIDE_FAULTHANDLER = """
import faulthandler, os, signal, sys
from pathlib import Path
from marin_profile.profiling.triggers import NEVER, Requests
def register():
    faulthandler.register(signal.SIGUSR2, file=sys.stdout, all_threads=False)
first = sys.argv[1] == "first"
if first:
    register()
requests = Requests(Path("."))
if not first:
    register()
os.kill(os.getpid(), signal.SIGUSR2)
print("asked" if requests.due != NEVER else "not asked", flush=True)
requests.give_back()
os.kill(os.getpid(), signal.SIGUSR2)
print("alive", flush=True)
"""


@pytest.mark.parametrize("registered", ["first", "later"])
def test_faulthandler_keeps_the_signal(tmp_path, registered):
    """Its handler is below Python's, which does not know of it."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_FAULTHANDLER, registered],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(most recent call first)") == 2
    assert "not asked" in done.stdout
    assert done.stdout.endswith("alive\n")


def test_neither_file_nor_signal_where_nothing_is_on_demand(no_handler):
    requests = Requests(None)
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL
    requests.look(3)
    assert requests.due == NEVER


def test_each_touch_of_the_file_asks_once(tmp_path, no_handler):
    (tmp_path / "profile_now").touch()  # before this run: no request
    requests = Requests(tmp_path)
    requests.look(1)
    assert requests.due == NEVER
    os.utime(tmp_path / "profile_now", ns=(5, 5))
    requests.look(2)
    assert requests.take(3) == "on_demand"
    requests.look(3)
    assert requests.due == NEVER
    requests.give_back()
