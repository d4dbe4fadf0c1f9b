import gzip
import io
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_json import event, read, trace
from marin_profile.base.errors import BrokenInputError
from marin_profile.readers import json_events, json_stream
from marin_profile.readers.json_stream import PADDING, WINDOW, StreamWindow

# With compiled loops the next window is unpacked in a thread.
pytestmark = pytest.mark.usefixtures("loops")

RNG = np.random.default_rng(0)
# Compresses to about two thirds, so that it spans several steps.
TEXT = RNG.integers(32, 96, 60_000, dtype=np.uint8).tobytes()


class Unseekable(io.BytesIO):
    """Like a socket: forward only, a few bytes at a time."""

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 1000) if size and size > 0 else size)


def drain(stream: io.BytesIO) -> tuple[bytes, str]:
    window = StreamWindow(stream)
    taken = b""
    while True:
        assert window.offset == len(taken)
        taken += window.bytes_at(window.start, window.end)
        window.start = window.end
        if not window.more():
            return taken, window.damage


@pytest.mark.parametrize("kind", [io.BytesIO, Unseekable])
@pytest.mark.parametrize("text", [b"", b"x", b"{}", TEXT, TEXT * 40])
def test_plain_and_gzip_give_the_same_bytes(kind: type[io.BytesIO], text: bytes) -> None:
    assert drain(kind(text)) == (text, "")
    assert drain(kind(gzip.compress(text))) == (text, "")


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4), st.sampled_from([b"", bytes(9)]))
def test_members_follow_each_other_and_padding_is_ignored(parts: list[bytes], pad: bytes) -> None:
    packed = b"".join(map(gzip.compress, parts)) + pad
    assert drain(io.BytesIO(packed)) == (b"".join(parts), "")


@pytest.mark.parametrize("kind", [io.BytesIO, Unseekable])
@pytest.mark.parametrize("cut", [12, 5_000, 40_000])
def test_a_cut_gzip_stream_gives_what_zlib_gives(kind: type[io.BytesIO], cut: int) -> None:
    packed = gzip.compress(TEXT)[:cut]
    expected = zlib.decompressobj(wbits=31).decompress(packed)
    taken, damage = drain(kind(packed))
    assert taken == expected
    assert damage == "its gzip stream ends too early"


def test_a_wrong_checksum_costs_nothing_on_a_stream_that_can_be_read_again() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    taken, damage = drain(io.BytesIO(packed))
    assert taken == TEXT
    assert "checksum" in damage
    taken, damage = drain(Unseekable(packed))
    assert TEXT.startswith(taken)
    assert len(taken) > len(TEXT) - 2 * json_stream.STEP


def test_damage_inside_the_deflate_data_keeps_what_stands_before() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[20_000:20_100] = bytes(range(100))
    taken, damage = drain(io.BytesIO(packed))
    intact = zlib.decompressobj(wbits=31).decompress(bytes(packed[:20_000]))
    assert taken.startswith(intact)
    assert damage.startswith("its gzip data is damaged")


def test_the_stream_is_read_from_where_it_stands() -> None:
    packed = bytearray(b"before" + gzip.compress(TEXT))
    packed[-6] ^= 1
    stream = io.BytesIO(packed)
    stream.seek(6)
    assert drain(stream)[0] == TEXT


class Failing(io.BytesIO):
    """A store that is gone after the first megabytes."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 3 * WINDOW:
            raise ConnectionError("gone")
        return super().read(size)


def test_an_error_of_the_store_reaches_the_reader() -> None:
    window = StreamWindow(Failing(b" " * 8 * WINDOW))
    window.more()
    window.start = window.end
    window.more()
    with pytest.raises(ConnectionError, match="gone"):
        window.more()


@pytest.mark.parametrize("packed", [False, True])
def test_the_size_of_the_text_is_told_with_the_first_window(
    monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    told: list[int] = []
    monkeypatch.setattr(json_stream, "expect", told.append)
    # Alike everywhere, and hard to pack.
    text = RNG.integers(32, 96, 6 * WINDOW, dtype=np.uint8).tobytes()
    window = StreamWindow(io.BytesIO(gzip.compress(text, 1) if packed else text))
    assert told == [pytest.approx(len(text) // 4, rel=0.05)]
    while window.more():
        window.start = window.end
    assert sum(told) == pytest.approx(len(text) // 4, rel=0.05)


def test_the_size_of_a_stream_of_no_known_size_is_told_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[int] = []
    monkeypatch.setattr(json_stream, "expect", told.append)
    window = StreamWindow(Unseekable(TEXT * 40))
    assert sum(told) == (window.offset + window.end) // 4
    while window.more():
        window.start = window.end
    assert sum(told) == pytest.approx(len(TEXT * 40) // 4, abs=9)


def test_more_keeps_what_is_not_consumed() -> None:
    text = bytes(RNG.integers(0, 256, 3 * WINDOW, dtype=np.uint8))
    window = StreamWindow(io.BytesIO(text))
    window.start = window.end - 10
    assert window.more()
    assert window.bytes_at(0, 10) == text[window.offset : window.offset + 10]
    while window.more():
        pass
    assert window.finished
    assert window.bytes_at(window.start, window.end) == text[window.offset :]
    assert len(window.buf) >= window.end + PADDING


def test_grow_gives_up_on_an_endless_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_OBJECT", WINDOW)
    window = StreamWindow(io.BytesIO(bytes(5 * WINDOW)))
    assert window.grow()
    assert not window.grow()
    assert not window.finished


def test_a_bomb_is_cut_at_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "ALWAYS_UNPACKED", 3_000_000)
    monkeypatch.setattr(json_stream, "LARGEST_RATIO", 1)
    text, damage = drain(io.BytesIO(gzip.compress(b"[" + b" " * 50_000_000)))
    assert damage == "it expands to more than 0.0 GB"
    assert 2_900_000 < len(text) <= 3_000_000


def test_ops_are_counted_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = trace(*(event(f"op.{at}", str(at)) for at in range(10)))
    monkeypatch.setattr(json_events, "MOST_OPS", 10)
    assert read(text).num_events == 10
    monkeypatch.setattr(json_events, "MOST_OPS", 9)
    with pytest.raises(BrokenInputError, match="more than 9 different events"):
        read(text)
