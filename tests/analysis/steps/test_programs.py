"""Which program is dominant, and what programs are called."""

from __future__ import annotations

import pytest

from builders_xspace import Space
from marin_profile.analysis.steps.programs import Dominant, dominant_program


@pytest.mark.parametrize("name", ["jit_a", "jit_b", "jit_c"])
def test_a_program_has_its_id_where_others_have_its_name(name):
    times = {("jit_a", 1): 50, ("jit_a", 2): 40, ("jit_b", 3): 30, ("jit_b", 4): 20}
    dominant = Dominant((("jit_a", 1),), {**times, ("jit_c", 5): 10})
    labels = {"jit_a": "jit_a(1)", "jit_b": "jit_b(4)", "jit_c": "jit_c"}
    programs = {"jit_a": 1, "jit_b": 4, "jit_c": 5}
    assert dominant.label_of((name, programs[name])) == labels[name]


def test_programs_of_one_op_time_are_in_order_of_name_and_id():
    space = Space()
    tpu = space.tpu(0)
    programs = ["jit_b(1)", "jit_a(9)", "jit_a(10)", "jit_c(2)"]
    for index, program in enumerate(programs):
        length = 20 if program == "jit_c(2)" else 10
        tpu.module(program, 100 * index, length).op(f"fusion.{index}", 100 * index, length)
    dominant = dominant_program(space.devices().main)
    assert dominant is not None
    assert list(dominant.op_time) == [("jit_c", 2), ("jit_a", 9), ("jit_a", 10), ("jit_b", 1)]
