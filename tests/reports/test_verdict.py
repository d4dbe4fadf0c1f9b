"""A verdict and a comparison as one page."""

from __future__ import annotations

import pytest

from builders_verdict import capture, noisy
from marin_profile.base.text import duration
from marin_profile.comparison import compare
from marin_profile.reports.verdict import render_change
from marin_profile.schema import ProfileSummary
from marin_profile.tracking import track
from marin_profile.verdict import Floors, NoiseFloor, assess

BEFORE = capture(noisy(1, 25))
SLOWER = capture(noisy(2, 25, typical=1100.0))
SAME = capture(noisy(3, 25))
SHORT = capture(noisy(2, 3))


def page(after: ProfileSummary, **options: str) -> str:
    found = track([BEFORE], [after], label=options.pop("label", None)).assessment
    return render_change(found, compare(BEFORE, after), after, **options)


def sections(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_the_first_line_is_the_verdict():
    for after in (SLOWER, SAME, SHORT, BEFORE):
        sentence = track([BEFORE], [after]).assessment.sentence
        lines = page(after).splitlines()
        assert lines[:3] == ["# Before and after", "", f"**{sentence}**"]


def test_what_to_do_and_the_checks_come_before_the_evidence():
    assert sections(page(SLOWER)) == [
        "What to try next",
        "Checks",
        "Deciles of the step time",
        "Can they be compared?",
        "Step time",
        "Collectives",
    ]


def row_of(text: str, start: str) -> str:
    [row] = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return row


def test_checks_are_the_assessments_figures():
    found = {row.check: row for row in assess([BEFORE], [SLOWER]).checks}
    text = page(SLOWER)
    for name in ("mean_step_time", "step_time"):
        step = found[name]
        low, high = step.interval
        title = name.replace("_", " ")
        assert row_of(text, title) == (
            f"| {title} | likely fail | {duration(step.before)} | {step.after / 1000:.2f} ms "
            f"| {step.change:+.2f} % | {low:+.2f} to {high:+.2f} % | +5.00 % |"
        )
    idle = found["idle"]
    low, high = idle.interval
    assert row_of(text, "idle") == (
        f"| idle | pass | 100.04 us | 110.00 us | {idle.change:+.2f} us "
        f"| {low:+.2f} to {high:+.2f} us | +50.02 us |"
    )
    assert row_of(text, "slow steps") == (
        "| slow steps | pass | 0.00 % of a step | 0.00 % of a step | +0.00 % of a step "
        "| +0.00 to +0.00 % of a step | +1.00 % of a step |"
    )


def test_what_is_not_judged_is_no_number():
    bare = [capture(noisy(seed, 25), with_ledger=False) for seed in (1, 3)]
    text = render_change(assess(*([one] for one in bare)), compare(*bare), bare[1])
    assert row_of(text, "idle") == "| idle | not judged | n/a | n/a | n/a | n/a | +50.02 us |"


def test_deciles_that_moved():
    slow = [one * 1.3 if at % 3 == 1 else one for at, one in enumerate(noisy(5, 60))]
    after = capture(slow)
    found = assess([BEFORE], [after])
    text = page(after).split("## Deciles of the step time\n")[1].split("\n## ")[0]
    moved = [one for one in found.deciles if one.interval[0] > 0 or one.interval[1] < 0]
    assert [one.decile for one in moved] == [7, 8, 9]
    assert text.count("\n| ") == 2 + len(moved)
    last = moved[-1]
    low, high = last.interval
    assert row_of(text, "90 %") == (
        f"| 90 % | {duration(last.before)} | {duration(last.after)} | {last.change:+.2f} % "
        f"| {low:+.2f} to {high:+.2f} % |"
    )
    assert "Deciles of the step time" not in sections(page(SAME))


def test_a_verdict_that_is_open_says_what_would_settle_it():
    text = page(SHORT)
    needed = assess([BEFORE], [SHORT]).needed
    assert f"To settle the verdict: {needed.sentence}." in text
    assert "Checks" not in sections(text)
    reason = track([BEFORE], [SHORT]).assessment.reasons[0]
    assert text.count(reason) == 1  # in the sentence, and not once more below it


def test_advice_is_the_captures_own_and_says_so():
    text = page(SLOWER).split("## What to try next\n")[1].split("\n## ")[0].strip()
    assert text.splitlines() == [
        f"To confirm the verdict: {assess([BEFORE], [SLOWER]).needed.sentence}.",
        "",
        "Findings in the capture after the change, whether it caused them or not:",
        "",
        "- **All-reduce is exposed**: exposed communication is 20.0 % of device time",
        "  - overlap the all-reduce with the backward pass",
    ]
    quiet = SAME.model_copy(update={"optimization_candidates": []})
    assert "What to try next" not in sections(page(quiet))


def test_noise_floor_label_and_note_are_shown():
    noise = NoiseFloor(num_repeats=5, log_sd=0.0213)
    found = assess([BEFORE], [SLOWER], floors=Floors(noise, noise)).model_copy(
        update={"label": "a|<b>"}
    )
    text = render_change(found, compare(BEFORE, SLOWER), SLOWER, note="Compared are these.")
    head = text.split("\n## ")[0]
    assert "Label: a\\|\\<b\\>." in head
    assert "\nCompared are these.\n" in head
    assert (
        "Measured: 1 capture with 25 steps before, 1 capture with 25 steps after. From run to run "
        "the step time varies by 2.1 % (5 repeats in the history)."
    ) in head


def test_below_the_answer_stands_only_what_it_does_not_say():
    found = assess([BEFORE], [SLOWER])
    assert [reason.split(" ")[0] for reason in found.reasons] == [
        "mean_step_time", "step_time", "step_p90", "one", "windows",
    ]  # fmt: skip
    head = page(SLOWER).split("\n## ")[0]
    bullets = [line for line in head.splitlines() if line.startswith("- ")]
    assert bullets == [f"- {reason}" for reason in found.reasons[3:]]
    # What a pass leaves open is in the sentence.
    head = page(SAME).split("\n## ")[0]
    assert head.count("windows of 25 steps may miss") == 1


def test_what_differs_too_much_appears_once_in_the_answer():
    run = SAME.run_metadata.model_copy(update={"hardware_type": "TPU v4"})
    head = page(SAME.model_copy(update={"run_metadata": run})).split("\n## ")[0]
    assert head.count("Hardware differs: TPU v6 Lite before, TPU v4 after") == 1


@pytest.mark.parametrize("after", [SLOWER, SHORT, BEFORE], ids=["slower", "short", "same capture"])
def test_blank_lines_are_single_and_tables_are_whole(after):
    text = page(after)
    assert "\n\n\n" not in text
    assert text.endswith("\n")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)
