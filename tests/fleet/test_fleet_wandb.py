"""The runs of a W&B project as a fleet, with the real SDK against a server on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders_xspace import STAMP
from fleet_captures import run_space
from marin_profile.base.config_hash import config_hash
from marin_profile.base.errors import UsageError
from marin_profile.cli import run as run_cli
from marin_profile.pipeline import summarize
from marin_profile.wandb import listing
from marin_profile.wandb.download import default_root
from marin_profile.wandb.listing import project_of
from wandb_server import Run, WandbServer

wandb = pytest.importorskip("wandb")

SECONDS = 300
PROJECT = "wandb:loop/proj"


def write_capture(folder: Path, step_us: int) -> Path:
    run_space("h0", step_us=step_us).write(folder / "plugins/profile" / STAMP / "h0.xplane.pb")
    return folder


def log(run: Any, name: str, kind: str, content: Path, **metadata: str) -> Any:
    logged = wandb.Artifact(name, type=kind, metadata=metadata)
    if content.is_dir():
        logged.add_dir(str(content))
    else:
        logged.add_file(str(content), name="profile_summary.json")
    return run.log_artifact(logged).wait(timeout=SECONDS)


def start(run_id: str, **given: Any) -> Any:
    settings = wandb.Settings(console="off", x_disable_stats=True, init_timeout=SECONDS)
    return wandb.init(entity="loop", project="proj", id=run_id, settings=settings, **given)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WandbServer]:
    """Five runs, made on five days of 2026: `one` (steps of 1000 us), `two` (an older profile, then
    one of 1100 us), `three` (a profile of 1200 us, and the summary of one of 1250 us, as its own),
    `four` (a summary of an older profile, and a newer one of 1300 us) and `none`."""
    folder = tmp_path_factory.mktemp("project")
    captures = {us: write_capture(folder / str(us), us) for us in (1000, 1100, 1200, 1250, 1300)}
    summary = folder / "summary.json"
    summary.write_text(summarize(captures[1250]).to_json())
    with WandbServer() as server, pytest.MonkeyPatch.context() as patch:
        for name in ("WANDB_ENTITY", "WANDB_PROJECT", "WANDB_MODE"):
            patch.delenv(name, raising=False)
        for name, value in {**server.environment(folder), "WANDB_SILENT": "true"}.items():
            patch.setenv(name, value)
        config = {"lr": 0.5, "git_commit": "abc123"}
        with start("one", name="first light", tags=["a", "b"], group="g", config=config) as run:
            run.summary["throughput/device_kind"] = "TPU v6e"
            log(run, "run-one-profiler", "jax_profile", captures[1000])
        with start("two", name="two", tags=["a"], config={"lr": 2}) as run:
            log(run, "run-two-profiler", "jax_profile", captures[1000])
            log(run, "run-two-profiler", "jax_profile", captures[1100])
        with start("three", name="three", config={"lr": 2}) as run:
            log(run, "run-three-profiler", "jax_profile", captures[1200])
            log(run, "profile-summary-three", "profile_summary", summary)
        with start("four", name="four") as run:
            profile = log(run, "run-four-profiler", "jax_profile", captures[1200])
            made_of = f"loop/proj/{profile.name}"
            given = {"source_artifact_ref": made_of}
            log(run, "profile-summary-four", "profile_summary", summary, **given)
            log(run, "run-four-profiler", "jax_profile", captures[1300])
        runs = server.state.runs
        runs.append(Run("run-none", "loop", "proj", "none", values={"displayName": "none"}))
        for day, one in enumerate(runs, 1):
            one.created = f"2026-03-0{day}T12:00:00Z"
        yield server
        wandb.teardown()


Fleet = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def fleet(
    server: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> Fleet:
    """Runs the verb: the exit code, its JSON and stderr. Caches are new for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def call(target: str, *more: str) -> tuple[int, dict[str, Any], str]:
        output = tmp_path / "fleet.json"
        output.unlink(missing_ok=True)
        server.requests.clear()
        code = run_cli(["fleet", target, "-o", str(output), *more])
        found = json.loads(output.read_text()) if output.exists() else {}
        return code, found, capfd.readouterr().err

    return call


def downloads(server: WandbServer) -> int:
    return sum(line.startswith("GET /storage/artifact/") for line in server.requests)


def steps(found: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["step_typical"] for row in found["rows"]}


def test_each_run_is_a_row(server: WandbServer, fleet: Fleet) -> None:
    code, found, err = fleet(PROJECT)
    assert code == 1
    assert steps(found) == {
        "first light (one)": 1000.0,
        "two": 1100.0,
        "three": 1250.0,
        "four": 1300.0,
    }
    first = found["rows"][0]
    assert (first["run"], first["git_sha"]) == ("loop/proj/one", "abc123")
    assert first["hardware"] == "TPU v6e"
    assert first["config_hash"] == config_hash({"lr": 0.5, "git_commit": "abc123"})
    assert found["rows"][2]["run"] == "loop/proj/three"
    [broken] = found["broken"]
    assert broken["name"] == "none"
    assert "no jax_profile artifact" in broken["problem"]
    assert "1 capture could not be summarised." in err
    assert downloads(server) == 4
    assert server.unknown_fields == set()


def test_the_second_time_only_what_is_new_is_downloaded(server: WandbServer, fleet: Fleet) -> None:
    target = f"{PROJECT}?created_after=2026-03-01"
    _, before, _ = fleet(target)
    shutil.rmtree(default_root())
    code, again, _ = fleet(target)
    assert (code, again, downloads(server)) == (1, before, 0)
    project = server.state.runs[1]
    newest = server.state.versions("loop", "proj", "run-two-profiler")[0]
    assert newest.run is project
    newest.state = "DELETED"
    try:
        _, other, _ = fleet(target)
    finally:
        newest.state = "COMMITTED"
    assert steps(other) == steps(before) | {"two": 1000.0}
    assert downloads(server) == 1


@pytest.mark.slow
def test_processes_give_the_same_rows(fleet: Fleet, tmp_path: Path) -> None:
    """By the command line: what starts a test run's processes may know an earlier environment."""
    _, alone, _ = fleet(PROJECT, "--no-cache")
    output = tmp_path / "by_two.json"
    command = [sys.executable, "-m", "marin_profile", "fleet", PROJECT, "--no-cache"]
    done = subprocess.run([*command, "--jobs", "2", "-o", str(output)], check=False)
    assert (done.returncode, json.loads(output.read_text())) == (1, alone)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("tag=a&tag=b", ["first light (one)"]),
        ("tag=a", ["first light (one)", "two"]),
        ("state=finished&config.lr=2", ["two", "three"]),
        ("config.git_commit=abc123", ["first light (one)"]),
        ("group=g", ["first light (one)"]),
        ("display_name=first%20light", ["first light (one)"]),
        ("created_after=2026-03-03&state=finished", ["three", "four"]),
    ],
)
def test_filters_choose_runs(fleet: Fleet, query: str, runs: list[str]) -> None:
    code, found, err = fleet(f"{PROJECT}?{query}")
    assert (code, list(steps(found))) == (0, runs), err


def test_the_newest_are_taken_and_the_rest_is_counted(
    server: WandbServer, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 1)
    monkeypatch.setattr(listing, "MOST_RUNS", 2)
    code, found, err = fleet(f"{PROJECT}?state=finished")
    assert (code, list(steps(found))) == (0, ["three", "four"])
    assert "The newest 2 runs are taken and 2 older ones left out" in err
    assert server.requests.count("query Runs") == 2


def test_what_is_not_there_exits_3(fleet: Fleet) -> None:
    for target in ("wandb:loop/nothing", f"{PROJECT}?group=nobody"):
        code, _, err = fleet(target)
        assert (code, err.count("\n")) == (3, 1), err
        assert target.removeprefix("wandb:") in err


def test_a_service_that_fails_exits_6(server: WandbServer, fleet: Fleet) -> None:
    server.refuse.add("Runs")
    try:
        code, _, err = fleet(PROJECT)
    finally:
        server.refuse.clear()
    assert (code, err.count("\n")) == (6, 1), err
    assert "The project loop/proj" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wandb:proj", "names no project"),
        ("wandb:loop/proj/run-1", "names no project"),
        ("wandb:loop/", "names no project"),
        ("wandb:loop/proj?", "is no filter"),
        ("wandb:loop/proj?state", "is no filter"),
        ("wandb:loop/proj?state=", "is no filter"),
        ("wandb:loop/proj?tag=a&&tag=b", "is no filter"),
        ("wandb:loop/proj?colour=red", "'colour'"),
        ("wandb:loop/proj?config.=1", "'config.'"),
        ("wandb:loop/proj?created_after=yesterday", "YYYY-MM-DD"),
        ("wandb:loop/proj?created_after=2026-02-30", "YYYY-MM-DD"),
        ("wandb:loop/proj?created_after=20260201", "YYYY-MM-DD"),
    ],
)
def test_what_names_no_project_exits_2_unasked(text: str, words: str, capfd: Any) -> None:
    with pytest.raises(UsageError, match=words):
        project_of(text)
    assert run_cli(["fleet", text]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_filters_are_those_of_w_and_b() -> None:
    assert project_of("wandb:e/p").filters == {}
    text = "wandb:e/p?state=finished&tag=a%26b&display_name=x=y&created_after=2026-01-31"
    assert project_of(text).filters == {
        "$and": [
            {"state": "finished"},
            {"tags": {"$in": ["a&b"]}},
            {"display_name": "x=y"},
            {"createdAt": {"$gte": "2026-01-31T00:00:00Z"}},
        ]
    }
    values = "config.a=1&config.b=1e-3&config.c=true&config.d=null&config.e=llama&config.f=%221%22"
    assert project_of(f"wandb:e/p?{values}&config.g=NaN&config.h=[1]").filters["$and"] == [
        {"config.a": 1},
        {"config.b": 0.001},
        {"config.c": True},
        {"config.d": None},
        {"config.e": "llama"},
        {"config.f": "1"},
        {"config.g": "NaN"},
        {"config.h": "[1]"},
    ]
