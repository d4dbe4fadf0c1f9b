"""A file in memory: whatever it is, and whatever happens to it meanwhile."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest

from marin_profile.base.errors import BrokenInputError
from marin_profile.readers import whole_file
from marin_profile.readers.whole_file import budget, forget, read_whole

CONTENT = bytes(range(256)) * 999


@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_files_and_streams_give_their_bytes(tmp_path: Path, wrap) -> None:
    path = tmp_path / "x"
    path.write_bytes(wrap(CONTENT))
    with path.open("rb") as stream:
        assert read_whole(stream, path="x").tobytes() == CONTENT
    assert read_whole(io.BytesIO(wrap(CONTENT)), path="x").tobytes() == CONTENT


def test_gzip_members_follow_each_other() -> None:
    packed = gzip.compress(CONTENT) + gzip.compress(b"more")
    assert read_whole(io.BytesIO(packed), path="x").tobytes() == CONTENT + b"more"


@pytest.mark.parametrize("left", [0, 10, len(CONTENT) - 1])
def test_a_file_that_is_cut_meanwhile_is_read_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    size_of = os.fstat

    def measured_then_cut(handle: int) -> os.stat_result:
        facts = size_of(handle)
        os.truncate(path, left)
        return facts

    with path.open("rb") as stream:
        monkeypatch.setattr(whole_file.os, "fstat", measured_then_cut)
        assert read_whole(stream, path="x").tobytes() == CONTENT[:left]


def test_what_is_read_stays_when_the_file_is_cut_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    with path.open("rb") as stream:
        found = read_whole(stream, path="x")
        os.truncate(path, 0)
        assert found.tobytes() == CONTENT


@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_what_is_given_back_takes_nothing_else_along(tmp_path: Path, wrap) -> None:
    path, content = tmp_path / "x", os.urandom(4 << 20)
    path.write_bytes(wrap(content))
    with path.open("rb") as stream:
        found = read_whole(stream, path="x")
    for at, end in ((0, 100), (1_000_001, 3_000_001)):
        forget(found, at, end)
    assert found[:1_000_001].tobytes() == content[:1_000_001]
    assert found[3_000_001:].tobytes() == content[3_000_001:]


def test_a_bomb_is_refused_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "ALWAYS_UNPACKED", 2_000_000)
    bomb = gzip.compress(bytes(20_000_000))
    with pytest.raises(BrokenInputError, match=r"x\.pb expands to more than 0\.0 GB from 19,4"):
        read_whole(io.BytesIO(bomb), path="x.pb")
    assert len(read_whole(io.BytesIO(gzip.compress(bytes(1_999_999))), path="x")) == 1_999_999


def test_the_budget_follows_the_size_of_the_file() -> None:
    assert budget(1000) == 600 << 20
    assert budget(50 << 20) == 1200 << 20
    assert budget(1 << 30) == 1 << 31


def test_a_stream_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "LARGEST_FILE", 1000)
    with pytest.raises(BrokenInputError, match="does not end after 1,000 bytes"):
        read_whole(open("/dev/zero", "rb"), path="/dev/zero")  # noqa: SIM115


def test_an_empty_file_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    tracemalloc.start()
    with (tmp_path / "x").open("rb") as stream:
        assert len(read_whole(stream, path="x")) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
