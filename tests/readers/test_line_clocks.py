"""Lines of an XSpace on one clock."""

import pytest

from builders_xspace import Space
from marin_profile.readers.line_clocks import line_starts

SECOND = 10**9
DATE = 1_700_000_000 * SECOND
WINDOW = (DATE, DATE + 10 * SECOND)


@pytest.mark.parametrize(
    ("timestamps", "window", "expected"),
    [
        ([0, 5], WINDOW, [0, 5]),
        ([DATE, DATE + 5], WINDOW, [DATE, DATE + 5]),
        # Both clocks: distances from the profile's start.
        ([0, DATE + 5], WINDOW, [0, 5]),
        ([0, 5, 2**63 - 1], WINDOW, [0, 5, None]),
        ([0, 5, -(2**63)], WINDOW, [0, 5, None]),
        ([0, 5, 20 * SECOND], WINDOW, [0, 5, None]),
        ([DATE, DATE + 5, DATE - 3600 * SECOND], WINDOW, [DATE, DATE + 5, None]),
        # The window is wrong, not the lines.
        ([DATE, DATE + 5], (5, 6), [DATE, DATE + 5]),
        ([DATE, DATE + 5], (DATE, DATE - 1), [DATE, DATE + 5]),
        ([0, 5, DATE], None, [0, 5, None]),
        ([DATE, 5, DATE], None, [DATE, None, DATE]),
        ([5, 7, 2**62 // 5], None, [5, 7, None]),
        ([], None, []),
    ],
)
def test_lines_of_as_many_events(timestamps, window, expected):
    assert line_starts([(ns, 3) for ns in timestamps], window) == expected


def test_most_events_decide():
    assert line_starts([(0, 2), (5, 2), (DATE, 9)], None) == [None, None, DATE]


@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63), 2**62, DATE])
@pytest.mark.parametrize("has_window", [True, False])
def test_a_line_on_no_clock_costs_its_own_events(timestamp, has_window):
    space = Space()
    tpu = space.tpu(0)
    for step in range(8):
        tpu.op("dot.1", 100 * step, 60)
    if has_window:
        space.environment(DATE - 3600 * SECOND, DATE - 3500 * SECOND)
    odd = tpu.line("Steps", timestamp_ns=timestamp)
    tpu.event("Steps", "1", 0, 5)
    odd.events[0].start_ps = timestamp * 1000
    timeline = space.timeline()
    assert timeline.dropped == {"outside_profile": 1}
    assert timeline.doubts == (
        "1 line of 1 event begins outside the profile and is left out (Steps of /device:TPU:0): "
        "the file may be damaged.",
    )
    assert timeline.num_events == 8


@pytest.mark.parametrize("offset", [2**63 - 1, -(2**63), 2**62])
def test_an_offset_that_is_no_time_costs_its_event(offset):
    space = Space()
    tpu = space.tpu(0)
    tpu.op("dot.1", 0, 60).op("dot.1", 100, 60).op("odd.1", 200, 60)
    tpu.lines["XLA Ops"].events[2].start_ps = offset
    timeline = space.timeline()
    assert (timeline.dropped, timeline.num_events) == ({"bad_timestamp": 1}, 2)


def test_a_duration_that_is_no_time_costs_its_event():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("dot.1", 0, 60).op("odd.1", 200, 60)
    tpu.lines["XLA Ops"].events[1].duration_ps = 2**62
    assert space.timeline().dropped == {"bad_duration": 1}
