"""What a tracker is given, with one that keeps it."""

import json
from pathlib import Path

import pytest

from builders_summary import build_summary as made_summary
from builders_summary import ledger
from marin_profile.levanter.figures import figures
from marin_profile.levanter.publish import LARGEST_AUTO_UPLOAD, decide_upload, publish

STAMP = "2026_01_02_03_04_05"


class Tracker:
    def __init__(self) -> None:
        self.artifacts: dict[str, tuple[str, dict[str, bytes]]] = {}
        self.summary: dict = {}

    def log_artifact(self, artifact_path, *, name=None, type=None):
        root = Path(artifact_path)
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }
        self.artifacts[name] = (type, files)

    def log_summary(self, metrics):
        self.summary |= metrics


@pytest.fixture
def capture(tmp_path) -> Path:
    folder = tmp_path / "plugins" / "profile" / STAMP
    folder.mkdir(parents=True)
    for name in ("h.xplane.pb", "h.trace.json.gz", "profile_summary.json", "profile_report.md"):
        (folder / name).write_text(name)
    told = {"metadata": {"run_id": None, "step_median": 7.0}, "figures": {"step_median_us": 7.0}}
    (folder / "profile_figures.json").write_text(json.dumps(told))
    return folder


def published(capture: Path, upload: str) -> Tracker:
    tracker = Tracker()
    before = sorted(capture.iterdir())
    run = {"run_id": "my run", "num_devices": 8}
    publish(tracker, outputs=capture, capture=capture, run=run, upload=upload)
    assert sorted(capture.iterdir()) == before
    return tracker


def test_both_artifacts_and_the_figures_are_logged(capture):
    tracker = published(capture, "auto")
    kind, files = tracker.artifacts["profile-summary-my-run"]
    assert kind == "profile_summary"
    assert sorted(files) == ["metadata.json", "profile_report.md", "profile_summary.json"]
    metadata = json.loads(files["metadata.json"])
    assert (metadata["run_id"], metadata["num_devices"]) == ("my run", 8)
    assert metadata["step_median"] == 7.0
    kind, files = tracker.artifacts["run-my-run-profiler"]
    assert kind == "jax_profile"
    assert sorted(files) == [
        f"plugins/profile/{STAMP}/h.trace.json.gz",
        f"plugins/profile/{STAMP}/h.xplane.pb",
    ]
    assert tracker.summary["profile/step_median_us"] == 7.0
    assert "profile/capture_path" not in tracker.summary


@pytest.mark.parametrize(("upload", "told"), [("reference", True), ("never", False)])
def test_a_capture_that_is_not_uploaded_may_be_referred_to(capture, upload, told):
    tracker = published(capture, upload)
    assert list(tracker.artifacts) == ["profile-summary-my-run"]
    assert tracker.summary.get("profile/capture_path") == (str(capture) if told else None)
    assert tracker.summary["profile/capture_upload"] == f"as configured: {upload}"


@pytest.mark.parametrize(
    ("choice", "size", "wanted"),
    [
        ("auto", LARGEST_AUTO_UPLOAD, True),
        ("auto", LARGEST_AUTO_UPLOAD + 1, False),
        ("always", LARGEST_AUTO_UPLOAD + 1, True),
        ("reference", 1, False),
        ("never", 1, False),
    ],
)
def test_when_a_capture_is_uploaded(choice, size, wanted):
    decision = decide_upload(choice, size)
    assert decision.wanted is wanted
    assert choice in decision.why


def test_the_figures_are_those_of_the_summary():
    summary = made_summary()
    found = figures(summary)
    assert found["step_median_us"] == summary.step_time.steady_state_steps.median
    shares = [value for name, value in found.items() if name.endswith("_share")]
    assert not shares or sum(shares) == pytest.approx(1)
    assert all(isinstance(value, float) for value in found.values())


def test_the_shares_are_of_one_window_and_one_kind_of_device():
    idle = {"compute_duration": 0.0, "idle_duration": 750.0}
    others = [
        ledger(window="capture", scale=1.0).model_copy(update=idle),
        ledger("/device:TPU:0 SparseCore 0", kind="sparsecore", scale=1.0).model_copy(update=idle),
    ]
    found = figures(made_summary(device_ledger=[ledger(scale=1.0), *others]))
    assert found["compute_share"] == 0.5
    assert found["idle_share"] == 0.25
