"""Which steps are which: pairs by name, by hand."""

from __future__ import annotations

import re

from hlo_text import program
from marin_profile.comparison.hlo.matching import is_alike, match
from marin_profile.comparison.hlo.opened import open_program

LAYERS = """
    ENTRY {
      x = f32[8,8] parameter(0) scope=x
      w1 = f32[8,8] parameter(1) scope=w1
      w2 = f32[8,8] parameter(2) scope=w2
      d1 = f32[8,8] dot(x, w1) scope=jit(f)/layer_1/dot
      t1 = f32[8,8] tanh(d1) scope=jit(f)/layer_1/tanh
      d2 = f32[8,8] dot(t1, w2) scope=jit(f)/layer_2/dot
      t2 = f32[8,8] tanh(d2) scope=jit(f)/layer_2/tanh
      ROOT n = f32[8,8] negate(t2) scope=jit(f)/neg
    }
"""


def pairs(before: str, after: str, *, alike: bool | None = None) -> dict[str, str]:
    matched = match(open_program(program(before), ()), open_program(program(after), ()))
    return {
        one.node.name: two.node.name
        for one, two in matched.pairs()
        if alike is None or is_alike(one, two) is alike
    }


def renamed(text: str) -> str:
    return re.sub(r"\b([a-z]\d?)\b(?!/|\(f\))", r"\1_new", text)


NAMES = ["x", "w1", "w2", "d1", "t1", "d2", "t2", "n"]


def test_names_play_no_part():
    assert pairs(LAYERS, renamed(LAYERS), alike=True) == {name: f"{name}_new" for name in NAMES}


def test_the_order_of_parameters_plays_no_part():
    other = LAYERS.replace("parameter(0)", "parameter(9)").replace("parameter(2)", "parameter(0)")
    other = other.replace("parameter(9)", "parameter(2)")
    assert pairs(LAYERS, other, alike=True) == {name: name for name in NAMES}


def test_operands_of_a_sum_may_change_places():
    text = """
        ENTRY {
          x = f32[8] parameter(0)
          s = f32[8] sine(x)
          c = f32[8] cosine(x)
          ROOT a = f32[8] add(s, c)
        }
    """
    assert len(pairs(text, text.replace("add(s, c)", "add(c, s)"), alike=True)) == 4


def test_what_comes_between_is_looked_through():
    other = LAYERS.replace(
        "t1 = f32[8,8] tanh(d1)", "moved = f32[8,8] copy(d1)\nt1 = f32[8,8] tanh(moved)"
    )
    assert pairs(LAYERS, other, alike=True) == {name: name for name in NAMES}


def test_another_shape_is_a_changed_pair():
    other = LAYERS.replace("d1 = f32[8,8] dot", "d1 = f32[8,16] dot")
    assert pairs(LAYERS, other, alike=False) == {"d1": "d1"}


def test_layers_that_are_alike_pair_by_their_place():
    """The second layer goes: the first keeps its partner, and so does the last step."""
    other = "\n".join(line for line in LAYERS.splitlines() if " d2 " not in line)
    other = "\n".join(line for line in other.splitlines() if " t2 " not in line)
    other = other.replace("negate(t2)", "negate(t1)")
    assert pairs(LAYERS, other, alike=True) == {
        name: name for name in NAMES if name not in ("d2", "t2")
    }


def test_what_is_computed_again_is_not_what_it_is_computed_from():
    before = """
        ENTRY {
          x = f32[8] parameter(0)
          t = f32[8] tanh(x) scope=jit(f)/jvp(mlp)/tanh
          u = f32[8] exponential(t) scope=jit(f)/jvp(mlp)/exp
          ROOT g = f32[8] multiply(t, u) scope=jit(f)/transpose(jvp(mlp))/mul
        }
    """
    after = """
        ENTRY {
          x = f32[8] parameter(0)
          t = f32[8] tanh(x) scope=jit(f)/jvp(mlp)/tanh
          u = f32[8] exponential(t) scope=jit(f)/jvp(mlp)/exp
          again = f32[8] tanh(x) scope=jit(f)/transpose(jvp(mlp))/rematted_computation/tanh
          ROOT g = f32[8] multiply(again, u) scope=jit(f)/transpose(jvp(mlp))/mul
        }
    """
    assert pairs(before, after) == {"x": "x", "t": "t", "u": "u", "g": "g"}


def test_two_programs_with_nothing_in_common():
    other = """
        ENTRY {
          i = s32[4] iota()
          ROOT s = s32[4] sort(i)
        }
    """
    assert pairs(LAYERS, other) == {}
