"""Which marker a host event belongs to: containment on its line, and flows across lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Host, Space
from marin_profile.analysis.flows import Spans, steps_of_events
from marin_profile.events.timeline import Int64s

pytestmark = pytest.mark.usefixtures("loops")

NONE = -1


def owner(space: Space, *markers: tuple[str, int, int, int], shuffle: int | None = None) -> Int64s:
    """The step of each event that carries a run id, in order of these; markers are (line, start,
    end, step) in us."""
    timeline = space.timeline(shuffle)
    line_of = {line.name: index for index, line in enumerate(timeline.lines)}
    columns = [(line_of[line], start * US, end * US, step) for line, start, end, step in markers]
    line, start, end, step = (np.array(column, np.int64) for column in zip(*columns, strict=True))
    rows = timeline.run_id.rows
    found = steps_of_events(timeline, Spans(start, end, line, step), rows)
    _, ids = timeline.run_id.find(rows)
    return found[np.argsort(ids, kind="stable")]


def at_zero(space: Space) -> Host:
    """The host, with an event at time 0 on line `python`: times of the file count from there."""
    return space.host().call("start", 0, 1)


def produce(host: Host, at: int, flow: int, *, kind: int = 14, line: str = "python") -> None:
    host.call("linkage", at, 1, line=line, _pt=kind, _p=flow)


def consume(
    host: Host, at: int, length: int, flow: int, *, kind: int = 14, line: str = "main/1"
) -> None:
    host.call("Execute", at, length, line=line, _ct=kind, _c=flow)


def launch(host: Host, at: int, run_id: int, line: str = "main/1") -> None:
    host.call("Enqueue", at, 1, line=line, run_id=run_id)


def test_nested_markers_the_innermost_owns_what_is_in_it():
    space = Space()
    host = at_zero(space)
    for run_id, at in enumerate((5, 25, 39, 40, 60, 100)):
        launch(host, at, run_id, "python")
    found = owner(space, ("python", 0, 100, 7), ("python", 20, 40, 8))
    # 40 is where the inner one ends, 100 where the outer one does.
    assert found.tolist() == [7, 8, 8, 7, 7, NONE]


def test_a_launch_on_another_line_is_joined_by_its_flow():
    space = Space()
    host = at_zero(space)
    for step in (0, 1):
        produce(host, 100 * step + 10, 50 + step)
        # The consumers run when the marker is over.
        consume(host, 100 * step + 60, 10, 50 + step)
        launch(host, 100 * step + 65, step)
    # After the consumer, before any other.
    launch(host, 180, 2)
    found = owner(space, ("python", 0, 20, 0), ("python", 100, 120, 1))
    assert found.tolist() == [0, 1, NONE]


def test_two_hops_of_different_types_and_one_producer_of_many():
    """As in captures of eight GPUs: the pool's task of type 5 begins inside a consumer of type
    14."""
    space = Space()
    host = at_zero(space)
    produce(host, 10, 900)
    consume(host, 30, 20, 900)
    produce(host, 35, 900, kind=5, line="main/1")
    for device in range(8):
        consume(host, 60 + device, 10, 900, kind=5, line=f"pool/{device}")
        launch(host, 65 + device, device, f"pool/{device}")
    assert owner(space, ("python", 0, 20, 3)).tolist() == [3] * 8


def test_type_and_id_must_both_be_equal():
    space = Space()
    host = at_zero(space)
    produce(host, 10, 900)
    consume(host, 30, 10, 900, kind=5)
    launch(host, 35, 0)
    consume(host, 50, 10, 901)
    launch(host, 55, 1)
    assert owner(space, ("python", 0, 20, 3)).tolist() == [NONE, NONE]


def test_a_reused_id_joins_the_nearest_producer_before_it():
    space = Space()
    host = at_zero(space)
    for step in range(3):
        produce(host, 100 * step + 10, 1)
        for run in range(2):
            consume(host, 100 * step + 30 + 10 * run, 5, 1)
            launch(host, 100 * step + 32 + 10 * run, 2 * step + run)
    # Produced outside any marker: its consumer is of no step, whoever used the id before.
    produce(host, 350, 1)
    consume(host, 360, 5, 1)
    launch(host, 362, 6)
    markers = [("python", 100 * step, 100 * step + 20, step) for step in range(3)]
    assert owner(space, *markers).tolist() == [0, 0, 1, 1, 2, 2, NONE]
    for seed in range(3):
        assert owner(space, *markers, shuffle=seed).tolist() == [0, 0, 1, 1, 2, 2, NONE]


def test_a_consumer_inside_another_steps_marker_keeps_its_own_step():
    space = Space()
    host = at_zero(space)
    produce(host, 10, 1)
    consume(host, 110, 10, 1, line="python")
    launch(host, 115, 0, "python")
    launch(host, 125, 1, "python")
    found = owner(space, ("python", 0, 20, 0), ("python", 100, 140, 1))
    assert found.tolist() == [0, 1]


def test_a_launch_on_yet_another_line_belongs_to_the_one_marker_of_all_running_consumers():
    space = Space()
    host = at_zero(space)
    for flow, (at, begin, end) in enumerate(((10, 30, 60), (12, 40, 70), (110, 65, 95))):
        produce(host, at if flow < 2 else 15, flow)
        consume(host, begin, end - begin, flow, line=f"main/{flow}")
    # Of flow 3 the producer is in no marker.
    produce(host, 85, 3)
    consume(host, 90, 15, 3, line="main/3")
    for run_id, at in enumerate((25, 35, 50, 68, 92, 100)):
        launch(host, at, run_id, "Host Threads/9")
    found = owner(space, ("python", 0, 14, 0), ("python", 14, 20, 1))
    # Nothing runs; step 0; twice step 0; steps 0 and 1; step 1 and none; none.
    assert found.tolist() == [NONE, 0, 0, NONE, NONE, NONE]


def test_what_a_markers_line_launches_outside_it_is_no_step_whatever_runs_meanwhile():
    space = Space()
    host = at_zero(space)
    produce(host, 10, 1)
    consume(host, 15, 50, 1)
    launch(host, 40, 0, "python")
    assert owner(space, ("python", 0, 20, 0)).tolist() == [NONE]


def plain_owner(events, markers, run_at):
    """By definition, on one line per event and a search through everything."""

    def of(line, time):
        """The innermost span on the line that holds the time and has a step."""
        spans = [(s, e, step) for at, s, e, step in markers if at == line and s <= time < e]
        for kind, at, start, length, flow in events:
            if kind == "consume" and at == line and start <= time < start + length:
                step = of_consumer(start, flow)
                if step is not None:
                    spans.append((start, start + length, step))
        # A consumer that is as long as a marker lies inside it.
        return max(reversed(spans), key=lambda span: (span[0], -span[1]))[2] if spans else None

    def of_consumer(start, flow):
        before = [e for e in events if e[0] == "produce" and e[4] == flow and e[2] < start]
        return of(*max(before, key=lambda e: e[2])[1:3]) if before else None

    return of(*run_at)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_against_the_definition(data):
    """Producers, consumers and launches at distinct times on three lines, nested consumers."""
    draw = data.draw
    times = draw(st.lists(st.integers(1, 400), min_size=4, max_size=24, unique=True))
    events = []
    for time in sorted(times):
        line = f"main/{draw(st.integers(0, 2))}"
        flow = draw(st.integers(0, 3))
        if draw(st.booleans()):
            events.append(("produce", line, time, 0, flow))
        else:
            events.append(("consume", line, time, draw(st.integers(1, 200)), flow))
    events = _nested(events)
    markers = [("main/0", 0, 90, 0), ("main/0", 100, 190, 1), ("main/0", 210, 300, 2)]
    space = Space()
    host = space.host().call("start", 0, 0, line="main/0")
    for kind, line, time, length, flow in events:
        if kind == "produce":
            host.call("p", time, 0, line=line, _pt=1, _p=flow)
        else:
            host.call("c", time, length, line=line, _ct=1, _c=flow)
    launches = [(f"main/{index % 3}", 7 * index + 0.5) for index in range(60)]
    for index, (line, time) in enumerate(launches):
        host.call("run", time, 0, line=line, run_id=index)
    found = owner(space, *markers)
    for (line, time), step in zip(launches, found.tolist(), strict=True):
        expected = plain_owner(events, markers, (line, time))
        if expected is not None or line == "main/0":
            assert step == (NONE if expected is None else expected)


def _nested(events):
    """Consumers of one line cut so that they nest, and end before the markers do on line 0."""
    kept = []
    for event in events:
        if event[0] == "consume":
            kind, line, start, length, flow = event
            bounds = [
                s + n for k, at, s, n, _ in kept if k == "consume" and at == line and s + n > start
            ]
            bounds += [e for e in (90, 190, 300) if line == "main/0" and e > start][:1]
            end = min([start + length, *bounds])
            if line == "main/0":
                end = min([end, *(b for b in (100, 210) if b > start)])
            if end <= start:
                continue
            event = (kind, line, start, end - start, flow)
        kept.append(event)
    return kept


def test_a_consumer_as_long_as_a_marker_lies_inside_it():
    space = Space()
    host = at_zero(space)
    produce(host, 10, 1)
    consume(host, 100, 90, 1, line="python")
    launch(host, 120, 0, "python")
    assert owner(space, ("python", 0, 20, 3), ("python", 100, 190, 4)).tolist() == [3]


def test_no_flows_at_all():
    space = Space()
    host = at_zero(space)
    launch(host, 5, 0, "python")
    launch(host, 8, 1)
    assert owner(space, ("python", 0, 20, 0)).tolist() == [0, NONE]
