"""Summaries in memory: made once, made again when the files change, never of files swapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders_capture import leave_capture, space
from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.mcp import summaries
from marin_profile.mcp.roots import Roots
from marin_profile.mcp.summaries import MOST_KEPT, Summaries


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stamps of the captures that were read."""
    stamps: list[str] = []
    real = summaries.cached_summary

    def noted(capture: Any, **options: Any) -> Any:
        stamps.append(capture.stamp)
        return real(capture, **options)

    monkeypatch.setattr(summaries, "cached_summary", noted)
    return stamps


def test_a_summary_is_made_once_while_its_files_stay(runs: Path, made: list[str]) -> None:
    roots, kept = Roots([str(runs)]), Summaries(None)
    first = kept.of(roots.find("before"))
    assert kept.of(roots.find("before")) is first
    assert first.hot_ops[0].avg_duration == 80.0
    assert len(made) == 1
    file = Path(roots.find("before").files[0].path)
    space("h", step_us=60).write(file)
    assert kept.of(roots.find("before")).hot_ops[0].avg_duration == 60.0
    assert len(made) == 2


def test_the_ones_that_were_not_asked_for_longest_go(tmp_path: Path, made: list[str]) -> None:
    for number in range(MOST_KEPT + 1):
        leave_capture(tmp_path / f"run{number}", stamp=f"2026_01_02_03_0{number}_05")
    roots, kept = Roots([str(tmp_path)]), Summaries(None)
    for number in range(MOST_KEPT):
        kept.of(roots.find(f"run{number}"))
    kept.of(roots.find("run0"))
    kept.of(roots.find(f"run{MOST_KEPT}"))
    assert len(made) == MOST_KEPT + 1
    kept.of(roots.find("run0"))
    assert len(made) == MOST_KEPT + 1
    kept.of(roots.find("run1"))
    assert len(made) == MOST_KEPT + 2


def test_files_swapped_while_they_are_read_give_no_summary(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check and the reading a folder becomes a link to somewhere else."""
    secret = leave_capture(tmp_path / "secret", step_us=10)
    found = Roots([str(runs)]).find("before")
    session = Path(found.capture.root)
    real = summaries.cached_summary

    def swapped(capture: Any, **options: Any) -> Any:
        session.rename(session.with_name("old"))
        session.symlink_to(secret)
        return real(capture, **options)

    monkeypatch.setattr(summaries, "cached_summary", swapped)
    with pytest.raises(BrokenInputError, match="changed while it was read"):
        Summaries(None).of(found)


def test_a_file_that_is_gone_is_told(runs: Path) -> None:
    found = Roots([str(runs)]).find("before")
    Path(found.files[0].path).unlink()
    with pytest.raises(NotFoundError, match="list the captures again"):
        Summaries(None).of(found)
