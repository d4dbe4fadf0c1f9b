"""Cut, damaged, capped and foreign files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_json import HEADER, PATH, event, gz, names, process, read, thread, trace
from marin_profile.base.errors import BrokenInputError
from marin_profile.events.timeline import Plane
from marin_profile.readers import json_scan, json_stream, trace_json

pytestmark = pytest.mark.usefixtures("loops")


def refusal(text: bytes) -> str:
    with pytest.raises(BrokenInputError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith(f"{PATH} ")
    assert message.endswith(".")
    return message


EVENTS = [event(f"op{at}", str(at), "1", run_id=str(at)) for at in range(4)]
SMALL = trace(*EVENTS)


@pytest.mark.parametrize("window", [64, 1 << 20])
def test_a_file_cut_at_any_byte_keeps_what_stands_before(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(json_stream, "WINDOW", window)
    ends = [SMALL.index(one.encode()) + len(one) for one in EVENTS]
    array_end = SMALL.rindex(b"]") + 1
    for cut in range(ends[0], len(SMALL)):
        timeline = read(SMALL[:cut])
        assert timeline.num_events == sum(end <= cut for end in ends)
        assert timeline.truncated == (cut < array_end)
        (note,) = timeline.notes
        if timeline.truncated:
            assert note.startswith(f"file is cut at byte {cut}; the events before it are used")
        else:
            assert note.endswith("no event is lost.")
    for cut in range(ends[0]):
        refusal(SMALL[:cut])


def test_a_cut_gzip_file_says_so() -> None:
    text = trace(*(event(f"op{at}", str(at * at), str(at)) for at in range(3000)))
    packed = gz(text)
    timeline = read(packed[: len(packed) // 2])
    assert 500 < timeline.num_events < 2500
    assert timeline.truncated
    assert timeline.dropped.get("damaged_event", 0) <= 1
    (note,) = timeline.notes
    assert "its gzip stream ends too early" in note
    assert read(packed[:-4]).notes[0].endswith("no event is lost.")
    assert not read(packed[:-4]).truncated


@pytest.mark.parametrize(
    "damaged",
    [
        EVENTS[1].replace("op1", 'o"p1'),
        EVENTS[1].replace('"op1"', '"op1'),
        EVENTS[1][:-1],
        EVENTS[1][:-2],
        EVENTS[1].replace('"ts":1', '"ts":'),
        EVENTS[1].replace('"ph"', "ph"),
        '"text"',
        "17",
        "{" + EVENTS[1],
    ],
)
@pytest.mark.parametrize("window", [16, 1 << 20])
@pytest.mark.parametrize("last", [False, True])
def test_one_damaged_event_costs_itself_only(
    monkeypatch: pytest.MonkeyPatch, damaged: str, window: int, last: bool
) -> None:
    monkeypatch.setattr(json_stream, "WINDOW", window)
    monkeypatch.setattr(json_stream, "PIECE", 16)
    events = [EVENTS[0], EVENTS[2], EVENTS[3]]
    events.insert(3 if last else 1, damaged)
    text = (HEADER + ",".join([process(), *events]) + "]}").encode()
    timeline = read(text)
    assert [name for name in names(timeline) if name != "op1"] == ["op0", "op2", "op3"]
    assert dict(timeline.dropped) == {"damaged_event": 1}
    (note,) = timeline.notes
    assert f"first at byte {text.index(damaged.encode())}" in note
    assert not timeline.truncated


def test_an_endless_event_does_not_swallow_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "WINDOW", 256)
    monkeypatch.setattr(json_stream, "PIECE", 64)
    for module in (json_stream, json_scan):
        monkeypatch.setattr(module, "MAX_OBJECT", 1000)
    endless = '{"ph":"X","more":[[[' + "1," * 2000 + "1"
    timeline = read(trace(EVENTS[0], endless, *EVENTS[1:]))
    assert names(timeline) == ["op0", "op1", "op2", "op3"]


def test_damage_before_the_events_is_passed() -> None:
    timeline = read(SMALL.replace(b'"ns"', b'"n"s"'))
    assert names(timeline) == ["op0", "op1", "op2", "op3"]
    assert "before the events is damaged at byte" in timeline.notes[0]


@pytest.mark.parametrize(
    ("count", "cap", "expected"), [(10, 10, 10), (9, 10, 0), (11, 10, 0), (1000, 1001, 0)]
)
def test_an_export_that_stops_at_a_cap(
    monkeypatch: pytest.MonkeyPatch, count: int, cap: int, expected: int
) -> None:
    monkeypatch.setattr(trace_json, "EXPORT_CAPS", (cap,))
    timeline = read(trace(*(event("f", str(at)) for at in range(count))))
    assert timeline.truncated == bool(expected)
    if expected:
        assert timeline.notes == (
            "truncated: the export stops at 10 events; it covers only until 0.000010 s, totals are "
            "lower bounds.",
        )


def test_near_a_cap_a_line_that_ends_early_shows_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_json, "EXPORT_CAPS", (2000,))
    early = [event("f", str(at), tid="1") for at in range(999)]
    late = [event("g", str(at * 2), tid="2") for at in range(1000)]
    assert read(trace(*early, *late)).truncated
    assert not read(trace(*early[:-5], *late)).truncated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "is empty"),
        (gz(b""), "is empty"),
        (b"\x1f\x8b\x08\x00garbage", "is empty"),
        (b" \n ", "white space"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\x0a\x10\x08\x01\x12\x09/host:CPU", "is not JSON"),
        ('{"traceEvents":[]}'.encode("utf-16"), "is not JSON"),
        (b'"text"', "is not JSON"),
        (b'{"traceEvents":null}', "traceEvents is not an array"),
        (b'{"traceEvents":{}}', "traceEvents is not an array"),
        (b'{"traceEvents":[]}', "holds no usable event"),
        (b"[]", "holds no usable event"),
        (b"{}", "without traceEvents"),
        (b'{"a":1}', "without traceEvents"),
        (b'{"a":1', "is cut before its first event"),
        (b'{"a":oops:1}', "is not JSON from byte 1 on"),
        (trace(), "holds no usable event"),
        (trace(event(dur=None)), "holds no usable event"),
        (trace(event(), named=False), "trace of another program"),
        (trace(process(1, "python"), event(), named=False), "trace of another program"),
        (b'[{"cols":[{"id":"a"}],"rows":[]}]', "derived XProf tool output"),
        (b'{"schemaVersion":1,"traceEvents":[' + event().encode() + b"]}", "PyTorch"),
        (SMALL[:-1] + b',"traceName":"x.json"}', "PyTorch"),
    ],
)
def test_what_is_refused(text: bytes, expected: str) -> None:
    assert expected in refusal(text)


def test_kineto_events_are_recognised_without_their_header() -> None:
    one = event("aten::mm", **{"External id": 5}).replace("{", '{"cat":"cpu_op",', 1)
    assert "PyTorch" in refusal(trace(one))


def test_hlo_ops_make_a_jax_trace_even_without_process_names() -> None:
    assert read(trace(event(hlo_op="dot.1"), named=False)).planes == (Plane("", 3),)


MUTABLE = trace(
    *EVENTS, thread(701, 1, "python"), event("train", "0.5", ph="i", step_num="1"), event("x" * 99)
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "replace", "insert", "delete"]),
        st.integers(0, len(MUTABLE)),
        st.sampled_from([b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"-", b"9e9", b"\xff"])
        | st.binary(max_size=3),
    ),
    min_size=1,
    max_size=4,
)


def mutated(text: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for kind, at, new in edits:
        if kind == "cut":
            text = text[:at]
        else:
            kept = at if kind == "insert" else at + max(len(new), 1)
            text = text[:at] + (b"" if kind == "delete" else new) + text[kept:]
    return text


@settings(deadline=None, max_examples=300)
@given(EDITS, st.booleans(), st.booleans())
def test_damage_gives_a_timeline_or_a_refusal(
    edits: list[tuple[str, int, bytes]], packed: bool, damage_packed: bool
) -> None:
    if packed and damage_packed:
        text = mutated(gz(MUTABLE), edits)
    else:
        text = mutated(MUTABLE, edits)
        text = gz(text) if packed else text
    try:
        timeline = read(text)
    except BrokenInputError:
        return
    assert 0 < timeline.num_events <= 8
    assert (timeline.start >= 0).all()
    assert (timeline.duration >= 0).all()
    assert (timeline.start + timeline.duration >= timeline.start).all()
    assert sum(line.count for line in timeline.lines) == timeline.num_events


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_a_sentence(text: bytes) -> None:
    refusal(text)


@pytest.mark.parametrize("window", [16, 1 << 20])
def test_zero_bytes_are_said_also_inside_a_name(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(json_stream, "WINDOW", window)
    monkeypatch.setattr(json_stream, "PIECE", 16)
    at = SMALL.index(b"op1")
    timeline = read(SMALL.replace(b"op1", b"o\0\0"))
    assert timeline.notes == (
        f"the text holds zero bytes, which JSON does not, the first at byte {at + 1}: events there "
        "are lost or changed.",
    )
    assert not any("zero bytes" in note for note in read(SMALL).notes)


@pytest.mark.parametrize(("lost", "truncated"), [(5, False), (200, True)])
def test_a_file_of_which_much_is_unreadable_is_not_whole(lost: int, truncated: bool) -> None:
    events = [event(f"op{n}", str(n)) for n in range(600)]
    events[100 : 100 + lost] = [one.replace('"ph"', "ph") for one in events[100 : 100 + lost]]
    assert read(trace(*events)).truncated == truncated
