"""Gaps by the region of the op after them."""

from __future__ import annotations

from builders_xspace import Space, summary_of


def test_regions_of_gaps_come_by_time_then_by_op_then_by_region():
    """Idle for 20 us before c.1, for 10 before a.1 and b.1, and for 10 before each of two d.1."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("first.1", 0, 10, category="loop fusion")
    at = 10
    for name, region, idle in (
        ("b.1", "x", 10), ("d.1", "z", 10), ("d.1", "y", 10), ("a.1", "z", 10), ("c.1", "w", 20),
    ):  # fmt: skip
        tpu.op(name, at + idle, 10, category="loop fusion", scope=f"jit(f)/{region}/dot:")
        at += idle + 10
    rows = summary_of(space.analyse()).gap_region_contexts
    assert [(row.op_name, row.region_path, row.count, row.total_gap_duration) for row in rows] == [
        ("c.1", "jit(f)=>w=>dot", 1, 20.0),
        ("a.1", "jit(f)=>z=>dot", 1, 10.0),
        ("b.1", "jit(f)=>x=>dot", 1, 10.0),
        ("d.1", "jit(f)=>y=>dot", 1, 10.0),
        ("d.1", "jit(f)=>z=>dot", 1, 10.0),
    ]
    assert [row.avg_gap_duration for row in rows] == [20.0, 10.0, 10.0, 10.0, 10.0]
