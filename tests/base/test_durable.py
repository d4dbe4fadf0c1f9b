"""Files, folders and lines on a local disk: whole, with nothing left beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marin_profile.base import durable
from marin_profile.base.durable import append_line, new_file, new_folder, sweep, write_whole
from mounts import mounted

LEFT = ".marin-profile-00112233.tmp"


def test_files_of_one_folder_change_together(tmp_path: Path) -> None:
    write_whole(tmp_path / "a/b", {"one": b"1", "two": b"2"})
    with pytest.raises(OSError, match="name too long"):
        write_whole(tmp_path / "a/b", {"one": b"new", "n" * 300: b""})
    assert (tmp_path / "a/b/one").read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path / "a/b")) == ["one", "two"]


def test_a_name_as_long_as_the_system_takes(tmp_path: Path) -> None:
    name = "\U0001f600" * 63
    write_whole(tmp_path, {name: b"x"})
    assert os.listdir(tmp_path) == [name]


def test_what_is_under_way_is_hidden_and_an_error_leaves_nothing(tmp_path: Path) -> None:
    def broken(make: object, target: Path) -> None:
        with make(target) as partial:  # type: ignore[operator]
            assert partial.relative_to(tmp_path).parts[0].startswith(".marin-profile-")
            assert not target.exists()
            raise KeyboardInterrupt

    for make in (new_file, new_folder):
        with pytest.raises(KeyboardInterrupt):
            broken(make, tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("one_step", [True, False], ids=["exchanged", "put aside"])
def test_a_folder_is_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_step: bool
) -> None:
    if not one_step:
        monkeypatch.setattr(durable, "_exchange", lambda *_: False)
    for name in ("first", "second"):
        with new_folder(tmp_path / "out") as new:
            (new / name / "deep").mkdir(parents=True)
            (new / name / "deep/file").write_text(name)
        assert os.listdir(tmp_path / "out") == [name]
    assert os.listdir(tmp_path) == ["out"]


def test_an_old_folder_that_was_put_aside_is_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = durable._renamed

    def refused(folder: Path, target: Path) -> bool:
        if folder.name == "new" and not target.exists():
            raise PermissionError(1, "Operation not permitted")
        return really(folder, target)

    with new_folder(tmp_path / "out") as new:
        (new / "old").touch()
    monkeypatch.setattr(durable, "_exchange", lambda *_: False)
    monkeypatch.setattr(durable, "_renamed", refused)
    with pytest.raises(PermissionError), new_folder(tmp_path / "out") as new:
        (new / "new").touch()
    assert os.listdir(tmp_path / "out") == ["old"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_whose_writer_was_killed_after_it_put_it_aside(tmp_path: Path) -> None:
    (tmp_path / LEFT / "old/out").mkdir(parents=True)
    (tmp_path / LEFT / "old/out/file").touch()
    (tmp_path / LEFT / "new").mkdir()
    sweep(tmp_path)
    assert os.listdir(tmp_path) == ["out"]
    assert os.listdir(tmp_path / "out") == ["file"]


def test_what_a_living_writer_has_under_way_stays(tmp_path: Path) -> None:
    """Also that of another process: the lock tells, not a number."""
    code = (
        "import sys; from pathlib import Path\n"
        "from marin_profile.base.durable import new_file, new_folder\n"
        "root = Path(sys.argv[1])\n"
        "with new_file(root / 'file') as one, new_folder(root / 'folder') as two:\n"
        "    one.write_text('x'); (two / 'y').touch()\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        write_whole(tmp_path, {"mine": b""})
        assert len(list(tmp_path.glob(".marin-profile-*"))) == 2
        writer.communicate("\n")
    assert writer.returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "mine"]


def test_what_is_abandoned_goes_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT).write_text("half")
    (tmp_path / ".marin-profile-notes").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".marin-profile-link.tmp").symlink_to(tmp_path / "elsewhere")
    sweep(tmp_path)
    names = [".marin-profile-link.tmp", ".marin-profile-notes", "elsewhere"]
    assert sorted(os.listdir(tmp_path)) == names


def test_without_file_locks_only_old_leftovers_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "_lock", lambda _: None)
    for name, age in (("a", 3600), ("b", 2 * 86_400)):
        left = tmp_path / f".marin-profile-{name}.tmp"
        left.touch()
        os.utime(left, (left.stat().st_mtime - age,) * 2)
    write_whole(tmp_path, {"out": b"x"})
    assert sorted(os.listdir(tmp_path)) == [".marin-profile-a.tmp", "out"]


def test_lines_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a/lines"
    for line in (b'{"a": 1}', b'{"a": 2}'):
        append_line(path, line)
    assert path.read_bytes() == b'{"a": 1}\n{"a": 2}\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a": 1}\n{"a": ', b'{"a": 1}\n'),
        (b'{"a', b""),
        (b'{"a": 1}', b'{"a": 1}\n'),
        (b"a note", b"a note\n"),
        (b"\n\n", b"\n\n"),
    ],
)
def test_an_unfinished_record_gives_way(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "lines"
    path.write_bytes(before)
    append_line(path, b"{}")
    assert path.read_bytes() == after + b"{}\n"


FULL = """
import sys; from pathlib import Path
from marin_profile.base.durable import append_line, new_folder, write_whole
root = Path(sys.argv[1])

def refused(act):
    try:
        act()
    except OSError as error:
        print(error.strerror)

def folder():
    with new_folder(root / "folder") as new:
        (new / "small").write_bytes(b"new")
        (new / "big").write_bytes(bytes(200_000))

def state():
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return [(path.relative_to(root).as_posix(), path.read_bytes()) for path in found]

(root / "folder").mkdir()
for name in ("file", "folder/small", "lines"):
    (root / name).write_bytes(b"old\\n")
before = state()
refused(lambda: write_whole(root, {"file": bytes(200_000)}))
refused(lambda: append_line(root / "lines", bytes(200_000)))
refused(folder)
assert state() == before, state()
"""


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    done = mounted(tmp_path, "size=100k", [sys.executable, "-c", FULL, tmp_path])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["No space left on device"] * 3


def test_what_is_to_be_left_alone_stays(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for content, unless in (("a", False), ("b", True), ("c", False)):
        with new_folder(target, unless=lambda held=unless: held) as new:
            (new / "file").write_text(content)
        assert (target / "file").read_text() == ("c" if content == "c" else "a")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_whether_it_is_left_alone_is_asked_and_done_by_one_writer_at_a_time(tmp_path: Path) -> None:
    """Of many writers that each leave alone what is there, the first one's stays."""
    target = tmp_path / "out"
    writers = 8
    together = threading.Barrier(writers)

    def write(number: int) -> None:
        with new_folder(target, unless=target.exists) as new:
            (new / "file").write_text(str(number))
            together.wait()
        seen.append((target / "file").read_text())

    seen: list[str] = []
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
    assert len(seen) == writers
