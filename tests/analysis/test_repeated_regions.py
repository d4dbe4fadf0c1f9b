"""Scopes that repeat, by hand and against a plain sum."""

from __future__ import annotations

import re

import pytest

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.regions import region_totals
from marin_profile.analysis.repeated_regions import fold_names, repeated_regions
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown


def space_of(*ops: tuple[str, int] | tuple[str, int, str]) -> Space:
    """One device: scope below jit(f), time in us, and the result's shape."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for index, (scope, time, *shape) in enumerate(ops):
        text = f"%op.{index} = {shape[0]} fusion()" if shape else ""
        tpu.op(f"op.{index}", at, time, scope=f"jit(f)/{scope}:", long_name=text)
        at += time
    return space


def folded(*ops) -> dict[str, tuple[int, int, int]]:
    """path below jit(f) -> (members, inclusive us, exclusive us)"""
    rows = repeated_regions(space_of(*ops).analyse().ops)
    return {
        row.name.removeprefix("jit(f)=>"): (
            len(row.members), row.inclusive // US, row.exclusive // US,
        )
        for row in rows
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (("layer_0", "layer_1", "layer_23"), "layer_*"),
        (("h.0", "h.1", "h.11"), "h.*"),
        (("Block_3", "Block_4", "Block_5"), "Block_*"),
        (("conv2d_1", "conv2d_2", "conv2d_9"), "conv2d_*"),
    ],
)
def test_names_with_a_number(names, name):
    ops = [(f"{one}/mlp/dot", time) for one, time in zip(names, (10, 20, 40), strict=True)]
    assert folded(*ops) == {
        name: (3, 70, 0),
        f"{name}=>mlp": (3, 70, 0),
        f"{name}=>mlp=>dot": (3, 70, 70),
    }


def test_names_that_are_numbers():
    assert folded(("layers/0/dot", 3), ("layers/1/dot", 4))["layers=>*"] == (2, 7, 0)


def test_repetition_inside_repetition():
    """Two blocks of 2 and 3 layers."""
    ops = [
        (f"block_{block}/dense_{layer}/dot", 10 * block + layer)
        for block, layers in ((1, 2), (2, 3))
        for layer in range(layers)
    ]
    assert folded(*ops) == {
        "block_*": (2, 10 + 11 + 20 + 21 + 22, 0),
        "block_*=>dense_*": (5, 84, 0),
        "block_*=>dense_*=>dot": (5, 84, 84),
    }


@pytest.mark.parametrize(
    "ops",
    [
        # Unlike inside.
        [("conv1/conv_general", 5), ("conv2/dot", 6)],
        # One of its kind; names that differ in more than a number.
        [("layer_0/dot", 5), ("head/dot", 6)],
        [("layer_0/dot", 5), ("block_1/dot", 6)],
        [("a1_b1/dot", 5), ("a2_b2/dot", 6)],
        # The same primitives on other shapes.
        [("dense_0/dot", 5, "f32[8,4]"), ("dense_1/dot", 6, "f32[8,16]")],
        # Not siblings.
        [("encoder/layer_0/dot", 5), ("decoder/layer_1/dot", 6)],
        # Ops whose own names have a number, of which nothing is known.
        [("exp1", 5), ("exp2", 6)],
    ],
)
def test_what_does_not_fold(ops):
    assert folded(*ops) == {}


def test_programs_do_not_fold():
    space = Space()
    tpu = space.tpu(0)
    for at in range(3):
        tpu.op(f"op.{at}", 10 * at, 5, scope=f"jit(f{at})/mlp/dot:")
    assert repeated_regions(space.analyse().ops) == []


def test_a_layer_unlike_the_others_stands_alone():
    ops = [(f"layer_{at}/{what}", 1) for at in range(1, 4) for what in ("qkv", "up", "down")]
    assert folded(("layer_0/embed", 9), *ops)["layer_*"] == (3, 9, 0)


def test_half_in_common_is_enough():
    """Of all in both: a, b in two of a, b, c, d; then a in one of a, b, c."""
    near = [("l_0/a", 1), ("l_0/b", 1), ("l_0/c", 1), ("l_1/a", 1), ("l_1/b", 1), ("l_1/d", 1)]
    assert folded(*near)["l_*"] == (2, 6, 0)
    assert folded(("l_0/a", 1), ("l_0/b", 1), ("l_1/a", 1), ("l_1/c", 1)) == {}


def test_layers_of_two_kinds_are_folded_apart():
    ops = [(f"layer_{at}/{'moe' if at % 2 else 'mlp'}/dot", at + 1) for at in range(5)]
    rows = folded(*ops)
    assert rows["layer_*"] == (3, 1 + 3 + 5, 0)
    assert rows["layer_* like layer_1"] == (2, 2 + 4, 0)


def test_folding_takes_the_number_that_most_differ_in():
    inside = frozenset({(("dot",), "other", "")})
    names = ["s0_b0", "s0_b1", "s0_b2", "s1_b0"]
    assert fold_names(dict.fromkeys(names, inside)) == dict.fromkeys(names[:3], "s0_b*")


def test_rows_are_the_sums_of_plain_regions():
    ops = [
        (f"layer_{layer}/{part}/dot_{at}", 1 + (7 * layer + 3 * at) % 11)
        for layer in range(24)
        for part in ("attention", "mlp")
        for at in range(1 + (layer > 0))
    ]
    totals = space_of(*ops, ("head/dot", 3)).analyse().ops
    plain = region_totals(totals)
    rows = repeated_regions(totals)
    layers = next(row for row in rows if row.name == "jit(f)=>layer_*")
    assert len(layers.members) == 24
    for row in rows:
        pattern = re.compile(re.escape(row.name).replace(r"\*", r"\d+"))
        own = [one for one in plain if pattern.fullmatch(one.name)]
        assert len(own) == len(row.members)
        assert sum(one.inclusive for one in own) == row.inclusive
        assert sum(one.exclusive for one in own) == row.exclusive
        assert sum(one.count for one in own) == row.count
        assert sum(row.by_pass.values()) == row.inclusive
        assert row.members == {one.path: one.inclusive for one in own}


def test_the_answer_and_the_report():
    ops = [(f"layer_{at}/dot", 10 + at) for at in range(3)]
    summary = summary_of(space_of(*ops).analyse())
    (first, _) = summary.repeated_regions
    assert (first.path, first.members, first.inclusive_duration) == ("jit(f)=>layer_*", 3, 33.0)
    assert (first.largest, first.largest_duration) == ("jit(f)=>layer_2", 12.0)
    assert first.smallest_duration == 10.0
    rows = answer(summary, "Show the hierarchical regions")["results"]
    assert (rows[0]["record"], rows[0]["members"]) == ("repeated_region", 3)
    assert "`jit(f)=>layer_*` x 3 | 33.00 us | 100.0 % | 11.00 us | 10.00 us to 12.00 us" in (
        render_markdown(summary)
    )


def test_deep_paths_and_many_siblings_are_folded_without_recursion():
    deep = "/".join(f"s{at % 2}" for at in range(3000))
    assert folded((f"{deep}/dot", 1)) == {}
    many = [(f"l{at}/op{'x' * (at % 40)}", 1) for at in range(400)]
    assert sum(1 for name in folded(*many) if "=>" not in name) == 16
