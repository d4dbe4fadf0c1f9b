"""Opened programs: every step, what it takes and which op does it, by hand."""

from __future__ import annotations

import pytest

from hlo_text import program
from marin_profile.comparison.hlo import opened as module
from marin_profile.comparison.hlo.opened import Opened, TooLargeError, open_program
from marin_profile.events.hlo_program import HloBlock, HloNode, HloProgram

Row = tuple[str, str, list[str]]


def rows(opened: Opened) -> list[Row]:
    """(opcode, unit, opcodes of the operands) of each step."""
    return [
        (step.opcode, step.unit, [opened.steps[at].opcode for at in step.operands])
        for step in opened.steps
    ]


def test_a_fusion_is_its_steps():
    found = open_program(
        program("""
            inside {
              p = f32[8] parameter(0)
              q = f32[8] parameter(1)
              m = f32[8] multiply(p, q)
              ROOT t = f32[8] tanh(m)
            }
            ENTRY {
              x = f32[8] parameter(0)
              y = f32[8] parameter(1)
              b = f32[8] bitcast(y)
              f = f32[8] fusion(x, b) calls=inside
              ROOT n = f32[8] negate(f)
            }
        """),
        (),
    )
    assert rows(found) == [
        ("parameter", "x", []),
        ("parameter", "y", []),
        ("multiply", "f", ["parameter", "parameter"]),
        ("tanh", "f", ["multiply"]),
        ("negate", "n", ["tanh"]),
    ]
    assert found.users == ((2,), (2,), (3,), (4,), ())
    assert found.results == (4,)


def test_results_of_a_fusion_with_several():
    found = open_program(
        program("""
            inside {
              p = f32[8] parameter(0)
              s = f32[8] sine(p)
              c = f32[8] cosine(p)
              ROOT r = (f32[8], f32[8]) tuple(s, c)
            }
            ENTRY {
              x = f32[8] parameter(0)
              f = (f32[8], f32[8]) fusion(x) calls=inside
              second = f32[8] get-tuple-element(f, 1)
              ROOT n = f32[8] negate(second)
            }
        """),
        (),
    )
    assert rows(found)[-1] == ("negate", "n", ["cosine"])


CALLED = """
    inside {
      p = f32[8] parameter(0)
      ROOT s = f32[8] sine(p)
    }
    ENTRY {
      x = f32[8] parameter(0)
      ROOT c = f32[8] call(x) calls=inside
    }
"""


@pytest.mark.parametrize(("timed", "unit"), [((), "s"), (("c",), "c")])
def test_a_call_is_one_op_only_where_the_trace_has_it(timed, unit):
    assert rows(open_program(program(CALLED), timed))[-1] == ("sine", unit, ["parameter"])


def test_a_computation_that_is_called_twice_has_its_steps_twice():
    text = CALLED.replace(
        "ROOT c = f32[8] call(x)", "d = f32[8] call(x) calls=inside\nROOT c = f32[8] call(d)"
    )
    assert [row[0] for row in rows(open_program(program(text), ()))] == [
        "parameter",
        "sine",
        "sine",
    ]


LOOP = """
    turn {
      carried = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(carried, 0)
      one = s32[] constant() literal=1
      next = s32[] add(i, one)
      x = f32[8] get-tuple-element(carried, 1)
      t = f32[8] tanh(x)
      ROOT out = (s32[], f32[8]) tuple(next, t)
    }
    goes_on {
      held = (s32[], f32[8]) parameter(0)
      at = s32[] get-tuple-element(held, 0)
      end = s32[] constant() literal=9
      ROOT less = pred[] compare(at, end)
    }
    ENTRY {
      zero = s32[] constant() literal=0
      a = f32[8] parameter(0)
      start = (s32[], f32[8]) tuple(zero, a)
      w = (s32[], f32[8]) while(start) calls=CALLS trips=9
      ROOT last = f32[8] get-tuple-element(w, 1)
    }
"""


@pytest.mark.parametrize("calls", ["goes_on,turn", "turn,goes_on"])
def test_a_loop(calls):
    found = open_program(program(LOOP.replace("CALLS", calls)), ())
    tanh = next(step for step in found.steps if step.opcode == "tanh")
    assert (tanh.loops, tanh.unit) == (("w",), "t")
    (result,) = (found.steps[at] for at in found.results)
    assert result.opcode == "loop-result"
    assert [found.steps[at].opcode for at in result.operands] == ["loop-value", "tanh", "while"]
    (value,) = (found.steps[at] for at in tanh.operands)
    assert [found.steps[at].node.name for at in value.operands] == ["a"]
    turned = next(step for step in found.steps if step.opcode == "while")
    assert [found.steps[at].opcode for at in turned.operands] == ["compare"]


def test_a_pair_of_start_and_done_is_one_step_of_the_start():
    found = open_program(
        program("""
            ENTRY {
              x = f32[8] parameter(0)
              s = (f32[8], f32[64]) all-gather-start(x) groups=0-1
              d = f32[64] all-gather-done(s)
              ROOT n = f32[64] negate(d)
            }
        """),
        (),
    )
    gather = found.steps[1]
    assert (gather.opcode, gather.unit, gather.shape, gather.is_async) == (
        "all-gather",
        "s",
        "f32[64]",
        True,
    )
    assert found.ends == {"d": "s"}
    assert rows(found)[-1] == ("negate", "n", ["all-gather"])


def test_what_is_wrapped_to_run_beside_others():
    found = open_program(
        program("""
            wrapped {
              p = f32[8] parameter(0)
              ROOT r = f32[2] reduce-scatter(p) groups=0-1-2-3
            }
            ENTRY {
              x = f32[8] parameter(0)
              s = ((f32[8]), f32[2]) async-start(x) calls=wrapped
              ROOT d = f32[2] async-done(s)
            }
        """),
        (),
    )
    assert [(step.opcode, step.unit, step.is_async) for step in found.steps[1:]] == [
        ("reduce-scatter", "s", True)
    ]
    assert found.ends == {"d": "s"}


def test_the_branches_of_a_conditional():
    found = open_program(
        program("""
            yes {
              p = f32[8] parameter(0)
              ROOT s = f32[8] sine(p)
            }
            no {
              q = f32[8] parameter(0)
              ROOT c = f32[8] cosine(q)
            }
            ENTRY {
              x = f32[8] parameter(0)
              which = pred[] parameter(1)
              ROOT r = f32[8] conditional(which, x, x) calls=yes,no
            }
        """),
        (),
    )
    (result,) = (found.steps[at] for at in found.results)
    assert [found.steps[at].opcode for at in result.operands] == ["sine", "cosine", "conditional"]


def test_what_a_reduction_applies_is_part_of_it():
    text = """
        sum {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] APPLIED(a, b)
        }
        ENTRY {
          x = f32[8] parameter(0)
          zero = f32[] constant() literal=0
          ROOT out = f32[] reduce(x, zero) calls=sum
        }
    """
    added, largest, again = (
        open_program(program(text.replace("APPLIED", opcode)), ()).steps[-1].computes
        for opcode in ("add", "maximum", "add")
    )
    assert added == again != largest


def test_operands_may_stand_behind_what_takes_them():
    found = open_program(
        program("""
            ENTRY {
              ROOT n = f32[8] negate(x)
              x = f32[8] parameter(0)
            }
        """),
        (),
    )
    assert rows(found) == [("parameter", "x", []), ("negate", "n", ["parameter"])]


def test_calls_that_double_with_each_level_are_too_many(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 1000)
    levels = "".join(
        f"c{at} {{\np{at} = f32[8] parameter(0)\na{at} = f32[8] call(p{at}) calls=c{at - 1}\n"
        f"ROOT b{at} = f32[8] call(a{at}) calls=c{at - 1}\n}}\n"
        for at in range(1, 60)
    )
    text = f"c0 {{\nROOT p0 = f32[8] parameter(0)\n}}\n{levels}ENTRY {{\nx = f32[8] parameter(0)\n"
    with pytest.raises(TooLargeError):
        open_program(program(f"{text}ROOT r = f32[8] call(x) calls=c59\n}}"), ())


def test_a_computation_that_calls_itself_ends():
    node = HloNode("r", "call", "f32[8]", called=(1,))
    endless = HloProgram("jit_f", 1, {"r": node}, {1: HloBlock(("r",), "r")}, 1)
    assert open_program(endless, ()).steps == ()


def test_missing_computations_and_operands_give_what_is_there():
    lone = HloProgram(
        "jit_f",
        1,
        {"r": HloNode("r", "add", "f32[8]", operands=("gone",), called=(7,))},
        {1: HloBlock(("r",), "r")},
        1,
    )
    assert rows(open_program(lone, ())) == [("add", "r", [])]
    assert open_program(HloProgram("jit_f", 1, {}, {}, 5), ()).steps == ()
