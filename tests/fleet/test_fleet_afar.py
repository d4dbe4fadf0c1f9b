"""A fleet of 200 captures in an object store, read by workers of Dask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from fleet_captures import write_fleet
from marin_profile.cli import run
from s3_server import Store, s3_store, upload

RUNS, BROKEN, SLOW = 200, 123, (7, 60, 131)
TRACE = ".xplane.pb"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with s3_store(monkeypatch) as store:
        yield store


def step_of(number: int) -> float:
    """Microseconds, as `write_fleet` says."""
    return 1200.0 if number in SLOW else 1000.0 + number % 4


@pytest.mark.long
def test_two_hundred_captures_by_dask(s3, tmp_path, capsys):
    """One of them broken, three behind a slow line. The second time one more is there, and only
    that and what is broken is fetched."""
    local = write_fleet(tmp_path / "fleet", runs=RUNS, slow=SLOW, broken=(BROKEN,))
    upload(local, "s3://bucket/fleet")
    s3.slow = {f"run-{number:02}/": 0.2 for number in (11, 77, 150)}
    output, table = tmp_path / "fleet.json", tmp_path / "fleet.parquet"

    def fleet() -> int:
        s3.paths.clear()
        crew = ["--scheduler", "local", "--jobs", "2"]
        return run(["fleet", "s3://bucket/fleet", *crew, "-o", str(output), "--table", str(table)])

    assert fleet() == 1
    assert "1 capture could not be summarised" in capsys.readouterr().err
    assert len(s3.fetched(TRACE)) == RUNS
    found = json.loads(output.read_text())
    assert [row["name"][:7].rstrip("/") for row in found["broken"]] == [f"run-{BROKEN}"]
    slow = sorted(row["name"].partition("/")[0] for row in found["outliers"])
    assert slow == sorted(f"run-{number:02}" for number in SLOW)
    sql = "SELECT split_part(name, '/', 1), step_typical, hosts[1] FROM read_parquet(?)"
    rows = duckdb.execute(f"{sql} WHERE problem = ''", [str(table)]).fetchall()
    assert sorted(rows) == sorted(
        (f"run-{number:02}", step_of(number), f"h{number % 3}")
        for number in range(RUNS)
        if number != BROKEN
    )

    write_fleet(tmp_path / "more", runs=RUNS + 1, slow=SLOW, broken=(BROKEN,))
    upload(tmp_path / "more" / f"run-{RUNS}", f"s3://bucket/fleet/run-{RUNS}")
    assert fleet() == 1
    assert [path.split("/")[3] for path in s3.fetched(TRACE)] == [f"run-{BROKEN}", f"run-{RUNS}"]
    again = json.loads(output.read_text())
    assert [row for row in again["rows"] if f"run-{RUNS}" not in row["name"]] == found["rows"]
    assert again["broken"] == found["broken"]


def test_a_list_in_a_store_names_urls(s3, tmp_path, capsys):
    local = write_fleet(tmp_path / "fleet", runs=3, slow=(2,), broken=())
    upload(local, "s3://bucket/fleet")
    text = tmp_path / "runs.txt"
    text.write_text("s3://bucket/fleet/run-00\ns3://bucket/fleet/run-02 # slow\ns3://bucket/no\n")
    upload(text, "s3://bucket/runs.txt")
    for target in (str(text), "s3://bucket/runs.txt"):
        assert run(["fleet", target, "-o", str(tmp_path / "fleet.json")]) == 1
        found = json.loads((tmp_path / "fleet.json").read_text())
        assert [row["step_typical"] for row in found["rows"]] == [1000.0, 1200.0]
        assert [row["name"] for row in found["broken"]] == ["s3://bucket/no"]
