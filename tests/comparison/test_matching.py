"""Which ops are which; times in us, per step and device."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.comparison.matching import (
    OpMatch,
    OpTime,
    known_regions,
    match_ops,
    op_key,
    own_region,
    region_of,
)
from marin_profile.schema import OpGroup


def op(
    name: str,
    time: float = 10,
    *,
    kind: str = "compute",
    shape: str = "f32[8]",
    scope: str | None = "jit(step)/mlp/dot_general",
    pass_: str = "forward",
    number: int = 1,
    calls: int = 1,
    place: str | None = None,
) -> OpTime:
    group = OpGroup(
        canonical_name=name,
        category=kind,
        shape_signature=shape,
        scope=scope,
        pass_=pass_,
        names=[f"{name}.{number}"],
        num_names=1,
        count=1,
        exclusive_duration=time,
        exposed_duration=time,
    )
    return OpTime(group, (Fraction(time),), Fraction(calls), place)


def shown(matches: list[OpMatch]) -> list[tuple[str, str | None, str | None]]:
    return sorted(
        (
            match.how,
            match.before.group.canonical_name if match.before else None,
            match.after.group.canonical_name if match.after else None,
        )
        for match in matches
    )


ALONE = {"only_before", "only_after"}


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        (op("fusion"), op("fusion"), "exact"),
        (op("fusion", number=1), op("fusion", number=7), "renumbered"),
        (
            op("fusion", scope="jit(step)/mlp/dot"),
            op("fusion", scope="jit(step)/ffn/dot", place="jit(step)/mlp/dot"),
            "renamed",
        ),
        (op("fusion"), op("fusion", shape="f32[16]"), "reshaped"),
        (
            op("RPA-bq_32-p_64-", scope="jit(step)/RPA-bq_32-p_64-", shape="a"),
            op("RPA-bq_16-p_128-", scope="jit(step)/RPA-bq_16-p_128-", shape="b"),
            "kernel_variant",
        ),
        (op("fusion"), op("fusion", scope="jit(step)/ffn/dot_general"), "moved"),
        (op("fusion"), op("fusion", pass_="recompute"), "moved"),
        (op("fusion"), op("convolution_add_fusion"), "replaced"),
        (op("fusion"), op("custom-call", shape="f32[1]"), "replaced"),
        (
            op("fusion", scope="jit(step)/mlp/up/dot_general"),
            op("kernel", scope="jit(step)/mlp/pallas", shape="f32[1]"),
            "replaced",
        ),
    ],
)
def test_each_way(before, after, how):
    (match,) = match_ops([before], [after])
    assert (match.how, match.before, match.after) == (how, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Another kind, even at the same place: an all-gather is no all-reduce.
        (
            op("all-reduce", kind="all-reduce", scope="jit(step)/mlp/psum"),
            op("all-gather", kind="all-gather", scope="jit(step)/mlp/psum"),
        ),
        (op("fusion"), op("all-reduce", kind="all-reduce", scope="jit(step)/mlp/add")),
        # Another pass, another number of calls, another region.
        (op("fusion", pass_="forward"), op("fusion", pass_="recompute", calls=2)),
        (op("fusion", pass_="forward"), op("fusion", pass_="recompute", shape="f32[9]")),
        (op("fusion"), op("dot", shape="f32[1]", calls=2)),
        (op("fusion"), op("dot", scope="jit(step)/attention/dot", shape="f32[2]")),
        (op("fusion"), op("fusion", scope="jit(step)/attention/exp")),
        (op("fusion"), op("fusion", scope="jit(step)/ffn/dot_general", calls=3)),
        # Without a scope a name says too little.
        (op("copy", scope=None, shape="f32[1]"), op("copy", scope=None, shape="f32[2]")),
        (op("fusion_1", scope=None), op("fusion_2", scope=None)),
    ],
)
def test_what_has_no_partner(before, after):
    assert {match.how for match in match_ops([before], [after])} == ALONE
    assert {match.how for match in match_ops([after], [before])} == ALONE


def test_the_closest_partner_counts():
    """Four alike ops with one change each: nobody takes another's partner."""
    before = [
        op("fusion", shape="a"),
        op("fusion", shape="b"),
        op("dot", shape="a"),
        op("fusion", shape="a", scope="jit(step)/attention/dot_general"),
    ]
    after = [
        op("fusion", shape="a", number=9),
        op("fusion", shape="c"),
        op("kernel", shape="a"),
        op("fusion", shape="a", scope="jit(step)/attn/dot_general"),
    ]
    found = {match.how: (match.before, match.after) for match in match_ops(before, after)}
    assert found == {
        "renumbered": (before[0], after[0]),
        "reshaped": (before[1], after[1]),
        "moved": (before[3], after[3]),
        "replaced": (before[2], after[2]),
    }


def test_what_grew_takes_in_nothing_that_went():
    """+244 us of one op and 302 us of another that is gone are two rows."""
    before = [op("fusion", 1000), op("exp", 302, scope="jit(step)/mlp/exp", shape="f32[3]")]
    assert shown(match_ops(before, [op("fusion", 1244)])) == [
        ("exact", "fusion", "fusion"),
        ("only_before", "exp", None),
    ]


def test_the_parts_of_a_fusion_are_no_partners_of_it():
    parts = [op("dot", 6), op("tanh", 5, scope="jit(step)/mlp/tanh")]
    assert shown(match_ops([op("fusion", 10)], parts)) == [
        ("only_after", None, "dot"),
        ("only_after", None, "tanh"),
        ("only_before", "fusion", None),
    ]
    # Not even if one alone has as many calls.
    parts[1] = op("tanh", 5, scope="jit(step)/mlp/tanh", calls=2)
    assert {match.how for match in match_ops([op("fusion", 10)], parts)} == ALONE
    assert {match.how for match in match_ops(parts, [op("fusion", 10)])} == ALONE
    # Nor of one that stays and shrinks.
    assert shown(match_ops([op("fusion", 10)], [op("fusion", 6), parts[1]])) == [
        ("exact", "fusion", "fusion"),
        ("only_after", None, "tanh"),
    ]


def test_two_collectives_in_place_of_one():
    before = [op("all-reduce", kind="all-reduce", scope="jit(step)/mlp/psum")]
    after = [
        op(name, kind=name, scope="jit(step)/mlp/psum") for name in ("all-gather", "reduce-scatter")
    ]
    assert shown(match_ops(before, after)) == [
        ("only_after", None, "all-gather"),
        ("only_after", None, "reduce-scatter"),
        ("only_before", "all-reduce", None),
    ]


def test_a_collective_under_another_name_of_another_primitive():
    before = op("all-reduce", kind="all-reduce", scope="jit(step)/mlp/up/dot_general")
    after = op("psum", kind="all-reduce", scope="jit(step)/mlp/psum")
    compute = op("fusion", scope="jit(step)/mlp/exp"), op("fusion", scope="jit(step)/mlp/log")
    assert shown(match_ops([before, compute[0]], [after, compute[1]])) == [
        ("replaced", "all-reduce", "psum"),
        ("replaced", "fusion", "fusion"),
    ]
    # A new collective of another kind beside it does not matter.
    more = op("all-gather", kind="all-gather", scope="jit(step)/mlp/psum")
    assert shown(match_ops([before], [after, more])) == [
        ("only_after", None, "all-gather"),
        ("replaced", "all-reduce", "psum"),
    ]


def test_all_shapes_scaled_are_matched_in_order():
    before = [op("fusion", shape=f"f32[{rows},64]") for rows in (2, 8, 16)]
    after = [op("fusion", shape=f"f32[{rows},64]") for rows in (4, 16, 32)]
    # 16 is in both, and is taken for itself; 2 and 8 became 4 and 32 (by size, not by text).
    pairs = {
        (match.how, match.before.group.shape_signature, match.after.group.shape_signature)
        for match in match_ops(before, after)
    }
    assert pairs == {
        ("exact", "f32[16,64]", "f32[16,64]"),
        ("reshaped", "f32[2,64]", "f32[4,64]"),
        ("reshaped", "f32[8,64]", "f32[32,64]"),
    }
    # One more shape: which is which is not known.
    more = [*after[:2], op("fusion", shape="f32[7,64]"), op("fusion", shape="f32[9,64]")]
    assert {match.how for match in match_ops(before, more)} == {"exact", *ALONE}


def test_what_is_not_known_of_one_scope_is_of_another():
    def ops(scope: str, *shapes: str) -> list[OpTime]:
        return [op("fusion", shape=shape, scope=f"jit(step)/{scope}/dot") for shape in shapes]

    before = [*ops("a", "f32[2]", "f32[3]"), *ops("b", "f32[2]")]
    after = [*ops("a", "f32[4]", "f32[5]", "f32[6]"), *ops("b", "f32[7]")]
    found = match_ops(before, after)
    assert [match.how for match in found if match.before and match.after] == ["reshaped"]
    assert len(found) == 6


def test_what_makes_ops_alike():
    one = op("fusion", kind="on_chip", shape="a", scope="f/b", pass_="backward")
    assert one.key == ("fusion", "on_chip", "a", "f/b", "backward")
    without = OpGroup(
        canonical_name="copy", category="compute", num_names=1, count=1, exclusive_duration=1,
        exposed_duration=1,
    )  # fmt: skip
    assert op_key(without) == ("copy", "compute", "", "", "")


def test_regions():
    assert region_of(("jit(step)", "mlp", "dot_general")) == ("jit(step)", "mlp")
    assert region_of(("jit(step)",)) == ("jit(step)",)
    assert region_of(()) == ()
    kernel = op("kernel", scope="jit(step)/mlp")
    assert own_region(kernel, known_regions([kernel])) == ("jit(step)",)
    assert own_region(kernel, known_regions([kernel, op("fusion")])) == ("jit(step)", "mlp")


SIDES = st.lists(
    st.builds(
        op,
        st.sampled_from(["fusion", "dot", "kernel_1", "kernel_2"]),
        st.integers(0, 50),
        kind=st.sampled_from(["compute", "all-reduce", "on_chip"]),
        shape=st.sampled_from(["a", "b"]),
        scope=st.sampled_from([None, "f", "f/mlp/dot", "f/mlp/up/dot", "f/attention/exp"]),
        pass_=st.sampled_from(["forward", "backward"]),
        number=st.integers(1, 3),
    ),
    max_size=12,
    unique_by=lambda side: side.key,
)


def keys(side: OpTime | None) -> tuple[str, ...]:
    return side.key if side else ()


SWAPPED = {"only_before": "only_after", "only_after": "only_before"}


@settings(deadline=None, max_examples=200)
@given(SIDES, SIDES, st.randoms(use_true_random=False))
def test_every_op_is_in_one_match(before, after, random):
    found = match_ops(before, after)
    assert sorted(m.before.key for m in found if m.before) == sorted(s.key for s in before)
    assert sorted(m.after.key for m in found if m.after) == sorted(s.key for s in after)
    for match in found:
        assert (match.before is None) == (match.how == "only_after")
        assert (match.after is None) == (match.how == "only_before")
        if match.before and match.after:
            assert match.before.group.category == match.after.group.category
            assert match.before.group.pass_ == match.after.group.pass_ or match.how == "moved"
    # In any order of the ops, and the other way round.
    shuffled_before, shuffled_after = list(before), list(after)
    random.shuffle(shuffled_before)
    random.shuffle(shuffled_after)
    assert match_ops(shuffled_before, shuffled_after) == found
    back = match_ops(after, before)
    assert sorted((m.how, keys(m.before), keys(m.after)) for m in found) == sorted(
        (SWAPPED.get(m.how, m.how), keys(m.after), keys(m.before)) for m in back
    )


@settings(deadline=None, max_examples=100)
@given(SIDES)
def test_a_program_is_itself(sides):
    assert {match.how for match in match_ops(sides, sides)} <= {"exact"}
