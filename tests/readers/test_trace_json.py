import itertools
import json
import random

import numpy as np
import pytest

from builders_json import event, gz, names, pairs, process, read, thread, times, trace
from marin_profile.capture.formats import TRACE_JSON, format_named
from marin_profile.events.timeline import Line, Op, Plane
from marin_profile.readers import json_loop, json_scan, json_stream

pytestmark = pytest.mark.usefixtures("loops")


def test_a_whole_small_trace() -> None:
    timeline = read(
        trace(
            process(701, "/host:CPU"),
            thread(701, 5, "python"),
            event("train", "10.5", "2", pid="701", tid="5", step_num="0"),
            event(
                "all-reduce.1",
                "12",
                "0.25",
                long_name="%all-reduce.1 = f32[8] all-reduce(...)",
                hlo_category="all-reduce",
                tf_op="jit(f)/psum:",
                source="a.py:1",
                shape_with_layout="f32[8]{0}",
                model_flops="64",
                bytes_accessed="32",
                raw_bytes_accessed="99",
                device_offset_ps="5000",
                device_duration_ps="250001",
            ),
            event("copy.2", "13", "0.5", device_offset_ps="7000", device_duration_ps="500000"),
        )
    )
    assert timeline.source_format == "perfetto_trace_json"
    assert timeline.planes == (Plane("/device:TPU:0", 3), Plane("/host:CPU", 701))
    assert timeline.lines == (Line(0, 3, "XLA Ops", 1, 2), Line(1, 5, "python", 0, 1))
    assert timeline.line.tolist() == [1, 0, 0]
    assert times(timeline) == [(0, 2_000_000), (1_500_000, 250_000), (2_500_000, 500_000)]
    assert timeline.ops == (
        Op("train"),
        Op(
            "all-reduce.1",
            long_name="%all-reduce.1 = f32[8] all-reduce(...)",
            category="all-reduce",
            scope_hints=("jit(f)/psum:",),
            source="a.py:1",
            shape="f32[8]{0}",
            model_flops=64,
            bytes_accessed=32,
        ),
        Op("copy.2"),
    )
    assert pairs(timeline.device_start) == [(1, 0), (2, 2000)]
    assert pairs(timeline.device_duration) == [(1, 250_001), (2, 500_000)]
    assert pairs(timeline.step_num) == [(0, 0)]
    assert not timeline.truncated
    assert not timeline.notes
    assert not timeline.dropped
    assert timeline.profile_start_ns is None
    for column in (timeline.start, timeline.device_start.rows, timeline.device_start.values):
        assert not column.flags.writeable


def test_gpu_and_cpu_args() -> None:
    timeline = read(
        trace(
            event(
                "kernel.kd",
                hlo_op="dot.3",
                hlo_module="jit_f",
                name="jit(f)/dot",
                tf_op="XlaModule:",
                program_id="18446744073709551615",
                flops="7",
                memcpy_details="kind:H2D",
                correlation_id="9223372036854775813",
                run_id="-2053747150",
                device_ordinal=7,
            )
        )
    )
    assert timeline.ops == (
        Op(
            "kernel.kd",
            hlo_op="dot.3",
            module="jit_f",
            program_id=2**64 - 1,
            scope_hints=("XlaModule:", "jit(f)/dot"),
            flops=7,
            memcpy_details="kind:H2D",
        ),
    )
    assert pairs(timeline.correlation_id) == [(0, 2**63 + 5 - 2**64)]
    assert pairs(timeline.run_id) == [(0, -2053747150)]
    assert pairs(timeline.device_ordinal) == [(0, 7)]


@pytest.mark.parametrize("text", ["-1", "abc", "1e400", "NaN", "9223372036854775808"])
def test_amounts_that_are_none(text: str) -> None:
    (op,) = read(trace(event("f", flops=text))).ops
    assert op.flops is None


def test_args_describe_a_host_event_only_if_they_name_an_op() -> None:
    host = process(701, "/host:CPU")
    loose = event("Execute", pid="701", tid="1", name="jit_f", run_id="4")
    op = event("dot.1", pid="701", tid="1", hlo_op="dot.1", hlo_module="jit_f")
    timeline = read(trace(host, loose, op))
    assert timeline.ops == (Op("Execute"), Op("dot.1", hlo_op="dot.1", module="jit_f"))
    assert pairs(timeline.run_id) == [(0, 4)]
    (op_on_device,) = read(trace(event("Execute", name="jit_f"))).ops
    assert op_on_device.scope_hints == ("jit_f",)


def test_times_are_exact_at_the_size_of_an_epoch() -> None:
    timeline = read(
        trace(
            event("a", "1778266702889805.563", "0.001"),
            event("b", "1778266702889805.564", "0.001"),
            event("c", "1.778266702889806e15", "1.5e0"),
            event("d", '"1778266702889807.25"', '"0.5"'),
        )
    )
    assert times(timeline) == [(0, 1000), (1000, 1000), (437_000, 1_500_000), (1_687_000, 500_000)]


def test_ends_meet_below_a_microsecond() -> None:
    timeline = read(trace(event("a", "100.7", "0.2"), event("b", "100.9", "0.1")))
    assert times(timeline) == [(0, 200_000), (200_000, 100_000)]


def test_instants() -> None:
    timeline = read(
        trace(
            event("jax", "0", "9.9999999999999995e-07"),
            event("python", "1", "1e-06"),
            event("two", "2", "2e-06"),
            event("xprof", "3", None, ph="i"),
            '{"ph":"i","pid":3,"tid":3,"ts":4}',
            '{"ph":"I","pid":3,"tid":3,"ts":5,"args":{}}',
        )
    )
    assert names(timeline) == ["jax", "python", "two", "xprof", ""]
    assert timeline.duration.tolist() == [0, 0, 2, 0, 0]


def test_events_without_a_usable_time_are_counted() -> None:
    timeline = read(
        trace(
            event("good", "5", "1"),
            event(dur="-1.5"),
            event(dur='"NaN"'),
            event(dur="Infinity"),
            event(dur="null"),
            event(dur=None),
            event(ts="NaN"),
            event(ts='"noon"'),
            event(ts=None),
            '{"pid":3,"name":"no phase"}',
            event("counter", ph="C"),
            event("flow", ph="s"),
            event(ph="i", ts="-Infinity"),
        )
    )
    assert names(timeline) == ["good"]
    assert times(timeline) == [(0, 1_000_000)]
    assert dict(timeline.dropped) == {
        "negative_duration": 1,
        "bad_duration": 3,
        "missing_duration": 1,
        "bad_timestamp": 3,
        "missing_timestamp": 1,
        "damaged_event": 1,
    }


def test_a_stray_timestamp_does_not_overflow() -> None:
    events = [event(f"op{at}", f"1778266702889805.{at}", "1", run_id=str(at)) for at in range(3)]
    timeline = read(trace(event("stray", "0", "1", run_id="9"), *events))
    assert names(timeline) == ["op0", "op1", "op2"]
    assert timeline.start.tolist() == [0, 100_000, 200_000]
    assert pairs(timeline.run_id) == [(0, 0), (1, 1), (2, 2)]
    assert dict(timeline.dropped) == {"bad_timestamp": 1}
    assert timeline.lines[0].count == 3


def test_device_times_that_are_none_are_left_out() -> None:
    timeline = read(
        trace(
            event("a", device_offset_ps="-1", device_duration_ps="x"),
            event("b", device_offset_ps=str(2**64 - 1), device_duration_ps="-7"),
            event("c", device_offset_ps="12", device_duration_ps="3"),
        )
    )
    assert pairs(timeline.device_start) == [(2, 0)]
    assert pairs(timeline.device_duration) == [(2, 3)]


def test_tracks_are_sorted_named_late_and_may_be_empty() -> None:
    timeline = read(
        trace(
            event("x", "3", pid="11", tid="5000000000"),
            event("y", "1", pid="3", tid="18446744073709551615"),
            event("z", "2"),
            process(11, "/device:TPU:1"),
            process(19, "/device:TPU:2"),
            thread(11, 7, "LLO"),
            thread(11, 5_000_000_000, "XLA Ops"),
        )
    )
    assert timeline.planes == (
        Plane("/device:TPU:0", 3),
        Plane("/device:TPU:1", 11),
        Plane("/device:TPU:2", 19),
    )
    assert timeline.lines == (
        Line(0, -1, "", 1, 1),
        Line(0, 3, "XLA Ops", 2, 1),
        Line(1, 7, "LLO", 0, 0),
        Line(1, 5_000_000_000, "XLA Ops", 0, 1),
    )


def test_interleaved_tracks_are_brought_together() -> None:
    timeline = read(
        trace(
            *(
                event(f"t{at % 3}e{at}", str(at), tid=str(at % 3), run_id=str(at))
                for at in range(7)
            ),
            named=True,
        )
    )
    assert names(timeline) == ["t0e0", "t0e3", "t0e6", "t1e1", "t1e4", "t2e2", "t2e5"]
    assert [(line.first, line.count) for line in timeline.lines[:3]] == [(0, 3), (3, 2), (5, 2)]
    assert pairs(timeline.run_id) == list(enumerate([0, 3, 6, 1, 4, 2, 5]))
    assert timeline.start.tolist() == [at * 10**6 for at in (0, 3, 6, 1, 4, 2, 5)]


def test_the_order_of_the_file_does_not_matter() -> None:
    events = [
        event(f"op{at % 4}", f"{at * 7 % 10}.5", str(at), tid=str(at % 3), run_id=str(at))
        for at in range(20)
    ]
    expected = None
    for seed in range(5):
        random.Random(seed).shuffle(events)
        timeline = read(trace(*events))
        _, run_ids = timeline.run_id.find(np.arange(20))
        rows = sorted(
            zip(
                timeline.line.tolist(),
                names(timeline),
                *zip(*times(timeline), strict=True),
                run_ids.tolist(),
                strict=True,
            )
        )
        expected = expected or rows
        assert rows == expected


def test_any_key_order_and_white_space() -> None:
    events = [
        {"name": 'a "b" \\', "args": {"run_id": 1, "hlo_op": "é\u2028"}, "dur": 1.5, "ts": 2},
        {"ts": "3", "tid": 1, "dur": 1, "pid": 3, "name": "second"},
    ]
    objects = [json.loads(process()), *({"ph": "X", **one} for one in events), {}]
    expected = None
    for indent, ascii_only in itertools.product((None, 2), (False, True)):
        text = {"a": [{"x": "]"}], "traceEvents": objects, "z": {"y": 1}}
        for top in (text, objects):
            raw = json.dumps(top, indent=indent, ensure_ascii=ascii_only).encode()
            for packed in (raw, gz(raw), b"\xef\xbb\xbf \n" + raw):
                timeline = read(packed)
                rows = (names(timeline), times(timeline), timeline.ops, pairs(timeline.run_id))
                expected = expected or rows
                assert rows == expected
                assert not timeline.notes
    assert expected[0] == ['a "b" \\', "second"]
    assert expected[1] == [(0, 1_500_000), (1_000_000, 1_000_000)]
    assert expected[2][0].hlo_op == "é\u2028"


def test_names_that_are_no_clean_text() -> None:
    odd = '{"ph":"X","pid":3,"tid":3,"ts":0,"dur":1,"name":"ODD"}'
    surrogate = event("S").replace('"S"', r'"\ud800"').encode()
    text = trace(event("x" * 40_000), event("nul\0"), odd, surrogate.decode(), event("n\\u"))
    timeline = read(text.replace(b"ODD", b"\x80\xff\n"))
    assert names(timeline) == ["x" * 40_000, "nul\0", "\ufffd\ufffd\n", "\ufffd", "n\\u"]


def test_what_is_skipped_may_be_anything() -> None:
    args = '"args":{"big":10159970886766084423,"nan":NaN,"inf":-Infinity,"deep":[{"a":[{}]}]}'
    first = event("a")[:-1] + "," + args + "}"
    timeline = read(trace(first, event("b")))
    assert names(timeline) == ["a", "b"]


def test_ops_are_interned_by_value() -> None:
    escaped = event("fusion").replace("fusion", r"f\u0075sion")
    swapped = '{"name":"fusion","dur":1,"ts":0,"tid":3,"pid":3,"ph":"X"}'
    timeline = read(trace(event("fusion"), escaped, swapped, event("fusion", hlo_op="x")))
    assert timeline.ops == (Op("fusion"), Op("fusion", hlo_op="x"))
    assert timeline.op.tolist() == [0, 0, 0, 1]


def test_many_ops_and_tracks_outgrow_the_tables() -> None:
    count = 3 * json_loop.CHUNK
    timeline = read(
        trace(*(event(f"op{at}", str(at), tid=str(at), run_id=str(at)) for at in range(count)))
    )
    assert len(timeline.ops) == count
    assert timeline.op.tolist() == list(range(count))
    assert len(timeline.lines) == count
    assert timeline.run_id.values.tolist() == list(range(count))


def test_small_windows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = trace(*(event(f"op{at % 5}", str(at), run_id=str(at)) for at in range(200)))
    text = text[:-1] + b',"after":"' + b"x" * 300 + b'"}'
    whole = read(text)
    monkeypatch.setattr(json_stream, "WINDOW", 64)
    monkeypatch.setattr(json_stream, "PIECE", 16)
    for module in (json_loop, json_scan):
        monkeypatch.setattr(module, "CHUNK", 8)
    for packed in (text, gz(text)):
        timeline = read(packed)
        assert not timeline.notes
        assert times(timeline) == times(whole)
        assert timeline.ops == whole.ops
        assert pairs(timeline.run_id) == pairs(whole.run_id)


def test_what_json_lacks_is_stated() -> None:
    stated = " ".join(format_named(TRACE_JSON).lacks)
    for word in ("async", "HLO protos", "plane statistics", "flops", "program ids", "allocations"):
        assert word in stated


@pytest.mark.parametrize(
    ("ts", "first"),
    [
        ("1700000000000000.000501", 1_700_000_000_000_000_000_501),
        ("-3.5", -3_500_000),
        ("0.0000001", 0),
    ],
)
def test_when_the_first_event_began_by_the_clock_of_the_file(ts, first):
    later = str(int(float(ts)) + 7)
    timeline = read(trace(event("b", later, "1"), event("a", ts, "1")))
    assert timeline.first_ts == first
    assert min(timeline.start) == 0
