"""Which ops are which; times in us, per step and device."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.comparison.matching import OpMatch, OpTime, match_ops, region_of
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
    return OpTime(group, Fraction(time))


def shown(matches: list[OpMatch]) -> list[tuple[str, list[str], list[str]]]:
    return [
        (
            match.how,
            sorted(side.group.canonical_name for side in match.before),
            sorted(side.group.canonical_name for side in match.after),
        )
        for match in matches
    ]


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        (op("fusion"), op("fusion"), "exact"),
        (op("fusion", number=1), op("fusion", number=7), "renumbered"),
        (op("fusion"), op("fusion", shape="f32[16]"), "reshaped"),
        (
            op("RPA-bq_32-p_64-", scope="jit(step)/RPA-bq_32-p_64-", shape="a"),
            op("RPA-bq_16-p_128-", scope="jit(step)/RPA-bq_16-p_128-", shape="b"),
            "kernel_variant",
        ),
        (op("fusion"), op("convolution_add_fusion"), "kernel_variant"),
        (op("fusion"), op("custom-call", shape="f32[1]"), "kernel_variant"),
        (op("fusion"), op("fusion", scope="jit(step)/ffn/dot_general"), "moved"),
        (
            op("fusion", scope="jit(step)/mlp/up/dot_general"),
            op("kernel", scope="jit(step)/mlp/pallas", shape="f32[1]"),
            "replaced",
        ),
        (
            op("all-reduce", kind="all-reduce", scope="jit(step)/mlp/psum"),
            op("fusion", scope="jit(step)/mlp/add", shape="f32[2]"),
            "replaced",
        ),
        (
            op("fusion", scope=None, shape="f32[1]"),
            op("copy", scope=None, shape="f32[2]"),
            "same_kind",
        ),
    ],
)
def test_each_way(before, after, how):
    (match,) = match_ops([before], [after])
    assert (match.how, match.before, match.after) == (how, (before,), (after,))
    # And the other way round, by the same way.
    (match,) = match_ops([after], [before])
    assert match.how == how


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Another kind without a common region, another program's region, another pass.
        (op("fusion"), op("all-reduce", kind="all-reduce", scope="jit(step)/attention/psum")),
        (op("fusion", scope=None), op("all-gather", kind="all-gather", scope=None)),
        (op("fusion", pass_="forward"), op("dot", scope="jit(step)/x/dot", pass_="backward")),
        # A large new op is not what became of a small old one.
        (op("fusion", 1), op("dot", 6, scope="jit(step)/attention/dot", shape="f32[2]")),
        (op("fusion", 1), op("dot", 6, scope="jit(step)/mlp/up/dot", shape="f32[2]")),
    ],
)
def test_what_has_no_partner(before, after):
    assert {match.how for match in match_ops([before], [after])} == {"only_before", "only_after"}


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
        "renumbered": ((before[0],), (after[0],)),
        "reshaped": ((before[1],), (after[1],)),
        "kernel_variant": ((before[2],), (after[2],)),
        "moved": ((before[3],), (after[3],)),
    }


def test_more_shapes_of_an_op_join_it():
    before = [op("fusion", 7, shape="a"), op("copy", 1, scope=None, shape="a")]
    after = [
        op("fusion", 7, shape="a"),
        op("fusion", 90, shape="b"),
        op("copy", 1, scope=None, shape="a"),
        op("copy", 2, scope=None, shape="b"),
    ]
    # Without a scope the same name says too little.
    assert shown(match_ops(before, after)) == [
        ("exact", ["copy"], ["copy"]),
        ("only_after", [], ["copy"]),
        ("reshaped", ["fusion"], ["fusion", "fusion"]),
    ]


def test_a_split_needs_time_that_went_away():
    gone, stayed = op("fusion", 20), op("fusion", 20, number=2)
    new = op("exp", 8, scope="jit(step)/mlp/exp", shape="f32[3]")
    assert shown(match_ops([gone], [op("fusion", 12), new])) == [
        ("split", ["fusion"], ["exp", "fusion"])
    ]
    assert {match.how for match in match_ops([stayed], [stayed, new])} == {"exact", "only_after"}


def test_what_is_left_of_a_rewritten_region_joins_it():
    before = [op("dot", 20, scope="jit(step)/mlp/up/dot")]
    after = [
        op("kernel", 9, scope="jit(step)/mlp/kernel", shape="x"),
        op("all-to-all", 2, kind="all-to-all", scope="jit(step)/mlp", shape="y"),
    ]
    assert shown(match_ops(before, after)) == [("replaced", ["dot"], ["all-to-all", "kernel"])]


def test_regions():
    assert region_of("jit(step)/mlp/dot_general") == ("jit(step)", "mlp")
    assert region_of("jit(step)") == ("jit(step)",)
    assert region_of(None) == ()


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


@settings(deadline=None, max_examples=200)
@given(SIDES, SIDES, st.randoms(use_true_random=False))
def test_every_op_is_in_one_match(before, after, random):
    found = match_ops(before, after)
    assert sorted(s.key for m in found for s in m.before) == sorted(s.key for s in before)
    assert sorted(s.key for m in found for s in m.after) == sorted(s.key for s in after)
    for match in found:
        assert match.before or match.how == "only_after"
        assert match.after or match.how == "only_before"
    # In any order of the ops.
    shuffled_before, shuffled_after = list(before), list(after)
    random.shuffle(shuffled_before)
    random.shuffle(shuffled_after)
    assert match_ops(shuffled_before, shuffled_after) == found


@settings(deadline=None, max_examples=100)
@given(SIDES)
def test_a_program_is_itself(sides):
    assert {match.how for match in match_ops(sides, sides)} <= {"exact"}
