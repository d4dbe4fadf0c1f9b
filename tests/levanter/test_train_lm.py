"""`python -m marin_profile.levanter.train_lm` on local text, with today's and with older flags."""

import json
from pathlib import Path

import pytest

from local_text import CONFIG, start, write_text
from needs import needs_levanter
from patience import PATIENCE

TODAYS_FLAGS = (
    *("--trainer.profiler.profile_options.host_tracer_level", "1"),
    *("--trainer.profiler.process_index", "[0, 3]"),
    *("--trainer.profiler.perfetto_link", "false"),
)
OLDER_FLAGS = (
    *("--trainer.profiler", "true", "--trainer.profiler_start_step", "5"),
    *("--trainer.profiler_num_steps", "50", "--trainer.profiler_perfetto_link", "false"),
)


pytestmark = [
    needs_levanter,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, tuple[Path, str]]:
    """Per kind of flags, the run's folder and what the training printed."""
    folder = tmp_path_factory.mktemp("train_lm")
    train_both(folder)
    return {
        name: (folder / "runs" / name, (folder / f"{name}.log").read_text())
        for name in ("today", "older")
    }


def train_both(folder: Path) -> None:
    write_text(folder / "data")
    (folder / "plain.yaml").write_text(without_profiler(CONFIG.read_text()))
    children = {
        "today": start(folder, CONFIG, "today", *TODAYS_FLAGS),
        "older": start(folder, folder / "plain.yaml", "older", *OLDER_FLAGS),
    }
    for name, child in children.items():
        output = child.communicate(timeout=PATIENCE)[0]
        (folder / f"{name}.log").write_text(output)
        assert child.returncode == 0, output[-4000:]


def without_profiler(config: str) -> str:
    before, _, rest = config.partition("  profiler:\n")
    return before + rest[rest.index("\noptimizer:") :]


def profiled_steps(run: Path) -> list[list[int]]:
    summaries = sorted(run.glob("profiler/plugins/profile/*/profile_summary.json"))
    return [steps_of(path) for path in summaries]


def steps_of(summary: Path) -> list[int]:
    return [step["step_num"] for step in json.loads(summary.read_text())["step_time"]["steps"]]


def test_todays_flags_and_yaml(runs):
    run, output = runs["today"]
    assert profiled_steps(run) == [[4, 5, 6], [10, 11]]
    assert steps_of(run / "profile_summary.json") == [10, 11]
    assert (run / "profile_report.md").read_text().startswith("#")
    assert "note:" not in output
    assert "WARNING marin_profile" not in output


def test_older_flags(runs):
    run, output = runs["older"]
    assert profiled_steps(run) == [[5, 6, 7, 8, 9, 10, 11, 12, 13]]
    for older in (
        "profiler",
        "profiler_start_step",
        "profiler_num_steps",
        "profiler_perfetto_link",
    ):
        assert f"note: --trainer.{older} is an older flag" in output


def test_the_steps_hold_the_work_of_the_device(runs):
    """On one CPU device the runtime launches the step's program from a thread of its own."""
    for run, _ in runs.values():
        summary = json.loads((run / "profile_summary.json").read_text())
        (whole,) = (row for row in summary["device_ledger"] if row["window"] == "capture")
        in_steps = sum(step["ledger"]["compute_duration"] for step in summary["step_time"]["steps"])
        # A step may reach some microseconds into the next one's first work: that counts in both.
        assert 0.9 < in_steps / whole["compute_duration"] < 1.001


def test_levanters_own_profiler_hook_stays_off(runs):
    for run, output in runs.values():
        assert "Starting profiler until" not in output
        assert len(list(run.rglob("*.xplane.pb"))) == len(profiled_steps(run))
