"""W&B in and out, with the real SDK against a server on this machine (`wandb_server`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import killed
from builders_summary import build_summary, uneven_steps
from builders_xspace import STAMP, Space
from marin_profile.base.config_hash import config_hash
from marin_profile.base.errors import UsageError
from marin_profile.cli import run as run_cli
from marin_profile.pipeline import summarize
from marin_profile.schema import ProfileSummary, load_summary, parse_summary
from marin_profile.wandb import artifacts, names, session
from marin_profile.wandb.download import climbing_path, doubtful_reference, referred_folder
from mounts import mounted
from wandb_server import WandbServer

wandb = pytest.importorskip("wandb")

CONFIG = {
    "trainer": {"mesh": {"axes": {"model": 2, "data": -1}}, "log_dir": "/nowhere/at/all"},
    "git_commit": "abc123",
    "num_hosts": 1,
}
RUN = "loop/proj/train-1"
CAPTURE = f"{RUN.rpartition('/')[0]}/run-train-1-profiler"
SECONDS = 300


def write_capture(folder: Path, steps: int = 4) -> Path:
    space = Space("host-0")
    tpu = space.tpu(0)
    for step in range(steps):
        tpu.module("jit_step(7)", step * 100, 90, run_id=step + 1)
        tpu.op("fusion.1", step * 100, 80, category="loop fusion", scope="jit(step)/mlp/add")
    space.write(folder / "plugins/profile" / STAMP / "host-0.xplane.pb")
    return folder


@dataclass
class Loopback:
    """The server, and what a training run has logged there."""

    server: WandbServer
    environment: dict[str, str]
    capture: Path

    def expected(self) -> dict[str, Any]:
        """The summary of the capture itself, as it reads from a file."""
        return without_run(parse_summary(summarize(self.capture).to_json()))

    def downloads(self) -> int:
        return sum(line.startswith("GET /storage/artifact/") for line in self.server.requests)

    def child(self, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **changes}
        return subprocess.run(
            [sys.executable, *command],
            env={key: value for key, value in environment.items() if value},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def log(run: Any, name: str, kind: str, folder: Path, *aliases: str) -> Any:
    logged = wandb.Artifact(name, type=kind)
    logged.add_dir(str(folder))
    return run.log_artifact(logged, aliases=["latest", *aliases]).wait(timeout=SECONDS)


def start_run(run_id: str, config: dict[str, Any] | None = None) -> Any:
    settings = wandb.Settings(console="off", x_disable_stats=True, init_timeout=SECONDS)
    return wandb.init(
        entity="loop", project="proj", id=run_id, config=config or CONFIG, settings=settings
    )


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    folder = tmp_path_factory.mktemp("wandb")
    with WandbServer() as server, pytest.MonkeyPatch.context() as patch:
        environment = {**server.environment(folder), "WANDB_SILENT": "true"}
        for name in ("WANDB_ENTITY", "WANDB_PROJECT", "WANDB_MODE"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        capture = write_capture(folder / "capture")
        other = write_capture(folder / "other", steps=3)
        with start_run("train-1") as run:
            run.log({"loss": 1.0})
            run.log({"loss": 0.5})
            run.summary["throughput/device_kind"] = "TPU v6e"
            run.summary["num_devices"] = 4
            log(run, "run-train-1-profiler", "jax_profile", other, "first")
            log(run, "run-train-1-profiler", "jax_profile", capture, "best")
            log(run, "weights", "model", other)
        yield Loopback(server, environment, capture)
        wandb.teardown()


@dataclass(frozen=True)
class Result:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def summary(self) -> ProfileSummary:
        assert self.exit_code == 0, self.stderr
        return parse_summary(self.stdout)


Call = Callable[..., Result]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    def call_with(*arguments: str | Path) -> Result:
        exit_code = run_cli([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(exit_code, captured.out, captured.err)

    return call_with


def assert_one_sentence(result: Result, exit_code: int, *words: str) -> None:
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr


def without_run(summary: ProfileSummary) -> dict[str, Any]:
    return summary.model_dump(exclude={"run_metadata"})


# The server


def test_the_sdk_finds_what_it_logged(loopback: Loopback, tmp_path: Path) -> None:
    api = wandb.Api(timeout=SECONDS)
    run = api.run(RUN)
    assert run.state == "finished"
    assert {key: run.config[key] for key in CONFIG} == CONFIG
    assert (run.summary["loss"], run.summary["num_devices"]) == (0.5, 4)
    assert [(item.name, item.type, item.aliases) for item in run.logged_artifacts()] == [
        ("run-train-1-profiler:v0", "jax_profile", ["first"]),
        ("run-train-1-profiler:v1", "jax_profile", ["best", "latest"]),
        ("weights:v0", "model", ["latest"]),
    ]
    found = api.artifact(f"{CAPTURE}:latest", type="jax_profile")
    assert found.logged_by().id == "train-1"
    folder = Path(found.download(root=str(tmp_path / "down"), skip_cache=True))
    [file] = [path for path in loopback.capture.rglob("*") if path.is_file()]
    assert (folder / file.relative_to(loopback.capture)).read_bytes() == file.read_bytes()
    history = loopback.server.state.runs[0].history
    assert [json.loads(line)["loss"] for line in history] == [1.0, 0.5]
    assert loopback.server.unknown_fields == set()


# In


@pytest.mark.parametrize(
    "arguments",
    [
        ("--run-target", "train-1", "--entity", "loop", "--project", "proj"),
        ("--run-target", "train-1", "--project", "proj"),
        ("--run-target", RUN),
        ("--run-target", "URL/loop/proj/runs/train-1/overview?nw=abc"),
        ("--run-target", RUN, "--alias", "best"),
        ("--artifact", f"{CAPTURE}:v1"),
        ("--artifact", "run-train-1-profiler", "--entity", "loop", "--project", "proj"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_run_and_its_artifact_give_the_same_summary(
    loopback: Loopback, call: Call, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    url = loopback.server.url
    named = [argument.replace("URL", url) for argument in arguments]
    summary = call("summarize", *named, "--download-root", tmp_path).summary
    assert without_run(summary) == loopback.expected()
    assert summary.run_metadata.model_dump() == {
        "run_path": RUN,
        "run_id": "train-1",
        "artifact_ref": f"{CAPTURE}:v1",
        "artifact_name": "run-train-1-profiler:v1",
        "hardware_type": "TPU v6e",
        "mesh_or_topology": "data=-1,model=2",
        "git_sha": "abc123",
        "config_hash": config_hash(CONFIG),
        "num_devices": 4,
        "num_hosts": 1,
    }


def test_a_bundle_of_an_artifact_and_a_run(loopback: Loopback, call: Call, tmp_path: Path) -> None:
    """Three steps before and four after are too few for a verdict, but not for a comparison."""
    out = tmp_path / "out"
    result = call(
        *("bundle", "--before-artifact", f"{CAPTURE}:v0", "--after-run-target", RUN),
        *("--download-root", tmp_path / "root", "--output-dir", out),
    )
    assert (result.exit_code, result.stdout) == (1, f"{out}/compare_report.md\n"), result.stderr
    assert f"{CAPTURE}:v1 was downloaded to {tmp_path}/root" in result.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "inconclusive"
    for side, version in (("before", "v0"), ("after", "v1")):
        [source] = manifest[side]
        assert (source["artifact_ref"], source["run_path"]) == (f"{CAPTURE}:{version}", RUN)
        assert source["config_hash"] == config_hash(CONFIG)
    after = parse_summary((out / "after/profile_summary.json").read_text())
    assert without_run(after) == loopback.expected()
    assert after.run_metadata.hardware_type == "TPU v6e"


@pytest.mark.parametrize("alias", ["first", "v0"])
def test_an_alias_names_an_older_capture(
    loopback: Loopback, call: Call, tmp_path: Path, alias: str
) -> None:
    options = ("--alias", alias, "--download-root", tmp_path)
    by_run = call("summarize", "--run-target", RUN, *options).summary
    by_name = call("summarize", "--artifact", CAPTURE, *options).summary
    assert by_run == by_name
    assert by_run.run_metadata.artifact_ref == f"{CAPTURE}:v0"


def test_a_whole_download_is_not_repeated_and_a_damaged_one_is(
    loopback: Loopback, call: Call, tmp_path: Path
) -> None:
    arguments = ("summarize", "--run-target", RUN, "--download-root", tmp_path)
    before = loopback.downloads()
    first = call(*arguments)
    assert loopback.downloads() == before + 1
    again = call(*arguments)
    assert (again.stdout, loopback.downloads()) == (first.stdout, before + 1)
    assert "was downloaded before" in again.stderr
    [file] = tmp_path.rglob("*.xplane.pb")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    assert call(*arguments).stdout == first.stdout
    file.unlink()
    assert call(*arguments).stdout == first.stdout
    assert (loopback.downloads(), file.read_bytes()) == (before + 3, content)
    assert list(tmp_path.rglob(".*.tmp")) == []


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.long
@pytest.mark.parametrize("there", ["nothing", "a damaged one"])
def test_a_download_killed_at_each_write_is_the_old_or_the_new_one(
    loopback: Loopback, tmp_path: Path, there: str
) -> None:
    root = tmp_path / "root"
    command = ["summarize", "--artifact", f"{CAPTURE}:v1", "--download-root", str(root)]
    command += ["--output", str(tmp_path / "summary.json")]

    def ready() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for name, content in before.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)

    before: dict[str, bytes] = {}
    ready()
    assert killed.end_of(command, str(root)) == 0
    new = files_below(root)
    if there != "nothing":
        before = {name: content[:-1] + b"?" for name, content in new.items()}
    kills = 0
    while True:
        ready()
        code = killed.end_of(command, str(root), kills + 1)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
        seen = {
            name: content
            for name, content in files_below(root).items()
            if ".marin-profile-" not in name
        }
        assert seen in (before, new), kills
        assert killed.end_of(command, str(root)) == 0
        assert files_below(root) == new, kills
        assert list(root.rglob(".*.tmp")) == [], kills
    assert kills >= 8
    ready()
    assert killed.ends_of([command] * 4, str(root), times=2) == [0] * 4
    assert files_below(root) == new
    assert list(root.rglob(".*.tmp")) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "cause"),
    [("nr_inodes=5", "No space left on device"), ("ro", "Read-only file system")],
)
def test_a_download_to_a_full_or_read_only_disk_is_refused_in_one_sentence(
    loopback: Loopback, tmp_path: Path, options: str, cause: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    program = (
        "import os, sys\nfrom marin_profile.cli import run\n"
        "code = run(sys.argv[2:])\nprint(code, list(os.walk(sys.argv[1]))[-1][1:])"
    )
    download = ("summarize", "--artifact", f"{CAPTURE}:v1", "--download-root", disk)
    done = mounted(disk, options, [sys.executable, "-c", program, disk, *download])
    assert done.stdout == "2 ([], [])\n", done.stderr
    assert cause in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_download_that_breaks_off_leaves_nothing_half(
    loopback: Loopback, call: Call, tmp_path: Path
) -> None:
    stored = loopback.server.state.stored
    kept = {path: stored.pop(path) for path in list(stored) if path.startswith("artifact/")}
    try:
        result = call("summarize", "--artifact", CAPTURE, "--download-root", tmp_path)
    finally:
        stored.update(kept)
    assert_one_sentence(result, 6, f"{CAPTURE}:v1", "404")
    assert [path for path in tmp_path.rglob("*") if path.name.startswith((".", "run-"))] == []


def test_a_place_that_takes_no_download_exits_2(
    loopback: Loopback, call: Call, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = call("summarize", "--artifact", CAPTURE, "--download-root", tmp_path / "file")
    assert_one_sentence(result, 2, "cannot be stored here")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--run-target", "loop/proj/nobody"), ("The run loop/proj/nobody was not found",)),
        (("--artifact", "loop/proj/nothing"), ("artifact loop/proj/nothing:latest was not found",)),
        (("--artifact", f"{CAPTURE}:v9"), (f"{CAPTURE}:v9 was not found",)),
        (("--artifact", "loop/nowhere/a:v0"), ("'nowhere' not found",)),
        (("--artifact", "loop/proj/weights:v0"), ("of type 'model'", "--run-target")),
        (("--run-target", RUN, "--alias", "gold"), ("no jax_profile artifact with alias gold",)),
    ],
    ids=lambda value: " ".join(value),
)
def test_what_is_not_there_exits_3(
    loopback: Loopback, call: Call, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_one_sentence(call("summarize", *arguments), 3, *words)


def test_without_an_artifact_the_profiler_folder_of_the_config_is_read(
    loopback: Loopback, call: Call, tmp_path: Path
) -> None:
    write_capture(tmp_path / "logs/folder-run/profiler")
    start_run("folder-run", {"trainer": {"log_dir": str(tmp_path / "logs")}}).finish()
    refused = call("summarize", "--run-target", "loop/proj/folder-run")
    assert_one_sentence(refused, 3, f"{tmp_path}/logs/folder-run/profiler", "--trust-references")
    result = call("summarize", "--run-target", "loop/proj/folder-run", "--trust-references")
    assert "its profiler folder" in result.stderr
    assert without_run(result.summary) == loopback.expected()
    assert result.summary.run_metadata.run_id == "folder-run"


def test_a_run_without_any_profile_names_the_places_searched(
    loopback: Loopback, call: Call
) -> None:
    start_run("bare").finish()
    result = call("summarize", "--run-target", "loop/proj/bare")
    assert_one_sentence(result, 3, "no jax_profile artifact", "/nowhere/at/all", "--profile-dir")


def test_an_artifact_of_references_is_read_where_they_lie(
    loopback: Loopback, call: Call, tmp_path: Path
) -> None:
    folder = write_capture(tmp_path / "kept")
    with start_run("referring") as run:
        reference = wandb.Artifact("run-referring-profiler", type="jax_profile")
        reference.add_reference(f"file://{folder}")
        run.log_artifact(reference).wait(timeout=SECONDS)
    before = loopback.downloads()
    refused = call("summarize", "--run-target", "loop/proj/referring")
    assert_one_sentence(refused, 2, f"refers to file://{folder}", "--trust-references")
    result = call("summarize", "--run-target", "loop/proj/referring", "--trust-references")
    assert "read where it lies" in result.stderr
    assert without_run(result.summary) == loopback.expected()
    assert loopback.downloads() == before


@pytest.mark.parametrize("verb", ["summarize", "publish"])
@pytest.mark.parametrize("trouble", ["down", "silent", "no login"])
def test_without_server_or_login_exits_6_soon(
    loopback: Loopback, tmp_path: Path, verb: str, trouble: str
) -> None:
    path = tmp_path / "summary.json"
    path.write_text(build_summary().to_json())
    options = {
        "summarize": ("--run-target", RUN),
        "publish": ("--summary", str(path), "--project", "proj"),
    }
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = {"down": "127.0.0.1:9", "silent": f"127.0.0.1:{silent.getsockname()[1]}"}
        changes = {"WANDB_API_KEY": ""}
        if trouble in address:
            changes = {"WANDB_BASE_URL": f"http://{address[trouble]}", "WANDB_HTTP_TIMEOUT": "3"}
        started = time.monotonic()
        done = loopback.child("-m", "marin_profile", verb, *options[verb], **changes)
    words = "run 'wandb login'" if trouble == "no login" else "; check network, server and login."
    assert_one_sentence(Result(done.returncode, done.stdout, done.stderr), 6, words)
    assert time.monotonic() - started < SECONDS / 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--artifact", "a", "--run-target", "b"),
        ("--profile-dir", "a", "--run-target", "b"),
        ("--profile-dir", "a", "--alias", "b"),
        ("--run-target", "no-project"),
    ],
    ids=" ".join,
)
def test_usage(call: Call, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    assert_one_sentence(call("summarize", *arguments), 2)


# Out


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A summary of the training run, and a report beside it."""
    summary = build_summary()
    run = summary.run_metadata.model_copy(
        update={"run_id": "pub", "run_path": "loop/proj/pub", "artifact_ref": f"{CAPTURE}:v1"}
    )
    path = tmp_path / "s.json"
    path.write_text(summary.model_copy(update={"run_metadata": run}).to_json())
    (tmp_path / "r.md").write_text("# Report\n")
    return path


def test_publish_and_read_back(
    loopback: Loopback, call: Call, published: Path, tmp_path: Path
) -> None:
    options = ("--summary", published, "--report", published.with_name("r.md"), "--no-redact")
    first = json.loads(call("publish", *options, "--alias", "canary").stdout)
    assert (first["status"], first["aliases"]) == ("published", ["latest", "canary"])
    assert first["artifact_ref"] == "loop/proj/profile-summary-pub:v0"
    name = "loop/proj/profile-summary-pub"
    found = wandb.Api(timeout=SECONDS).artifact(f"{name}:canary", type="profile_summary")
    expected = artifacts.artifact_metadata(load_summary(published))
    assert found.metadata == json.loads(json.dumps(expected))
    folder = Path(found.download(root=str(tmp_path / "down"), skip_cache=True))
    assert (folder / "profile_summary.json").read_bytes() == published.read_bytes()
    assert (folder / "profile_report.md").read_text() == "# Report\n"

    # The next one takes the alias, and the run stands for its published summary.
    published.write_text(published.read_text().replace('"host0"', '"host1"'))
    second = json.loads(call("publish", *options, "--alias", "canary").stdout)
    assert second["artifact_ref"] == f"{name}:v1"
    start_run("pub").finish()
    for source in (("--artifact", name), ("--run-target", "loop/proj/pub", "--alias", "canary")):
        result = call("summarize", *source, "--download-root", tmp_path / "root")
        assert without_run(result.summary) == without_run(load_summary(published))
        assert "taken as it was published" in result.stderr
    assert result.summary.run_metadata.artifact_ref == f"{CAPTURE}:v1"
    assert result.summary.run_metadata.git_sha == "abc123"


def test_what_is_published_is_redacted(
    loopback: Loopback, call: Call, published: Path, tmp_path: Path
) -> None:
    named = published.read_text().replace('"host0"', '"tpu-vm-zelda"')
    published.write_text(
        named.replace('"source_file": null', '"source_file": "/home/zelda/m.py:7"')
    )
    published.with_name("r.md").write_text("# Report of tpu-vm-zelda\n")
    assert "/home/zelda/" in published.read_text()
    options = ("--summary", published, "--report", published.with_name("r.md"))
    told = json.loads(call("publish", *options, "--artifact-name", "masked").stdout)
    assert told["redacted"] is True
    found = wandb.Api(timeout=SECONDS).artifact("loop/proj/masked:latest", type="profile_summary")
    folder = Path(found.download(root=str(tmp_path / "down"), skip_cache=True))
    (host,) = load_summary(str(folder / "profile_summary.json")).hosts
    assert len(host.host) == len("tpu-vm-zelda")
    assert (folder / "profile_report.md").read_text() == f"# Report of {host.host}\n"
    for file in folder.iterdir():
        assert "zelda" not in file.read_text()


def test_a_dry_run_asks_nobody_and_needs_no_sdk(loopback: Loopback, published: Path) -> None:
    before = len(loopback.server.requests)
    code = (
        "import sys; sys.modules['wandb'] = None\n"
        "from marin_profile.cli import main; main(sys.argv[1:])"
    )
    summary = ("publish", "--summary", str(published))
    done = loopback.child("-c", code, *summary, "--dry-run")
    planned = json.loads(done.stdout)
    assert (planned["status"], planned["artifact_name"]) == ("dry_run", "profile-summary-pub")
    assert (planned["entity"], planned["project"]) == ("loop", "proj")
    assert planned["files"] == {"profile_summary.json": str(published)}
    assert planned["metadata"]["source_artifact_ref"] == f"{CAPTURE}:v1"
    assert len(loopback.server.requests) == before
    for command in (summary, ("summarize", "--run-target", RUN)):
        done = loopback.child("-c", code, *command)
        result = Result(done.returncode, done.stdout, done.stderr)
        assert_one_sentence(result, 2, "pip install 'marin-profile[wandb]'")


def test_offline_is_kept_and_synced_later(loopback: Loopback, published: Path) -> None:
    before = len(loopback.server.requests)
    command = ("-m", "marin_profile", "publish", "--summary", str(published))
    done = loopback.child(*command, "--artifact-name", "later", WANDB_MODE="offline")
    outcome = json.loads(done.stdout)
    assert (done.returncode, outcome["status"]) == (0, "offline")
    assert len(loopback.server.requests) == before
    program, verb, folder = outcome["sync_with"].split(maxsplit=2)
    synced = loopback.child("-m", program, verb, folder)
    assert synced.returncode == 0, synced.stderr
    found = wandb.Api(timeout=SECONDS).artifact("loop/proj/later:latest", type="profile_summary")
    assert found.metadata["run_id"] == "pub"


def test_an_upload_that_is_refused_exits_6(loopback: Loopback, call: Call, published: Path) -> None:
    loopback.server.refuse.add("CreateArtifact")
    try:
        result = call("publish", "--summary", published, "--artifact-name", "refused")
    finally:
        loopback.server.refuse.clear()
    assert_one_sentence(result, 6, "The artifact refused", "CreateArtifact is refused")


def test_publish_where_wandb_is_switched_off_exits_2(loopback: Loopback, published: Path) -> None:
    command = ("-m", "marin_profile", "publish", "--summary", str(published))
    done = loopback.child(*command, WANDB_MODE="disabled")
    assert_one_sentence(Result(done.returncode, done.stdout, done.stderr), 2, "switched off")


@pytest.mark.parametrize("arguments", [(), ("--summary", "SUMMARY")], ids=["nothing", "no project"])
def test_publish_usage(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    path = tmp_path / "s.json"
    path.write_text(build_summary().to_json())
    named = [str(path) if argument == "SUMMARY" else argument for argument in arguments]
    assert_one_sentence(call("publish", *named), 2)


# Names, without a server


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e/p/abc", ("e", "p", "abc", None)),
        ("e/p/runs/abc", ("e", "p", "abc", None)),
        ("p/abc", ("E", "p", "abc", None)),
        (" abc ", ("E", "P", "abc", None)),
        ("https://wandb.ai/e/p/runs/abc?nw=x#y", ("e", "p", "abc", "https://api.wandb.ai")),
        ("https://forge.coreweave.com/wandb/e/p/runs/a", ("e", "p", "a", "https://api.wandb.ai")),
        ("https://w.io:8/x/e/p/runs/abc/logs", ("e", "p", "abc", "https://w.io:8/x")),
        ("http://w.io/e/my%20p/runs/abc", ("e", "my p", "abc", "http://w.io")),
    ],
)
def test_run_targets(text: str, expected: tuple[str | None, ...]) -> None:
    target = names.run_target_of(text, entity="E", project="P")
    assert (target.entity, target.project, target.name, target.base_url) == expected


@pytest.mark.parametrize(
    ("configured", "asked", "overrides"),
    [
        ("https://api.forge.coreweave.com", "https://api.wandb.ai", None),
        ("https://w.io", "https://api.wandb.ai", {"base_url": "https://api.wandb.ai"}),
        ("https://api.wandb.ai", "https://w.io", {"base_url": "https://w.io"}),
        ("https://w.io", None, None),
    ],
)
def test_which_server_is_asked(
    monkeypatch: pytest.MonkeyPatch, configured: str, asked: str | None, overrides: object
) -> None:
    sdk = SimpleNamespace(
        setup=lambda: SimpleNamespace(settings=SimpleNamespace(base_url=configured)),
        Api=lambda overrides, timeout: overrides,
    )
    monkeypatch.setattr(session, "load_wandb", lambda: sdk)
    assert session.connect(asked) == overrides


@pytest.mark.parametrize(
    "text",
    ["", "a/b/c/d/e", "https://wandb.ai/e/p", "https://w.io/runs/x", "https://w.io/e/p/runs"],
)
def test_what_is_no_run_target(text: str) -> None:
    with pytest.raises(UsageError):
        names.run_target_of(text, entity="E", project="P")


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", "E/P/a:best"), ("a:v3", "E/P/a:v3"), ("p/a:v3", "E/p/a:v3"), ("e/p/a", "e/p/a:best")],
)
def test_artifact_targets(text: str, path: str) -> None:
    found = names.artifact_target(text, entity="E", project="P", alias="best")
    assert found.path == path


@pytest.mark.parametrize("text", ["", ":v1", "a:", "e//a", "x/e/p/a"])
def test_what_is_no_artifact(text: str) -> None:
    with pytest.raises(UsageError):
        names.artifact_target(text, entity="E", project="P")


@pytest.mark.parametrize(
    ("references", "folder"),
    [
        ({"x/a": "gs://b/run/x/a", "x/b": "gs://b/run/x/b"}, "gs://b/run"),
        ({"x/h.xplane.pb": "gs://b/run/x/h.xplane.pb"}, "gs://b/run"),
        ({"run": "gs://b/run"}, "gs://b/run"),
        ({"profiler": "gs://b/run/"}, "gs://b/run"),
        ({"x": None, "y": "gs://b/y"}, None),
        ({"x": "gs://b/x", "y": "gs://c/y"}, None),
        ({}, None),
    ],
)
def test_referred_folder(references: dict[str, str | None], folder: str | None) -> None:
    assert referred_folder(references) == folder


def test_a_long_run_id_is_shortened_so_that_no_two_are_alike() -> None:
    for make in (artifacts.summary_artifact_name, artifacts.capture_artifact_name):
        room = 128 - len(make(""))
        assert make("r" * room).count("r" * room) == 1
        assert len(make("r" * room)) == 128
        longer = [make("r" * room + end) for end in ("a", "b")]
        assert longer[0] != longer[1]
        assert [len(name) for name in longer] == [128, 128]
        assert longer[0] == make("r" * room + "a")


def test_names_hold_what_w_and_b_allows() -> None:
    assert artifacts.summary_artifact_name("a b/ü") == "profile-summary-a-b--"


def test_metadata_of_a_summary() -> None:
    metadata = artifacts.artifact_metadata(build_summary())
    shares = [value for name, value in metadata.items() if name.endswith("_share")]
    assert sum(shares) == pytest.approx(1)
    assert (metadata["top_pre_gap_op"], metadata["top_pre_gap_total"]) == ("copy.1", 800.0)
    assert (metadata["run_id"], metadata["num_hot_ops"]) == ("run7", len(build_summary().hot_ops))
    assert artifacts.artifact_metadata(build_summary(gap_before_ops=[]))["top_pre_gap_op"] is None


def test_metadata_give_typical_and_mean_and_the_worst_cause() -> None:
    names = ("step_typical", "step_mean", "num_outlier_steps", "top_outlier_cause")
    names += ("top_outlier_cause_name", "top_outlier_excess")
    uneven = artifacts.artifact_metadata(build_summary(step_time=uneven_steps()))
    assert [uneven[name] for name in names] == [
        1000.0, 1500.0, 1, "host_event", "save_checkpoint", 2000.0,
    ]  # fmt: skip
    even = artifacts.artifact_metadata(build_summary())
    assert [even[name] for name in names] == [1000.0, 1000.0, 0, None, None, None]


@pytest.mark.parametrize("store", ["gs", "s3", "az", "abfs", "S3"])
def test_references_to_object_stores_are_read(store: str) -> None:
    assert doubtful_reference([None, f"{store}://bucket/run/a.xplane.pb"]) is None


@pytest.mark.parametrize(
    "reference",
    [
        "file:///etc",
        "FILE:///etc",
        "local:///etc",
        "/etc",
        "../..",
        "https://host/a",
        "",
        "memory://a",
        "gs://bucket/a::file:///etc",
        "zip://a::gs://bucket/b.zip",
        "gs:/etc",
    ],
)
def test_references_elsewhere_are_doubtful(reference: str) -> None:
    """Also one among many of a sound artifact."""
    assert doubtful_reference(["gs://bucket/a", None, reference]) == reference


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/a", "..", "a\\..\\b", "C:\\a", "a\0"])
def test_paths_that_lead_out_of_an_artifact_are_found(path: str) -> None:
    assert climbing_path(["plugins/profile/a.xplane.pb", "..a/b..", path]) == path
    assert climbing_path(["plugins/profile/a.xplane.pb", "..a/b..", "a b/c:d"]) is None
