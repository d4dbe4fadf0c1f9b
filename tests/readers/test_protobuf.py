"""The plain and the compiled reading of the wire format agree, and damage is an error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders_xspace import message, number, varint
from marin_profile.readers.protobuf import BROKEN, read_fields, read_varint
from marin_profile.readers.wire import varint as compiled_varint

pytestmark = pytest.mark.usefixtures("loops")


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_varints_come_back_and_the_next_byte_follows(value, before):
    data = before + varint(value)
    assert read_varint(data + b"\x05", len(before)) == (value, len(data))


@given(st.binary(max_size=12))
def test_both_decoders_read_the_same_bytes_alike(data):
    compiled, behind = compiled_varint(np.frombuffer(data, np.uint8), 0, len(data))
    if behind == BROKEN:
        with pytest.raises(ValueError, match="varint"):
            read_varint(data, 0)
    else:
        value, at = read_varint(data, 0)
        assert (value % 2**64, at) == (int(compiled) % 2**64, behind)


def test_fields_of_every_wire_type():
    content = number(1, 300) + message(2, b"abc") + b"\x19" + bytes(8) + b"\x25" + bytes(4)
    assert list(read_fields(content)) == [
        (1, 300, b""),
        (2, 0, b"abc"),
        (3, 0, bytes(8)),
        (4, 0, bytes(4)),
    ]


@pytest.mark.parametrize("damage", [b"\x80", b"\xff" * 11, b"\x08\x80"])
def test_a_varint_without_an_end_is_an_error(damage):
    with pytest.raises(ValueError, match="varint"):
        list(read_fields(damage))
