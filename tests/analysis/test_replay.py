"""What a replay of the capture saves by one change; all figures by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import Space, summary_of
from marin_profile.analysis.replay.changes import median_of_others
from marin_profile.analysis.replay.graph import replay
from marin_profile.analysis.replay.track import spent_before
from marin_profile.queries import answer
from marin_profile.schema import ProfileSummary, WhatIf, WhatIfChange

pytestmark = pytest.mark.usefixtures("loops")

STEPS = 6


def groups(devices: int) -> str:
    return "replica_groups={{" + ",".join(map(str, range(devices))) + "}}"


def capture(
    works: list[list[int]],
    *,
    wire: int = 20,
    rest: int = 30,
    gap: int = 0,
    order: list[int] | None = None,
) -> Space:
    """works[step][device]: how long each device computes before an all-reduce that takes `wire` us
    from the last arrival on, after which all compute `rest` us; then the host takes `gap` us."""
    devices = len(works[0])
    space = Space("host-0")
    at = 1000
    starts = []
    for by_device in works:
        starts.append(at)
        at += max(by_device) + wire + rest + gap
    for ordinal in order or range(devices):
        tpu = space.tpu(ordinal)
        for step, (begin, by_device) in enumerate(zip(starts, works, strict=True)):
            own, meet = by_device[ordinal], max(by_device)
            tpu.step(step, begin, meet + wire + rest)
            tpu.module("jit_step(7)", begin, meet + wire + rest, run_id=step)
            tpu.op("fusion.1", begin, own, category="loop fusion", program_id=7,
                   scope="jit(step)/mlp/mul")  # fmt: skip
            tpu.op(
                "all-reduce.1", begin + own, meet - own + wire, category="all-reduce",
                program_id=7,
                long_name="%all-reduce.1 = f32[1024]{0} all-reduce(f32[1024]{0} %p), "
                + groups(devices),
            )  # fmt: skip
            tpu.op("add_fusion.2", begin + meet + wire, rest, category="loop fusion", program_id=7)
    return space


def summarized(space: Space) -> ProfileSummary:
    return summary_of(space.analyse())


def replayed(space: Space) -> WhatIf:
    found = summarized(space).what_if
    assert found is not None
    assert found.reason is None
    return found


def change(
    found: WhatIf, kind: str, name: str | None = None, target: str | None = None
) -> WhatIfChange:
    (row,) = (
        row
        for row in found.changes
        if (row.change, row.name) == (kind, name) and target in (None, row.target)
    )
    return row


def test_the_step_without_a_late_device_of_64():
    """63 devices compute 100 us, device 3 computes 300: a step is 300 + 20 + 30; without it 150."""
    works = [[300 if device == 3 else 100 for device in range(64)] for _ in range(STEPS)]
    summary = summarized(capture(works))
    found = summary.what_if
    assert found is not None
    assert (found.step_now, found.replayed_step, found.replay_error) == (350, 350, 0)
    late = change(found, "device", "/device:TPU:3")
    assert (late.step_then, late.saving, late.saving_at_least) == (150, 200, 200)
    assert late.certainty == "known"
    # Four periods are kept; the work before the first meeting is 300 us, before the others 330, and
    # after the last 30 which no meeting ends.
    assert late.factor == pytest.approx(1 - 4 * 200 / (300 + 3 * 330))
    others = [row for row in found.changes if row.change == "device" and row is not late]
    assert len(others) == 63
    assert {row.saving for row in others} == {0}
    asked = answer(summary, "what would the step be without device 3?")
    assert asked["query_type"] == "what_if"
    assert [row["step_then"] for row in asked["results"][1:]] == [150]
    asked = answer(summary, "what if device 3 were average?")
    assert [row["saving"] for row in asked["results"][1:]] == [200]


def test_free_communication_leaves_the_wait_for_a_late_device():
    works = [[100, 100, 140, 100] for _ in range(STEPS)]
    found = replayed(capture(works))
    assert found.step_now == 140 + 20 + 30
    free = change(found, "communication")
    assert (free.step_then, free.saving, free.certainty) == (170, 20, "known")
    assert change(found, "communication", "all-reduce").saving == 20


def test_an_op_halved_saves_what_the_last_to_arrive_saves():
    works = [[100, 100, 140, 100] for _ in range(STEPS)]
    found = replayed(capture(works))
    # "fusion" runs on the critical device 140 us, "add_fusion" 30 us.
    assert change(found, "op", "fusion").saving == 70
    assert change(found, "op", "add_fusion").saving == 15
    assert change(found, "scope", "jit(step)/mlp").saving == 70


def test_host_gaps_are_a_bound_where_the_host_may_not_wait():
    """100 + 20 + 30 of work, then the host takes 50 us. If it launches when it did, less work only
    makes the gaps longer."""
    found = replayed(capture([[100] * 4] * STEPS, gap=50))
    assert found.step_now == 200
    gaps = change(found, "host_gaps")
    assert (gaps.step_then, gaps.saving, gaps.certainty) == (150, 50, "at_most")
    assert gaps.saving_at_least == 0
    halved = change(found, "op", "fusion")
    assert (halved.saving, halved.certainty) == (50, "at_most")
    assert halved.saving_at_least == 0


def test_a_host_that_waits_for_its_devices_follows_them():
    space = capture([[100] * 4] * STEPS, gap=50)
    host = space.host()
    for step in range(STEPS):
        host.call("PjitFunction(step)", 1000 + 200 * step - 20, 10)
        host.call("np.asarray(jax.Array)", 1000 + 200 * step + 20, 140)
    found = replayed(space)
    halved = change(found, "op", "fusion")
    assert (halved.saving, halved.saving_at_least, halved.certainty) == (50, 50, "known")
    # In a gap it reads, launches, and is in Python outside of any event.
    gaps = change(found, "host_gaps")
    assert (gaps.saving, gaps.saving_at_least) == (50, 0)


def test_of_host_gaps_only_what_is_named_goes_for_certain():
    """Of 50 us `load_batch` takes 30."""
    space = capture([[100] * 4] * STEPS, gap=50)
    host = space.host()
    for step in range(STEPS):
        host.call("PjitFunction(step)", 1000 + 200 * step - 10, 10)
        host.call("load_batch", 1000 + 200 * step - 45, 30)
    gaps = change(replayed(space), "host_gaps")
    assert (gaps.saving, gaps.saving_at_least) == (50, pytest.approx(30))


@pytest.mark.parametrize(("late", "least"), [(5, 50), (30, 0)])
def test_step_markers_that_end_with_the_devices_show_that_the_host_waits(late, least):
    """Markers end `late` us after 150 us of work: within 5 % of it, or not."""
    space = capture([[100] * 4] * STEPS, gap=50)
    host = space.host()
    for step in range(STEPS):
        host.marker(step, 990 + 200 * step, 160 + late)
    assert change(replayed(space), "op", "fusion").saving_at_least == least


def test_steps_that_differ_in_who_is_late():
    """Alternately device 0 and 1 are 40 us late: making one of them average saves half of it."""
    works = [[140, 100, 100, 100], [100, 140, 100, 100]] * 4
    found = replayed(capture(works))
    assert found.step_now == 190
    first = change(found, "device", "/device:TPU:0")
    # Of the six periods from step 1 to 7, device 0 is late in three.
    assert found.whole_periods == 6
    assert (first.saving, first.certainty) == (20, "at_most")
    # By 20 us on average: so much less in the steps in which it is late.
    assert first.saving_at_least == 10
    assert change(found, "device", "/device:TPU:2").saving == 0


def test_what_hid_a_collective_may_have_been_what_held_the_device():
    """A gather in flight beside 300 us of compute; its done stops nothing. Half the compute saves
    150 us if the gather was done by then, else nothing."""
    space = Space("host-0")
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(STEPS):
            at = 1000 + 400 * step
            tpu.step(step, at, 400).module("jit_step(7)", at, 400, run_id=step)
            tpu.op("all-gather-start.1", at, 10, category="all-gather-start", program_id=7)
            tpu.op("fusion.1", at + 10, 300, category="loop fusion", program_id=7)
            tpu.op("all-gather-done.1", at + 310, 0.5, category="all-gather-done", program_id=7)
            tpu.op("add_fusion.2", at + 310.5, 89.5, category="loop fusion", program_id=7)
    halved = change(replayed(space), "op", "fusion")
    assert (halved.saving, halved.saving_at_least, halved.certainty) == (150, 0, "at_most")


def test_captures_without_whole_steps_are_not_replayed():
    space = Space("host-0")
    space.tpu(0).op("fusion.1", 0, 10, category="loop fusion")
    summary = summarized(space)
    assert summary.what_if is not None
    assert summary.what_if.reason
    (ceiling,) = answer(summary, "what if communication were free?")["results"]
    assert (ceiling["record"], ceiling["duration"]) == ("ceiling", 0)
    assert "cannot_answer" in answer(summary, "what if fusion.1 were twice as fast?")


works_of_steps = st.integers(2, 5).flatmap(
    lambda devices: st.lists(
        st.lists(st.integers(1, 200), min_size=devices, max_size=devices), min_size=3, max_size=6
    )
)


@settings(deadline=None, max_examples=25)
@given(works_of_steps, st.integers(1, 50), st.sampled_from((0, 5, 80)), st.randoms())
def test_a_saving_is_never_negative_nor_more_than_what_is_taken_away(works, wire, gap, random):
    found = replayed(capture(works, wire=wire, gap=gap))
    assert found.replay_error == 0
    now = found.step_now
    for row in found.changes:
        assert 0 <= row.saving_at_least <= row.saving
        assert row.step_then == pytest.approx(now - row.saving)
    assert change(found, "communication").saving <= wire + 1e-6
    if gap:
        assert change(found, "host_gaps").saving <= gap + 1e-6
    longest = max(map(max, works))
    assert change(found, "op", "fusion").saving <= longest / 2 + 1e-6
    order = list(range(len(works[0])))
    random.shuffle(order)
    assert replayed(capture(works, wire=wire, gap=gap, order=order)) == found


# --- the loops against plain Python ---


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=6))
def test_the_median_of_the_others(meetings):
    meeting = np.array([at for at, own in enumerate(meetings) for _ in own])
    own = np.array([value for values in meetings for value in values])
    others = np.full(len(own), -1)
    median_of_others(meeting, own, np.arange(len(own)), others)
    expected = [
        int(np.median(values[:at] + values[at + 1 :]) // 1) if len(values) > 1 else -1
        for values in meetings
        for at in range(len(values))
    ]
    assert others.tolist() == expected


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(0, 2)), max_size=8),
)
def test_time_spent_before_points(times, pieces):
    """Ops 0, 1 and 2 are of parts 0, 1 and none; op 1 is of part 0 too."""
    part_of = np.array([[0, 1, -1], [-1, 0, -1], [-1, -1, -1]])
    times, pieces = sorted(times), sorted(pieces)
    start = np.array([piece[0] for piece in pieces], np.int64)
    end = start + np.array([piece[1] for piece in pieces], np.int64)
    op = np.array([piece[2] for piece in pieces], np.int64)
    found = spent_before(np.array(times), start, end, op, part_of, 2)
    for part, ops in enumerate(((0, 1), (1,))):
        expected = [
            sum(max(0, min(b, until) - max(a, times[0]))
                for (a, length, own) in pieces if own in ops for b in [a + length])
            for until in times
        ]  # fmt: skip
        assert found[part].tolist() == expected


def test_an_order_that_contradicts_itself_is_told():
    """Two devices that each wait for the other to arrive at a second meeting first."""
    ends, complete = replay(
        np.array([0, 3, 6]),
        np.zeros(2, np.int64),
        np.ones(6, np.int64),
        np.array([0, 1, 1, 1, 0, 0][:6]),
        np.array([True, False, True, True, False, True]),
        np.zeros(6, np.int64),
        np.zeros(6, np.int64),
        np.zeros(2, np.int64),
    )
    assert not complete
    assert len(ends) == 2


def test_an_empty_capture_of_points_ends_with_its_own_work():
    nothing = np.zeros(0, np.int64)
    ends, complete = replay(
        np.zeros(3, np.int64), np.array([5, 7]), nothing, nothing, nothing.astype(bool), nothing,
        nothing, np.array([10, 20]),
    )  # fmt: skip
    assert complete
    assert ends.tolist() == [15, 27]
