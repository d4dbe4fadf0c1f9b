"""Which program is dominant, and what programs are called."""

from __future__ import annotations

import numpy as np
import pytest

from builders_xspace import US, Space
from marin_profile.analysis.steps.programs import Dominant, dominant_program, shortest_cycle


@pytest.mark.parametrize(
    ("key", "length"),
    [
        ([], None),
        ([7, 7], None),
        ([7, 7, 7], 1),
        ([1, 1, 2, 2], None),
        ([2, 2, 1, 1], None),
        ([1, 2, 1, 2, 1, 2], 2),
        ([1, 2, 1, 2, 1], None),
        ([1, 2, 1, 2, 1, 2, 1], 2),
        ([1, 2, 1, 2, 1, 2, 2], None),
        ([1, 1, 2] * 3, 3),
        (list(range(256)) * 3, 256),
        (list(range(257)) * 3, None),
    ],
)
def test_the_shortest_cycle_is_seen_three_times(key, length):
    assert shortest_cycle(np.array(key, np.int64)) == length


@pytest.mark.parametrize("name", ["jit_a", "jit_b", "jit_c"])
def test_a_program_has_its_id_where_others_have_its_name(name):
    times = {("jit_a", 1): 50, ("jit_a", 2): 40, ("jit_b", 3): 30, ("jit_b", 4): 20}
    dominant = Dominant((("jit_a", 1),), {**times, ("jit_c", 5): 10})
    assert (dominant.name, dominant.label) == ("jit_a", "jit_a(1)")
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


@pytest.mark.parametrize("silent", [0, 1])
def test_a_device_without_executions_has_no_say(silent):
    """On the other one two variants of jit_f with four ops of five in common follow no order."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for place, shape in enumerate((1, 1, 2, 1, 2, 2, 2)):
            if ordinal != silent:
                tpu.module(f"jit_f({shape})", 100 * place, 50)
            for index in range(4):
                tpu.op(f"fusion.{index}", 100 * place + 10 * index, 10)
            tpu.op(f"shape.{shape}", 100 * place + 40, 10)
    dominant = dominant_program(space.devices().main)
    assert dominant is not None
    assert dominant.programs == (("jit_f", 2), ("jit_f", 1))
    assert list(dominant.op_time.values()) == [200 * US, 150 * US]


def test_where_no_device_has_executions_no_program_is_known():
    space = Space()
    space.tpu(0).op("f", 0, 1)
    assert dominant_program(space.devices().main) is None


def test_shares_of_the_op_time():
    """Of 1,000 ps; the last program has less than 1 %."""
    times = {("a", 1): 600, ("b", 2): 200, ("b", 3): 151, ("c", 4): 40, ("d", 5): 9}
    dominant = Dominant((("b", 2), ("b", 3)), times)
    assert dominant.label == "b"
    assert dominant.others == [("a", 1), ("c", 4), ("d", 5)]
    assert dominant.lasting == [("a", 1), ("b", 2), ("b", 3), ("c", 4)]
    assert dominant.share_of(dominant.programs) == 0.351
    assert dominant.listed(dominant.others) == "a 60 %, c 4 %, d 1 %"
    assert dominant.listed(list(times)) == "a 60 %, b(2) 20 %, b(3) 15 % and 2 more"
    assert Dominant((("a", 1),), {("a", 1): 99, ("b", 2): 1}).lasting == [("a", 1), ("b", 2)]
