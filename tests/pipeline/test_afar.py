"""Captures in stores that fail come to the same bytes as local ones, or to an error with exit 6."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders_capture import context, leave_capture, space
from faulty_files import Request, faulty, url
from marin_profile import summarize
from marin_profile.base import remote, remote_stream
from marin_profile.base.errors import NotFoundError, RemoteError
from marin_profile.base.retries import Retries
from marin_profile.base.storage import copies_folder
from marin_profile.cache import cached_summary
from marin_profile.capture.sources import resolve_path
from marin_profile.cli import run
from s3_server import Store as S3Store
from s3_server import s3_store, upload
from web_server import web_server

FOLDER = "plugins/profile/2026_01_02_03_04_05"


@pytest.fixture(autouse=True)
def many_requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Blocks so small that files take many, no waits, and nothing that is kept already."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_stream, "SMALLEST", 64)
    monkeypatch.setattr(remote_stream, "LARGEST", 256)
    monkeypatch.setattr(remote, "RETRIES", Retries(sleep=lambda _: None))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Two hosts in one session, and a session of another process taken at the same time."""
    root = tmp_path / "run"
    session = leave_capture(root / "process_0", host="h0", note=context(0, 2))
    space("h1", step_us=70).write(session / "h1.xplane.pb")
    leave_capture(root / "process_1", host="h2", step_us=60, note=context(1, 2, after_seconds=0.1))
    return root


@pytest.mark.parametrize("seed", range(4))
def test_five_percent_of_requests_may_fail(capture, seed):
    with faulty(capture.parent, share=0.05, draw=random.Random(seed)) as store:
        assert summarize(url("run")).to_json() == summarize(capture).to_json()
    assert store.failed > 0
    assert len(store.requests) < 400


def test_only_the_hosts_that_are_asked_for_are_fetched(capture):
    with faulty(capture.parent) as store:
        found = summarize(url("run"), hosts=["h1"])
        assert found.to_json() == summarize(capture, hosts=["h1"]).to_json()
    fetched = {path.rpartition("/")[2] for path in store.asked("range")}
    assert {name for name in fetched if name.endswith(".pb")} == {"h1.xplane.pb"}


def test_the_second_time_only_facts_are_asked_for(capture, tmp_path):
    with faulty(capture.parent) as store:
        found, _ = resolve_path(url("run"))
        folder = tmp_path / "summaries"
        summaries = []
        for _ in range(2):
            store.requests.clear()
            summaries.append(
                cached_summary(found, warmup_steps=1, folder=folder, about_to_read=lambda: None)
            )
        assert summaries[0].to_json() == summaries[1].to_json()
        assert store.asked("range") == []
        # Another number of warm-up steps is another summary, of the same files.
        cached_summary(found, warmup_steps=2, folder=folder, about_to_read=lambda: None)
        assert not any(path.endswith(".pb") for path in store.asked("range"))
    assert len(list(copies_folder().iterdir())) == 3


def test_a_store_that_is_gone_exits_with_6(capture, capsys):
    with faulty(capture.parent) as store:
        store.is_gone = True
        assert run(["summarize", "--profile-dir", url("run")]) == 6
    assert capsys.readouterr().err == (
        "error: faulty://bucket/run cannot be reached: Connection reset by peer (try 5 of 5); try "
        "again later.\n"
    )


@pytest.mark.parametrize("what", ["context", "h2.xplane"])
def test_a_store_that_goes_in_the_middle_says_nothing_less(capture, what):
    """Neither a context, nor a profile's window, nor a host is left out in silence."""
    with faulty(capture.parent) as store:
        store.hook = lambda request: setattr(store, "is_gone", what in request[1])
        with pytest.raises(RemoteError, match=rf"{what}.* cannot be reached: .* \(try 5 of 5\)"):
            summarize(url("run"))


def test_a_file_that_is_gone_when_its_turn_comes(capture):
    with faulty(capture.parent) as store:

        def go(_: Request) -> None:
            if any("h0.xplane" in path for path in store.asked("info")):
                (capture / "process_1" / FOLDER / "h2.xplane.pb").unlink(missing_ok=True)

        store.hook = go
        with pytest.raises(NotFoundError, match=r"h2\.xplane\.pb does not exist"):
            summarize(url("run"))


# On the wire


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    with s3_store(monkeypatch) as store:
        yield store


def test_an_object_store_that_fails(capture, s3):
    upload(capture, "s3://bucket/run")
    s3.share, s3.failed, s3.paths = 0.05, 0, []
    assert summarize("s3://bucket/run").to_json() == summarize(capture).to_json()
    assert s3.failed > 0
    assert len(s3.paths) < 400
    s3.share = 0
    with pytest.raises(NotFoundError, match="s3://bucket/no does not exist"):
        summarize("s3://bucket/no")
    with pytest.raises(NotFoundError, match="s3://none/run does not exist"):
        summarize("s3://none/run")


def test_an_object_store_that_is_gone(s3, capsys):
    s3.share = 1
    assert run(["summarize", "--profile-dir", "s3://bucket/run"]) == 6
    told = capsys.readouterr().err
    assert told.startswith("error: s3://bucket/run cannot be reached: ")
    assert told.endswith("(try 5 of 5); try again later.\n")


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize("share", [0, 0.05])
def test_a_web_server(capture, parts, share):
    with web_server(capture.parent, parts=parts, share=share) as server:
        address = f"{server.url}/run"
        assert summarize(address).to_json() == summarize(capture).to_json()
        one = f"process_1/{FOLDER}/h2.xplane.pb"
        assert summarize(f"{address}/{one}").to_json() == summarize(capture / one).to_json()
        server.share = 0
        with pytest.raises(NotFoundError, match="/no does not exist"):
            summarize(f"{server.url}/no")
        with pytest.raises(NotFoundError, match="No profile in"):
            summarize(f"{address}/process_1/{FOLDER}/h2.xplane.pb/")
    assert bool(server.failed) == bool(share)
    assert len(server.paths) < 1000


def test_what_signs_an_address_is_in_no_summary(capture):
    file = f"run/process_1/{FOLDER}/h2.xplane.pb"
    with web_server(capture.parent) as server:
        found = summarize(f"{server.url}/{file}?X-Signature=word")
        assert found.to_json() == summarize(capture.parent / file).to_json()
        assert run(["summarize", "--xplane-file", f"{server.url}/{file}?X-Signature=word"]) == 0


def test_a_web_server_that_is_gone(capture, capsys):
    with web_server(capture.parent) as server:
        address = server.url
    assert run(["summarize", "--profile-dir", f"{address}/run"]) == 6
    told = capsys.readouterr().err
    assert told.startswith(f"error: {address}/run cannot be reached: ")
    assert told.endswith("(try 5 of 5); try again later.\n")


def test_readers_beside_each_other_fetch_and_fail_alike(capture, capsys):
    """Hosts read by other processes, whose blocks have their usual size."""
    with web_server(capture.parent) as server:
        address = f"{server.url}/run"
        assert run(["summarize", "--profile-dir", address, "--jobs", "2"]) == 0
        assert capsys.readouterr().out == summarize(capture).to_json()
        fetched = [path for path in server.paths if path.startswith("GET") and ".pb" in path]
        assert run(["summarize", "--profile-dir", address, "--jobs", "2"]) == 0
        again = [path for path in server.paths if path.startswith("GET") and ".pb" in path]
        assert again == fetched
        server.refused = "h2.xplane.pb"
        assert run(["summarize", "--profile-dir", address, "--jobs", "2", "--no-cache"]) == 6
    assert "h2.xplane.pb cannot be read: 403" in capsys.readouterr().err
