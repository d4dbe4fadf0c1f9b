"""The queries of docs/events.md, on a small capture, with their answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from builders_xspace import Space
from marin_profile.capture.sources import resolve_path
from marin_profile.export import write_events
from test_docs import ROOT, blocks

QUERIES = blocks(ROOT / "docs/events.md", "sql")
HOST = "events"  # by the file's name
STEP = "jit(step)/jit(main)"
DOT = "convolution fusion"


def space(*, forward: int = 30) -> Space:
    """Three steps 100 us apart on two devices: forward, backward, a gap of 10 us, an all-reduce.
    Device 1 takes 2 us longer for backward and is waited for; device 0's last backward is slow."""
    made = Space("h")
    for device in range(2):
        tpu = made.tpu(device)
        for step in range(3):
            at = 100 * step
            slow = 20 if (device, step) == (0, 2) else 0
            backward = 20 + 2 * device + slow
            reduced = at + forward + backward + 10
            tpu.step(step, at, 99).module("jit_step(7)", at, 99, run_id=step)
            tpu.op("dot.1", at, forward, category=DOT, scope=f"{STEP}/jvp(mlp)/dot_general")
            tpu.op(
                "dot.2", at + forward, backward, category=DOT,
                scope=f"{STEP}/transpose(jvp(mlp))/dot_general",
            )  # fmt: skip
            tpu.op("all-reduce.3", reduced, 10 - 2 * device, category="all-reduce")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("queries")
    for name, made in (("events", space()), ("before", space(forward=25))):
        file = made.write(root / f"{name}.xplane.pb")
        capture, _ = resolve_path(str(file))
        write_events(capture, str(root / f"{name}.parquet"), note=print)
    return root


def asked(folder: Path, number: int) -> list[tuple[object, ...]]:
    query = QUERIES[number - 1]
    for name in ("events", "before"):
        query = query.replace(f"'{name}.parquet'", f"'{folder / name}.parquet'")
    rows = duckdb.connect().execute(query).fetchall()
    return [tuple(map(_number, row)) for row in rows]


def _number(value: object) -> object:
    return round(float(value), 6) if isinstance(value, float | Decimal) else value


def device(number: int) -> str:
    return f"/device:TPU:{number}"


def test_there_are_ten():
    assert len(QUERIES) == 10


def test_1_ops(folder):
    assert asked(folder, 1) == [
        ("dot.1", "jit_step", "compute", 6, 180),
        ("dot.2", "jit_step", "compute", 6, 146),
        ("all-reduce.3", "jit_step", "all-reduce", 6, 54),
    ]


def test_2_devices(folder):
    assert asked(folder, 2) == [
        (HOST, device(0), "compute", 170),
        (HOST, device(0), "all-reduce", 30),
        (HOST, device(1), "compute", 156),
        (HOST, device(1), "all-reduce", 24),
    ]


def test_3_steps(folder):
    assert asked(folder, 3) == [
        (0, device(0), 70),
        (0, device(1), 70),
        (1, device(0), 70),
        (1, device(1), 70),
        (2, device(0), 90),
        (2, device(1), 70),
    ]


def test_4_slow_executions(folder):
    # The median of 20, 20, 40, 22, 22, 22 is 22; that of 10, 10, 10, 8, 8, 8 is 9.
    assert asked(folder, 4) == [
        (2, device(0), "dot.2", 40, 22),
        *((step, device(0), "all-reduce.3", 10, 9) for step in range(3)),
    ]


def test_5_passes(folder):
    assert asked(folder, 5) == [
        (0, "forward", 60), (0, "backward", 42), (0, "other", 18),
        (1, "forward", 60), (1, "backward", 42), (1, "other", 18),
        (2, "backward", 62), (2, "forward", 60), (2, "other", 18),
    ]  # fmt: skip


def test_6_regions(folder):
    [(part, time)] = asked(folder, 6)
    assert time == 180 + 146
    assert "mlp" in str(part)


def test_7_gaps(folder):
    # Between steps 30 us, before each all-reduce 10 us.
    assert asked(folder, 7)[:5] == [
        (HOST, device(0), 1, "dot.1", 30),
        (HOST, device(0), 2, "dot.1", 30),
        (HOST, device(1), 1, "dot.1", 30),
        (HOST, device(1), 2, "dot.1", 30),
        (HOST, device(0), 0, "all-reduce.3", 10),
    ]


def test_8_collectives(folder):
    assert asked(folder, 8) == [
        ("all-reduce.3", device(1), 3, 8),
        ("all-reduce.3", device(0), 3, 10),
    ]


def test_9_a_slow_step(folder):
    assert asked(folder, 9) == [
        ("dot.2", 62, 42),
        ("all-reduce.3", 18, 18),
        ("dot.1", 60, 60),
    ]


def test_10_two_captures(folder):
    assert asked(folder, 10) == [
        ("dot.1", 25, 30),
        ("all-reduce.3", 9, 9),
        ("dot.2", 24.333333, 24.333333),
    ]
