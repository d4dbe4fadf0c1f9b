"""How scripts/hlo_pairs.py judges, by hand: the truth in a compiled program's text, the table."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patience import PATIENCE

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from hlo_pairs_judge import Row, Truth, instructions_shown, markdown, written

TEXT = """HloModule jit_f, is_scheduled=true

%region_0 (a: f32[], b: f32[]) -> f32[] {
  ROOT %add.1 = f32[] add(%a, %b)
}

%fused_computation (p: f32[8]) -> f32[] {
  %zero = f32[] constant(0)
  ROOT %reduce.1 = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%region_0
}

%body (carried: (f32[8])) -> (f32[8]) {
  %old = f32[8]{0} get-tuple-element(%carried), index=0
  %copy.1 = f32[8]{0} copy(%old)
  ROOT %new = (f32[8]{0}) tuple(%copy.1)
}

ENTRY %main (x: f32[8]) -> f32[] {
  %x = f32[8]{0} parameter(0), metadata={op_name="add"}
  %start = (f32[8]{0}) tuple(%x)
  %while.1 = (f32[8]{0}) while(%start), condition=%done, body=%body
  %last = f32[8]{0} get-tuple-element(%while.1), index=0
  ROOT %fusion.1 = f32[] fusion(%last), kind=kLoop, calls=%fused_computation
}
"""


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("", ()),
        (r" copy\(", ("copy.1",)),  # a loop's body runs itself
        (r" reduce\(", ("fusion.1",)),  # a fusion runs what it calls
        (r" add\(", ("fusion.1",)),  # and that what it applies
        ("add", ("fusion.1",)),  # a parameter does not run
        ("nothing", ()),
    ],
)
def test_the_instructions_that_run_and_show_an_edit(pattern, shown):
    assert instructions_shown(TEXT, pattern) == shown


@dataclass
class Found:
    kind: str
    before_ops: list[str] = field(default_factory=list)
    after_ops: list[str] = field(default_factory=list)
    scope: str | None = "jit(f)/mlp"


def test_a_difference_names_the_edit_by_its_kind_in_an_op_that_shows_it():
    truth = Truth("a", "an edit", ("dtype", "accumulate_dtype"), "mlp", ("dot.1",), ("dot.2",))
    assert truth.is_named_by(Found("dtype", ["dot.1", "other"]))
    assert truth.is_named_by(Found("accumulate_dtype", after_ops=["dot.2"]))
    assert not truth.is_named_by(Found("dtype", ["dot.2"], ["dot.1"]))
    assert not truth.is_named_by(Found("shape", ["dot.1"], ["dot.2"]))
    assert not truth.is_named_by(Found("dtype"))
    assert not truth.is_named_by(Found("dtype", ["dot.1"], scope="jit(f)/attention"))
    assert not truth.is_named_by(Found("dtype", ["dot.1"], scope=None))


EDIT = Truth("a", "an edit", ("dtype",), "", ("dot.1",), ("dot.1",))
INERT = Truth("b", "a name", (), "", (), ())


def row(truth: Truth, place: int | None, number: int, unexplained: float = 0.0) -> Row:
    found = ("dtype", "dot.1 is computed in f64.", place, number) if number else ("", "", None, 0)
    return Row(truth, *found, 4_000.0, 1_500.0, 1_250.0 if number else None, unexplained)


def test_an_edit_is_to_be_named_first_and_what_has_no_effect_not_at_all():
    assert row(EDIT, 1, 3).is_right
    assert not row(EDIT, 2, 3).is_right
    assert not row(EDIT, None, 0).is_right
    assert row(INERT, None, 0).is_right
    assert not row(INERT, None, 1).is_right


def test_the_table_counts_both():
    rows = [row(EDIT, 1, 1), row(EDIT, 2, 2), row(INERT, None, 0), row(INERT, None, 2, 100.0)]
    lines = markdown(rows).splitlines()
    said = "`dtype`: dot.1 is computed in f64."
    assert lines[2:] == [
        f"| a | an edit | `dtype` | {said} | yes | 4.00 | +1.50 | +1.25 | yes |",
        f"| a | an edit | `dtype` | {said} | no, 2. | 4.00 | +1.50 | +1.25 | yes |",
        "| b | a name | none | none | yes | 4.00 | +1.50 | - | yes |",
        f"| b | a name | none | {said} | no, 2 differences | 4.00 | +1.50 | +1.25 | no, by 0.10 |",
        "",
        "1 of 2 edits named first; 1 of 2 without effect silent.",
    ]


def test_the_table_is_written_between_its_markers():
    page = "Head\n<!-- pairs -->\nold\n<!-- end of pairs -->\nTail\n"
    new = written(page, "pairs", "new\n")
    assert new == "Head\n<!-- pairs -->\n\nnew\n\n<!-- end of pairs -->\nTail\n"
    assert written(new, "pairs", "new\n") == new
    with pytest.raises(SystemExit):
        written(page, "held-out", "new\n")


@pytest.mark.long
def test_a_lost_donation_is_named_first_and_a_dropped_barrier_not_at_all(tmp_path):
    script = Path(__file__).parents[1] / "scripts" / "hlo_pairs.py"
    cases = ["--only", "donation_lost", "--only", "barrier"]
    command = [sys.executable, str(script), "--keep", str(tmp_path), *cases]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    *_, said = done.stdout.splitlines()
    assert said == "1 of 1 edits named first; 1 of 1 without effect silent."
