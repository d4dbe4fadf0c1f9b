"""Regions that were rewritten are compared with what they were."""

from fractions import Fraction

from marin_profile.comparison.matching import OpTime
from marin_profile.comparison.regions import compared_times, inclusive_times
from marin_profile.schema import OpGroup


def side(scope: str | None, time: int, pass_: str = "forward") -> OpTime:
    group = OpGroup(
        canonical_name="fusion", category="compute", scope=scope, pass_=pass_, num_names=1, count=1,
        exclusive_duration=time, exposed_duration=time,
    )  # fmt: skip
    return OpTime(group, Fraction(time))


def shown(before, after) -> dict[str, tuple[int | None, int | None]]:
    return {
        "/".join(path): (time.before, time.after)
        for path, time in compared_times(before, after).items()
    }


def test_a_rewritten_region_counts_in_the_one_above():
    before = [side("f/mlp/mn,pn->mp/dot", 20), side("f/mlp/add", 1), side("f/norm/mul", 3)]
    after = [side("f/mlp/kernel", 12), side("f/mlp/quantize/mul", 4), side("f/norm/mul", 3)]
    assert shown(before, after) == {"f/mlp": (21, 16), "f/norm": (3, 3)}


def test_a_new_region_stays_one():
    before = [side("f/mlp/dot", 20)]
    after = [side("f/mlp/dot", 20), side("f/mlp/extra/sin", 30), side("f/new/sin", 1)]
    assert shown(before, after) == {
        "f/mlp": (20, 20),
        "f/mlp/extra": (None, 30),
        "f/new": (None, 1),
    }


def test_nothing_is_counted_at_the_root_that_stood_below_it():
    assert shown([side("f/a/dot", 10)], [side("f/b/dot", 9)]) == {
        "f/a": (10, None),
        "f/b": (None, 9),
    }


def test_ops_without_a_scope_and_passes():
    times = compared_times([side(None, 5)], [side(None, 7, "backward")])
    assert {path: time.by_pass for path, time in times.items()} == {
        (): {"forward": -5, "backward": 7}
    }


def test_inclusive_times():
    times = inclusive_times([side("f/a/b/dot", 10), side("f/a/dot", 5)], [side("f/a/dot", 1)])
    assert {path: (time.before, time.after) for path, time in times.items()} == {
        ("f",): (15, 1),
        ("f", "a"): (15, 1),
        ("f", "a", "b"): (10, None),
    }


def test_a_kernel_that_names_no_primitive_stands_in_its_region():
    assert shown([side("f/attention/dot", 10)], [side("f/attention", 8)]) == {
        "f/attention": (10, 8)
    }
