"""What is said to be logged, against what each kind of tracker holds: one child, real trackers."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders_capture import leave_capture
from needs import needs_levanter
from patience import PATIENCE
from wandb_server import Artifact, WandbServer

pytestmark = [
    needs_levanter,
    pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed"),
]
CHILD = Path(__file__).with_name("all_trackers.py")
LONG_ID = "a-sweep-" + "x" * 120


@dataclass(frozen=True)
class Found:
    out: Path
    capture: Path
    results: dict
    server: WandbServer

    def line(self, kind: str) -> list[str]:
        return self.results[kind]["line"]

    def rows(self, kind: str) -> list[dict]:
        return self.results[kind]["rows"]

    def artifact(self, name: str) -> Artifact:
        (held,) = (one for one in self.server.state.artifacts if one.collection == name)
        assert held.state == "COMMITTED"
        return held


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Found:
    out = tmp_path_factory.mktemp("trackers")
    capture = leave_capture(out / "run" / "profiler")
    with WandbServer() as server:
        child = subprocess.run(
            [sys.executable, str(CHILD), str(out), str(capture)],
            cwd=out,
            env=os.environ | server.environment(out / "private") | {"WANDB_SILENT": "true"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert child.returncode == 0, child.stderr[-4000:]
    return Found(out, capture, json.loads((out / "results.json").read_text()), server)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("noop", "noop: nothing (it keeps nothing)"),
        ("noop_twice", "noop: nothing (it keeps nothing)"),
        ("nothing", "no tracker: nothing"),
        ("disabled", "wandb: nothing (W&B is disabled)"),
        ("suppressed", "wandb: nothing (this process does not log to W&B)"),
        ("quiet_logger", "json_logger: nothing (its logger drops INFO)"),
    ],
)
def test_a_tracker_that_keeps_nothing_is_said_to(found, kind, row):
    assert found.line(kind) == ["INFO", f"profile of steps 3 to 5 not logged: {row}"]


def test_online_what_is_named_is_what_the_server_has(found):
    (row,) = found.rows("online")
    assert row["artifacts"] == ["profile-summary-online:v0", "run-online-profiler:v0"]
    assert found.line("online") == [
        "INFO",
        "profile of steps 3 to 5 logged to wandb: profile-summary-online:v0, "
        f"run-online-profiler:v0 and {row['figures']} figures (uploaded)",
    ]
    summary = found.artifact("profile-summary-online")
    assert sorted(summary.files) == [
        "metadata.json",
        "profile_report.html",
        "profile_report.md",
        "profile_summary.json",
    ]
    stored = found.server.state.stored
    logged = json.loads(stored[summary.files["profile_summary.json"]])
    assert logged["run_metadata"]["run_id"] == "online"
    capture = found.artifact("run-online-profiler")
    assert all(stored[path] for path in capture.files.values())
    run = found.server.state.find_run("loop", "p", "online")
    held = [key for key in json.loads(run.summary) if key.startswith("profile/")]
    assert len(held) == row["figures"] + 2  # the table and the report


def test_offline_it_is_kept_for_wandb_sync(found):
    (row,) = found.rows("offline")
    assert row["artifacts"] == ["profile-summary-offline", "run-offline-profiler"]
    level, line = found.line("offline")
    assert level == "INFO"
    before, _, folder = line.removesuffix("')").partition("'wandb sync ")
    assert before.endswith("figures (offline: kept for ")
    assert list(Path(folder).glob("*.wandb"))
    assert not any("offline" in one.collection for one in found.server.state.artifacts)
    staged = found.out / "private" / "data_dir" / "artifacts" / "staging"
    kept = [path.read_bytes() for path in staged.rglob("*") if path.is_file()]
    assert any(b'"run_id": "offline"' in content for content in kept)


def test_a_long_run_id_is_shortened_with_a_hash(found):
    (row,) = found.rows("long")
    summary, capture = row["artifacts"]
    for name in (summary, capture):
        collection = name.removesuffix(":v0")
        assert len(collection) == 128
        assert found.artifact(collection)
    assert summary.startswith("profile-summary-a-sweep-xxx")
    assert capture.endswith("-profiler:v0")


def test_the_json_logger_gets_figures_and_says_so(found):
    (row,) = found.rows("json_logger")
    events = [json.loads(line) for line in found.results["json_logger"]["json"]]
    (summary,) = (event["metrics"] for event in events if event["event"] == "summary")
    assert len(summary) == row["figures"]
    assert summary["profile/step_period_median_us"] == 100.0
    assert summary["profile/output_path"] == str(found.capture)
    assert not [event for event in events if event["event"] == "artifact"]
    assert found.line("json_logger")[1].endswith(
        f"logged to json_logger: {row['figures']} figures (it takes no files)"
    )


def test_the_json_file_holds_the_figures_when_the_run_finishes(found):
    (row,) = found.rows("json_file")
    held = json.loads((found.out / "eval_results.json").read_text())
    assert len(held) == row["figures"]
    assert row["artifacts"] == []


def test_one_of_several_that_fails_is_named(found):
    broken, kept = found.rows("several")
    assert (broken["tracker"], broken["error"]) == ("broken", "ConnectionError: down")
    assert (broken["artifacts"], broken["figures"]) == ([], 0)
    assert (kept["tracker"], kept["error"]) == ("json_file", None)
    held = json.loads((found.out / "several" / "eval_results.json").read_text())
    assert len(held) == kept["figures"]
    level, line = found.line("several")
    assert level == "WARNING"
    assert line.startswith("steps 3 to 5: profile summarised and logged to json_file: ")
    assert ", but the rest is not logged: broken: ConnectionError: down; the next start" in line


def test_what_no_tracker_took_is_not_logged(found):
    level, line = found.line("broken")
    assert level == "WARNING"
    assert "summarised, but not logged: ConnectionError: down; the next start of this" in line
    assert (
        "but not logged: RuntimeError: the json_file tracker has finished"
        in (found.line("finished")[1])
    )


def test_tensorboard_gets_files_and_figures(found):
    if "tensorboard" not in found.results:
        pytest.skip("tensorboardx is not installed")
    (row,) = found.rows("tensorboard")
    assert row["artifacts"] == ["profile-summary-tensorboard", "run-tensorboard-profiler"]
    root = found.out / "tb" / "r"
    files = sorted(path.name for path in (root / row["artifacts"][0]).iterdir())
    assert files == [
        "metadata.json",
        "profile_report.html",
        "profile_report.md",
        "profile_summary.json",
    ]
    (trace,) = (root / row["artifacts"][1]).rglob("*.xplane.pb")
    (taken,) = found.capture.glob("*.xplane.pb")
    assert trace.read_bytes() == taken.read_bytes()
    (events,) = root.glob("events.*")
    content = events.read_bytes()
    assert content.count(b"profile/") >= row["figures"]
    assert b"profile/step_period_median_us" in content


def test_no_tracker_complains(found):
    assert {kind: one["errors"] for kind, one in found.results.items() if one["errors"]} == {}


def test_nothing_stays_staged(found):
    assert list(found.capture.glob(".*")) == []
