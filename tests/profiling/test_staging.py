"""What the worker puts together for the tracker, and how a tracker is given it."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders_capture import context, leave_capture
from builders_summary import build_summary as made_summary
from builders_summary import ledger, no_steps, uneven_steps
from marin_profile import load_summary, summarize
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.levanter.tracker import log_staged
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.job import Gather, Job, Publish, job_of
from marin_profile.profiling.load import Load
from marin_profile.profiling.record import Logged
from marin_profile.profiling.run import Run
from marin_profile.profiling.scalars import scalars_of
from marin_profile.profiling.sentences import lacking_text
from marin_profile.profiling.staging import LARGEST_AUTO_UPLOAD, STAGING_FOLDER, decide_upload
from marin_profile.profiling.worker import ingest

STAMP = "2026_01_02_03_04_05"
HOST = "tpu-vm-17"


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


def published(folder: Path, upload: str, *, redact: bool = False, **job) -> Tracker:
    facts = {"run_id": "my run", "num_devices": 8}
    ingest(Job(folder, folder, run=facts, publish=Publish("my run", upload, redact), **job))
    tracker = Tracker()
    log_staged(tracker, folder, "my run", 5)
    assert not (folder / STAGING_FOLDER).exists()
    assert list(folder.glob(".*")) == []
    return tracker


class Named(Tracker):
    def __init__(self, name: str, is_down: bool = False) -> None:
        super().__init__()
        self.name, self.is_down, self.calls = name, is_down, 0

    def log_summary(self, metrics):
        self.calls += 1
        if self.is_down:
            raise ConnectionError("down")
        super().log_summary(metrics)


def test_of_several_trackers_only_those_that_lack_it_are_tried_again(tmp_path):
    """Two are of one name: the second one of them lacks it."""
    folder = leave_capture(tmp_path)
    one, down, other = trackers = Named("a"), Named("a", is_down=True), Named("b")
    both = SimpleNamespace(loggers=trackers)
    job = Job(folder, folder, publish=Publish("r", "never", False))
    held = ()
    for is_down, calls in ((True, [1, 1, 1]), (True, [1, 2, 1]), (False, [1, 3, 1])):
        down.is_down = is_down
        ingest(job)
        held = log_staged(both, folder, "r", 5, held)
        assert [tracker.calls for tracker in trackers] == calls
        assert lacking_text(held) == ("a: ConnectionError: down" if is_down else None)
        assert [row.tracker for row in held] == ["a", "a", "b"]
    assert {*one.summary} == {*down.summary} == {*other.summary}


def test_a_tracker_that_came_later_is_given_it_too(tmp_path):
    folder = leave_capture(tmp_path)
    ingest(Job(folder, folder, publish=Publish("r", "never", False)))
    held = (Logged("a", ("x",), figures=3),)
    new = Named("b")
    rows = log_staged(
        SimpleNamespace(loggers=[Named("a", is_down=True), new]), folder, "r", 5, held
    )
    assert rows[0] == held[0]
    assert (rows[1].tracker, new.calls) == ("b", 1)


def test_both_artifacts_and_the_figures_are_logged(tmp_path):
    folder = leave_capture(tmp_path, host=HOST)
    tracker = published(folder, "auto")
    kind, files = tracker.artifacts["profile-summary-my-run"]
    assert kind == "profile_summary"
    assert sorted(files) == [
        "metadata.json",
        "profile_report.html",
        "profile_report.md",
        "profile_summary.json",
    ]
    assert files["profile_summary.json"] == (folder / SUMMARY_FILE).read_bytes()
    metadata = json.loads(files["metadata.json"])
    assert (metadata["run_id"], metadata["num_devices"]) == ("my run", 8)
    assert metadata["step_median"] == 80.0
    kind, files = tracker.artifacts["run-my-run-profiler"]
    assert kind == "jax_profile"
    assert sorted(files) == [
        f"plugins/profile/{STAMP}/profile_context.json",
        f"plugins/profile/{STAMP}/{HOST}.xplane.pb",
    ]
    assert tracker.summary["profile/step_period_median_us"] == 100.0
    assert tracker.summary["profile/step_duration_median_us"] == 80.0
    assert "profile/capture_path" not in tracker.summary


def test_what_a_killed_worker_left_is_removed(tmp_path):
    folder = leave_capture(tmp_path)
    (folder / ".marin-profile-abc.tmp/new/summary").mkdir(parents=True)
    published(folder, "never")
    assert list(folder.glob(".*")) == []


def test_what_is_uploaded_is_redacted_and_summarised_anew(tmp_path):
    folder = leave_capture(tmp_path / "profiler", host=HOST)
    tracker = published(folder, "auto", redact=True)
    _, files = tracker.artifacts["run-my-run-profiler"]
    _, outputs = tracker.artifacts["profile-summary-my-run"]
    for name, content in (files | outputs).items():
        assert HOST not in name
        assert HOST.encode() not in content
    # Whoever downloads the capture finds the summary that was logged.
    downloaded = tmp_path / "downloaded"
    for name, content in files.items():
        (downloaded / name).parent.mkdir(parents=True, exist_ok=True)
        (downloaded / name).write_bytes(content)
    logged = json.loads(outputs["profile_summary.json"])
    found = json.loads(summarize(downloaded).to_json())
    assert logged.pop("run_metadata")["run_id"] == "my run"
    del found["run_metadata"]
    assert logged == found
    # On this machine nothing is masked.
    assert load_summary(str(folder / SUMMARY_FILE)).hosts[0].host == HOST


def test_all_processes_are_uploaded_each_in_its_folder(tmp_path):
    folders = [
        leave_capture(tmp_path / f"process_{i}", host="same", note=context(i, 2)) for i in (0, 1)
    ]
    ingest(Job(folders[1], folders[1], leave_part=True))
    gather = Gather(str(tmp_path), str(folders[0]), [0, 1], 0)
    tracker = published(folders[0], "always", redact=True, leave_part=True, gather=gather)
    _, files = tracker.artifacts["run-my-run-profiler"]
    traces = sorted(name for name in files if name.endswith(".xplane.pb"))
    assert [re.sub(r"/[^/]*$", "", name) for name in traces] == [
        f"process_{i}/plugins/profile/{STAMP}" for i in (0, 1)
    ]


@pytest.mark.parametrize(("upload", "told"), [("reference", True), ("never", False)])
def test_a_capture_that_is_not_uploaded_may_be_referred_to(tmp_path, upload, told):
    folder = leave_capture(tmp_path)
    tracker = published(folder, upload)
    assert list(tracker.artifacts) == ["profile-summary-my-run"]
    assert tracker.summary.get("profile/capture_path") == (str(folder) if told else None)
    assert tracker.summary["profile/capture_upload"] == f"as configured: {upload}"


@pytest.mark.parametrize(
    ("settings", "refers"),
    [({}, True), ({"keep_captures": 2}, False), ({"keep_captures": 2, "shared_dir": "x"}, True)],
)
def test_no_artifact_refers_to_files_that_will_go(tmp_path, settings, refers):
    """Those of `shared_dir` stay."""
    folder = leave_capture(tmp_path)
    config = ProfilerConfig(upload="reference", redact=False, **settings)
    shared = str(tmp_path / "bucket") if "shared_dir" in settings else None
    job = job_of(config, Run("r", tmp_path, shared=shared), folder, {})
    ingest(job)
    there = job.shared or str(folder)
    uploads = Load.below(folder, "r", 5).uploads
    assert [upload.reference for upload in uploads] == [None, *([f"file://{there}"] * refers)]


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
    found = scalars_of(summary)
    assert found["step_duration_median_us"] == summary.step_time.steady_state_steps.median
    assert found["step_period_median_us"] == summary.step_time.period.median
    shares = [value for name, value in found.items() if name.endswith("_share")]
    assert sum(shares) == pytest.approx(1)
    assert all(isinstance(value, float) for value in found.values())


def test_the_scalars_give_typical_and_mean():
    found = scalars_of(made_summary(step_time=uneven_steps()))
    assert (found["step_typical_us"], found["step_mean_us"]) == (1000.0, 1500.0)
    assert (found["step_outlier_excess_us"], found["num_outlier_steps"]) == (500.0, 1.0)
    even = scalars_of(made_summary())
    assert (even["step_typical_us"], even["step_mean_us"]) == (1000.0, 1000.0)
    assert (even["step_outlier_excess_us"], even["num_outlier_steps"]) == (0.0, 0.0)


def test_mfu_and_hfu_come_with_their_coverage():
    found = scalars_of(made_summary())
    assert (found["mfu"], found["hfu"], found["roofline_coverage"]) == (0.0809, 0.0955, 0.9)
    unknown = scalars_of(made_summary(roofline=None))
    assert not {"mfu", "hfu", "roofline_coverage"} & {*unknown}


def test_without_steps_there_are_no_scalars_of_steps():
    found = scalars_of(made_summary(step_time=no_steps()))
    assert not {"step_typical_us", "step_mean_us", "num_outlier_steps"} & {*found}


def test_the_shares_are_of_one_window_and_one_kind_of_device():
    idle = {"compute_duration": 0.0, "idle_duration": 750.0}
    others = [
        ledger(window="capture", scale=1.0).model_copy(update=idle),
        ledger("/device:TPU:0 SparseCore 0", kind="sparsecore", scale=1.0).model_copy(update=idle),
    ]
    found = scalars_of(made_summary(device_ledger=[ledger(scale=1.0), *others]))
    assert found["compute_share"] == 0.5
    assert found["idle_share"] == 0.25
