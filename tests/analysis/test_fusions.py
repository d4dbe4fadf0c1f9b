"""Scopes of fusions, by hand."""

from __future__ import annotations

import pytest

from builders_xspace import (
    Space,
    computation,
    hlo_proto,
    instruction,
    shape_proto,
    summary_of,
)
from marin_profile.queries import answer

LARGE, SMALL = shape_proto(11, 8, 64), shape_proto(11, 8)


def fused(*inside, opcode: str = "fusion", root: int = 0) -> Space:
    """A fusion that runs 40 us, named jit(f)/loss/sum after its root."""
    body = computation(2, root, *inside)
    entry = computation(
        1, 11, instruction("fusion.1", opcode, id=11, op_name="jit(f)/loss/sum", calls=[2])
    )
    space = Space().hlo(7, hlo_proto(body, entry))
    space.host().cpu_op("fusion.1", 0, 40, run_id=1, program_id=7)
    return space


def op(number: int, opcode: str, path: str, shape=SMALL):
    return instruction(f"{opcode}.{number}", opcode, id=number, op_name=path, shape=shape)


def hot(space: Space):
    (row,) = summary_of(space.analyse(warmup_steps=0)).hot_ops
    return row.tf_op_path, row.fused_with


EXP = op(21, "exponential", "jit(f)/jvp(softmax)/exp", LARGE)
SUM = op(29, "reduce", "jit(f)/loss/sum")


def test_the_largest_result_not_the_root():
    assert hot(fused(EXP, SUM, root=29)) == ("jit(f)/softmax/exp", ["jit(f)/loss"])


def test_a_product_however_small_comes_first():
    dot = instruction(
        "dot.22", "dot", id=22, op_name="jit(f)/mlp/dot_general", shape=SMALL, contracting=[1]
    )
    space = fused(EXP, dot, SUM, root=29)
    assert hot(space) == ("jit(f)/mlp/dot_general", ["jit(f)/loss", "jit(f)/softmax"])


@pytest.mark.parametrize(("root", "name"), [(21, "a"), (22, "b"), (0, "b")])
def test_of_equal_ones_the_root_else_the_last(root, name):
    twins = [op(at, "negate", f"jit(f)/{one}/neg") for at, one in ((21, "a"), (22, "b"))]
    assert hot(fused(*twins, root=root))[0] == f"jit(f)/{name}/neg"


@pytest.mark.parametrize("opcode", ["broadcast", "iota", "parameter", "bitcast"])
def test_what_is_no_work_does_not_count(opcode):
    idle = op(22, opcode, "jit(f)/mask/make", LARGE)
    assert hot(fused(idle, SUM, root=29)) == ("jit(f)/loss/sum", [])


@pytest.mark.parametrize("opcode", ["while", "conditional", "all-reduce"])
def test_what_is_no_fusion_keeps_its_own_scope(opcode):
    assert hot(fused(EXP, SUM, opcode=opcode, root=29)) == ("jit(f)/loss/sum", [])


def test_without_sizes_and_paths_the_fusion_says_it_itself():
    nameless = op(22, "negate", "", LARGE)
    unsized = instruction("add.23", "add", id=23, op_name="jit(f)/other/add")
    assert hot(fused(nameless, root=22)) == ("jit(f)/loss/sum", [])
    assert hot(fused(unsized, root=23)) == ("jit(f)/loss/sum", ["jit(f)/other"])


def test_regions_say_what_they_are_fused_with():
    """40 us of softmax also hold the loss; both are in the program."""
    summary = summary_of(fused(EXP, SUM, root=29).analyse(warmup_steps=0))
    rows = {row.path: row.fused_with for row in summary.hierarchical_regions}
    assert rows == {
        "jit(f)": {},
        "jit(f)=>softmax": {"jit(f)=>loss": 40.0},
        "jit(f)=>softmax=>exp": {"jit(f)=>loss": 40.0},
    }
    first = answer(summary, "Show the hierarchical regions")["results"][1]
    assert first["fused_with"] == {"jit(f)=>loss": 40.0}


def test_what_a_region_is_fused_with_for_longest_comes_first():
    """Softmax runs 40 us together with a, and 60 us with b."""
    space = Space()
    host = space.host()
    ones = [("fusion.1", "a", 40), ("fusion.2", "b", 60)]
    bodies = [
        computation(
            10 + at, 0, op(100 * at + 21, "exponential", "jit(f)/softmax/exp", LARGE), other
        )
        for at, (_, name, _) in enumerate(ones)
        for other in [op(100 * at + 22, "negate", f"jit(f)/{name}/neg")]
    ]
    calls = [
        instruction(name, "fusion", id=500 + at, op_name="jit(f)/x/y", calls=[10 + at])
        for at, (name, _, _) in enumerate(ones)
    ]
    space.hlo(7, hlo_proto(*bodies, computation(1, 500, *calls)))
    for at, (name, _, length) in enumerate(ones):
        host.cpu_op(name, 100 * at, length, run_id=1, program_id=7)
    summary = summary_of(space.analyse(warmup_steps=0))
    (softmax,) = (row for row in summary.hierarchical_regions if row.path == "jit(f)=>softmax")
    assert list(softmax.fused_with.items()) == [("jit(f)=>b", 60.0), ("jit(f)=>a", 40.0)]
