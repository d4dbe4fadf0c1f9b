"""What `scripts/bench.py ratios` and `events` make of what they measured, and the floors' work."""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import bench_events
import bench_inputs
import bench_ratios
import bench_run
from bench_events import Point, each_more, spread
from bench_ratios import OURS, PEER, SKIP, XPROF
from bench_run import Run

from builders_xspace import Space, double, message, number, read_bytes

FLOORS = Path(bench_run.__file__).with_name("bench_floors.py")


def runs(*cpu: float) -> list[Run]:
    """Each takes twice as long by the clock."""
    return [Run(2 * one, one, 10.0) for one in cpu]


def test_ratios_are_of_the_same_round_and_goals_of_processor_time() -> None:
    measured = {OURS: runs(1, 2, 4), XPROF: runs(4, 6, 16), "other": runs(1, 1, 1)}
    rows = bench_ratios._ratios("a", bench_inputs.XPLANE, measured)
    assert rows[0] == [
        *("a", "XProf hlo_stats / marin-profile", "4.0 (3.0 to 4.0)", "4.0 (3.0 to 4.0)"),
        *("at least 3.5", "yes"),
    ]
    assert rows[1][2:] == ["0.50 (0.25 to 1.0)", "0.50 (0.25 to 1.0)", "", ""]


def test_of_a_floor_ours_is_the_multiple() -> None:
    measured = {OURS: runs(7, 7, 7), SKIP: runs(2, 2, 2), PEER: runs(63, 63, 63)}
    rows = bench_ratios._ratios("a", bench_inputs.JSON, measured)
    assert [row[1:3] for row in rows] == [
        [f"{OURS} / {SKIP}", "3.5 (3.5 to 3.5)"],
        [f"{PEER} / {OURS}", "9.0 (9.0 to 9.0)"],
    ]
    assert [row[4:] for row in rows] == [["at most 3", "no"], ["at least 10", "no"]]


def test_small_files_have_no_goal() -> None:
    rows = bench_ratios._ratios("a", "", {OURS: runs(1), XPROF: runs(1)})
    assert rows[0][4:] == ["", ""]


def test_what_each_event_more_takes() -> None:
    points = [Point(100, runs(1.0)[0]), Point(300, runs(1.5)[0]), Point(1300, runs(3.5)[0])]
    assert each_more(points) == [None, pytest.approx(0.0025), pytest.approx(0.002)]


def test_flat_is_within_fifteen_percent() -> None:
    assert spread("x", [2e-6, 2.2e-6]) == "x: 2.00 to 2.20 us an event, 10 % apart: flat"
    assert spread("x", [2e-6, 2.4e-6]) == "x: 2.00 to 2.40 us an event, 20 % apart: not flat"
    assert spread("x", [-1e-6, 2e-6]) == "x: -1.00 to 2.00 us an event: not flat"
    assert spread("x", [2e-6]) == "x: too few sizes to tell"


def test_a_table_is_written_between_its_lines_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- ratios -->\nold\n<!-- /ratios -->\nb\n")
    bench_run.put("new\n", page, "ratios")
    assert page.read_text() == "a\n<!-- ratios -->\nnew\n<!-- /ratios -->\nb\n"
    with pytest.raises(SystemExit, match="no lines <!-- events -->"):
        bench_run.put("new\n", page, "events")


def test_a_process_is_measured_without_the_memory_of_this_one() -> None:
    ballast = bytearray(1 << 28)
    small = bench_run.run([sys.executable, "-S", "-c", "pass"])
    large = bench_run.run([sys.executable, "-S", "-c", "bytearray(b'x') * (64 << 20)"])
    del ballast
    assert small.megabytes < 50
    assert 64 < large.megabytes < 150
    assert small.cpu > 0
    with pytest.raises(SystemExit, match="failed"):
        bench_run.run([sys.executable, "-c", "raise SystemExit(3)"])


def floor(name: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(FLOORS), name, str(path)], capture_output=True, check=True, text=True
    )
    return done.stdout


def test_the_scan_adds_up_every_number_of_events_and_their_statistics(tmp_path: Path) -> None:
    statistic = message(4, number(1, 2) + number(3, 300) + double(2, 0.5))
    event = message(4, number(1, 7) + number(2, 10**12) + number(3, -1) + statistic)
    line = message(3, number(1, 4) + message(2, "a name") + event + event)
    plane = message(1, number(1, 1) + line + message(4, number(1, 99)))
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(plane + message(4, "host"))
    expected = 1 + 4 + 2 * (7 + 10**12 - 1 + 2 + 300)
    assert floor("scan", path).strip() == str(expected % 2**64)


def test_the_floors_of_json_read_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "x.trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b"1," * 10**6 + b"2]}"))
    for name in ("read", "unpack", "skip"):
        floor(name, path)
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b"1," * 10**6 + b"]}"))
    with pytest.raises(subprocess.CalledProcessError):
        floor("skip", path)


def test_a_repeated_file_has_each_event_once_a_period() -> None:
    space = Space()
    space.tpu(0).op("a", 0, 5).op("b", 7, 2)
    content = space.encode()
    before = read_bytes(content)
    after = read_bytes(bench_inputs.repeat_xplane(content, 3 * len(before.start)))
    expected = [start + at * bench_inputs.PERIOD_PS for at in range(3) for start in before.start]
    assert after.start.tolist() == expected
    assert after.duration.tolist() == 3 * before.duration.tolist()


@pytest.mark.slow
def test_one_command_measures_and_writes(traces: Path, tmp_path: Path, capsys) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- events -->\n<!-- /events -->\n")
    parser = argparse.ArgumentParser()
    bench_events.add_arguments(parser)
    flags = ["--sizes", "25000", "50000", "--kinds", "xplane", "--repeat", "1"]
    flags += ["--cache", str(tmp_path / "cache"), "--write", str(page)]
    bench_events.bench_events(parser.parse_args(flags))
    rows = [line.split(" | ") for line in page.read_text().splitlines() if "xplane |" in line]
    counts = [int(row[1].replace(",", "")) for row in rows]
    assert len(counts) == 2
    assert 1.9 < counts[1] / counts[0] < 2.1
