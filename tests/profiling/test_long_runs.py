"""Many captures of one run: limits on disk, adjacent windows, captures after slow steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

SCRIPT = Path(__file__).with_name("long_runs.py")


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("long_runs")
    run_all(folder)
    return folder


def run_all(folder: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def results(out) -> dict:
    return json.loads((out / "results.json").read_text())


def captures(out: Path, name: str) -> list[Path]:
    return sorted((out / name / "profiler" / "plugins" / "profile").iterdir())


def warnings(result: dict) -> list[str]:
    return [line for line in result["log"] if not line.startswith("INFO")]


def test_a_size_limit_starts_no_capture_and_is_named(results):
    assert results["size_limit"]["states"] == ["settling", "failed"]
    (line,) = warnings(results["size_limit"])
    assert line.startswith("WARNING steps 6 to 7: not profiled: the captures of this run take ")
    assert line.endswith(" GB, max_capture_gb is 1e-09")


def test_a_floor_of_free_disk_starts_no_capture_and_is_named(results):
    assert results["disk_floor"]["states"] == ["failed"]
    (line,) = warnings(results["disk_floor"])
    assert line.startswith("WARNING steps 2 to 3: not profiled: ")
    assert line.endswith("GB are free, less than min_free_disk_gb (1e+09)")


def test_older_captures_lose_their_files_once_published(out, results):
    assert results["kept"]["states"] == ["published"] * 3
    with_files = [any(one.glob("*.xplane.pb")) for one in captures(out, "kept")]
    assert with_files == [False, False, True]
    for capture in captures(out, "kept"):
        names = {path.name for path in capture.iterdir()}
        assert names >= {"profile_summary.json", "profile_report.md", "capture_record.json"}


def test_adjacent_windows_are_summarised_as_they_come_and_say_so(out, results):
    """The fourth of five was taken while the first one's ingestion began."""
    assert results["adjacent"]["states"] == ["published"] * 5
    folders = captures(out, "adjacent")
    contexts = [json.loads((one / "profile_context.json").read_text()) for one in folders]
    assert [one["window"]["steps"] for one in contexts] == [[n, n + 1] for n in range(2, 12, 2)]
    beside = [one["ingested_beside"] for one in contexts]
    assert beside[0] is False
    assert beside[3] is True
    for folder, is_beside in zip(folders, beside, strict=True):
        summary = json.loads((folder / "profile_summary.json").read_text())
        assert summary["capture"]["profiling"]["ingested_beside"] is is_beside
        said = (
            "Another capture was summarised beside training"
            in (folder / "profile_report.md").read_text()
        )
        assert said is is_beside


def test_max_anomalies_counts_captures_not_slow_steps(results):
    assert results["anomalies"]["states"] == ["failed", "settling"]
    assert warnings(results["anomalies"]) == ["WARNING step 21: not profiled: no room"]


def test_a_capture_without_a_step_is_none(results):
    assert results["ends_at_start"]["states"] == ["failed"]
    assert warnings(results["ends_at_start"]) == [
        "WARNING steps 2 to 3: profile lost: training ended before its first step"
    ]
