"""Self time by scope path and pass."""

from builders_xspace import US, Space
from marin_profile.analysis.regions import region_totals


def regions(space: Space) -> dict[str, tuple[int, int, int]]:
    """name -> (count, inclusive us, exclusive us)"""
    return {
        row.name: (row.count, row.inclusive // US, row.exclusive // US)
        for row in region_totals(space.analyse().ops)
    }


def model() -> Space:
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        tpu.op("while.1", 0, 100, category="while", scope="jit(f)/jit(main)/while:")
        tpu.op("dot.1", 0, 40, scope="jit(f)/jvp(mlp)/dot_general:")
        tpu.op("add.1", 40, 10, scope="jit(f)/jvp(mlp)/add:")
        tpu.op("dot.2", 50, 30, scope="jit(f)/transpose(jvp(mlp))/dot_general:")
        tpu.op("x", 200, 7, scope="kernel")
    return space


def test_inclusive_and_exclusive_by_hand():
    assert regions(model()) == {
        "jit(f)": (8, 200, 40),
        "jit(f)=>mlp": (6, 160, 0),
        "jit(f)=>mlp=>dot_general": (4, 140, 140),
        "jit(f)=>mlp=>add": (2, 20, 20),
    }


def test_passes_of_a_region():
    rows = {row.name: row for row in region_totals(model().analyse().ops)}
    in_us = {name: time // US for name, time in rows["jit(f)=>mlp"].by_pass.items()}
    assert in_us == {"forward": 100, "backward": 60}


def test_a_parent_is_its_own_time_and_its_childrens():
    rows = region_totals(model().analyse().ops)
    for row in rows:
        children = sum(
            child.inclusive
            for child in rows
            if child.path[:-1] == row.path and len(child.path) == len(row.path) + 1
        )
        assert row.inclusive == row.exclusive + children


def test_ops_without_a_path_are_in_no_region():
    space = Space()
    space.tpu(0).op("x", 0, 7, scope="args[0]").op("y", 7, 7)
    assert regions(space) == {}
