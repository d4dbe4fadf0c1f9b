"""Hot ops, op groups and families."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders_xspace import US, Space, summary_of
from marin_profile.assemble.context import Context
from marin_profile.assemble.ops import op_groups
from marin_profile.schema import REMAINDER


def context_of(monkeypatch: pytest.MonkeyPatch, space: Space) -> Context:
    made: list[Context] = []
    monkeypatch.setattr("marin_profile.assemble.roofline_section", made.append)
    summary_of(space.analyse())
    (found,) = made
    return found


def many(names: list[str]) -> Space:
    """A device that runs these ops for 10 us each; no steps."""
    space = Space()
    gpu = space.gpu(0)
    for at, name in enumerate(names):
        gpu.kernel(name, 10 * at, 10)
    return space


@pytest.mark.parametrize(("count", "rest"), [(5_000, 0), (5_001, 1), (5_003, 3)])
def test_more_than_5000_groups_end_in_one_of_the_rest(monkeypatch, count, rest):
    """The n-th op takes n us in all: the rest are the shortest."""
    context = context_of(monkeypatch, many(["k"]))
    (op,) = context.ops
    ops = [
        replace(op, facts=replace(op.facts, name=f"op_{at}"), exclusive=at * US)
        for at in range(1, count + 1)
    ]
    groups = op_groups(replace(context, ops=ops))
    assert len(groups) == 5_000 + (rest > 0)
    assert groups[0].canonical_name == f"op_{count}"
    assert groups[4_999].exclusive_duration == rest + 1
    if rest:
        last = groups[-1]
        assert (last.canonical_name, last.category) == (REMAINDER, "unknown")
        assert (last.shape_signature, last.scope, last.pass_) == (None, None, None)
        assert last.count == rest
        assert last.exclusive_duration == rest * (rest + 1) / 2


@pytest.mark.parametrize("count", [7, 8, 9, 12])
def test_of_the_names_of_a_group_eight_are_given(count):
    names = [f"fusion.{at}" for at in range(count)]
    (group,) = summary_of(many(names).analyse()).op_groups
    assert group.num_names == count
    assert group.names == sorted(names)[:8]
    assert (group.count, group.exclusive_duration) == (count, 10.0 * count)
    assert (group.steady_count, group.steady_exclusive_duration) == (None, None)
    assert (group.per_step_duration, group.account_count) == (None, None)
    assert (group.owned_duration, group.owned_per_step_duration) == (None, None)


def test_the_figures_of_an_op_by_hand():
    """Two devices, four steps of 100 us, of which 1 to 3 are kept: dot.1 for 20 us twice in each,
    and add.2 for 10."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(4):
            at = 100 * step
            tpu.step(step, at, 99)
            tpu.op("dot.1", at, 20, category="convolution")
            tpu.op("add.2", at + 20, 10, category="loop fusion")
            tpu.op("dot.1", at + 40, 20, category="convolution")
    summary = summary_of(space.analyse())
    dot, add = summary.hot_ops
    assert (dot.name, dot.count, dot.total_duration, dot.avg_duration) == ("dot.1", 16, 320, 20)
    assert (add.name, add.count, add.total_duration, add.avg_duration) == ("add.2", 8, 80, 10)
    assert (dot.exclusive_duration, dot.per_step_duration) == (320, 40)
    group, _ = summary.op_groups
    assert (group.count, group.exclusive_duration) == (16, 320)
    assert (group.steady_count, group.steady_exclusive_duration) == (12, 240)
    # Two whole periods on each of two devices.
    assert (group.per_step_duration, group.account_count) == (40, 8)
    assert (group.owned_duration, group.owned_per_step_duration) == (160, 40)
    families = {row.family: row for row in summary.semantic_families}
    assert sum(row.share_of_total for row in families.values()) == pytest.approx(1)
    (of_dot,) = [row for row in families.values() if row.example_op == "dot.1"]
    assert (of_dot.count, of_dot.avg_duration, of_dot.avg_exclusive_duration) == (16, 20, 20)
    assert (of_dot.share_of_total, of_dot.owned_duration) == (0.8, 160)
