"""The rows of events: by hand on a built capture, and against the summary on real ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from builders_capture import leave_capture
from builders_xspace import Space
from marin_profile.base.errors import BrokenInputError, CannotAnswerError
from marin_profile.capture.sources import resolve_path
from marin_profile.events.classify import (
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
    kind_group,
)
from marin_profile.export import COLUMNS, event_blocks
from marin_profile.export.files import plain_rows
from marin_profile.schema import CAPTURE, ProfileSummary
from real.captures import CPU8, GPU_CONV, GPU_GTX, GPU_LEGACY, V6E, VLLM_BEFORE, ledgers, summarize

US = 1_000_000


def rows_of(path: Path, notes: list[str] | None = None) -> list[dict[str, Any]]:
    capture, _ = resolve_path(str(path))
    blocks = event_blocks(capture, (notes if notes is not None else []).append)
    return [dict(zip(COLUMNS, row, strict=True)) for block in blocks for row in plain_rows(block)]


def written(space: Space, folder: Path, name: str = "h") -> Path:
    session = folder / "plugins" / "profile" / "2026_01_02_03_04_05"
    session.mkdir(parents=True, exist_ok=True)
    space.write(session / f"{name}.xplane.pb")
    return folder


def ps(microseconds: float) -> int:
    return round(microseconds * US)


# By hand


def test_a_loop_with_a_collective_inside(tmp_path):
    space = Space("h")
    tpu = space.tpu(0)
    for step in (4, 5):
        at = 100 * (step - 4) + 50
        tpu.step(step, at, 90).module("jit_step(7)", at, 80, run_id=step)
        tpu.op("while.1", at, 80, category="while", long_name="%while.1 = f32[] while()")
        tpu.op(
            "fusion.2", at + 10, 30, category="loop fusion",
            scope="jit(step)/jit(main)/transpose(jvp(mlp))/dot_general",
        )  # fmt: skip
        tpu.op("all-reduce.3", at + 40, 25, category="all-reduce")
    tpu.op("copy.4", 142, 3, category="copy")
    rows = rows_of(written(space, tmp_path))
    assert {(row["host"], row["device"], row["program"]) for row in rows[:3]} == {
        ("h", "/device:TPU:0", "jit_step")
    }
    told = [
        (
            row["step"], row["op"], row["kind"], row["pass"], row["program_id"],
            *(row[column] // US for column in ("start_ps", "duration_ps", "self_ps", "exposed_ps")),
        )
        for row in rows
    ]  # fmt: skip
    assert told == [
        (4, "while.1", "compute", "other", "7", 0, 80, 25, 25),
        (4, "fusion.2", "compute", "backward", "7", 10, 30, 30, 30),
        (4, "all-reduce.3", "all-reduce", "other", "7", 40, 25, 25, 25),
        (None, "copy.4", "compute", "other", None, 92, 3, 3, 3),
        (5, "while.1", "compute", "other", "7", 100, 80, 25, 25),
        (5, "fusion.2", "compute", "backward", "7", 110, 30, 30, 30),
        (5, "all-reduce.3", "all-reduce", "other", "7", 140, 25, 25, 25),
    ]
    assert rows[1]["region"].split("=>")[-2:] == ["mlp", "dot_general"]
    assert rows[0]["region"] is None


def test_what_another_stream_hides_is_not_exposed(tmp_path):
    space = Space("h")
    gpu = space.gpu(0)
    gpu.kernel("gemm", 0, 50, stream="Stream #1(Kernel)")
    gpu.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, 50, stream="Stream #2(Kernel)")
    gemm, reduce = rows_of(written(space, tmp_path))
    assert (gemm["self_ps"], gemm["exposed_ps"]) == (50 * US, 50 * US)
    assert (reduce["kind"], reduce["start_ps"]) == ("all-reduce", 30 * US)
    assert (reduce["duration_ps"], reduce["self_ps"]) == (50 * US, 50 * US)
    assert reduce["exposed_ps"] == 30 * US
    assert {gemm["step"], gemm["program"], gemm["region"]} == {None}


def test_lengths_are_the_devices_own(tmp_path):
    space = Space("h")
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 10, category="loop fusion", device_start=7, device_duration=11)
    tpu.op("fusion.2", 20, 10, category="loop fusion", device_start=30, device_duration=9)
    rows = rows_of(written(space, tmp_path))
    assert [(row["start_ps"], row["duration_ps"]) for row in rows] == [
        (0, 11 * US),
        (23 * US, 9 * US),
    ]


def test_hosts_follow_each_other_and_a_copy_counts_once(tmp_path):
    session = leave_capture(tmp_path, host="b")
    (session / "c.xplane.pb").write_bytes((session / "b.xplane.pb").read_bytes())
    (session / "d.xplane.pb").write_bytes(b"\x0b\x0b\x0b")
    other = Space("a")
    other.tpu(0).module("jit_step(7)", 0, 5).op("dot.9", 0, 5, category="convolution fusion")
    other.write(session / "a.xplane.pb")
    notes: list[str] = []
    rows = rows_of(tmp_path, notes)
    assert [row["host"] for row in rows] == ["a", "b", "b", "b", "b"]
    assert any("byte for byte" in note and "c.xplane.pb" in note for note in notes)
    assert any(note.startswith("Host d is missing") for note in notes)
    assert not any(str(tmp_path) in note for note in notes)


def test_nothing_to_write(tmp_path):
    space = Space("h")
    space.host().marker(0, 0, 10)
    with pytest.raises(CannotAnswerError, match="no device work"):
        rows_of(written(space, tmp_path / "idle"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "h.xplane.pb").write_bytes(b"\x0b\x0b")
    with pytest.raises(BrokenInputError):
        rows_of(tmp_path / "bad" / "h.xplane.pb")


def test_blocks_hold_so_many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("marin_profile.export.rows.BLOCK", 3)
    leave_capture(tmp_path)
    capture, _ = resolve_path(str(tmp_path))
    blocks = list(event_blocks(capture, print))
    assert [block.count for block in blocks] == [3, 1]
    steps = [row[COLUMNS.index("step")] for block in blocks for row in plain_rows(block)]
    assert steps == [0, 1, 2, 3]


# Against the summary


REAL = (V6E, VLLM_BEFORE, CPU8, GPU_CONV, GPU_LEGACY, GPU_GTX)


@pytest.fixture(scope="module", params=REAL, ids=lambda name: name.split("/")[0])
def real(request, traces) -> tuple[list[dict[str, Any]], ProfileSummary]:
    path = traces / request.param
    return rows_of(path), summarize(path, hot_op_limit=1_000_000)


def test_ops_sum_to_the_summary(real):
    rows, summary = real
    fields = ("duration_ps", "self_ps", "exposed_ps")
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in rows:
        ops = found[row["op"], row["program"], row["program_id"], row["kind"], row["pass"]]
        ops["count"] += 1
        for field in fields:
            ops[field] += row[field]
    expected: dict[Any, Counter[str]] = defaultdict(Counter)
    for op in summary.hot_ops:
        ops = expected[op.name, op.module, op.program_id, op.category, op.pass_]
        ops["count"] += op.count
        ops["duration_ps"] += ps(op.total_duration)
        ops["self_ps"] += ps(op.exclusive_duration)
        ops["exposed_ps"] += ps(op.exposed_duration)
    assert found == expected


def test_devices_sum_to_their_ledgers(real):
    rows, summary = real
    found: dict[str, Counter[Any]] = defaultdict(Counter)
    for row in rows:
        found[row["device"]][kind_group(row["kind"])] += row["exposed_ps"]
        found[row["device"]][row["kind"]] += row["exposed_ps"]
    by_device = ledgers(summary, CAPTURE)
    assert set(found) == set(by_device)
    for device, ledger in by_device.items():
        own = found[device]
        assert own[GROUP_COMPUTE] == ps(ledger.compute_duration)
        assert own[GROUP_COMMUNICATION] == ps(ledger.exposed_communication_duration)
        assert own[GROUP_TRANSFER] == ps(ledger.exposed_transfer_duration)
        assert own[GROUP_UNKNOWN] == ps(ledger.unattributed_duration)
        for kinds in (ledger.exposed_communication_by_kind, ledger.exposed_transfer_by_kind):
            assert {kind: own[kind] for kind in kinds} == {k: ps(v) for k, v in kinds.items()}


def test_steps_last_as_long_as_in_the_summary(real):
    rows, summary = real
    if not summary.step_time.linked:
        assert {row["step"] for row in rows} == {None}
        return
    edges: dict[tuple[int, str], tuple[int, int]] = {}
    for row in rows:
        if row["step"] is not None:
            key = row["step"], row["device"]
            start, end = edges.get(key, (row["start_ps"], 0))
            stop = row["start_ps"] + row["duration_ps"]
            edges[key] = min(start, row["start_ps"]), max(end, stop)
    lengths: dict[int, list[int]] = defaultdict(list)
    for (step, _), (start, end) in edges.items():
        lengths[step].append(end - start)
    steps = summary.step_time.steps
    names = [step.index if step.step_num is None else step.step_num for step in steps]
    assert sorted(lengths) == sorted(names)
    for name, step in zip(names, steps, strict=True):
        assert median(lengths[name]) / US == pytest.approx(step.duration, abs=1e-6)
        assert min(edges[key][0] for key in edges if key[0] == name) == ps(step.start)


def test_regions_sum_to_the_summary(real):
    rows, summary = real
    found: Counter[str | None] = Counter()
    for row in rows:
        found[row["region"]] += row["self_ps"]
    for region in summary.hierarchical_regions:
        assert found[region.path] == ps(region.exclusive_duration)
    inside = sum(ps(one.exclusive_duration) for one in summary.hierarchical_regions)
    assert inside + found[None] == sum(row["self_ps"] for row in rows)


def test_a_sparse_core_has_no_steps(tmp_path):
    space = Space("h")
    tpu = space.tpu(0)
    for step in range(3):
        at = 100 * step
        tpu.step(step, at, 90).module("jit_step(7)", at, 80, run_id=step)
        tpu.op("fusion.1", at, 80, category="loop fusion")
    core = space.tpu(0, core="SparseCore 0")
    core.op("embed.1", 5, 10)
    rows = rows_of(written(space, tmp_path))
    by_device = {row["device"]: row["step"] for row in rows}
    assert by_device == {"/device:TPU:0": 2, "/device:TPU:0 SparseCore 0": None}
