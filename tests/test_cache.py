"""A summary that was made before is taken again, and never another copy's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from builders_capture import leave_capture
from marin_profile import cache, summarize
from marin_profile.cache import cached_summary
from marin_profile.capture.sources import resolve_path
from marin_profile.schema import ProfileSummary


class Reads:
    """How often a summary was made, and not taken."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1

    def of(self, path: Path, folder: Path | None, warmup_steps: int = 1) -> ProfileSummary:
        capture, _ = resolve_path(str(path))
        return cached_summary(capture, warmup_steps=warmup_steps, folder=folder, about_to_read=self)


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "summaries"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    leave_capture(tmp_path / "run")
    return tmp_path / "run"


def profile_in(run: Path) -> Path:
    (path,) = run.rglob("*.xplane.pb")
    return path


def test_the_second_time_nothing_is_read(run, kept, reads):
    first = reads.of(run, kept)
    assert reads.count == 1
    assert first.to_json() == summarize(run).to_json()
    assert reads.of(run, kept).to_json() == first.to_json()
    assert reads.count == 1
    assert (kept.stat().st_mode & 0o777, len(list(kept.iterdir()))) == (0o700, 1)


def test_a_copy_elsewhere_is_the_same(run, kept, reads, tmp_path):
    reads.of(run, kept)
    shutil.copytree(run, tmp_path / "elsewhere" / "copy")
    reads.of(tmp_path / "elsewhere" / "copy", kept)
    assert reads.count == 1


def test_one_byte_other_options_and_other_code_are_another(run, kept, reads, monkeypatch):
    reads.of(run, kept)
    reads.of(run, kept, warmup_steps=2)
    assert reads.count == 2
    monkeypatch.setattr(cache, "package_version", lambda: "99.0")
    reads.of(run, kept)
    assert reads.count == 3
    monkeypatch.undo()
    path = profile_in(run)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    reads.of(run, kept)
    assert reads.count == 4


def test_another_name_and_a_file_beside_are_another(run, kept, reads):
    reads.of(run, kept)
    path = profile_in(run)
    moved = path.with_name("other.xplane.pb")
    path.rename(moved)
    assert reads.of(run, kept).hosts[0].host == "other"
    shutil.copy(moved, moved.with_name("second.xplane.pb"))
    reads.of(run, kept)
    assert reads.count == 3


def test_what_is_damaged_is_made_again(run, kept, reads):
    first = reads.of(run, kept)
    (file,) = kept.iterdir()
    file.write_text(file.read_text()[:-100])
    assert reads.of(run, kept).to_json() == first.to_json()
    assert reads.of(run, kept).to_json() == first.to_json()
    assert reads.count == 2


def test_a_folder_that_others_may_write_is_not_used(run, kept, reads):
    kept.mkdir(parents=True)
    kept.chmod(0o777)
    reads.of(run, kept)
    reads.of(run, kept)
    assert (reads.count, list(kept.iterdir())) == (2, [])


def test_a_link_to_a_folder_is_not_used(run, kept, reads, tmp_path):
    kept.parent.mkdir()
    (tmp_path / "there").mkdir(mode=0o700)
    kept.symlink_to(tmp_path / "there")
    reads.of(run, kept)
    assert list((tmp_path / "there").iterdir()) == []


def test_without_a_folder_and_with_one_that_cannot_be_made(run, reads, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file" / "summaries"):
        assert reads.of(run, folder).to_json() == summarize(run).to_json()
    assert reads.count == 2


def test_what_was_not_asked_for_longest_goes(run, kept, reads, monkeypatch):
    for warmup in range(3):
        reads.of(run, kept, warmup_steps=warmup)
    oldest = min(kept.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.utime(oldest, ns=(1, 1))
    monkeypatch.setattr(cache, "MOST_BYTES", sum(p.stat().st_size for p in kept.iterdir()) + 10)
    reads.of(run, kept, warmup_steps=3)
    assert len(list(kept.iterdir())) == 3
    assert not oldest.exists()
