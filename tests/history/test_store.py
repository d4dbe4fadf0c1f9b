"""Records come back from files and folders: whole, in order, whoever was killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from history_writer import record, write
from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.history import HistoryRecord, append, read
from marin_profile.history.store import object_name

WHEN = "2026-01-02T03:04:05.000000Z"


def run_ids(target: str) -> list[str | None]:
    return [record.run_id for record in read(target).records]


# Many writers, some killed


def _append_and_kill(target: str, folder: Path, writers: int, count: int) -> tuple[set[str], int]:
    """Run the writers, kill every third in the middle; what was acknowledged, and how many died."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["history_writer"])
    logs = [folder / f"{writer}.log" for writer in range(writers)]
    processes: list[Any] = [
        context.Process(target=write, args=(target, str(log), writer, count))
        for writer, log in enumerate(logs)
    ]
    for process in processes:
        process.start()
    victims = set(range(0, writers, 3))
    deadline = time.monotonic() + 600
    waiting = dict.fromkeys(victims)
    while waiting and time.monotonic() < deadline:
        for writer in list(waiting):
            # Each at a different time, none before it has written something.
            enough = 3 + 2 * writer % (count // 2)
            if logs[writer].exists() and logs[writer].read_bytes().count(b"\n") >= enough:
                os.kill(processes[writer].pid, signal.SIGKILL)
                del waiting[writer]
    assert not waiting
    for process in processes:
        process.join(120)
    killed = {at for at, process in enumerate(processes) if process.exitcode == -signal.SIGKILL}
    assert killed <= victims
    assert all(processes[at].exitcode == 0 for at in range(writers) if at not in killed)
    acknowledged = [line for log in logs for line in log.read_text().splitlines()]
    assert len(acknowledged) == len(set(acknowledged)) >= (writers - len(killed)) * count
    return set(acknowledged), len(killed)


@pytest.mark.parametrize(
    ("name", "writers", "count"), [("history.jsonl", 16, 100), ("history/", 8, 40)]
)
def test_every_acknowledged_record_is_there(
    tmp_path: Path, name: str, writers: int, count: int
) -> None:
    target = f"{tmp_path}/{name}"
    acknowledged, killed = _append_and_kill(target, tmp_path, writers, count)
    assert killed >= writers // 4
    history = read(target)
    found = {record.run_id: record for record in history.records}
    assert acknowledged <= set(found)
    # A victim may have written one record more than it could acknowledge, or torn it.
    assert len(found) - len(acknowledged) + len(history.problems) <= killed
    for run_id, one in found.items():
        writer, number = str(run_id).split("/")
        assert one == record(int(writer), int(number))


# A file


def test_a_torn_last_line_is_reported_and_gives_way_to_the_next_record(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a/history.jsonl"
    append(str(path), HistoryRecord(run_id="first"))
    path.write_bytes(path.read_bytes() + HistoryRecord(run_id="torn").to_line()[:-9])
    history = read(str(path))
    problem = history.problems[0].rpartition(": ")[2].rstrip(".")
    assert problem.startswith("it is torn or damaged, not JSON (line 1, ")
    assert [record.run_id for record in history.records] == ["first"]
    assert history.problems == (
        f"{path}, line 2 (the last; its writer was stopped) is left out: {problem}.",
    )
    append(str(path), HistoryRecord(run_id="third"))
    assert sorted(map(str, run_ids(str(path)))) == ["first", "third"]
    assert read(str(path)).problems == ()


def test_what_somebody_wrote_at_the_end_stays_and_the_next_record_is_not_glued_to_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"my notes")
    append(str(path), HistoryRecord(run_id="a"))
    assert run_ids(str(path)) == ["a"]
    assert path.read_bytes().startswith(b"my notes\n")


def test_a_line_that_lacks_only_its_end_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(HistoryRecord(run_id="a").to_line())
    append(str(path), HistoryRecord(run_id="b"))
    assert sorted(map(str, run_ids(str(path)))) == ["a", "b"]
    assert read(str(path)).problems == ()


def test_a_write_that_fails_leaves_no_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.jsonl"
    append(str(path), HistoryRecord(run_id="a"))
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"history\.jsonl cannot be appended to: No space left"):
        append(str(path), HistoryRecord(run_id="b"))
    assert path.read_bytes() == before


def test_lines_that_are_no_record_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines = [
        b"[1]",
        b'{"schema_version": "profile_summary.v1"}',
        b'{"schema_version": "profile_history.v1", "median": "fast"}',
        b'{"schema_version": "profile_history.v1", "median": Infinity}',
        b'{"schema_version": "profile_history.v1", "median": "Infinity"}',
        b'{"schema_version": "profile_history.v1", "median": 1e999}',
        b'{"schema_version": "profile_history.v1", "median": 1e200}',
        b'{"schema_version": "profile_history.v1", "steps": [1.0, "2.0"]}',
        b'{"schema_version": "profile_history.v1", "shares": {"compute": NaN}}',
        b'{"schema_version": "profile_history.v1", "label": "' + b"x" * 10_000_001 + b'"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"",
        HistoryRecord(run_id="good").to_line() + b"\r",
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    history = read(str(path))
    assert [record.run_id for record in history.records] == ["good"]
    places = [problem.split(" is left out: ")[0] for problem in history.problems]
    assert places == [f"{path}, line {number}" for number in range(1, 13)]
    assert history.problems[1].endswith(
        "its schema_version is 'profile_summary.v1', not 'profile_history.v1'."
    )
    assert "median" in history.problems[2]


def test_a_file_that_an_editor_replaced_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    append(str(path), HistoryRecord(run_id="a"))
    (tmp_path / "new").write_bytes(path.read_bytes())
    os.replace(tmp_path / "new", path)
    append(str(path), HistoryRecord(run_id="b"))
    assert len(read(str(path)).records) == 2


# A folder, a URL


@pytest.mark.parametrize("slash", ["/", ""])
def test_a_folder_holds_one_object_per_record(tmp_path: Path, slash: str) -> None:
    folder = tmp_path / "history"
    if not slash:
        folder.mkdir()
    first = HistoryRecord(time=WHEN, run_id="a")
    append(f"{folder}{slash}", first)
    append(f"{folder}{slash}", first)
    append(f"{folder}{slash}", HistoryRecord(time=WHEN, run_id="b"))
    name = f"20260102T030405.000000Z-{first.content_hash[:16]}.json"
    assert object_name(first) == name
    assert (folder / name).read_bytes() == first.to_line() + b"\n"
    assert len(os.listdir(folder)) == 2
    (folder / ".left.json.1.tmp").write_text("{")
    (folder / "notes.txt").write_text("mine")
    (folder / "bad.json").write_text("{")
    history = read(f"{folder}{slash}")
    assert {record.run_id for record in history.records} == {"a", "b"}
    assert history.problems == (
        f"{folder}/bad.json is left out: it is torn or damaged, not JSON (line 1, column 2).",
    )


@pytest.mark.parametrize("slash", ["/", ""])
def test_a_remote_folder(slash: str) -> None:
    target = f"memory://history_store{slash or '2'}"
    with pytest.raises(NotFoundError):
        read(target)
    assert read(target, missing_ok=True).records == ()
    for run_id in "abc":
        append(target, HistoryRecord(time=WHEN, run_id=run_id))
    assert {record.run_id for record in read(target).records} == {"a", "b", "c"}


def test_a_remote_file_is_read_but_not_appended_to() -> None:
    from marin_profile.base.storage import write_file

    target = "memory://history_file/h.jsonl"
    write_file(target, HistoryRecord(run_id="a").to_line() + b"\n")
    assert run_ids(target) == ["a"]
    with pytest.raises(UsageError, match="cannot be appended to"):
        append(target, HistoryRecord(run_id="b"))


# Order, errors


def test_order_is_by_time_then_content_wherever_the_records_lie(tmp_path: Path) -> None:
    early = HistoryRecord(time="2026-01-01T00:00:00.000000Z", run_id="early")
    same = [HistoryRecord(time=WHEN, run_id=run_id) for run_id in "abcdef"]
    late = HistoryRecord(time="2026-02-01T00:00:00.000000Z", run_id="late")
    expected = [early, *sorted(same, key=lambda one: one.content_hash), late]
    for name, records in (
        ("h.jsonl", [late, *same, early, late]),
        ("h/", [*same[::-1], early, late]),
    ):
        for one in records:
            append(f"{tmp_path}/{name}", one)
        assert list(read(f"{tmp_path}/{name}").records) == expected


def test_what_is_not_there_and_what_cannot_be(tmp_path: Path) -> None:
    for name in ("no.jsonl", "no/"):
        with pytest.raises(NotFoundError, match="does not exist"):
            read(f"{tmp_path}/{name}")
        assert read(f"{tmp_path}/{name}", missing_ok=True).records == ()
    (tmp_path / "file").write_text("")
    assert read(f"{tmp_path}/file").records == ()
    for name in ("file/below.jsonl", "file/"):
        with pytest.raises(UsageError, match="cannot be"):
            append(f"{tmp_path}/{name}", HistoryRecord())
        with pytest.raises(NotFoundError):
            read(f"{tmp_path}/file/below", missing_ok=True)


# The older tool


def older_line(**changes: Any) -> dict[str, Any]:
    """As `marin.profiling` 0.x writes it: `track --history`."""
    source = {"source_path": "t.json.gz", "run_path": None, "run_id": "old", "artifact_ref": None}
    step_time = {
        "steady_state_median_before": 1000.0,
        "steady_state_median_after": 1100.0,
        "steady_state_median_delta": 100.0,
        "steady_state_p90_before": 1010.0,
        "steady_state_p90_after": 1200.0,
        "steady_state_p90_delta": 190.0,
    }
    return {
        "recorded_at_utc": "2025-12-01T10:00:00Z",
        "label": "nightly",
        "before": source | {"run_id": "older"},
        "after": source,
        "assessment": {
            "status": "fail",
            "failures": ["Steady-state median step time regressed by 10.00%."],
            "warnings": [],
            "metrics": {"steady_state_median_regression_pct": 10.0},
            "comparison": {
                "step_time": step_time,
                "provenance_checks": {"after_trace_sha256": "ab" * 32},
            },
        },
    } | changes


def test_lines_of_the_older_tool(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    bare = older_line(recorded_at_utc=None, label=7, assessment={"status": "pass"})
    path.write_text("".join(json.dumps(line) + "\n" for line in (older_line(), bare)))
    append(str(path), HistoryRecord(time=WHEN, run_id="new"))
    history = read(str(path))
    assert history.problems == ()
    empty, old, new = history.records
    assert old == HistoryRecord(
        time="2025-12-01T10:00:00.000000Z",
        time_source="recorded",
        recorded_at_utc="2025-12-01T10:00:00.000000Z",
        label="nightly",
        run_id="old",
        source_path="t.json.gz",
        trace_sha256="ab" * 32,
        median=1100.0,
        p90=1200.0,
        status="fail",
    )
    assert (old.time_basis, old.configuration.is_known) == ("unknown", False)
    assert (empty.median, empty.label, empty.time_source) == (None, None, "unknown")
    assert new.run_id == "new"
