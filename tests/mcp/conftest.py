"""Runs below a folder: two captures of a small program, the second with a slower op."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_capture import leave_capture

BEFORE, AFTER = "2026_01_02_03_04_05", "2026_01_02_04_04_05"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Steps of 100 us with one op each: of 80 us in `before`, of 90 us in `after`."""
    folder = tmp_path / "runs"
    leave_capture(folder / "before", stamp=BEFORE, step_us=80)
    leave_capture(folder / "after", stamp=AFTER, step_us=90)
    return folder
