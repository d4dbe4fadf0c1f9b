"""Copies of remote files: kept by version, private, within a size, and safe among processes."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from faulty_files import Request, Store, faulty, url
from marin_profile.base import copies, remote
from marin_profile.base.copies import open_copy
from marin_profile.base.errors import NotFoundError, RemoteError, UsageError
from marin_profile.base.remote_stream import SMALLEST
from marin_profile.base.retries import Retries
from marin_profile.base.storage import content_of, copies_folder, open_local, sha256_of_open
from patience import PATIENCE
from web_server import web_server

CONTENT = random.Random(5).randbytes(1_000_000)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_bytes(CONTENT)
    monkeypatch.setattr(remote, "RETRIES", Retries(sleep=lambda _: None))
    with faulty(there) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "remote"


def read(folder: Path | None, name: str = "file") -> bytes:
    with open_copy(url(name), folder) as stream:
        return stream.read()


def age(folder: Path) -> None:
    """All copies that are there were last asked for long ago."""
    for path in folder.iterdir():
        os.utime(path, ns=(1, 1))


def test_the_second_time_nothing_is_fetched(store, folder):
    assert read(folder) == CONTENT
    fetched = len(store.asked("range"))
    assert read(folder) == CONTENT
    assert len(store.asked("range")) == fetched > 1
    assert (folder.stat().st_mode & 0o777, len(list(folder.iterdir()))) == (0o700, 1)


def test_another_version_is_fetched(store, folder):
    read(folder)
    path = store.folder / "file"
    changed = CONTENT[:-1] + b"!"
    path.write_bytes(changed)
    os.utime(path, ns=(5, 5))
    assert read(folder) == changed
    assert len(list(folder.iterdir())) == 2


def test_without_a_folder_or_a_version_nothing_is_kept(store, folder):
    assert read(None) == CONTENT
    store.versions = False
    assert read(folder) == CONTENT
    assert not folder.exists()


@pytest.mark.parametrize("what", ["open to others", "a link", "cannot be made"])
def test_a_folder_that_is_not_private_is_not_used(store, folder, tmp_path, what):
    folder.parent.mkdir()
    if what == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif what == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("a file")
    assert read(folder) == CONTENT
    assert folder.is_file() or list(folder.iterdir()) == []


def test_what_is_not_as_long_as_the_file_is_fetched_again(store, folder):
    read(folder)
    (copy,) = folder.iterdir()
    copy.write_bytes(CONTENT[:1000])
    assert read(folder) == CONTENT
    assert copy.read_bytes() == CONTENT


def test_what_was_not_asked_for_longest_goes(store, folder, monkeypatch):
    for name in ("old", "used", "new"):
        (store.folder / name).write_bytes(name.encode() * 100)
    monkeypatch.setattr(copies, "MOST_BYTES", 800)
    read(folder, "old")
    read(folder, "used")
    age(folder)
    read(folder, "used")
    read(folder, "new")
    assert sorted(path.stat().st_size for path in folder.iterdir()) == [300, 400]


def test_what_is_larger_than_all_may_be_is_not_kept(store, folder, monkeypatch):
    monkeypatch.setattr(copies, "MOST_BYTES", len(CONTENT) - 1)
    assert read(folder) == CONTENT
    assert list(folder.iterdir()) == []


def test_a_copy_that_is_removed_can_be_read_to_its_end(store, folder):
    with open_copy(url("file"), folder) as stream:
        (copy,) = folder.iterdir()
        copy.unlink()
        assert stream.read() == CONTENT


def test_what_is_replaced_while_it_is_copied_is_copied_again(store, folder):
    replaced = random.Random(6).randbytes(len(CONTENT))

    def replace(request: Request) -> None:
        if request[0] == "range" and request[2] == SMALLEST:
            path = store.folder / "file"
            path.write_bytes(replaced)
            os.utime(path, ns=(5, 5))

    store.hook = replace
    assert read(folder) == replaced
    assert len(list(folder.iterdir())) == 1


def test_what_is_always_replaced_is_an_error(store, folder):
    times = iter(range(1000))

    def replace(request: Request) -> None:
        os.utime(store.folder / "file", ns=(0, next(times)))

    store.hook = replace
    with pytest.raises(RemoteError, match=r"file was replaced each time .* \(try 3 of 3\)"):
        read(folder)
    assert list(folder.iterdir()) == []


def test_a_store_that_goes_leaves_nothing_behind(store, folder):
    def go(request: Request) -> None:
        store.is_gone = request[0] == "range" and request[2] != 0

    store.hook = go
    with pytest.raises(RemoteError, match=r"file cannot be reached: .* \(try 5 of 5\)"):
        read(folder)
    assert list(folder.iterdir()) == []
    with pytest.raises(NotFoundError):
        read(folder, "no")


def test_a_full_disk(store, folder, monkeypatch, tmp_path):
    """A copy that cannot be kept is made elsewhere; one that can be nowhere is an error."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies, "new_file", full)
    assert read(folder) == CONTENT
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(UsageError, match="No space left on device; name another folder with TMP"):
        read(folder)


def test_many_at_once_with_a_store_that_fails(store, folder, monkeypatch):
    monkeypatch.setattr(copies, "MOST_BYTES", 2_500_000)
    for index in range(4):
        (store.folder / f"{index}").write_bytes(bytes([index]) * 900_000)
    store.share = 0.05
    wrong: list[int] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(6):
            index = draw.randrange(4)
            if read(folder, f"{index}") != bytes([index]) * 900_000:
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    left = list(folder.iterdir())
    assert all(path.suffix == ".copy" for path in left)
    assert sum(path.stat().st_size for path in left) <= 2_500_000


def test_a_local_file_is_opened_where_it_is(store, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with open_local(str(store.folder / "file"), keep_copy=True) as stream:
        assert stream.read() == CONTENT
    with open_local(url("file"), keep_copy=True) as stream, open_local(url("file")) as other:
        stream.seek(7)
        assert sha256_of_open(stream) == hashlib.sha256(CONTENT).hexdigest()
        assert stream.tell() == 7
        assert other.read() == CONTENT
    assert copies_folder() == tmp_path / "cache" / "marin-profile" / "remote"
    assert len(list(copies_folder().iterdir())) == 1


def test_what_stands_for_the_content_of_a_file(store):
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert content_of(str(store.folder / "file")) == digest
    told = content_of(url("file"))
    assert told.startswith("faulty://bucket/file 1000000 mtime=")
    assert store.asked("range") == []
    os.utime(store.folder / "file", ns=(5, 5))
    assert content_of(url("file")) != told
    store.versions = False
    assert content_of(url("file")) == digest


COPIER = """
import random, sys
from pathlib import Path
from marin_profile.base import copies
copies.MOST_BYTES = 2_500_000
address, folder, seed = sys.argv[1:]
draw = random.Random(seed)
for _ in range(12):
    index = draw.randrange(4)
    with copies.open_copy(f"{address}/{index}", Path(folder)) as stream:
        assert stream.read() == bytes([index]) * 900_000, index
"""


def test_processes_may_use_one_folder_at_the_same_time(tmp_path, folder):
    """Although it holds two of the four files at most."""
    (tmp_path / "there").mkdir()
    for index in range(4):
        (tmp_path / "there" / f"{index}").write_bytes(bytes([index]) * 900_000)
    with web_server(tmp_path / "there") as server:
        command = [sys.executable, "-c", COPIER, server.url, str(folder)]
        running = [subprocess.Popen([*command, str(seed)]) for seed in range(3)]
        assert [process.wait(PATIENCE) for process in running] == [0, 0, 0]
        fetched = [path for path in server.paths if path.startswith("GET")]
    assert len(fetched) < 3 * 12 * 4  # as many as if nothing were kept
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2_500_000
