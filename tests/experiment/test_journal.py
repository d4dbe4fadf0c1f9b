"""What a journal holds after a kill, and under which head it is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.base.errors import BrokenInputError, UsageError
from marin_profile.experiment.journal import Journal, read_journal

HEAD = {"plan": {"arms": {"a": {"arguments": ["--x"]}}, "rounds": 3}}


def test_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Journal(path, HEAD)
    first.append({"run": 1})
    assert first.records == [{"run": 1}]
    second = Journal(path, HEAD)
    second.append({"run": 2, "arms": ("a", "b")})
    assert second.records == [{"run": 1}, {"run": 2, "arms": ["a", "b"]}]
    assert read_journal(path) == [HEAD, *second.records]
    assert path.read_text().count("\n") == 3


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_a_torn_last_line_is_none(tmp_path: Path, whole: int) -> None:
    """Wherever the writer was killed, whole lines stay, and the next one is whole."""
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, HEAD)
    journal.append({"run": 1})
    journal.append({"run": 2})
    lines = path.read_bytes().splitlines(keepends=True)
    for size in range(1, len(lines[whole - 1]) - 1):
        path.write_bytes(b"".join(lines[: whole - 1]) + lines[whole - 1][:size])
        again = Journal(path, HEAD)
        assert again.records == [{"run": number} for number in range(1, whole - 1)]
        again.append({"run": "next"})
        assert read_journal(path) == [HEAD, *again.records]


def test_a_last_line_that_lacks_its_end_alone_is_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, HEAD).append({"run": 1})
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    again = Journal(path, HEAD)
    again.append({"run": 2})
    assert read_journal(path) == [HEAD, {"run": 1}, {"run": 2}]


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, HEAD)
    journal.append({"run": 1})
    journal.append({"run": 2})
    path.write_bytes(path.read_bytes().replace(b'{"run": 1}', b'{"run": 1'))
    with pytest.raises(BrokenInputError, match="line 2 is damaged"):
        Journal(path, HEAD)


def test_another_head_is_refused_by_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, HEAD)
    before = path.read_bytes()
    other = {"plan": {"arms": {"a": {"arguments": ["--y"]}, "b": {}}, "rounds": 3}}
    with pytest.raises(UsageError, match=r"plan\.arms\.a\.arguments, plan\.arms\.b changed"):
        Journal(path, other)
    assert path.read_bytes() == before


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Journal(tmp_path / "file" / "journal.jsonl", HEAD)
