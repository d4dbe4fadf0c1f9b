"""`marin-profile doctor`: of a capture, and of this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from builders_capture import leave_capture
from builders_summary import build_summary, no_steps
from marin_profile.cli import environment
from marin_profile.facts.health import health


def test_a_capture_for_people_and_for_programs(call, tmp_path):
    leave_capture(tmp_path / "run")
    shown = call("doctor", tmp_path / "run", "--no-cache")
    assert (shown.exit_code, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("ok       whole ")
    assert any(line.startswith("warn     scopes ") for line in lines)
    assert any("-> Put jax.named_scope" in line for line in lines)
    assert lines[-1].endswith("ok")
    found = call("doctor", tmp_path / "run", "--no-cache", "--format", "json")
    rows = json.loads(found.stdout)["checks"]
    assert {tuple(row) for row in rows} == {("check", "do", "seen", "state")}
    counts = [sum(row["state"] == state for row in rows) for state in ("warn", "unknown", "ok")]
    assert lines[-1] == "{} warn, {} unknown, {} ok".format(*counts)


def test_what_is_bad_exits_1(call, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(build_summary(step_time=no_steps()).to_json())
    found = call("doctor", path)
    assert found.exit_code == 1
    assert "bad      steps                none found" in found.stdout
    assert "1 bad, " in found.stdout.splitlines()[-1]
    assert call("doctor", path, "--format", "json", "-o", tmp_path / "d.json").exit_code == 1
    assert len(json.loads((tmp_path / "d.json").read_text())["checks"]) == len(
        health(build_summary())
    )


@pytest.mark.parametrize("arguments", [(), ("--log-dir", "x"), ("s.json", "--log-dir", "x")])
def test_a_request_without_sense(call, arguments):
    assert call("doctor", *arguments).exit_code == 2


def test_this_machine(call, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = call("doctor", "--env", "--log-dir", tmp_path / "a/b", "--format", "json")
    rows = {row["check"]: row for row in json.loads(found.stdout)["checks"]}
    assert found.exit_code == (1 if any(row["state"] == "bad" for row in rows.values()) else 0)
    assert str(tmp_path / "cache") in rows["summary cache"]["seen"]
    assert "not needed" in rows["tensorflow"]["seen"]
    assert "GB free" in rows["log dir"]["seen"]
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "a").exists()


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setattr(environment, "version", _not_installed)
    rows = {row.check: row for row in environment.environment(None)}
    assert rows["jax"].state == rows["jaxlib"].state == "warn"
    assert rows["wandb"].state == "ok"
    assert rows["wandb"].seen == "not installed; needed for W&B runs alone"
    assert rows["jax"].do == "pip install jax, if you want that here."
    assert rows["ProfileOptions"].state == "unknown"
    assert rows["tensorflow"].state == "ok"


def _not_installed(name: str) -> str:
    raise environment.PackageNotFoundError(name)


def test_options_that_the_installed_jax_lacks(monkeypatch):
    trace = pytest.importorskip("marin_profile.profiling.trace")
    assert trace.options_lacking() == []

    class Older:
        host_tracer_level = python_tracer_level = enable_hlo_proto = include_dataset_ops = 1
        session_id = ""

    monkeypatch.setattr(trace.jax.profiler, "ProfileOptions", Older)
    row = environment._profile_options()
    assert row.state == "bad"
    assert "lacks advanced_configuration," in row.seen
    monkeypatch.delattr(trace.jax.profiler, "ProfileOptions")
    assert trace.options_lacking() == ["ProfileOptions"]


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("")
    (row,) = environment._log_dir(str(tmp_path / "file" / "runs"))
    assert row.state == "bad"
    (row,) = environment._log_dir("gs://bucket/runs")
    assert row.state == "unknown"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert environment._summaries().state == environment._downloads().state == "warn"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    os.makedirs(tmp_path / "marin-profile/summaries")
    os.chmod(tmp_path / "marin-profile/summaries", 0o777)
    assert "not yours alone" in environment._summaries().seen


def test_a_full_disk(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 5e8})
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda folder: usage)
    (row,) = environment._log_dir(str(tmp_path))
    assert row.state == "bad"
    assert row.seen.endswith("writable, 0.5 GB free")
    assert "below 1 GB" in row.do
