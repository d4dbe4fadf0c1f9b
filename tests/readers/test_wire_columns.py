"""Many messages at once, against one after the other; the events of a line, against the loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders_xspace import double, fixed32, message, number, varint
from marin_profile.base.jit import COMPILED, PLAIN, forced
from marin_profile.readers import wire, wire_columns
from marin_profile.readers.protobuf import signed_varint, walk_message

MESSAGES = st.lists(st.binary(max_size=24), max_size=8)


@pytest.fixture(scope="module", autouse=True, params=[0, 2])
def few(request: pytest.FixtureRequest) -> Iterator[int]:
    """However few messages are left, they are read at once; or the last two one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire_columns, "FEW", request.param)
        yield request.param


def laid_out(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts behind each other, where each begins and where it ends."""
    ends = np.cumsum([0, *map(len, parts)])
    return np.frombuffer(b"".join(parts), np.uint8), ends[:-1], ends[1:]


@given(MESSAGES)
@example([b"\xff" * 9 + b"\x01", b"\x80" * 11, b"", b"\x7f", b"\x80\x00"])
def test_varints(parts: list[bytes]) -> None:
    buffer, starts, ends = laid_out(parts)
    values, behind = wire_columns.varints(buffer, starts, ends)
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    expected = [signed_varint(buffer.data, *span) for span in spans]
    assert list(zip(values.tolist(), behind.tolist(), strict=True)) == expected


@given(MESSAGES)
@example([b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\x02ab", b"\x00\x00", b"\x0b\x00"])
@example([number(1, -1) + message(2, b"ab") + double(3, 1.5) + fixed32(4, 7)] * 3)
def test_fields(parts: list[bytes]) -> None:
    buffer, starts, ends = laid_out(parts)
    found = wire_columns.fields_of(buffer, starts, ends)
    for index, span in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        own = found.message == index
        columns = (found.number, found.wire, found.value, found.length)
        rows = list(zip(*(column[own].tolist() for column in columns), strict=True))
        assert (rows, int(found.broke_at[index])) == walk_message(buffer.data, *span)


STATS = st.builds(
    lambda key, content: message(4, number(1, key) + content),
    st.integers(1, 4),
    st.one_of(
        st.builds(number, st.sampled_from((3, 4, 7)), st.integers(-(2**63), 2**63 - 1)),
        st.builds(message, st.just(5), st.binary(max_size=3)),
        st.builds(double, st.just(2), st.sampled_from((0.5, 1.5))),
        st.binary(max_size=2),
    ),
)
NUMBERS = st.builds(
    number,
    st.sampled_from((1, 2, 3, 3, 5, 9)),
    st.integers(-3, 9) | st.sampled_from((2**62, -(2**62), 2**63 - 1)),
)
LINES = st.lists(
    st.builds(lambda parts: message(4, b"".join(parts)), st.lists(STATS | NUMBERS, max_size=6))
    | NUMBERS
    | st.binary(max_size=2),
    max_size=8,
)


def scanned(content: bytes, form: str, number_ids: tuple[int, ...] = (1, 2)) -> tuple[object, ...]:
    buffer = np.frombuffer(content, np.uint8)
    with forced(form):
        count = int(wire.line_header(buffer, 0, len(content))[4])
        columns = [np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int32)]
        ids = (np.array(some, np.int64) for some in (number_ids, (2, 3), (4,)))
        found = wire.scan_line_events(buffer, 0, len(content), 7, *ids, *columns)
    return (
        [column[: found.written].tolist() for column in columns],
        [(rows.tolist(), values.tolist()) for rows, values in found.numbers],
        found.left_out,
        found.metadata.tolist(),
        found.spans.tolist(),
        found.broke_at,
    )


@given(LINES)
def test_the_events_of_a_line_are_those_of_the_loop(parts: list[bytes]) -> None:
    content = b"".join(parts)
    assert scanned(content, PLAIN) == scanned(content, COMPILED)


def test_events_with_many_numbers() -> None:
    """More than are expected; each id twice in every event, where the second counts."""
    stats = [(key, value) for value in (7, 8) for key in range(1, 9)]
    event = message(
        4, b"".join(message(4, number(1, key) + number(3, value + key)) for key, value in stats)
    )
    content, ids = event * 30, tuple(range(1, 9))
    compiled = scanned(content, COMPILED, ids)
    assert compiled == scanned(content, PLAIN, ids)
    assert compiled[1] == [([*range(30)], [8 + key] * 30) for key in ids]


def test_a_packed_field_up_to_its_damage() -> None:
    whole = b"".join(map(varint, (1, 300, -1, 2**40)))
    for content in (whole, whole + b"\x80", whole + b"\xff" * 11 + b"\x01"):
        buffer = np.frombuffer(content, np.uint8)
        assert wire.packed_varints(buffer, 0, len(content)) == [1, 300, -1, 2**40]
    assert wire.packed_varints(np.frombuffer(b"\x05\x06", np.uint8), 0, 2) == [5, 6]
