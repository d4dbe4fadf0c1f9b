"""Files and URLs: written whole, with errors that name the path."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.base.storage import (
    delete_file,
    file_size,
    files_below,
    open_file,
    write_file,
)


def test_parents_are_made_and_the_mode_is_usual(tmp_path: Path) -> None:
    target = tmp_path / "a/b/out.json"
    write_file(str(target), b"one")
    write_file(str(target), b"two")
    assert target.read_bytes() == b"two"
    assert os.listdir(target.parent) == ["out.json"]
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert target.stat().st_mode == plain.stat().st_mode


def test_files_that_go_while_they_are_listed_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_bytes(b"abc")
    (tmp_path / "gone").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    scandir = os.scandir

    def listed(folder: str) -> nullcontext[list[os.DirEntry[str]]]:
        found = list(scandir(folder))
        (tmp_path / "gone").unlink()
        (tmp_path / "folder").rmdir()
        return nullcontext(found)

    monkeypatch.setattr(os, "scandir", listed)
    assert files_below(str(tmp_path)) == [("kept", 3)]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    target.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match=r"out\.json cannot be written: No space left on device"):
        write_file(str(target), b"new")
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"old", ["out.json"])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(str(tmp_path / "link"), b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_a_device_is_written_to_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(str(tmp_path / "pipe"), b"x")
        assert os.read(reader, 9) == b"x"
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write_file(str(tmp_path), b"x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be written"):
        write_file(str(tmp_path / "file/below"), b"x")


def test_urls_are_read_written_and_listed() -> None:
    pytest.importorskip("fsspec")
    write_file("memory://storage/a/b.txt", b"abc")
    with open_file("memory://storage/a/b.txt") as stream:
        assert stream.read() == b"abc"
    assert files_below("memory://storage") == [("a/b.txt", 3)]


def test_what_is_not_there(tmp_path: Path) -> None:
    for path in (str(tmp_path / "no"), "memory://storage/no"):
        with pytest.raises(NotFoundError, match="no does not exist"):
            open_file(path)


@pytest.mark.parametrize("protocol", ["", "local://", "memory:/"])
def test_what_is_deleted_need_not_be_there(tmp_path: Path, protocol: str) -> None:
    path = f"{protocol}{tmp_path}/a"
    write_file(path, b"abc")
    delete_file(path)
    delete_file(path)
    with pytest.raises(NotFoundError):
        open_file(path)


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "host.xplane.pb")
    (tmp_path / "endless.xplane.pb").symlink_to("/dev/zero")
    for path in (tmp_path / "host.xplane.pb", tmp_path / "endless.xplane.pb"):
        with pytest.raises(UsageError, match="is a pipe or a device, no file"):
            file_size(str(path))
