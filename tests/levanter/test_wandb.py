"""The demo's training, online against a loopback W&B server, whole and with one that fails."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders_capture import leave_capture
from needs import needs_levanter
from patience import PATIENCE
from wandb_server import WandbServer

if importlib.util.find_spec("wandb") is None:
    pytest.skip("wandb is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "demo.yaml"
ONLINE = {"WANDB_MODE": "online", "WANDB_ENTITY": "loop", "WANDB_SILENT": "true"}
# How long W&B itself tries, once its server is gone, is not asked here.
FEW_RETRIES = {
    f"WANDB_X_{kind}_{what}": "1"
    for kind in ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER")
    for what in ("RETRY_MAX", "RETRY_WAIT_MIN_SECONDS", "RETRY_WAIT_MAX_SECONDS")
}
QUICK = ("--trainer.num_train_steps", "30", "--profiler.num_steps", "3")


def demo(
    folder: Path, server: WandbServer, *flags: str, config: Path = CONFIG, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    command += ["--config_path", str(config), *QUICK, *flags]
    settings = server.environment(folder / "private") | ONLINE | environment
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def said_to_be_logged(child: subprocess.CompletedProcess[str]) -> str:
    """The one line that says so."""
    lines = (child.stdout + child.stderr).splitlines()
    (line,) = [line for line in lines if " logged to " in line]
    return line.partition("logged to ")[2]


def ours(child: subprocess.CompletedProcess[str]) -> list[str]:
    """The warnings of this package in a training's log."""
    lines = (child.stdout + child.stderr).splitlines()
    return [line for line in lines if re.match(r"[WE]\d+ .*marin_profile\.", line)]


@pytest.fixture
def server() -> Iterator[WandbServer]:
    with WandbServer() as found:
        yield found


@needs_levanter
def test_the_run_holds_both_artifacts_and_gives_the_summary_that_was_logged(
    server, tmp_path, monkeypatch
):
    child = demo(tmp_path, server)
    assert child.returncode == 0, child.stderr[-3000:]
    assert ours(child) == []
    page = child.stdout.splitlines()[-1]
    assert page == "demo_out/demo/profile_report.html"
    assert (tmp_path / page).read_text().lower().startswith("<!doctype html>")
    private = server.environment(tmp_path / "private")
    environment = os.environ | private | {"WANDB_SILENT": "true"}
    code = (
        "import json, wandb\n"
        "api = wandb.Api(timeout=30)\n"
        "run = api.run('loop/marin-profile-demo/demo')\n"
        "held = {a.type: [a.name, a.aliases, dict(a.metadata)] for a in run.logged_artifacts()}\n"
        "api.artifact('loop/marin-profile-demo/profile-summary-demo:latest').download(root='down')\n"
        "print(json.dumps([held, sorted(run.summary.keys())]))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert told.returncode == 0, told.stderr
    held, keys = json.loads(told.stdout.splitlines()[-1])
    assert held["jax_profile"][:2] == ["run-demo-profiler:v0", ["latest"]]
    assert held["profile_summary"][:2] == ["profile-summary-demo:v0", ["latest"]]
    metadata = held["profile_summary"][2]
    assert metadata["schema_version"] == "profile_summary.v1"
    assert metadata["run_path"] == "loop/marin-profile-demo/demo"
    assert len(metadata["config_hash"]) == 16
    assert {"profile/top_ops", "profile/report", "profile/compute_share"} <= set(keys)

    found = subprocess.run(
        [
            *(sys.executable, "-m", "marin_profile", "summarize"),
            *("--run-target", "loop/marin-profile-demo/demo", "--download-root", "root"),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert found.returncode == 0, found.stderr
    logged_text = (tmp_path / "down" / "profile_summary.json").read_text()
    logged, fetched = json.loads(logged_text), json.loads(found.stdout)
    runs = logged["run_metadata"], fetched["run_metadata"]
    assert runs[0]["run_path"] == runs[1]["run_path"] == "loop/marin-profile-demo/demo"
    assert runs[0]["config_hash"] == runs[1]["config_hash"]
    assert runs[0]["git_sha"] == runs[1]["git_sha"]
    assert runs[1]["artifact_name"] == "run-demo-profiler:v0"
    assert without_run(logged_text) == without_run(found.stdout)


def without_run(text: str) -> str:
    """The canonical text of a summary without the block of its run."""
    cut, count = re.subn(r'  "run_metadata": \{\n(?:    .*\n)*  \},\n', "", text)
    assert count == 1
    return cut


@pytest.mark.long
@needs_levanter
def test_a_server_that_refuses_artifacts_is_one_log_line(server, tmp_path):
    server.refuse.add("CreateArtifact")
    child = demo(tmp_path, server)
    assert child.returncode == 0, child.stderr[-3000:]
    (line,) = ours(child)
    assert "profile summarised, but not logged: " in line
    assert "CreateArtifact is refused" in line
    assert (tmp_path / "demo_out" / "demo" / "profile_summary.json").exists()


@pytest.mark.long
@needs_levanter
def test_a_server_that_is_slow_costs_at_most_the_stated_wait(server, tmp_path):
    server.delay["CreateArtifact"] = 120
    # Levanter waits as well: for as short as it can be told to.
    config = tmp_path / "demo.yaml"
    waits = "type: wandb\n    background_finish_timeout: 5"
    config.write_text(CONFIG.read_text().replace("type: wandb", waits))
    child = demo(tmp_path, server, "--profiler.ingest_timeout", "60", config=config)
    assert child.returncode == 0, child.stderr[-3000:]
    (line,) = ours(child)
    assert "was summarised, but not logged yet; the next start" in line or (
        "not logged: TimeoutError: W&B did not confirm profile-summary-demo within 60 s" in line
    )


@pytest.mark.long
@needs_levanter
def test_a_server_that_goes_down_is_one_log_line(server, tmp_path):
    server.down_at = "CreateArtifact"
    child = demo(tmp_path, server, "--profiler.ingest_timeout", "60", **FEW_RETRIES)
    assert child.returncode == 0, child.stderr[-3000:]
    (line,) = ours(child)
    assert "logged" in line
    assert (tmp_path / "demo_out" / "demo" / "profile_summary.json").exists()


REFERENCE = """
import sys
from pathlib import Path

import wandb

from marin_profile.profiling.job import Job, Publish
from marin_profile.levanter.tracker import LevanterTracker
from marin_profile.profiling.worker import ingest


class Tracker:
    name = "wandb"

    def __init__(self, run):
        self.run = run

    def log_summary(self, metrics):
        self.run.summary.update(metrics)


folder = Path(sys.argv[1])
ingest(Job(folder, folder, run={"run_id": "r"}, publish=Publish("r", "reference", False)))
with wandb.init(entity="loop", project="p", id="r") as run:
    LevanterTracker(lambda: Tracker(run)).log(folder, "r", 600, ())
    print(run.summary["profile/capture_path"])
"""


def test_a_capture_that_stays_where_it_is_is_referred_to(server, tmp_path):
    folder = leave_capture(tmp_path / "run" / "profiler")
    environment = os.environ | server.environment(tmp_path / "private") | ONLINE

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        child = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert child.returncode == 0, child.stderr
        return child

    assert python("-c", REFERENCE, str(folder)).stdout.splitlines()[-1] == str(folder)
    command = ("-m", "marin_profile", "summarize", "--run-target", "loop/p/r")
    found = python(*command, "--download-root", str(tmp_path / "root"), "--trust-references")
    assert f"refers to file://{folder}" in found.stderr
    logged = (folder / "profile_summary.json").read_text()
    assert without_run(found.stdout) == without_run(logged)
    assert not (tmp_path / "root").exists()
