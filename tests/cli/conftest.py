"""A way to call the command line in this process, and a summary to ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders_summary import build_summary
from marin_profile.cli import progress, run


@dataclass(frozen=True)
class Result:
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call_with(*arguments: str | Path) -> Result:
        exit_code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(exit_code, captured.out, captured.err)

    return call_with


@pytest.fixture
def summary_path(tmp_path: Path) -> Path:
    path = tmp_path / "summary.json"
    path.write_text(build_summary().to_json(), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No signs of life, however slow the machine is."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 3600.0)
