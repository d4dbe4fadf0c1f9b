"""Idle time by what the host did, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders_xspace import Space
from marin_profile.analysis.clocks import host_clock
from marin_profile.analysis.host_account import HostAccount, host_account
from marin_profile.analysis.host_thread import thread_beside
from marin_profile.analysis.steps.find import find_steps

US = 1_000_000  # picoseconds


def account(space: Space, *, first: int = 1) -> HostAccount | None:
    devices = space.devices()
    clock = host_clock(devices)
    return host_account(devices, find_steps(devices, clock), first, thread_beside(devices, clock))


def rows(found: HostAccount | None) -> list[tuple[str, str, bool | None, float, int]]:
    """Microseconds."""
    assert found is not None
    assert sum(row.idle for row in found.causes) == found.idle
    return [(row.kind, row.name, row.inside, row.idle / US, row.count) for row in found.causes]


def loop(*, steps: int = 5, marked: bool = True, late: dict[int, int] | None = None) -> Space:
    """Steps of 1000 us, markers of 900 us: 200 us of load_batch, a launch of 100 us, 50 us after
    whose start device 0 works for 400 us and, 50 us later, device 1; after its end the host reads
    a value until 800. `late`: by step, how much later all from the launch on is."""
    space = Space()
    host = space.host()
    for step in range(steps):
        at = 1_000 * step
        more = (late or {}).get(step, 0)
        if marked:
            host.marker(step, at, 900)
        host.call("load_batch", at, 200)
        launch = at + 200 + more
        host.call("PjitFunction(step)", launch, 100)
        host.call("[0] Executable::Execute", launch + 20, 50, run_id=step)
        host.cpu_op("fusion", launch + 50, 400, ordinal=0, run_id=step)
        host.cpu_op("fusion", launch + 100, 400, ordinal=1, run_id=step, thread=1)
        host.call("np.asarray(jax.Array)", launch + 490, 110)
    return space


def test_every_microsecond_has_a_cause():
    """In each period all idle for 250 us before and 300 us after the work, and each device for 50
    us while the other one works."""
    found = account(loop())
    assert rows(found) == [
        ("host_event", "load_batch", True, 600, 3),
        ("device_read", "np.asarray(jax.Array)", True, 300, 3),
        ("untraced", "", True, 300, 0),
        ("untraced", "", False, 300, 0),
        ("dispatch", "", True, 150, 3),
    ]
    assert (found.length, found.idle, found.some_idle) == (3_000 * US, 1_650 * US, 300 * US)
    assert found.causes[0].per_step(3).tolist() == [200 * US] * 3
    assert (found.steps, found.reads, found.launches) == (range(1, 4), 3, (("step", 3),))
    assert found.compiles == ()


def test_without_markers_the_thread_that_launches_is_the_main_one():
    """The steps are executions then; the loader's time comes before them, so each period ends with
    it: from launch + 50 of a step to that of the next."""
    space = loop(marked=False)
    space.planes[0].call("elsewhere", 0, 5_000, line="other")
    found = account(space)
    assert rows(found) == [
        ("host_event", "load_batch", None, 600, 3),
        ("untraced", "", None, 600, 0),
        ("device_read", "np.asarray(jax.Array)", None, 300, 3),
        ("dispatch", "", None, 150, 3),
    ]


def test_compiling_counts_from_the_start_of_the_call_with_tracing_and_lowering():
    """The call of step 2 takes from 200 to 650 us; it compiles from 400 to 600."""
    space = loop(late={2: 350})
    host = space.planes[0]
    host.call("PjitFunction(step)", 2_200, 450)
    host.call("lower_sharding_computation", 2_300, 50)
    host.call("backend_compile_and_load", 2_400, 200)
    found = account(space)
    assert found is not None
    compiles = [row for row in found.causes if row.kind == "compile"]
    assert [(row.name, row.idle / US, row.count) for row in compiles] == [("step", 400, 1)]
    assert compiles[0].per_step(3).tolist() == [0, 400 * US, 0]
    assert [(one.function, one.duration / US, one.step) for one in found.compiles] == [
        ("step", 400, 2)
    ]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_compilation_is_in_the_step_in_which_it_begins(step):
    space = loop(late={step: 350})
    host = space.planes[0]
    host.call("PjitFunction(step)", 1_000 * step + 200, 450)
    host.call("backend_compile_and_load", 1_000 * step + 400, 200)
    found = account(space)
    assert found is not None
    assert [one.step for one in found.compiles] == [step]


def test_an_event_that_holds_markers_says_nothing_of_them_and_frames_come_last():
    space = loop()
    host = space.planes[0]
    host.call("train_loop", 0, 5_000)
    host.call("$train.py:1 main", 0, 5_000)
    for step in range(5):
        host.call("$log.py:7 write", 1_000 * step + 790, 60)  # the read ends at 800
    kinds = {(kind, name): idle for kind, name, inside, idle, _ in rows(account(space)) if inside}
    assert kinds["python_frame", "$log.py:7 write"] == 3 * 50
    assert kinds["untraced", ""] == 3 * 50
    assert kinds["host_event", "load_batch"] == 600


def waiting(rounds: int, *, flow: bool = True) -> Space:
    """Steps of 1000 us with `rounds` of 200 us: a call of 10 us, 20 us after which its program
    works for 100 us; the host waits from 5 us after the call on until 40 us after the work."""
    space = Space()
    host = space.host()
    for step in range(5):
        host.marker(step, 1_000 * step, 1_000)
        for number in range(rounds):
            at, run_id = 1_000 * step + 200 * number, 10 * step + number
            ends = ({"_pt": 0, "_p": run_id}, {"_ct": 0, "_c": run_id}) if flow else ({}, {})
            host.call("PjitFunction(f)", at, 10)
            host.cpu_op("fusion", at + 30, 100, run_id=run_id, module="jit_f")
            host.call("Buffer::Await", at + 15, 1, **ends[0])
            host.call("Buffer::Await", at + 169, 1, **ends[1])
    return space


def test_a_wait_lasts_from_the_event_that_begins_it_to_the_one_that_ends_it():
    """Periods begin with the device's work, at 30."""
    found = account(waiting(1))
    assert rows(found) == [
        ("untraced", "", True, 3 * 830, 0),
        ("device_wait", "Buffer::Await", True, 3 * 40, 3),
        ("queued", "", True, 3 * 20, 0),
        ("dispatch", "", True, 3 * 10, 3),
    ]
    assert found is not None
    assert (found.rounds, found.own) == ((1, 1, 1), 3 * (1_000 - 155) * US)
    apart = account(waiting(1, flow=False))
    assert [row[3:] for row in rows(apart) if row[0] == "device_wait"] == [(3 * 1, 6)]


def test_between_a_wait_and_the_next_launch_the_host_is_launching():
    """The 30 us from the end of a wait to the next call; behind the last there are 630."""
    found = account(waiting(2))
    assert {row[0]: row[3] for row in rows(found)} == {
        "untraced": 3 * 630,
        "device_wait": 3 * 80,
        "queued": 3 * 40,
        "dispatch": 3 * (20 + 30),
    }
    assert found is not None
    assert found.rounds == (2, 2, 2)


def test_a_program_that_waits_for_a_copy_waits_for_that():
    """Each is launched at 10 of its step and begins at 30; a copy runs from 5 to 25 in a thread."""
    space = waiting(1)
    for step in range(5):
        space.planes[0].call("H2D Dispatch", 1_000 * step + 5, 20, line="pool")
    found = {row[:2]: row[3:] for row in rows(account(space))}
    assert found["device_write", "H2D Dispatch"] == (3 * 15, 3)
    assert found["queued", ""] == (3 * 5, 0)
    assert found["dispatch", ""] == (3 * 10, 3)


def test_gaps_inside_an_execution_are_the_devices_own():
    space = loop()
    for step in range(5):
        at = 1_000 * step + 250
        space.planes[0].cpu_op("last", at + 520, 10, ordinal=0, run_id=step)
    kinds = {(kind, name): idle for kind, name, _, idle, _ in rows(account(space))}
    # Device 1 ends 450 us after the first op, the last op begins 520 us after it.
    assert kinds["on_device", ""] == 3 * 70
    assert kinds["device_read", "np.asarray(jax.Array)"] == 3 * 20


def test_without_steps_the_whole_capture_is_accounted_for():
    space = Space()
    host = space.host()
    host.call("PjitFunction(f)", 0, 20).call("prepare", 120, 30).call("PjitFunction(f)", 150, 20)
    host.cpu_op("a", 10, 90, run_id=1).cpu_op("b", 160, 40, run_id=2)
    found = account(space, first=2)  # no step is kept
    assert rows(found) == [
        ("host_event", "prepare", None, 30, 1),
        ("untraced", "", None, 20, 0),
        ("dispatch", "", None, 10, 1),
    ]
    assert (found.steps, found.length) == (range(0), 190 * US)
    assert not any(len(row.places) for row in found.causes)


def test_clocks_that_contradict_each_other_give_no_account():
    space = Space()
    host = space.host()
    tpu = space.tpu(0)
    for step in range(4):
        host.marker(step, 100 * step, 90)
        host.call("Execute", 100 * step + 50, 5, run_id=step, device_ordinal=0)
        tpu.module("jit_f(7)", 100 * step + 10, 80, run_id=step)
        tpu.op("fusion", 100 * step + 10, 80)
    assert not host_clock(space.devices()).agrees
    assert account(space) is None


def test_a_capture_without_host_events_has_no_account():
    space = Space()
    space.tpu(0).op("fusion", 0, 10)
    assert account(space, first=0) is None


def test_launches_are_by_function_the_commonest_first():
    """What a call launches inside itself is not launched from Python."""
    space = loop()
    host = space.planes[0]
    for step in range(5):
        for at in (400, 450):
            host.call("PjitFunction(add)", 1_000 * step + at, 20)
        host.call("PjitFunction(inner)", 1_000 * step + 210, 20)
    found = account(space)
    assert found is not None
    assert found.launches == (("add", 6), ("step", 3))


def test_one_whole_period_is_accounted_for():
    found = account(loop(steps=3))
    assert found is not None
    assert (found.steps, found.length) == (range(1, 2), 1_000 * US)
    assert found.causes[0].per_step(1).tolist() == [200 * US]


def test_compilations_are_in_order_and_the_first_call_may_compile():
    """No step is kept: the account covers the capture, from 0 to 1000 us."""
    space = Space()
    host = space.host()
    host.cpu_op("first", 0, 10, run_id=1)
    for begin, name in ((10, "z"), (300, "a")):
        host.call(f"PjitFunction({name})", begin, 200)
        host.call("backend_compile_and_load", begin + 50, 100)
    host.call("backend_compile_and_load", 600, 100)
    host.cpu_op("last", 990, 10, run_id=2)
    found = account(space, first=9)
    assert found is not None
    assert [(one.function, one.duration / US, one.step) for one in found.compiles] == [
        ("z", 150, None),
        ("a", 150, None),
        ("", 100, None),
    ]
    compiled = {row.name: row.idle / US for row in found.causes if row.kind == "compile"}
    assert compiled == {"z": 150, "a": 150, "": 100}
    assert found.idle == 980 * US


def test_of_events_that_begin_together_the_longest_counts_unless_it_holds_the_marker():
    space = loop()
    host = space.planes[0]
    for step in range(5):
        host.call("inner", 1_000 * step, 100)
        host.call("wrapper", 1_000 * step, 950)  # of the marker's 900, not of the period
    kinds = {(kind, name): idle for kind, name, inside, idle, _ in rows(account(space)) if inside}
    assert kinds["host_event", "load_batch"] == 600
    assert ("host_event", "inner") not in kinds
    assert ("host_event", "wrapper") not in kinds


@pytest.mark.parametrize("earlier", [0, 1])
def test_steps_that_do_not_follow_each_other_have_no_account_of_their_own(earlier):
    devices = loop().devices()
    clock = host_clock(devices)
    steps = find_steps(devices, clock)
    boundary = steps.boundary.copy()
    boundary[:, 2] = boundary[:, 1] - earlier
    found = host_account(
        devices, replace(steps, boundary=boundary), 1, thread_beside(devices, clock)
    )
    assert found is not None
    assert not found.steps
    # From the first op of step 0 to the last one of step 4.
    assert found.length == (4_700 - 250) * US


@pytest.mark.parametrize(("apart", "kind"), [(100, "dispatch"), (101, "untraced")])
def test_a_short_moment_between_two_launches_is_part_of_launching(apart, kind):
    """In each step a second launch `apart` us behind the first, with 10 us of work right away. All
    idle between the two, but for the first 2 us, which are still work."""
    space = Space()
    host = space.host()
    for step in range(4):
        at = 1_000 * step
        host.marker(step, at, 900)
        host.call("load_batch", at, 200)
        host.call("PjitFunction(first)", at + 200, 20)
        host.cpu_op("fusion", at + 200, 22, run_id=2 * step)
        host.call("PjitFunction(second)", at + 220 + apart, 20)
        host.cpu_op("fusion", at + 220 + apart, 500, run_id=2 * step + 1)
        host.call("np.asarray(jax.Array)", at + 240 + apart, 900 - 240 - apart)
    found = {row[:3]: row[3] for row in rows(account(space, first=0))}
    inside = found.pop((kind, "", True))
    # The second program ends before the read does, on one device.
    assert inside == 3 * (apart - 2)
    assert found.pop(("untraced", "", False)) == 3 * 100
    assert set(found) == {
        ("host_event", "load_batch", True),
        ("device_read", "np.asarray(jax.Array)", True),
    }
