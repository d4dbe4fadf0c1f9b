"""Loops of programs, by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from builders_xspace import Space, computation, hlo_proto, instruction, summary_of
from marin_profile.analysis.loop_bodies import in_branches, loops_of
from marin_profile.events.timeline import HloComputation, HloInstruction
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown


def training(counts: Mapping[str, int], runs: int = 2) -> Space:
    """A program whose loop while.1 holds a, b and the loop while.2, which holds c; d is outside.
    Each of `counts` ran so often a run, 10 us each."""
    scope = {"a": "jit(f)/while/body/jvp(mlp)/dot", "c": "jit(f)/while/body/jvp(inner)/exp"}
    ops = {
        name: instruction(name, "add", id=at, op_name=scope.get(name, ""))
        for at, name in enumerate("abcd", 10)
    }
    inner = computation(3, 12, ops["c"])
    outer = computation(
        2, 10, ops["a"], ops["b"], instruction("while.2", "while", id=20, calls=[3])
    )
    entry = computation(1, 13, instruction("while.1", "while", id=21, calls=[2]), ops["d"])
    space = Space().hlo(7, hlo_proto(inner, outer, entry))
    host, at = space.host(), 0
    for run in range(runs):
        for name, count in counts.items():
            for _ in range(count):
                host.cpu_op(name, at, 10, run_id=run, program_id=7)
                at += 10
    return space


def test_the_time_of_an_iteration():
    """Four rounds of two ops a run, each with two rounds of the inner loop."""
    summary = summary_of(training({"a": 4, "b": 4, "c": 8, "d": 1}).analyse(warmup_steps=0))
    outer, inner = summary.loops
    assert (outer.name, outer.around, outer.program, outer.program_id) == (
        "while.1", [], "jit_f", "7",
    )  # fmt: skip
    assert (outer.duration, outer.iterations) == (2 * 16 * 10.0, 8)
    assert (outer.iterations_per_execution, outer.duration_per_iteration) == (4.0, 40.0)
    assert outer.by_scope == {"": 80.0, "jit(f)/inner": 160.0, "jit(f)/mlp": 80.0}
    assert outer.pass_ == "forward"
    assert (inner.name, inner.around) == ("while.2", ["while.1"])
    assert (inner.duration, inner.iterations, inner.duration_per_iteration) == (160.0, 16, 10.0)
    assert inner.iterations_per_execution == 8.0


@pytest.mark.parametrize(
    ("counts", "iterations"),
    [
        # An op in a branch runs less often; of two counts alike common the larger.
        ({"a": 4, "b": 1}, 8),
        # No op stands directly in the outer loop.
        ({"c": 8}, None),
    ],
)
def test_what_is_known_of_iterations(counts, iterations):
    outer = summary_of(training(counts).analyse(warmup_steps=0)).loops[0]
    assert (outer.name, outer.iterations) == ("while.1", iterations)
    assert (outer.duration_per_iteration is None) == (iterations is None)


def instructions(**called: tuple[str, list[str]]) -> dict[str, HloInstruction]:
    """name -> (opcode, names of what its computation holds)"""
    return {
        name: HloInstruction(opcode, "", called=(HloComputation(tuple(held), ""),) if held else ())
        for name, (opcode, held) in called.items()
    }


def test_through_calls_and_branches_but_not_fusions():
    module = instructions(
        w=("while", ["call", "fusion"]),
        call=("call", ["branch"]),
        branch=("conditional", ["x"]),
        fusion=("fusion", ["y"]),
        x=("add", []),
        y=("add", []),
        z=("add", []),
    )
    assert loops_of(module) == dict.fromkeys(("call", "fusion", "branch", "x"), ("w",))
    assert in_branches(module) == {"x"}


def test_a_loop_in_itself_ends():
    module = instructions(w=("while", ["w"]))
    assert set(loops_of(module)["w"]) == {"w"}


def test_the_question_and_the_report():
    summary = summary_of(training({"a": 4, "b": 4}).analyse(warmup_steps=0))
    found = answer(summary, "how long does one iteration of the scan take?")
    assert found["query_type"] == "loops"
    assert [row["duration_per_iteration"] for row in found["results"]] == [20.0]
    assert "| `while.1` | `jit_f` | forward | 160.00 us | 100.0 % | 8 | 20.00 us |" in (
        render_markdown(summary)
    )
    without = summary_of(training({"d": 4}).analyse(warmup_steps=0))
    refusal = answer(without, "which loops are there?")["cannot_answer"]
    assert refusal["reason"] == "No op is known to stand in a loop."
