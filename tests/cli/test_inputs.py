"""One side of a comparison, however it is named; W&B names are tried in tests/wandb."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders_capture import leave_capture
from builders_verdict import capture, noisy
from marin_profile.base.errors import CannotAnswerError, NotFoundError
from marin_profile.base.storage import write_file
from marin_profile.capture.sources import Capture
from marin_profile.cli import progress
from marin_profile.cli.inputs import load
from marin_profile.inputs import Input, Kind, named
from marin_profile.pipeline import SummarizeOptions, summarize
from marin_profile.schema import ProfileSummary


def loaded(kind: Kind, value: object, *, warmup_steps: int = 1) -> ProfileSummary:
    return load(Input(kind, str(value)), warmup_steps=warmup_steps)


Capfd = pytest.CaptureFixture[str]


@pytest.mark.parametrize("place", ["{}/s.json", "file://{}/s.json", "memory://inputs/s.json"])
def test_a_summary_is_read(tmp_path: Path, place: str, capfd: Capfd) -> None:
    summary = capture(noisy(1, 25))
    path = place.format(tmp_path)
    write_file(path, summary.to_json().encode())
    assert loaded("summary", path).to_json() == summary.to_json()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])
def test_a_folder_is_summarised(tmp_path: Path, prefix: str, capfd: Capfd) -> None:
    leave_capture(tmp_path)
    found = loaded("profile_dir", f"{prefix}{tmp_path}", warmup_steps=2)
    expected = summarize(tmp_path, SummarizeOptions(warmup_steps=2))
    assert found.to_json() == expected.to_json()
    assert found.step_time.warmup_steps_ignored == 2
    assert capfd.readouterr().err == ""


def test_the_choice_among_captures_is_noted(traces: Path, capfd: Capfd) -> None:
    found = loaded("profile_dir", traces / "tpu_vllm_serving")
    assert "2026_01_12_00_26_20" in found.source_path
    (line,) = capfd.readouterr().err.splitlines()
    assert "2026_01_11_21_26_41" in line


def test_progress_is_shown_while_a_profile_is_read_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_capture(tmp_path)
    (tmp_path / "s.json").write_text(capture(noisy(1, 25)).to_json())
    seen: list[str] = []

    @contextmanager
    def working(capture: Capture) -> Iterator[None]:
        seen.append(f"begin {len(capture.hosts)}")
        yield
        seen.append("end")

    monkeypatch.setattr(progress, "working_on", working)
    for given in (Input("summary", f"{tmp_path}/s.json"), Input("profile_dir", str(tmp_path))):
        load(given)
    assert seen == ["begin 1", "end"]


def test_what_is_not_there(tmp_path: Path) -> None:
    for kind in ("summary", "profile_dir"):
        with pytest.raises(NotFoundError):
            loaded(kind, tmp_path / "no")


def test_a_profile_without_device_work_is_refused(traces: Path) -> None:
    with pytest.raises(CannotAnswerError, match="host-only"):
        loaded("profile_dir", traces / "cpu_host_only")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("https://wandb.ai/e/p/runs/abc", "run_target"),
        ("http://w.io:8/x/e/p/runs/abc/logs?nw=x", "run_target"),
        ("http://host/runs/abc", "profile"),
        ("http://host/all/runs/abc", "profile"),
        ("http://host/e/p/runs/abc/plugins/profile/2026_01_02_03_04_05", "profile"),
        ("http://host/runs/h.trace.json?X-Signature=word", "profile"),
    ],
)
def test_a_page_of_a_run_is_told_from_a_folder_on_a_web_server(word: str, kind: Kind) -> None:
    assert named(word) == Input(kind, word)
