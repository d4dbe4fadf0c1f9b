"""Which scopes are which under another name."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from marin_profile.comparison.matching import OpTime
from marin_profile.comparison.renames import find_renames
from marin_profile.schema import OpGroup


def op(scope: str | None, shape: str = "f32[8]", pass_: str = "forward") -> OpTime:
    group = OpGroup(
        canonical_name="fusion", category="compute", shape_signature=shape, scope=scope,
        pass_=pass_, num_names=1, count=1, exclusive_duration=1, exposed_duration=1,
    )  # fmt: skip
    return OpTime(group, (Fraction(1),))


def renamed(before: Sequence[OpTime], after: Sequence[OpTime]) -> list[tuple[str, str]]:
    return [("/".join(one), "/".join(two)) for one, two in find_renames(before, after).renamed()]


def places(before: Sequence[OpTime], after: Sequence[OpTime]) -> list[str | None]:
    return [side.scope for side in find_renames(before, after).place(after)]


BLOCKS = range(12)
BEFORE = [
    op(f"jit(train_step)/block_{at}/{part}/dot", shape)
    for at in BLOCKS
    for part, shape in (("attn", "a"), ("mlp", "b"))
]
AFTER = [
    op(f"jit(train_step_v2)/layer_{at}/{part}/dot", shape)
    for at in BLOCKS
    for part, shape in (("attn", "a"), ("mlp", "b"))
]


def test_a_program_and_its_blocks():
    assert places(BEFORE, AFTER) == [one.scope for one in BEFORE]
    assert renamed(BEFORE, AFTER) == [
        ("jit(train_step)", "jit(train_step_v2)"),
        *sorted((f"jit(train_step)/block_{at}", f"jit(train_step_v2)/layer_{at}") for at in BLOCKS),
    ]


def test_nothing_is_renamed_where_names_are_the_same():
    assert renamed(BEFORE, BEFORE) == []
    assert find_renames(BEFORE, BEFORE).place(BEFORE) == BEFORE
    # Not even if what stands there changed.
    other = [op("jit(train_step)/block_0/attn/dot", "z")]
    assert renamed(BEFORE[:1], other) == []


def test_numbers_that_shifted_go_by_their_order():
    """h.9, h.10, h.11 are blocks 0, 1, 2: in order of the numbers, not of the text."""
    before = [op(f"f/h.{at}/dot") for at in (9, 10, 11)]
    after = [op(f"f/block.{at}/dot") for at in (0, 1, 2)]
    assert renamed(before, after) == [
        ("f/h.10", "f/block.1"), ("f/h.11", "f/block.2"), ("f/h.9", "f/block.0")
    ]  # fmt: skip


def test_a_dozen_goes_by_its_order():
    before = [op(f"f/h.{at + 20}/dot") for at in BLOCKS]
    after = [op(f"f/block.{at}/dot") for at in BLOCKS]
    assert dict(renamed(before, after)) == {f"f/h.{at + 20}": f"f/block.{at}" for at in BLOCKS}


def test_equal_numbers_come_before_equal_places():
    """Block 1 was dropped: block 2 is layer 2."""
    before = [op(f"f/block_{at}/dot") for at in range(3)]
    after = [op(f"f/layer_{at}/dot") for at in (0, 2)]
    assert renamed(before, after) == [("f/block_0", "f/layer_0"), ("f/block_2", "f/layer_2")]


def test_the_likest_comes_before_the_order():
    before = [op("f/a/dot", "x"), op("f/b/dot", "y")]
    after = [op("f/c/dot", "y"), op("f/d/dot", "x")]
    assert renamed(before, after) == [("f/a", "f/d"), ("f/b", "f/c")]
    # Two of two are liker than two of three, which stands first.
    before = [op("f/a/dot", "x"), op("f/a/dot", "y")]
    after = [op("f/c/dot", shape) for shape in "xyz"] + [op("f/d/dot", shape) for shape in "xy"]
    assert renamed(before, after) == [("f/a", "f/d")]


def test_half_of_the_ops_must_be_the_same():
    """2 of 4 are enough, 2 of 5 are not; nor is another primitive, shape or pass."""
    before = [op("f/old/dot", "a"), op("f/old/dot", "b")]
    after = [op("f/new/dot", shape) for shape in "abcd"]
    assert renamed(before, after) == [("f/old", "f/new")]
    assert renamed(before, [*after, op("f/new/dot", "e")]) == []
    for other in (op("f/new/exp", "a"), op("f/new/dot", "z"), op("f/new/dot", "a", "backward")):
        assert renamed([before[0]], [other]) == []


def test_what_is_new_below_a_renamed_scope_stands_under_the_old_one():
    before = [op("f/old/dot")]
    after = [op("f/new/dot"), op("f/new/more/exp", "b"), op(None)]
    assert places(before, after) == ["f/old/dot", "f/old/more/exp", None]
    after_of = find_renames(before, after).after_of()
    assert after_of["f", "old", "more"] == ("f", "new", "more")


def test_a_kernel_that_stands_for_its_scope():
    """`f/old` names no primitive where other ops stand below it."""
    assert places([op("f/old"), op("f/old/dot", "b")], [op("f/new"), op("f/new/dot", "b")]) == [
        "f/old", "f/old/dot"
    ]  # fmt: skip


PARTS = [("attn", "a"), ("mlp", "b")]


def test_a_scope_around_what_was_there():
    """`f/tower` stands in `f/model` now, with its blocks; and back."""
    inside = [op(f"f/tower/{part}/dot", shape) for part, shape in PARTS]
    around = [op(f"f/model/tower/{part}/dot", shape) for part, shape in PARTS]
    assert places(inside, around) == [one.scope for one in inside]
    assert renamed(inside, around) == [("f/tower", "f/model/tower")]
    assert places(around, inside) == [one.scope for one in around]
    assert renamed(around, inside) == [("f/model/tower", "f/tower")]
    # What is new in the scope around it stays there.
    more = [*around, op("f/model/head/dot", "c")]
    assert places(inside, more) == [*(one.scope for one in inside), "f/model/head/dot"]


def test_two_scopes_move_into_one():
    before = [op(f"f/{part}/dot", shape) for part, shape in PARTS]
    after = [op(f"f/block/{part}/dot", shape) for part, shape in PARTS]
    assert renamed(before, after) == [("f/attn", "f/block/attn"), ("f/mlp", "f/block/mlp")]
    assert places(after, before) == [one.scope for one in after]


def test_another_scope_of_the_same_name_deeper_is_none():
    before, after = [op("f/tower/dot", "a")], [op("f/model/tower/dot", "z")]
    assert renamed(before, after) == []
    assert places(before, after) == ["f/model/tower/dot"]
