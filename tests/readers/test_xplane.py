"""XSpace bytes -> Timeline."""

import gzip
import io
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import (
    US,
    Event,
    Ref,
    Space,
    Unsigned,
    computation,
    double,
    hlo_proto,
    instruction,
    message,
    number,
    read_bytes,
    varint,
)
from marin_profile.base import jit
from marin_profile.base.errors import BrokenInputError
from marin_profile.events.timeline import Timeline
from marin_profile.readers.profile_window import read_profile_window
from marin_profile.readers.xplane import read_xplane

pytestmark = pytest.mark.usefixtures("loops")


def rows(timeline: Timeline, line: str) -> list[tuple[str, int, int]]:
    """(name, start, duration) in ps of a line's events."""
    found = next(one for one in timeline.lines if one.name == line)
    return [
        (
            timeline.ops[timeline.op[row]].name,
            int(timeline.start[row]),
            int(timeline.duration[row]),
        )
        for row in timeline.rows_of(found).tolist()
    ]


def op_named(timeline: Timeline, name: str):
    return next(op for op in timeline.ops if op.name == name)


# --- times -------------------------------------------------------------------------------------


def test_times_count_from_the_first_event_in_picoseconds():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 100.7, 0.2).op("b", 100.9, 0.000001).op("c", 101, 0)
    assert rows(space.timeline(), "XLA Ops") == [
        ("a", 0, 200_000),
        ("b", 200_000, 1),
        ("c", 300_000, 0),
    ]


def test_lines_have_their_own_epoch():
    """timestamp_ns is epoch nanoseconds: in picoseconds it would overflow."""
    epoch = 1_778_266_702_889_805_563
    space = Space()
    host = space.host()
    host.line("one", timestamp_ns=epoch)
    host.line("two", timestamp_ns=epoch + 7)
    start = epoch / 1000
    assert start > 1e15
    for name, offset in (("one", 5), ("two", 0)):
        line = host.lines[name]
        host.event(name, name, 0, 1)
        line.events[0].start_ps = line.timestamp_ns * 1000 + offset
    timeline = space.timeline()
    assert rows(timeline, "one") == [("one", 0, 1_000_000)]
    assert rows(timeline, "two") == [("two", 6_995, 1_000_000)]


def test_unsorted_events_keep_the_order_of_the_file():
    space = Space()
    space.tpu(0).op("late", 50, 1).op("early", 10, 1)
    assert rows(space.timeline(), "XLA Ops") == [
        ("late", 40_000_000, 1_000_000),
        ("early", 0, 1_000_000),
    ]


def test_aggregated_and_negative_events_are_left_out_and_counted():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 0, 5).op("b", 5, -3)
    tpu.event("XLA Ops", "c", 9, 9, aggregated=True)
    timeline = space.timeline()
    assert timeline.num_events == 1
    assert dict(timeline.dropped) == {"aggregated_event": 1, "negative_duration": 1}


def test_a_negative_device_duration_is_not_used():
    space = Space()
    space.tpu(0).op("a", 0, 5, device_start=0, device_duration=5)
    space.planes[0].op("b", 5, 3, device_start=5, device_duration=-3)
    timeline = space.timeline()
    _, duration = timeline.device_times(np.arange(timeline.num_events))
    assert (duration >= 0).all()


def test_device_clock_columns():
    space = Space()
    space.tpu(0).op("a", 10, 5, device_start=100, device_duration=7).op("b", 20, 5)
    timeline = space.timeline()
    start, duration = timeline.device_times(np.arange(2))
    # b has no device time: it is placed by a's shift, device time 0 standing at event time 0.
    assert start.tolist() == [0, 10_000_000]
    assert duration.tolist() == [7_000_000, 5_000_000]


# --- stats -------------------------------------------------------------------------------------


def test_every_stat_type_on_a_plane():
    space = Space()
    plane = space.plane(
        "/device:GPU:0",
        signed=-5,
        unsigned=Unsigned(2**63 + 5),
        real=2.5,
        text="héllo",
        raw=b"\x00\xff",
        reference=Ref("AMD"),
    )
    plane.event("Stream #1", "k", 0, 1)
    assert dict(space.timeline().planes[0].stats) == {
        "signed": -5,
        "unsigned": 2**63 + 5,
        "real": 2.5,
        "text": "héllo",
        "reference": "AMD",
    }


def test_op_stats_of_every_type():
    big = 2**63 + 5
    space = Space()
    space.tpu(0).event(
        "XLA Ops",
        "%f = f32[2]{0} fusion(f32[2] %a)",
        0,
        1,
        display="f",
        shared={
            "hlo_category": Ref("loop fusion"),
            "program_id": Unsigned(big),
            "flops": 1000,
            "model_flops": 900.0,
            "bytes_accessed": "123",
            "tf_op": "jit(f)/a/b:",
            "shape_with_layout": "f32[2]{0}",
            "source": "train.py:29",
            "memory_access_breakdown": b"\x01\x02",
        },
    )
    op = op_named(space.timeline(), "f")
    assert op.long_name == "%f = f32[2]{0} fusion(f32[2] %a)"
    assert op.category == "loop fusion"
    assert op.program_id == big
    assert (op.flops, op.model_flops, op.bytes_accessed) == (1000, 900, 123)
    assert op.scope_hints == ("jit(f)/a/b:",)
    assert (op.shape, op.source) == ("f32[2]{0}", "train.py:29")


def test_missing_stats_are_unknown():
    space = Space()
    space.gpu(0).kernel("kernel", 0, 1)
    op = op_named(space.timeline(), "kernel")
    assert (op.program_id, op.flops, op.bytes_accessed) == (None, None, None)
    assert (op.hlo_op, op.module, op.category, op.scope_hints) == ("", "", "", ())


def test_a_signed_program_id_is_the_same_program():
    space = Space()
    space.gpu(0).kernel("a", 0, 1, hlo_op="x", program_id=-3)
    assert op_named(space.timeline(), "a").program_id == 2**64 - 3


def test_the_scope_in_the_stat_name_stands_behind_tf_op():
    space = Space()
    space.gpu(0).kernel("k", 0, 1, scope="jit(f)/jvp()/ffi", tf_op="XlaModule:")
    assert op_named(space.timeline(), "k").scope_hints == ("XlaModule:", "jit(f)/jvp()/ffi")


@pytest.mark.parametrize("run_id", [7, -2_053_747_150, 2**40, 2**63 - 1])
def test_sparse_columns(run_id):
    space = Space()
    host = space.host()
    host.marker(11, 0, 5)
    host.call("launch", 1, 1, run_id=run_id, correlation_id=Unsigned(2**40), device_ordinal=3)
    timeline = space.timeline()
    assert timeline.step_num.values.tolist() == [11]
    assert timeline.run_id.values.tolist() == [run_id]
    assert timeline.run_id.rows.tolist() == [1]
    assert timeline.correlation_id.values.tolist() == [2**40]
    assert timeline.device_ordinal.values.tolist() == [3]
    found, values = timeline.run_id.find(np.arange(2))
    assert (found.tolist(), values.tolist()) == ([False, True], [0, run_id])


def test_executions_of_one_op_are_one_entry_of_the_op_table():
    space = Space()
    gpu = space.gpu(0)
    for index in range(5):
        gpu.kernel("k", index, 1, hlo_op="fusion.1", correlation=index)
    gpu.kernel("k", 9, 1, hlo_op="fusion.2", correlation=9)
    timeline = space.timeline()
    assert [op.hlo_op for op in timeline.ops] == ["fusion.1", "fusion.2"]
    assert timeline.op.tolist() == [0] * 5 + [1]


def test_host_arguments_do_not_make_ops():
    """Host events with an argument `name` or `source` are no ops of their own."""
    space = Space()
    host = space.host()
    for index in range(3):
        host.line("python")
        host.call("Execute", index, 1, source=f"file.py:{index}")
    host.cpu_op("fusion.1", 5, 1, run_id=1)
    timeline = space.timeline()
    assert sorted(op.name for op in timeline.ops) == ["Execute", "fusion.1"]


# --- names, planes, lines ----------------------------------------------------------------------


def test_planes_and_lines():
    space = Space("the-host")
    space.environment(10, 20)
    tpu = space.tpu(0)
    tpu.line("XLA Ops", line_id=3)
    tpu.line("short", line_id=2**33, display_name="shown")
    tpu.op("a", 0, 1)
    timeline = space.timeline()
    assert timeline.source_format == "xplane_pb"
    assert timeline.hostname == "the-host"
    assert [plane.name for plane in timeline.planes] == ["Task Environment", "/device:TPU:0"]
    assert [(line.plane, line.id, line.name, line.count) for line in timeline.lines] == [
        (1, 3, "XLA Ops", 1),
        (1, 2**33, "shown", 0),
    ]
    assert (timeline.profile_start_ns, timeline.profile_stop_ns) == (10, 20)
    assert not timeline.truncated
    assert timeline.notes == ()


def test_long_and_broken_names_are_bytes_safe():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("n" * 40_000, 0, 1).op("nul\x00", 1, 1)
    content = space.encode().replace(b"nul\x00", b"\x80\xff\x00z")
    names = [op.name for op in read_bytes(content).ops]
    assert names == ["n" * 40_000, "��\x00z"]


def test_an_event_without_metadata_keeps_its_time():
    space = Space()
    space.tpu(0).op("a", 0, 5)
    space.planes[0]._metadata.clear()
    assert rows(space.timeline(), "XLA Ops") == [("", 0, 5_000_000)]


# --- HLO protos --------------------------------------------------------------------------------


def test_modules_of_one_name_are_kept_apart_by_program_id():
    space = Space()
    space.hlo(1, hlo_proto(computation(1, 1, instruction("fusion.1", "all-reduce", id=1))))
    space.hlo(2**63 + 7, hlo_proto(computation(1, 1, instruction("fusion.1", "fusion", id=1))))
    timeline = space.timeline()
    assert timeline.hlo[1]["fusion.1"].opcode == "all-reduce"
    assert timeline.hlo[2**63 + 7]["fusion.1"].opcode == "fusion"


def test_a_module_named_with_odd_digits_is_no_reason_to_fail():
    space = Space()
    space.hlo(5, hlo_proto(computation(1, 1, instruction("a", "add", id=1))), module="jit_²")
    plane = space.planes[0]
    plane.raw_metadata(
        6,
        number(1, 6) + message(2, "jit_f(²)") + plane.encode_stats(5, {"Hlo Proto": hlo_proto()}),
    )
    assert 5 in space.timeline().hlo


def test_a_program_id_of_thousands_of_digits_is_no_reason_to_fail():
    space = Space()
    space.hlo(5, hlo_proto(computation(1, 1, instruction("a", "add", id=1))))
    plane = space.planes[0]
    proto = plane.encode_stats(5, {"Hlo Proto": hlo_proto()})
    plane.raw_metadata(6, number(1, 6) + message(2, f"jit_f({'7' * 5000})") + proto)
    assert sorted(space.timeline().hlo) == [5, 6]


# --- windows -----------------------------------------------------------------------------------


def test_profile_window(tmp_path):
    space = Space()
    space.tpu(0).op("a", 0, 1)
    space.environment(2**62, 2**62 + 10)
    with space.write(tmp_path / "h.xplane.pb").open("rb") as stream:
        assert read_profile_window(stream) == (2**62, 2**62 + 10)
    empty = tmp_path / "e.xplane.pb"
    empty.write_bytes(b"")
    with empty.open("rb") as stream:
        assert read_profile_window(stream) is None


def test_the_profile_window_stands_behind_large_planes():
    space = Space()
    tpu = space.tpu(0)
    for index in range(2_000):
        tpu.op("a", index, 1)
    space.environment(3, 4)
    content = space.encode()
    assert read_profile_window(io.BytesIO(content)) == (3, 4)
    assert read_profile_window(io.BytesIO(content[:-30])) is None
    assert read_profile_window(io.BytesIO(content[:300])) is None


@pytest.mark.parametrize("length", [2**31, 2**62, 2**63, 2**64 - 1])
def test_a_plane_of_absurd_length_has_no_window(length):
    content = b"\x0a" + varint(length) + b"\x08\x01"
    assert read_profile_window(io.BytesIO(content)) is None


@settings(deadline=None)
@given(st.data())
def test_windows_of_damaged_files(data):
    space = Space()
    space.environment(3, 4)
    content = bytearray(space.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    found = read_profile_window(io.BytesIO(cut))
    assert found is None or len(found) == 2


# --- streams and damage ------------------------------------------------------------------------


def sound_space() -> Space:
    space = Space("h")
    space.environment(1, 2)
    space.hlo(7, hlo_proto(computation(1, 1, instruction("fusion.1", "fusion", id=1))))
    host = space.host(threads=1.5)
    host.marker(0, 0, 5).marker(1, 10, 5)
    host.call("launch", 1, 1, run_id=1)
    tpu = space.tpu(0, peak_teraflops_per_second=918.0)
    tpu.module("jit_f(7)", 2, 4, run_id=1)
    tpu.op("fusion.1", 2, 3, category="loop fusion", scope="jit(f)/a/b", flops=5)
    tpu.op("all-reduce.1", 5, 1, category="all-reduce", device_start=5)
    return space


@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_any_binary_stream_is_read(wrap):
    """A remote file is no local file descriptor."""
    content = sound_space().encode()
    stream = io.BytesIO(wrap(content))
    assert read_xplane(stream, path="x").num_events == read_bytes(content).num_events


def two_lines() -> tuple[bytes, int, int]:
    """A file of two planes, the second with two lines; where that plane and its lines begin."""
    space = Space()
    space.tpu(0).op("a", 0, 5)
    first = len(space.encode())
    tpu = space.tpu(1)
    tpu.op("b", 0, 5)
    tpu.event("Steps", "1", 0, 5)
    whole = space.encode()
    return whole, first, whole.index(b"Steps") - 6


def test_a_cut_file_keeps_whole_lines_and_the_planes_before_the_cut():
    whole, first, steps = two_lines()
    timeline = read_bytes(whole[: steps + 5], path="cut.xplane.pb")
    assert [plane.name for plane in timeline.planes] == ["/device:TPU:0", "/device:TPU:1"]
    assert [line.count for line in timeline.lines] == [1, 1]
    # Names stand behind the lines.
    assert [op.name for op in timeline.ops] == ["a", ""]
    assert timeline.truncated
    (note,) = timeline.notes
    assert "cut.xplane.pb is cut or damaged at byte " in note
    assert f"of {steps + 5:,}: what stands behind it in /device:TPU:1 is lost" in note
    assert timeline.doubts[0].startswith("1 event of 2 have no name")
    timeline = read_bytes(whole[: first + 1], path="cut.xplane.pb")
    assert (timeline.num_events, len(timeline.planes)) == (1, 1)
    assert f"byte {first:,} of {first + 1:,}: the plane there is lost" in timeline.notes[0]


def test_a_file_appended_to_itself_is_read_once():
    content = sound_space().encode()
    once, twice = read_bytes(content), read_bytes(content + content)
    assert [plane.name for plane in twice.planes] == [plane.name for plane in once.planes]
    assert twice.num_events == once.num_events
    assert twice.dropped == {"repeated_plane": once.num_events}
    assert twice.doubts[0].startswith(
        "4 planes with a name that another has before (Task Environment, /host:metadata, "
        "/host:CPU, /device:TPU:0): only the first of each name is read"
    )


def test_events_whose_metadata_is_missing_are_said():
    space = Space()
    tpu = space.tpu(0)
    for name in "abcd":
        tpu.op(name, 0, 5).op(name, 10, 5)
    for key in list(tpu._metadata)[::2]:
        del tpu._metadata[key]
    timeline = space.timeline()
    assert timeline.num_events == 8
    assert timeline.doubts == (
        "4 events of 8 have no name, for their metadata is missing: the file is damaged, and "
        "nothing can be said of their ops.",
    )
    assert timeline.truncated


def test_a_few_events_without_metadata_leave_a_whole_profile():
    space = Space()
    tpu = space.tpu(0)
    for at in range(200):
        tpu.op("a", 10 * at, 5)
    tpu.op("b", 5000, 5)
    del tpu._metadata[next(key for key in tpu._metadata if key[0] == "b")]
    timeline = space.timeline()
    assert timeline.doubts[0].startswith("1 event of 201 have no name")
    assert not timeline.truncated


@pytest.mark.parametrize("where", ["space", "plane", "line"])
def test_fields_that_the_format_does_not_have(where):
    """The tag of a plane, a line or an event (fields 1, 3, 4, as bytes), with one bit flipped."""
    space = Space("host-0")
    for ordinal in range(3):
        tpu = space.tpu(ordinal)
        tpu.op("a", 0, 5).op("b", 0, 5, line="XLA Modules")
    content = bytearray(space.encode())
    at = {"space": 0, "plane": content.index(b"XLA Ops") - 6, "line": content.index(b"XLA Ops") + 7}
    assert content[at[where]] in (0x0A, 0x1A, 0x22)
    content[at[where]] ^= 0x40
    (doubt,) = read_bytes(bytes(content)).doubts
    assert doubt.startswith("1 field of the file is of a kind that the format does not have: ")


def test_a_newer_format_may_have_more_fields():
    space = Space("host-0")
    for ordinal in range(3):
        space.tpu(ordinal).op("a", 0, 5).lines["XLA Ops"].raw = number(50, 1)
    assert space.timeline().doubts == ()


def test_stats_without_a_name_are_said():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 0, 5, category="loop fusion")
    tpu._stat_ids[""] = tpu._stat_ids.pop("hlo_category")
    assert space.timeline().doubts == (
        "1 stat of ops has no name: the file may be damaged, and what they say of their ops is "
        "lost.",
    )


def test_a_field_that_no_metadata_has_and_an_op_without_its_name_are_said():
    space = Space()
    tpu = space.tpu(0)
    tpu.raw_metadata(9, number(1, 9) + message(2, b"a") + number(12, 5))
    tpu.line("XLA Ops").events.append(Event(9, 0, 5, b""))
    tpu.op("b", 10, 5, category="loop fusion", hlo_op="")
    assert [doubt.split(":")[0] for doubt in space.timeline().doubts] == [
        "2 stats of ops have no name"
    ]


def test_a_damaged_line_names_its_byte_and_keeps_the_others():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 0, 5)
    tpu.op("b", 0, 5, line="XLA Ops 2")
    tpu.lines["XLA Ops"].raw = b"\x22\x7f"
    timeline = space.timeline()
    assert sorted(op.name for op in timeline.ops) == ["a", "b"]
    assert timeline.truncated
    assert any("damaged at byte" in note and "XLA Ops" in note for note in timeline.notes)


def fails(content: bytes, *words: str) -> None:
    with pytest.raises(BrokenInputError) as caught:
        read_bytes(content, path="some/x.xplane.pb")
    text = str(caught.value)
    assert "some/x.xplane.pb" in text
    for word in words:
        assert word in text
    assert "\n" not in text


def test_an_empty_file_is_named():
    fails(b"", "0 bytes", "2 GiB")


def test_a_text_converted_file_is_named():
    content = sound_space().encode()
    damaged = (content * 20).decode("utf-8", "replace").encode()
    with pytest.raises(BrokenInputError, match=r"text conversion|U\+FFFD"):
        read_bytes(b"\xef\xbf\xbd" * 40 + damaged)


@pytest.mark.parametrize("content", [b'{"traceEvents":[]}', b'  [{"ph":"X"}]', b"\n{}"])
def test_json_is_named(content):
    fails(content, "JSON")


def test_noise_is_no_xplane():
    fails(b"\xff" * 100, "not an XPlane protobuf")
    fails(b"PK\x03\x04" + b"\x00" * 50, "not an XPlane protobuf")


def test_a_cut_gzip_file_is_named():
    fails(gzip.compress(sound_space().encode())[:-20], "gzip")


@pytest.mark.parametrize(
    "stat",
    [
        number(1, 1) + number(2, 5),  # a double as a varint
        number(1, 1) + message(2, b"abc"),  # a double of three bytes
        number(1, 1) + message(3, b"abc"),
        number(1, 1) + double(5, 1.5),
        number(1, 1) + number(6, 1),
        number(1, 1) + number(7, 99),
        b"",
    ],
)
def test_stats_of_a_wrong_wire_type_do_not_crash(stat):
    plane = message(2, "/device:TPU:0") + message(6, stat)
    plane += message(3, message(2, "XLA Ops") + message(4, number(1, 1) + message(4, stat)))
    plane += message(4, number(1, 1) + message(2, message(2, "a") + message(5, stat)))
    plane += message(5, number(1, 1) + message(2, number(1, 1) + message(2, "flops")))
    assert read_bytes(message(1, plane)).num_events == 1


def reads_or_refuses(content: bytes) -> None:
    try:
        timeline = read_bytes(content)
    except BrokenInputError:
        return
    assert isinstance(timeline, Timeline)
    assert len(timeline.line) == len(timeline.op) == sum(line.count for line in timeline.lines)
    assert all(0 <= op < len(timeline.ops) for op in timeline.op.tolist())


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(content):
    reads_or_refuses(content)


@pytest.mark.parametrize("every", [1])
def test_files_cut_anywhere_are_read_or_refused(every):
    content = sound_space().encode()
    for length in range(0, len(content), every):
        reads_or_refuses(content[:length])


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_files_are_read_or_refused(data):
    content = bytearray(sound_space().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    reads_or_refuses(bytes(content))


@pytest.mark.parametrize(
    ("timestamp_ns", "window", "origin"),
    [
        # The first event begins 1.5 ns after its line does.
        (7, (2 * 10**18, 3 * 10**18), (2 * 10**18 + 8, 500)),
        (10**18, (2 * 10**18, 3 * 10**18), (10**18 + 1, 500)),
        (10**18, None, (10**18 + 1, 500)),
        (7, None, None),
    ],
)
def test_when_the_first_event_began(timestamp_ns, window, origin):
    space = Space()
    if window:
        space.environment(*window)
    host = space.host()
    host.line("python", timestamp_ns=timestamp_ns)
    later = Fraction(timestamp_ns * 1000 + 1500, US)
    host.call("first", later, 1).call("second", later + 3, 1)
    assert space.timeline().origin == origin


def test_a_file_without_events_has_no_origin():
    space = Space().environment(1, 2)
    space.host().line("python")
    assert space.timeline().origin is None


def test_a_file_counts_with_all_its_bytes_for_which_form_loops_have(monkeypatch):
    forms = jit._Forms("")
    monkeypatch.setattr(jit, "_forms", forms)
    space = Space()
    space.tpu(0).op("dot.1", 0, 10)
    content = space.encode()
    for times in (1, 2):
        read_bytes(content)
        assert forms.expected == times * len(content)
