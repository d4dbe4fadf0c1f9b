"""What cannot be is left out, counted and said; what can be stays."""

from __future__ import annotations

import pytest

from builders_json import event, process, thread, trace
from builders_json import read as read_json
from builders_xspace import Space, read_bytes
from marin_profile.events.timeline import Timeline

START_NS = 1_700_000_000 * 10**9
SECOND = 1_000_000.0  # microseconds


def running(steps: int = 20) -> Space:
    """0.4 s of steps of 20 ms: a module with two ops in each."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(steps):
        at = 20_000 * step
        tpu.module("jit_step(7)", at, 18_000, run_id=step)
        tpu.op("dot.1", at, 10_000).op("add.2", at + 10_000, 8_000)
    return space


def told(space: Space, seconds: float = 0.4) -> Space:
    return space.environment(START_NS, START_NS + int(seconds * 10**9))


def json_of(*more: str) -> bytes:
    """The same as `running`, as JSON, with more events."""
    modules = [event("jit_step(7)", str(20_000 * n), "18000", tid="2") for n in range(20)]
    ops = [event("dot.1", str(20_000 * n), "10000") for n in range(20)]
    return trace(
        process(), thread(3, 2, "XLA Modules"), thread(), *modules, *ops, *more, named=False
    )


def left(timeline: Timeline) -> dict[str, int]:
    return dict(timeline.dropped)


def test_a_sound_profile_is_left_alone():
    timeline = told(running()).timeline()
    assert (left(timeline), timeline.doubts, timeline.num_events) == ({}, (), 60)
    timeline = read_json(json_of())
    assert (left(timeline), timeline.doubts, timeline.num_events) == ({}, (), 40)


@pytest.mark.parametrize("seconds", [1, 10, 86_400, 10**6])
def test_an_op_that_outlasts_the_profile_is_left_out(seconds):
    space = told(running())
    space.planes[0].op("long.9", 399_000, seconds * SECOND)
    timeline = space.timeline()
    assert left(timeline) == {"outside_profile": 1}
    assert timeline.doubts[0].startswith(
        "1 event outside the profile's own start and stop is left out ('long.9' on /device:TPU:0 "
        f"lasts {seconds:,}.000000 s"
    )
    assert timeline.num_events == 60


@pytest.mark.parametrize("offset", [-10.0 * SECOND, 10.0 * SECOND, 86_400 * SECOND])
def test_an_op_far_from_the_profile_is_left_out(offset):
    space = told(running())
    space.planes[0].op("far.9", offset, 5)
    timeline = space.timeline()
    assert left(timeline) == {"outside_profile": 1}
    assert int(timeline.start.min()) == 0
    assert timeline.origin == (START_NS, 0)
    assert [line.count for line in timeline.lines] == [20, 40]


def test_a_line_on_another_clock_is_left_out():
    space = told(running())
    tpu = space.tpu(1)
    for step in range(5):
        tpu.op("dot.1", 10 * SECOND + 20_000 * step, 10_000)
    timeline = space.timeline()
    assert left(timeline) == {"outside_profile": 5}


def test_where_most_is_outside_it_is_the_clock_that_is_wrong():
    space = told(running(), seconds=0.001)
    timeline = space.timeline()
    assert (left(timeline), timeline.num_events) == ({}, 60)
    assert "lie outside the profile's own start and stop" in timeline.doubts[0]


@pytest.mark.parametrize(("start", "stop"), [(START_NS, START_NS - 1), (5, 2**63)])
def test_a_window_that_cannot_be_is_not_used(start, stop):
    timeline = running().environment(start, stop).timeline()
    assert (left(timeline), timeline.num_events) == ({}, 60)


@pytest.mark.parametrize("ts", ["399000", "-99000000", "99000000"])
def test_without_a_window_most_events_say_what_is_far(ts):
    far = event("long.9", ts, str(10 * SECOND))
    timeline = read_json(json_of(far))
    assert left(timeline) == {"outside_profile": 1}
    assert "1 event outside the time of all others is left out" in timeline.doubts[0]
    # The first event that is left began at 0 by the clock of the file.
    assert (timeline.first_ts, int(timeline.start.min())) == (0, 0)


def test_without_a_window_host_events_tell_how_long_the_profile_is():
    """A profiler that waits for the devices, and counts something meanwhile."""
    more = (
        process(701, "/host:CPU"),
        thread(701, 1, "python"),
        event("start", "-5000000", "1", pid="701", tid="1"),
        event("stop", "9000000", "1", pid="701", tid="1"),
        event("last.9", "8000000", "10"),
    )
    timeline = read_json(json_of(*more))
    assert (left(timeline), timeline.doubts) == ({}, ())


def test_an_op_longer_than_any_execution_is_left_out():
    space = told(running())
    space.planes[0].op("long.9", 100_000, 200_000)
    timeline = space.timeline()
    assert left(timeline) == {"longer_than_program": 1}
    assert timeline.doubts[0].startswith(
        "1 event far longer than any module execution is left out ('long.9' on /device:TPU:0 "
    )


def test_without_module_executions_no_op_is_too_long():
    space = Space()
    tpu = space.tpu(0)
    for step in range(20):
        tpu.op("dot.1", 20_000 * step, 10_000)
    tpu.op("long.9", 0, 390_000)
    assert left(told(space).timeline()) == {}


@pytest.mark.parametrize(
    ("start", "duration"), [(300 * SECOND, 10_000), (200_000, 300 * SECOND), (-SECOND, 5)]
)
def test_a_device_time_far_off_the_events_own_is_not_used(start, duration):
    space = Space()
    tpu = space.tpu(0, device_clock_shift=50)
    for step in range(20):
        at = 20_000 * step
        odd = {"device_start": start, "device_duration": duration} if step == 10 else {}
        tpu.module("jit_step(7)", at, 18_000, run_id=step)
        tpu.op("dot.1", at, 10_000, **odd)
    timeline = told(space).timeline()
    assert left(timeline) == {"implausible_device_time": 1}
    assert timeline.num_events == 40
    ops = next(line for line in timeline.lines if line.name == "XLA Ops")
    begin, length = timeline.device_times(timeline.rows_of(ops))
    assert begin.tolist() == [20_000_000_000 * step for step in range(20)]
    assert length.tolist() == [10_000_000_000] * 20


def test_a_few_events_out_of_order_are_said():
    space = told(running(steps=40), seconds=0.8)
    space.planes[0].op("odd.9", 300_000, 5)
    timeline = space.timeline()
    assert left(timeline) == {}
    assert timeline.doubts == (
        "1 event of line 'XLA Ops' of /device:TPU:0 is out of order, which the profiler writes "
        "sorted: times there may be damaged.",
    )


def test_a_file_in_any_order_is_no_damage():
    space = told(running(steps=40), seconds=0.8)
    assert read_bytes(space.encode(shuffle=3)).doubts == ()


def sorted_lines(*more: str, lines: int = 4) -> bytes:
    """Lines of 60 events of a JSON trace, one after the other in each."""
    events = [
        event("dot.1", str(100 * n), "50", tid=str(3 + line))
        for line in range(lines)
        for n in range(60)
    ]
    threads = [thread(3, 3 + line, f"XLA Ops {line}") for line in range(lines)]
    return trace(process(), *threads, *events, *more, named=False)


def test_in_json_one_unsorted_line_among_sorted_ones_is_said():
    assert read_json(sorted_lines()).doubts == ()
    timeline = read_json(sorted_lines(event("odd.9", "300", "5", tid="6")))
    assert timeline.doubts == (
        "1 event of line 'XLA Ops 3' of /device:TPU:0 is out of order, which the profiler writes "
        "sorted: times there may be damaged.",
    )


def test_not_every_writer_of_json_sorts():
    odd = [event("odd.9", "300", "5", tid=tid) for tid in ("5", "6")]
    assert read_json(sorted_lines(*odd)).doubts == ()
    assert read_json(sorted_lines(odd[0], lines=3)).doubts == ()
