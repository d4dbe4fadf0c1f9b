"""Where steps and ops are in a trace JSON, on its own clock."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from builders_json import event, gz, process, thread, trace
from builders_xspace import Space
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.find import find_members
from marin_profile.base.errors import CannotAnswerError, NotFoundError
from marin_profile.capture.sources import resolve_path
from marin_profile.capture.trace_files import HostFile
from marin_profile.perfetto import Place, place_of, trace_file
from real.captures import CPU8, GPU_CONV, GPU_GEMM, V6E, VLLM_BEFORE, read

SESSION = "plugins/profile/2026_01_02_03_04_05"


def steps_on_two_devices() -> bytes:
    """Three steps 100 us apart from 5,000.0001234 us on; device 1 ends 3 us later, and its dot.2 in
    step 2 takes longest."""
    objects = []
    for device in (3, 4):
        objects += [
            process(device, f"/device:TPU:{device - 3}"),
            thread(device, 1, "Steps"),
            thread(device, 2, "XLA Modules"),
            thread(device, 3, "XLA Ops"),
        ]
        for step in range(3):
            at = 5000 + 100 * step
            late = 3 * (device - 3)
            own = {"pid": str(device)}
            slow = 20 if (device, step) == (4, 2) else 0
            objects += [
                event(str(step + 7), f"{at}.0001234", "95", tid="1", **own),
                event("jit_step(7)", f"{at}.0001234", "90", tid="2", run_id=str(step), **own),
                event("dot.1", f"{at}.0001234", "30", hlo_category="convolution fusion", **own),
                event(
                    "dot.2",
                    f"{at + 40}.0001234",
                    str(10 + late + slow),
                    hlo_category="convolution fusion",
                    **own,
                ),
            ]
    return trace(*objects, named=False)


@pytest.fixture
def made(tmp_path: Path) -> HostFile:
    folder = tmp_path / SESSION
    folder.mkdir(parents=True)
    (folder / "h.trace.json.gz").write_bytes(gz(steps_on_two_devices()))
    return trace_file(resolve_path(str(tmp_path))[0])


def test_a_step_is_where_its_ops_are_on_all_devices(made):
    # From 5,100.0001234 us to 5,153.0001234 us, to whole nanoseconds around.
    assert place_of(made, step=8) == Place(5_100_000, 5_153_001, "step 8 on 2 devices")


def test_an_op_is_where_it_took_longest(made):
    what = "dot.2 on /device:TPU:1, the longest of 6 executions"
    assert place_of(made, op="dot.2") == Place(5_240_000, 5_273_001, what)


def test_an_op_in_a_step(made):
    what = "dot.2 on /device:TPU:1, the longest of 2 executions in step 7"
    assert place_of(made, step=7, op="dot.2") == Place(5_040_000, 5_053_001, what)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"step": 0}, "There is no step 0; there are 3 steps, 7 to 9."),
        ({"op": "dot.3"}, "There is no op 'dot.3' in the trace; did you mean dot.2 or dot.1?"),
    ],
)
def test_what_is_not_there(made, wanted, told):
    with pytest.raises(CannotAnswerError, match=told.replace("?", r"\?")):
        place_of(made, **wanted)


def test_an_event_without_length_can_be_seen(tmp_path):
    text = trace(event("dot.1", "2.5", "1e-06", hlo_category="convolution fusion"))
    (tmp_path / "h.trace.json").write_bytes(text)
    file = trace_file(resolve_path(str(tmp_path / "h.trace.json"))[0])
    assert place_of(file, op="dot.1").start_ns == 2500
    assert place_of(file, op="dot.1").end_ns == 2501


def test_the_file_of_a_host(tmp_path):
    folder = tmp_path / SESSION
    for host in "ab":
        space = Space(host)
        space.tpu(0).op("dot.1", 0, 5, category="convolution fusion")
        space.write(folder / f"{host}.xplane.pb")
    (folder / "b.trace.json.gz").write_bytes(gz(steps_on_two_devices()))
    capture, _ = resolve_path(str(tmp_path))
    assert trace_file(capture, "b").path.endswith("b.trace.json.gz")
    with pytest.raises(CannotAnswerError, match=r"Perfetto opens no xplane\.pb: copy the a\.trace"):
        trace_file(capture)
    with pytest.raises(NotFoundError, match="no host 'c'; its hosts are: a, b"):
        trace_file(capture, "c")


# Real traces


def raw_events(path: Path) -> list[dict]:
    return [one for one in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if one]


def test_the_longest_op_of_a_real_trace(traces):
    """By its own text: XLA's device_duration_ps says which one, ts and dur where."""
    file = trace_file(resolve_path(str(traces / V6E))[0])
    assert file.path.endswith("host0.trace.json.gz")
    own = [one for one in raw_events(traces / V6E / "host0.trace.json.gz") if one["ph"] == "X"]
    runs = [one for one in own if one["name"] == "copy-done.4" and "hlo_category" in one["args"]]
    longest = max(runs, key=lambda one: int(one["args"]["device_duration_ps"]))
    place = place_of(file, op="copy-done.4")
    assert f"the longest of {len(runs):,} executions" in place.what
    assert place.start_ns == pytest.approx(longest["ts"] * 1000, abs=1)
    assert place.end_ns == pytest.approx((longest["ts"] + longest["dur"]) * 1000, abs=1)


@pytest.mark.parametrize("name", [V6E, CPU8, GPU_CONV])
def test_steps_are_those_of_the_xplane(traces, name):
    """Both files show the same steps; from the second step on, as far from the first one."""
    capture, _ = resolve_path(str(traces / name))
    file = trace_file(capture)
    host = find_devices(read(Path(capture.hosts[0].path)), "")
    found = find_members(host)
    if not found.step_of_op:
        with pytest.raises(CannotAnswerError, match="does not show where steps are"):
            place_of(file, step=0)
        return
    numbers = found.series.numbers
    extents = []
    for at in range(len(numbers)):
        chosen = [
            (device, step == at) for device, step in zip(host.main, found.step_of_op, strict=True)
        ]
        starts = [device.event_start[own].min() for device, own in chosen if own.any()]
        ends = [device.event_end[own].max() for device, own in chosen if own.any()]
        extents.append((int(min(starts)), int(max(ends))))
    names = [at if number is None else number for at, number in enumerate(numbers)]
    first = place_of(file, step=names[0])
    for at in (1, len(names) // 2, len(names) - 1):
        place = place_of(file, step=names[at])
        apart = [(extents[at][edge] - extents[0][0]) / 1000 for edge in (0, 1)]
        assert place.start_ns - first.start_ns == pytest.approx(apart[0], abs=1)
        assert place.end_ns - first.start_ns == pytest.approx(apart[1], abs=2)


def test_a_trace_alone_and_an_xplane_alone(traces):
    alone = trace_file(resolve_path(str(traces / VLLM_BEFORE))[0])
    earliest = min(one["ts"] for one in raw_events(Path(alone.path)) if one["ph"] == "X")
    assert place_of(alone, step=0).start_ns >= int(earliest * 1000)
    with pytest.raises(CannotAnswerError, match="has no trace JSON beside it"):
        trace_file(resolve_path(str(traces / GPU_GEMM))[0])
