"""A comparison as Markdown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders_pairs import PROGRAM, Work, capture, changed, with_work
from marin_profile.comparison import compare
from marin_profile.comparison.model import Comparison
from marin_profile.reports.comparison import comparison_headline, render_comparison
from marin_profile.schema import ProfileSummary


def another(summary: ProfileSummary) -> ProfileSummary:
    """As the summary of other bytes, on known hardware."""
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    return hardware(summary.model_copy(update={"trace_provenance": provenance}))


def hardware(summary: ProfileSummary, name: str = "TPU v6 Lite") -> ProfileSummary:
    run = summary.run_metadata.model_copy(update={"hardware_type": name})
    return summary.model_copy(update={"run_metadata": run})


BEFORE = hardware(capture())
EXTRA = Work("all-reduce", 9, 90, 7, "all-reduce", "jit(step)/layers/a`|<b>/psum")


@pytest.fixture(scope="module")
def slower() -> Comparison:
    return compare(BEFORE, another(capture(with_work(EXTRA), period=107)))


def test_the_answer_comes_first(slower):
    answer = render_comparison(slower).split("\n## ", 1)[0].splitlines()
    assert answer == [
        "# Comparison",
        "",
        "**A step takes 7.00 us longer on each device (+7.0 %): 100.00 us before, 107.00 us after "
        "(mean over devices, 3 steps against 3); the typical (median) step takes 7.00 us longer "
        "(+7.0 %).**",
        "",
        "Device time: `exposed_communication` +7.00 us.",
        "",
        "Regions: <code>jit(step)=&gt;layers=&gt;a&#96;&#124;&lt;b&gt;</code> +7.00 us.",
        "",
        "Ops: `all-reduce` (added) +7.00 us.",
        "",
        "The intervals of the step and its device time are from step to step within one capture a "
        "side: what differs from run to run takes two captures or more on each side.",
    ]


def test_a_collective_is_named_as_such():
    more = Work("psum_invariant", 9, 90, 7, "all-reduce", "jit(step)/loss/psum")
    text = render_comparison(compare(BEFORE, another(capture(with_work(more), period=107))))
    assert "Ops: `psum_invariant` (all-reduce, added) +7.00 us." in text
    assert "| `psum_invariant` (all-reduce) | added |" in text


def test_the_largest_part_is_named_first_and_small_ones_not_at_all():
    """1 us of embedding (a hundredth) is less than a tenth of 14 us of idle time."""
    works = [replace(w, length=11) if w.name == "fusion" and w.number == 1 else w for w in PROGRAM]
    works = [replace(w, start=w.start + 1) if w.start >= 12 else w for w in works]
    found = compare(BEFORE, another(capture([*works, EXTRA], period=122)))
    text = render_comparison(found)
    assert "\nDevice time: `idle` +14.00 us, `exposed_communication` +7.00 us.\n" in text


def test_what_is_not_there_is_not_zero(slower):
    text = render_comparison(slower)
    (row,) = [line for line in text.splitlines() if line.startswith("| `all-reduce` | added")]
    assert "| not present | 7.00 us | +7.00 us | n/a | +100.0 % |" in row
    assert "All ops: added +7.00 us." in text


def test_no_name_is_markup(slower):
    text = render_comparison(slower)
    assert "a`|<b>" not in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert len(tables) >= 7
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)


def test_equal_captures(slower):
    found = compare(BEFORE, another(capture(renumber=lambda number: number + 1)))
    assert comparison_headline(found) == (
        "A step takes as long as before on each device: 100.00 us before, 100.00 us after (mean "
        "over devices, 3 steps against 3); the typical (median) step takes as long as before."
    )
    assert "Yes, without caveats." in render_comparison(found)


def test_the_same_capture():
    found = compare(BEFORE, BEFORE)
    text = render_comparison(found)
    assert text.splitlines()[2].startswith("**Same capture:")
    assert "Regions: " not in text.split("\n## ", 1)[0]


def test_what_is_not_comparable_is_no_verdict():
    found = compare(BEFORE, hardware(another(capture(devices=3)), "TPU v5"))
    answer = render_comparison(found).split("\n## ", 1)[0]
    assert "**The two are not comparable, so this is no verdict:**" in answer
    assert "TPU v6 Lite before, TPU v5 after" in answer
    assert "2 before, 3 after" in answer


def test_one_step_on_each_side_says_so():
    one = hardware(capture(steps=1))
    found = compare(one, another(capture(changed("fusion", 2, length=12), steps=1)))
    assert "One step on each side has no statistics" in render_comparison(found)


def test_without_steps_it_says_why():
    old = BEFORE.model_copy(update={"step_account": None})
    text = render_comparison(compare(old, another(BEFORE)))
    assert text.splitlines()[2].startswith("**The before summary has no step account")
    assert "## Where the change is" not in text


def test_lists_say_what_they_leave_out(slower):
    cut = compare(BEFORE, another(capture(with_work(EXTRA), period=107)), top_k=2)
    text = render_comparison(cut)
    assert "| (others) |" in text
    assert "rows left out." in text
    assert "regions left out." in text


def numbered(summary: ProfileSummary, number: int) -> ProfileSummary:
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": f"{number:064}"})
    return hardware(summary.model_copy(update={"trace_provenance": provenance}))


@pytest.fixture(scope="module")
def repeated() -> Comparison:
    """Two captures a side: 7 us of new all-reduce, and idle times of 32 and 34 us on both sides."""
    sides = [
        [numbered(capture(work, period=period + more), 10 * at + more) for more in (0, 2)]
        for at, (work, period) in enumerate([(PROGRAM, 100), (with_work(EXTRA), 107)], start=1)
    ]
    return compare(*sides)


def test_several_captures_give_intervals_and_noise_is_one_line(repeated):
    """The step: means of 101 and 108, an error of 1 on each side, 2 degrees of freedom: 7 +-
    4.3027 x sqrt(2) = 6.08."""
    text = render_comparison(repeated)
    answer = text.split("\n## ", 1)[0].splitlines()
    assert answer[2] == (
        "**A step takes 7.00 us longer on each device (+6.9 %; 95 %: +915.13 ns to +13.08 us): "
        "101.00 us before, 108.00 us after (mean over devices, 2 captures with 6 steps against 2 "
        "with 6); the typical (median) step takes 7.00 us longer (+6.9 %).**"
    )
    assert "Device time: `exposed_communication` +7.00 us." in answer
    assert "run to run" not in text
    ledger = text.split("## Where the change is: device time")[1].split("\n## ")[0]
    assert [line for line in ledger.splitlines() if line.startswith("| ")][2:] == [
        "| `exposed_communication` | 10.00 us | 17.00 us | +7.00 us | +7.00 us to +7.00 us | "
        "+70.0 % | +100.0 % |",
        "| (not told from noise: 4 rows) | 91.00 us | 91.00 us | 0 us |  | +0.0 % | +0.0 % |",
    ]


def test_facts_of_several_captures_stand_side_by_side(repeated):
    text = render_comparison(repeated)
    assert "| steps kept | `4` | `4` |" in text
    assert "| sha256 | `000000000000` | `000000000000` |" in text
    assert "Yes, without caveats." in text


def test_rows_that_are_cut_are_not_noise(repeated):
    """Of two told rows one is listed; the other and the noise are a line each."""
    slower = changed("fusion", 2, length=21)
    more = [numbered(capture([*slower, EXTRA], period=107 + at), 30 + at) for at in (0, 2)]
    before = [numbered(capture(period=100 + at), 40 + at) for at in (0, 2)]
    text = render_comparison(compare(before, more, top_k=1))
    ops = text.split("## Where the change is: ops")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in ops.splitlines() if line.startswith("| ")][2:]
    assert [(row[0], row[8]) for row in rows] == [
        ("| `all-reduce`", "+7.00 us"),
        ("| (others)", "+1.00 us"),
        ("| (not told from noise: 9 rows)", "-1.00 us"),
    ]


def test_nothing_but_noise_names_nothing():
    sides = [
        [numbered(capture(period=period + at), 10 * period + at) for at in (0, 10)]
        for period in (100, 101)
    ]
    answer = render_comparison(compare(*sides)).split("\n## ", 1)[0]
    assert "**No change is told from noise: a step takes 1.00 us longer on each device" in answer
    assert "\nDevice time: nothing is told from noise.\n" in answer
    assert "\nOps: nothing is told from noise.\n" in answer


def test_same_comparison_same_text(slower):
    assert render_comparison(slower) == render_comparison(slower.model_copy())
