"""A fleet is read once, by whomever: who is slow is named, and so is what is broken."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from crew_tasks import begin
from fleet_captures import hours, write_fleet
from marin_profile.base.crew import Alone, Crew, Processes
from marin_profile.base.errors import NotFoundError
from marin_profile.base.resumable import Nowhere, Progress
from marin_profile.cache import Kept
from marin_profile.documents import html, markdown
from marin_profile.fleet.captures import captures_named
from marin_profile.fleet.document import fleet_document, fleet_figures
from marin_profile.fleet.findings import fleet_of
from marin_profile.fleet.reading import rows_of
from marin_profile.fleet.row import FleetRow

RUNS, SLOW, BROKEN = 12, (2, 5, 7), (9,)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return write_fleet(tmp_path_factory.mktemp("fleet"), runs=RUNS, slow=SLOW, broken=BROKEN)


def read(target: Path, crew: Crew | None = None) -> list[FleetRow]:
    return rows_of(captures_named(str(target)), crew or Alone(), Nowhere(), warmup_steps=1)


@pytest.fixture(scope="module")
def rows(root: Path) -> list[FleetRow]:
    return read(root)


def name_of(number: int) -> str:
    return f"run-{number:02}/2026_01_{number + 1:02}_03_04_05"


def test_a_row_says_what_its_capture_shows(rows):
    assert [row.name for row in rows] == [name_of(number) for number in range(RUNS)]
    row = rows[1]
    assert (row.problem, row.hardware, row.devices, row.num_hosts) == ("", "TPU v6 Lite", 1, 1)
    assert (row.hosts, row.time[:10], row.program) == (["h1"], "2026-01-03", "jit_train")
    assert (row.measure, row.step_typical, row.step_mean) == ("period", 1001.0, 1001.0)
    assert row.busy_share == pytest.approx(0.8, abs=0.05)
    assert row.trace_sha256 is not None


def test_the_slow_are_named(rows):
    fleet = fleet_of(rows)
    [group] = fleet.groups
    assert (group.hardware, len(group.rows)) == ("TPU v6 Lite", RUNS - 1)
    assert [one.row.name for one in fleet.outliers] == [name_of(number) for number in SLOW]
    assert all(one.is_slow for one in fleet.outliers)
    # The median of 1000 to 1003 and 1200 among eleven.
    assert fleet.outliers[0].ratio == pytest.approx(1200 / 1002)
    assert {one.host: one.slow for one in fleet.hosts} == {"h2": 2, "h1": 1}


def test_the_broken_is_named_and_left_out(rows):
    fleet = fleet_of(rows)
    assert [row.name for row in fleet.broken] == [name_of(9)]
    assert fleet.broken[0].problem
    assert len(fleet.rows) == RUNS - 1
    assert fleet_figures(fleet)["broken"][0]["name"] == name_of(9)


def test_three_captures_are_the_least_that_tell_who_is_slow(rows):
    assert fleet_of(rows[1:3]).outliers == []
    assert [one.row.name for one in fleet_of(rows[:3]).outliers] == [name_of(2)]


def test_processes_give_the_same_table(root, rows):
    assert read(root, Processes(2, begin)) == rows


def test_the_second_time_only_what_is_new_is_read(tmp_path):
    root = write_fleet(tmp_path / "fleet", runs=4, slow=(), broken=(3,))
    told: list[Progress] = []

    def again() -> list[FleetRow]:
        store = Kept(tmp_path / "rows", 1 << 20)
        return rows_of(
            captures_named(str(root)), Alone(), store, warmup_steps=1, on_progress=told.append
        )

    first = again()
    assert told[-1] == Progress(4, 4, 0)
    assert again() == first
    assert told[-1] == Progress(4, 4, 3)
    write_fleet(tmp_path / "fleet", runs=5, slow=(), broken=(3,))
    assert again()[:4] == first
    assert told[-1] == Progress(5, 5, 3)


def test_a_list_of_runs(root, rows, tmp_path):
    text = tmp_path / "runs.txt"
    text.write_text(f"# canaries\n{root / 'run-01'}\n\n{root / 'run-02'} # slow\nnowhere\n")
    found = read(text)
    assert [row.name for row in found] == [
        str(root / name_of(1)), str(root / name_of(2)), "nowhere",
    ]  # fmt: skip
    assert found[0].step_typical == rows[1].step_typical
    assert "nowhere" in found[2].problem


def test_a_file_on_a_line(root, tmp_path):
    text = tmp_path / "runs.txt"
    path = root / "run-00" / hours(0) / "h0.xplane.pb"
    text.write_text(f"{path}\n")
    assert [row.step_typical for row in read(text)] == [1000.0]


def test_nothing_is_no_fleet(tmp_path):
    with pytest.raises(NotFoundError):
        captures_named(str(tmp_path))
    (tmp_path / "runs.txt").write_text("# none\n")
    with pytest.raises(NotFoundError):
        captures_named(str(tmp_path / "runs.txt"))
    with pytest.raises(NotFoundError):
        captures_named(str(tmp_path / "no.txt"))


def test_the_document_answers_first(rows):
    document = fleet_document(fleet_of(rows, label="canary"), top_k=20)
    text = markdown.render(document)
    lead = text.split("##")[0]
    assert "11 captures in 1 group; 3 slow; **1 could not be summarised**." in lead
    assert f"`{name_of(2)}`: 1.20 ms a step, 19.8 % above the median of its group" in lead
    assert f"`{name_of(9)}`" in lead
    assert "no change and no drift is seen" in text
    page = html.render(document)
    assert page.count("<svg") == 1
    assert name_of(2) in page


def test_development_is_that_of_a_known_config(rows):
    [group] = fleet_of(rows).groups
    assert group.development.changes == ()
    slower = [
        msgspec.structs.replace(
            rows[0],
            name=f"run-{number}",
            time=f"2026-01-{number + 1:02}T00:00:00.000000Z",
            step_typical=(1000.0 if number < 12 else 1100.0) + number % 3,
            config_hash="c0ffee",
        )
        for number in range(24)
    ]
    [group] = fleet_of(slower).groups
    assert [change.index for change in group.development.changes] == [12]
    text = markdown.render(fleet_document(fleet_of(slower), top_k=20))
    assert "10.0 % slower from 2026-01-13T00:00:00 on" in text
