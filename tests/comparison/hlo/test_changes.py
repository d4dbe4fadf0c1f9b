"""Captures in, what XLA did differently out: times and sums by hand, through real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_programs import AFTER, BEFORE, DOT, NEGATE, PLAIN, WITH_COPY, Op, leave, program
from builders_xspace import instruction, shape_proto
from marin_profile.capture.sources import resolve_path
from marin_profile.comparison import compare
from marin_profile.comparison.hlo.explain import explain
from marin_profile.comparison.model import Comparison, HloChanges
from marin_profile.comparison.why import why
from marin_profile.pipeline.programs import (
    decode_programs,
    encode_programs,
    summarize_with_programs,
)
from marin_profile.reports.comparison import render_comparison


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return (
        leave(tmp_path / "before", BEFORE, PLAIN),
        leave(tmp_path / "after", AFTER, WITH_COPY, period=115),
    )


def changes(found: Comparison) -> HloChanges:
    assert found.hlo is not None
    return found.hlo


def total(found: HloChanges) -> float:
    rows = [*found.differences, found.others, found.unchanged, found.elsewhere]
    return sum(row.delta or 0.0 for row in rows if row is not None)


def test_a_copy_that_came(sides):
    """15 us more: 10 of the copy, 5 of an op that is the same; idle time is as it was."""
    found = explain([sides[0]], [sides[1]])
    assert found.target is not None
    assert found.target.delta == 15.0
    (row,) = changes(found).differences
    assert (row.kind, row.before, row.after, row.delta) == ("layout_copy", 0.0, 10.0, 10.0)
    assert (row.before_ops, row.after_ops) == ([], ["copy.1"])
    hlo = changes(found)
    assert hlo.unchanged is not None
    assert (hlo.unchanged.before, hlo.unchanged.after, hlo.unchanged.delta) == (60.0, 65.0, 5.0)
    assert hlo.elsewhere is not None
    assert (hlo.elsewhere.before, hlo.elsewhere.after, hlo.elsewhere.delta) == (40.0, 40.0, 0.0)
    assert total(hlo) == 15.0
    (pair,) = hlo.programs
    assert (pair.before_instructions, pair.after_instructions) == (4, 5)
    assert (pair.matched_instructions, pair.same_names) == (4, 4)


def test_the_same_program(sides, tmp_path):
    slower = leave(tmp_path / "slower", [Op("dot.1", 0, 44), Op("neg.1", 44, 20)], PLAIN)
    hlo = changes(explain([sides[0]], [slower]))
    assert hlo.differences == []
    assert hlo.unchanged is not None
    assert hlo.unchanged.delta == 4.0
    assert hlo.programs[0].matched_instructions == 4
    assert "compiled the same program (4 of 4 instructions match)" in render_comparison(
        explain([sides[0]], [slower])
    )


def test_several_captures_a_side_and_rows_that_are_left_out(sides, tmp_path):
    """The mean over captures; what a top of none leaves out is one row."""
    again = leave(tmp_path / "again", BEFORE, PLAIN, period=105)
    ops = [Op("copy.1", 0, 14), Op("dot.1", 14, 40), Op("neg.1", 54, 25)]
    more = leave(tmp_path / "more", ops, WITH_COPY, period=121)
    found = changes(explain([sides[0], again], [sides[1], more]))
    (row,) = found.differences
    assert (row.delta, row.interval is not None) == (12.0, True)
    cut = changes(explain([sides[0], again], [sides[1], more], top_k=0))
    assert cut.differences == []
    assert cut.others is not None
    assert (cut.others.delta, cut.total_differences) == (12.0, 1)
    assert total(cut) == total(found) == 15.5


def test_a_program_that_was_renamed(sides, tmp_path):
    """jit_step -> jit_update: alike by what it computes."""
    other = leave(
        tmp_path / "other", BEFORE, program(DOT, NEGATE, module="jit_update"), module="jit_update"
    )
    hlo = changes(explain([sides[0]], [other]))
    assert hlo.differences == []
    assert [(one.before, one.after) for one in hlo.programs] == [("jit_step", "jit_update")]


def test_a_program_that_runs_on_one_side_only(sides, tmp_path):
    iota = program(instruction("iota.1", "iota", id=9, shape=shape_proto(4, 8)), module="jit_other")
    other = leave(tmp_path / "other", [Op("iota.1", 0, 30)], iota, module="jit_other")
    hlo = changes(explain([sides[0]], [other]))
    assert [(row.kind, row.delta) for row in hlo.differences] == [
        ("program_removed", -60.0),
        ("program_added", 30.0),
    ]
    assert total(hlo) == 0.0


def test_without_protos(sides, tmp_path):
    bare = leave(tmp_path / "bare", AFTER, None, period=115)
    hlo = changes(explain([sides[0]], [bare]))
    assert hlo.differences == []
    assert hlo.cannot_answer is not None
    assert hlo.cannot_answer.startswith("Captures after hold no HLO protos")
    assert "enable_hlo_proto" in hlo.cannot_answer
    both = changes(explain([bare], [bare]))
    assert (both.cannot_answer or "").startswith("Captures on both sides hold no HLO protos")


def test_summaries_alone_say_what_is_missing(sides):
    one, two = (summarize_with_programs(resolve_path(str(side))[0])[0] for side in sides)
    assert compare(one, two).hlo is None
    hlo = changes(compare(one, two, programs=([None], [None])))
    assert (hlo.cannot_answer or "").startswith("A summary holds no compiled programs; name the")


def test_what_is_kept_of_programs_is_what_was_read(sides):
    _, programs = summarize_with_programs(resolve_path(str(sides[1]))[0])
    assert decode_programs(encode_programs(programs)) == programs
    with pytest.raises(ValueError, match="no programs of this version"):
        decode_programs(b"\x00")


def test_a_program_that_is_too_large(sides, monkeypatch):
    monkeypatch.setattr("marin_profile.comparison.hlo.opened.MOST_STEPS", 3)
    hlo = changes(explain([sides[0]], [sides[1]]))
    assert (hlo.too_large, hlo.differences, total(hlo)) == (["jit_step"], [], 15.0)


# --- views ---------------------------------------------------------------------------------------


def test_the_report_names_it_on_the_first_screen(sides):
    text = render_comparison(explain([sides[0]], [sides[1]]))
    first, _, rest = text.partition("## ")
    assert "XLA: +10.00 us in `mlp`: f32\\[64,64\\] is copied, which it was not before." in first
    assert "`jit_step`: 4 of 4 instructions match (5 after)." in rest


def test_without_steps_on_both_sides_there_is_no_why(sides):
    found = explain([sides[0]], [sides[1]])
    nothing = found.model_copy(update={"attribution": None, "cannot_attribute": "No steps."})
    assert why(nothing, "why?")["cannot_answer"]["reason"] == "No steps."
