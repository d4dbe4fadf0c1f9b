"""What is put into a command, and what is masked in what it says."""

from __future__ import annotations

from pathlib import Path

from marin_profile.experiment.commands import filled, last_line, mask_file, masked


def test_placeholders_are_replaced_once() -> None:
    places = {"{out}": "{worktree}", "{worktree}": "/w"}
    assert filled("{out}:{worktree}:{other}:{out}", places) == "{worktree}:/w:{other}:{worktree}"


def test_values_are_masked_the_longest_first() -> None:
    assert masked("a hush, hush-hush, abc", ["hush", "hush-hush", "abc"]) == "a ***, ***, abc"


def test_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    mask_file(log, ["hush"])
    assert not log.exists()
    assert last_line(log) == ""
    log.write_bytes(b"first\n\xff hush \n\n  \n")
    assert last_line(log) == "\ufffd hush"
    mask_file(log, ["hush"])
    assert log.read_bytes() == b"first\n\xff *** \n\n  \n"
    log.write_bytes(b"\n" * 100_000 + b"x" * 100_000)
    assert last_line(log) == "x" * (1 << 16)
