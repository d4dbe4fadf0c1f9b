"""Time by region, and the fewest regions that account for the change; times in ps by hand."""

from __future__ import annotations

from fractions import Fraction

from marin_profile.comparison.matching import OpMatch, OpTime, match_ops
from marin_profile.comparison.noise import RowTimes
from marin_profile.comparison.regions import (
    Gross,
    RegionTime,
    elsewhere,
    fewest_regions,
    inclusive_times,
    own_times,
)
from marin_profile.schema import OpGroup


def side(scope: str | None, time: int, pass_: str = "forward", name: str = "fusion") -> OpTime:
    group = OpGroup(
        canonical_name=name, category="compute", scope=scope, pass_=pass_, num_names=1, count=1,
        exclusive_duration=time, exposed_duration=time,
    )  # fmt: skip
    return OpTime(group, (Fraction(time),))


def shown(found) -> dict[str, tuple[int | None, int | None]]:
    return {
        "/".join(path): tuple(one and one[0] for one in (time.times.before, time.times.after))
        for path, time in found.items()
    }


def test_an_op_stands_in_its_region():
    before = [side("f/mlp/dot", 20), side("f/mlp", 1), side("f/norm/mul", 3), side(None, 5)]
    after = [side("f/mlp/dot", 30), side("f/new/sin", 4), side("f/norm/mul", 3), side(None, 5)]
    matches = match_ops(before, after)
    assert shown(own_times(matches)) == {
        "": (5, 5), "f/mlp": (21, 30), "f/new": (None, 4), "f/norm": (3, 3)
    }  # fmt: skip
    assert shown(inclusive_times(matches)) == {
        "f": (24, 37), "f/mlp": (21, 30), "f/new": (None, 4), "f/norm": (3, 3)
    }  # fmt: skip


def test_gross_by_hand():
    """mlp: dot grew by 10, exp shrank by 2, mul (1) went, sin (4) came; a fusion of 3 moved from
    the norm into it."""
    before = [
        side("f/mlp/dot", 20), side("f/mlp/exp", 9), side("f/mlp/mul", 1, "backward"),
        side("f/norm/add", 3, name="moved"),
    ]  # fmt: skip
    after = [
        side("f/mlp/dot", 30), side("f/mlp/exp", 7), side("f/mlp/sin", 4, "optimizer"),
        side("f/mlp/add", 3, name="moved"),
    ]  # fmt: skip
    matches = match_ops(before, after)
    own, inclusive = own_times(matches), inclusive_times(matches)
    assert own["f", "mlp"].gross == Gross(added=7, removed=-1, grown=10, shrunk=-2)
    assert own["f", "norm"].gross == Gross(removed=-3)
    # Within both it only moved.
    assert inclusive["f",].gross == Gross(added=4, removed=-1, grown=10, shrunk=-2)
    assert own["f", "mlp"].delta == 14
    assert own["f", "mlp"].by_pass == {"forward": 11, "backward": -1, "optimizer": 4}


def test_a_replaced_kernel_went_and_came():
    (match,) = match_ops([side("f/a/dot", 10)], [side("f/a/kernel", 8, name="kernel")])
    assert match.how == "replaced"
    assert own_times([match])["f", "a"].gross == Gross(added=8, removed=-10)


def test_passes_of_ops_without_a_scope():
    times = own_times(
        [OpMatch("only_before", side(None, 5)), OpMatch("only_after", None, side(None, 7, "b"))]
    )
    assert {path: time.by_pass for path, time in times.items()} == {(): {"forward": -5, "b": 7}}
    assert inclusive_times([OpMatch("only_before", side(None, 5))]) == {}


# --- the fewest regions ------------------------------------------------------------------------


def fewest(deltas: dict[str, int], noise: frozenset[str] = frozenset()) -> dict[str, int]:
    """Of own changes by region; what they do not account for is in "elsewhere"."""
    own, inclusive = {}, {}
    for name, delta in deltas.items():
        path = tuple(name.split("/"))
        row = RowTimes((Fraction(1000),), (Fraction(1000 + delta),))
        own[path] = RegionTime(row)
        for depth in range(1, len(path) + 1):
            inclusive.setdefault(path[:depth], RegionTime()).add(RegionTime(row))
    quiet = frozenset(tuple(name.split("/")) for name in noise)
    found = fewest_regions(own, inclusive, quiet)
    rest = elsewhere(own, found).delta
    assert sum(time.delta for time in found.values()) + rest == sum(deltas.values())
    named = {"/".join(path): int(time.delta) for path, time in found.items()}
    return named | ({"elsewhere": int(rest)} if rest else {})


def tower(deltas: list[int]) -> dict[str, int]:
    return {f"f/tower/t{at:02}": delta for at, delta in enumerate(deltas)}


def test_a_tower_whose_layers_moved_both_ways_is_named_itself():
    """t12 +1350, the other even ones +100 each, the odd ones -487 or -488: -3400 in all."""
    odd = [-487, -488] * 6
    deltas = [odd[at // 2] if at % 2 else 1350 if at == 12 else 100 for at in range(24)]
    assert sum(deltas) == -3400
    assert fewest(tower(deltas)) == {"f/tower": -3400}


def test_one_layer_that_accounts_for_its_tower_is_named():
    """1350 of 1350 + 23 x 14 = 1672 is 80.7 %; of 1350 + 23 x 15 = 1695 it is 79.6 %."""
    sides = [14 if at % 2 else -14 for at in range(24)]
    assert fewest(tower([1350 if at == 12 else sides[at] for at in range(24)])) == {
        "f/tower/t12": 1350, "elsewhere": 14
    }  # fmt: skip
    sides = [15 if at % 2 else -15 for at in range(24)]
    assert fewest(tower([1350 if at == 12 else sides[at] for at in range(24)])) == {"f/tower": 1365}


def test_three_are_named_four_are_not():
    assert fewest(tower([5, -4, 3])) == {"f/tower/t00": 5, "f/tower/t01": -4, "f/tower/t02": 3}
    assert fewest(tower([5, 5, 5, 5])) == {"f/tower": 20}
    # Nor are small ones, to make up the four fifths: 77 of 100 and 8 that are each below a tenth.
    assert fewest(tower([77, 4, -4, 4, -4, 4, -3])) == {"f/tower": 78}
    assert fewest(tower([715, 95, 95, 95])) == {"f/tower": 1000}
    assert fewest(tower([7, 1, 1, 1])) == {"f/tower/t00": 7, "f/tower/t01": 1, "elsewhere": 2}
    # The fewest: two hold 9 of 10.
    assert fewest(tower([5, 4, 1])) == {"f/tower/t00": 5, "f/tower/t01": 4, "elsewhere": 1}


def test_it_goes_as_deep_as_one_accounts():
    assert fewest({"f/a/b/c/d": 9, "f/a/b/c/e": 1, "f/a": 1}) == {"f/a/b/c/d": 9, "elsewhere": 2}


def test_a_region_of_which_its_own_ops_moved_most_is_named():
    assert fewest({"f/a": 9, "f/a/b": 1}) == {"f/a": 10}
    assert fewest({"f/a": 5, "f/a/b": 5}) == {"f/a": 10}


def test_the_program_gives_way_to_five_and_its_own_ops():
    assert fewest({"f/a": 5, "f/b": -4, "f/c": 5, "f": 4, "f/d": 4, "f/e": 1}) == {
        "f/a": 5, "f/b": -4, "f/c": 5, "f/(itself)": 4, "f/d": 4, "elsewhere": 1
    }  # fmt: skip
    assert fewest({f"f/{name}": 5 for name in "abcdefg"}) == {"f": 35}
    assert fewest({"f": 5, "f/a": 5}) == {"f/(itself)": 5, "f/a": 5}
    # Its own ops alone are the program.
    assert fewest({"f": 10, "f/a": 1}) == {"f": 11}


def test_programs_stand_side_by_side_and_what_did_not_move_is_not_named():
    assert fewest({"f/a": 5, "g/b": -4, "h/c": 0}) == {"f/a": 5, "g/b": -4}
    assert fewest({"f/a": 5, "f/b": -5}) == {"f/a": 5, "f/b": -5}
    assert fewest({"f/a": 0}) == {}


def test_noise_does_not_count_as_moved():
    layers = tower([100, 40, -30, 20, 25])
    assert fewest(layers) == {"f/tower": 155}
    quiet = frozenset(name for name in layers if name != "f/tower/t00")
    assert fewest(layers, quiet) == {"f/tower/t00": 100, "elsewhere": 55}
    itself = {"f/a": 60, "f/a/b": 100}
    assert fewest(itself) == {"f/a": 160}
    assert fewest(itself, frozenset({"f/a/(itself)"})) == {"f/a/b": 100, "elsewhere": 60}
