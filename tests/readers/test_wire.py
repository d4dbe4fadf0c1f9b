"""The wire functions against plain Python, on sound and on random bytes."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders_xspace import double, fixed32, message, number, varint
from marin_profile.readers import wire
from marin_profile.readers.protobuf import BROKEN
from marin_profile.readers.wire_columns import MISSING

pytestmark = pytest.mark.usefixtures("loops")

INT64 = st.integers(-(2**63), 2**63 - 1)
NOTHING = np.zeros(0, np.int64)


def signed(value: int) -> int:
    value %= 1 << 64
    return value - (1 << 64) if value >> 63 else value


def buffer(content: bytes, behind: bytes = b"") -> np.ndarray:
    return np.frombuffer(content + behind, np.uint8)


# --- plain Python ------------------------------------------------------------------------------


def plain_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    result = 0
    for index in range(10):
        if at >= end:
            break
        byte = data[at]
        at += 1
        result |= (byte & 127) << (7 * index)
        if byte < 128:
            return signed(result), at
    return 0, BROKEN


def plain_field(data: bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    broken = (0, 0, 0, 0, BROKEN)
    tag, at = plain_varint(data, at, end)
    if at < 0 or tag >> 3 <= 0:
        return broken
    kind = tag & 7
    if kind == 0:
        value, at = plain_varint(data, at, end)
        return tag >> 3, 0, value, 0, at
    if kind == 2:
        length, at = plain_varint(data, at, end)
    elif kind in (1, 5):
        length = 8 if kind == 1 else 4
    else:
        return broken
    if at < 0 or length < 0 or at + length > end:
        return broken
    return tag >> 3, kind, at, length, at + length


def plain_walk(data: bytes, at: int, end: int) -> tuple[list[list[int]], int]:
    rows = []
    while at < end:
        tag, kind, value, length, behind = plain_field(data, at, end)
        if behind < 0:
            return rows, at
        rows.append([tag, kind, value, length])
        at = behind
    return rows, BROKEN


def plain_events(data: bytes):
    """(metadata id, offset, duration, {stat id: value or bytes}) per event that is kept."""
    kept, aggregated, negative = [], 0, 0
    for tag, kind, at, length in plain_walk(data, 0, len(data))[0]:
        if (tag, kind) != (4, 2):
            continue
        metadata = offset = duration = 0
        is_aggregated = False
        stats: dict[int, int | bytes] = {}
        for inner, inner_kind, value, size in plain_walk(data, at, at + length)[0]:
            if inner_kind == 0:
                metadata = value if inner == 1 else metadata
                offset = value if inner == 2 else offset
                duration = value if inner == 3 else duration
                is_aggregated = is_aggregated or inner == 5
            elif (inner, inner_kind) == (4, 2):
                key, content = 0, 0
                for s_tag, s_kind, s_value, s_size in plain_walk(data, value, value + size)[0]:
                    if s_tag == 1:
                        key = s_value
                    else:
                        content = s_value if s_kind == 0 else data[s_value : s_value + s_size]
                stats[key] = content
        if is_aggregated:
            aggregated += 1
        elif duration < 0:
            negative += 1
        else:
            kept.append((metadata, offset, duration, stats))
    return kept, aggregated, negative


# --- varint, field, walk -----------------------------------------------------------------------


@settings(deadline=None)
@given(INT64, st.binary(max_size=3))
def test_varint_round_trip(value, behind):
    content = varint(value)
    found = wire.varint(buffer(content, behind), 0, len(content))
    assert tuple(map(int, found)) == (value, len(content))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xff" * 9, b"\x80" * 10, b"\xff" * 20])
def test_unfinished_and_overlong_varints_are_broken(content):
    assert int(wire.varint(buffer(content, b"\x01\x01"), 0, len(content))[1]) == BROKEN


def test_a_varint_of_ten_bytes_is_minus_one():
    assert int(wire.varint(buffer(b"\xff" * 9 + b"\x01"), 0, 10)[0]) == -1


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=40), st.binary(max_size=12))
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"")
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"abc")
@example(b"\x00\x00", b"")
@example(b"\x0b\x00", b"")
def test_field_and_walk_on_random_bytes(content, behind):
    """What stands behind the end has no influence."""
    data, end = buffer(content, behind), len(content)
    for at in range(end + 1):
        assert tuple(map(int, wire.field(data, at, end))) == plain_field(content, at, end)
    rows, broke_at = wire.walk(data, 0, end)
    assert ([*map(list, rows)], broke_at) == plain_walk(content, 0, end)


def test_walk_of_every_wire_type_and_many_fields():
    content = number(1, 5) + message(2, b"ab") + double(3, 1.5) + fixed32(4, 7)
    rows, broke_at = wire.walk(buffer(content * 40), 0, 40 * len(content))
    assert broke_at == BROKEN
    assert len(rows) == 160
    assert rows[:4] == [(1, 0, 5, 0), (2, 2, 4, 2), (3, 1, 7, 8), (4, 5, 16, 4)]
    assert struct.unpack("<d", content[7:15]) == (1.5,)


# --- lines and events --------------------------------------------------------------------------


def test_line_header():
    content = (
        number(1, 2**40)
        + message(2, b"name")
        + number(3, 123)
        + message(4, b"")
        + message(4, number(1, 1))
        + message(11, b"shown")
        + number(99, 1)
    )
    line_id, timestamp, name, display, count, broke_at, odd = wire.line_header(
        buffer(content), 0, len(content)
    )
    assert (line_id, timestamp, count, broke_at, odd) == (2**40, 123, 2, BROKEN, 1)
    assert content[name[0] : name[1]] == b"name"
    assert content[display[0] : display[1]] == b"shown"


def test_line_header_of_a_damaged_line_gives_the_offset():
    content = number(1, 3) + message(4, b"") + b"\x22\x7fcut"
    line_id, _, _, _, count, broke_at, _ = wire.line_header(buffer(content), 0, len(content))
    assert (line_id, count, broke_at) == (3, 1, 4)


def stat(key: int, value: int | bytes | float) -> bytes:
    if isinstance(value, float):
        return message(4, number(1, key) + double(2, value))
    if isinstance(value, bytes):
        return message(4, number(1, key) + message(5, value))
    return message(4, number(1, key) + number(4, value))


def scan(content: bytes, numbers=(), keys=(), anchors=(), shift: int = 0, behind: bytes = b""):
    data = buffer(content, behind)
    count = int(wire.line_header(data, 0, len(content))[4])
    ids = np.array([*numbers] or [MISSING], np.int64)
    start, duration, op = (np.zeros(count, np.int64) for _ in range(3))
    scanned = wire.scan_line_events(
        data,
        0,
        len(content),
        shift,
        ids,
        np.array(keys, np.int64),
        np.array(anchors, np.int64),
        start,
        duration,
        op,
    )
    n, left_out = scanned.written, scanned.left_out
    found = np.full((len(ids), n), MISSING)
    for slot, (rows, values) in enumerate(scanned.numbers):
        found[slot, rows] = values
    return {
        "start": start[:n].tolist(),
        "duration": duration[:n].tolist(),
        "op": op[:n].tolist(),
        "numbers": found.tolist(),
        "left out": (left_out["aggregated_event"], left_out["negative_duration"]),
        "metadata": scanned.metadata.tolist(),
        "spans": scanned.spans.tolist(),
        "broke_at": scanned.broke_at,
    }


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(-5, 2**50),
        st.integers(-2, 2**40),
        st.lists(
            st.tuples(st.integers(1, 6), st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=4)),
            max_size=4,
            unique_by=lambda pair: pair[0],
        ),
        st.booleans(),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(EVENTS, st.integers(-(2**40), 2**40))
def test_scan_events_against_plain_python(events, shift):
    content = b"".join(
        message(
            4,
            number(1, metadata)
            + number(5 if aggregated else 2, offset)
            + number(3, duration)
            + b"".join(stat(key, value) for key, value in stats),
        )
        for metadata, offset, duration, stats, aggregated in events
    )
    kept, aggregated, negative = plain_events(content)
    found = scan(content, numbers=(1, 2), keys=(3, 4), shift=shift)
    assert found["broke_at"] == BROKEN
    assert found["left out"] == (aggregated, negative)
    assert found["start"] == [offset + shift for _, offset, _, _ in kept]
    assert found["duration"] == [duration for _, _, duration, _ in kept]
    for slot, key in enumerate((1, 2)):
        for (_, _, _, stats), value in zip(kept, found["numbers"][slot], strict=True):
            if isinstance(stats.get(key, 0), int):
                assert value == stats.get(key, MISSING)
    # Two events are the same op if and only if metadata id and key stats agree.
    identity = [(row[0], row[3].get(3), row[3].get(4)) for row in kept]
    for i, one in enumerate(identity):
        for j, other in enumerate(identity):
            same = found["op"][i] == found["op"][j]
            # A varint and the bytes of a string may not be told apart by type alone.
            assert same == (one == other)
    assert [found["metadata"][op] for op in found["op"]] == [row[0] for row in kept]


def test_many_distinct_ops_survive_the_growth_of_the_table():
    content = b"".join(
        message(4, number(1, key) + stat(3, key % 7)) for key in [*range(1, 1501)] * 2
    )
    found = scan(content, keys=(3,))
    assert found["op"] == [*range(1500)] * 2
    assert found["metadata"] == [*range(1, 1501)]


def test_key_stats_count_only_beside_an_anchor():
    def event(*stats: bytes) -> bytes:
        return message(4, number(1, 1) + b"".join(stats))

    content = event(stat(3, 1)) + event(stat(3, 2)) + event(stat(3, 2), stat(9, b"hlo"))
    assert scan(content, keys=(3,), anchors=(9,))["op"] == [0, 0, 1]
    assert scan(content, keys=(3,))["op"] == [0, 1, 1]


def test_ops_that_differ_in_a_double_are_kept_apart():
    content = b"".join(message(4, number(1, 1) + stat(3, value)) for value in (1.5, 2.5, 1.5))
    assert scan(content, keys=(3,))["op"] == [0, 1, 0]


def test_a_number_that_stands_as_text_is_not_read_as_zero():
    content = message(4, number(1, 1) + stat(3, b"7"))
    assert scan(content, numbers=(3,))["numbers"] in ([[MISSING]], [[7]])


def test_a_number_that_stands_as_a_reference_is_not_read_as_the_reference():
    content = message(4, number(1, 1) + message(4, number(1, 3) + number(7, 12)))
    assert scan(content, numbers=(3,))["numbers"] == [[MISSING]]


def test_a_damaged_event_ends_the_scan_and_gives_the_offset():
    good = message(4, number(1, 1) + number(2, 5) + number(3, 6))
    bad = message(4, number(1, 1) + b"\x22\x7f")
    found = scan(good + bad + good)
    assert found["start"] == [5]
    assert len(good) <= found["broke_at"] < len(good + bad)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60), st.binary(max_size=10))
def test_scan_events_on_random_bytes(content, behind):
    exact = scan(content, numbers=(1,), keys=(2,), anchors=(3,))
    assert scan(content, numbers=(1,), keys=(2,), anchors=(3,), behind=behind) == exact
    assert all(0 <= a <= b <= len(content) for a, b in exact["spans"])


@settings(deadline=None)
@given(st.data())
def test_scan_events_on_damaged_lines(data):
    whole = b"".join(
        message(4, number(1, key) + number(2, 9) + number(3, 4) + stat(1, key) + stat(2, b"ab"))
        for key in (1, 2, 1)
    )
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(damaged[: data.draw(st.integers(0, len(whole)))])
    exact = scan(content, numbers=(1,), keys=(2,))
    assert scan(content, numbers=(1,), keys=(2,), behind=b"\xff" * 9) == exact
