"""The terminal's one screen: the answer, its bar, the steps, the advice, what to type next."""

from __future__ import annotations

import pytest

from builders_summary import build_summary, uneven_steps
from marin_profile.reports.first import first_advice
from marin_profile.reports.headline import headline
from marin_profile.reports.screen import NARROWEST, render_screen
from marin_profile.schema import AllocatorMemory, ProfileSummary


def lines(summary: ProfileSummary, width: int = 80, name: str = "runs/a") -> list[str]:
    return render_screen(summary, name, width=width).splitlines()


def joined(block: list[str]) -> str:
    return " ".join(line.strip() for line in block)


def test_the_answer_comes_first_and_the_next_commands_last():
    summary = build_summary()
    shown = lines(summary)
    end = shown.index("")
    assert joined(shown[:end]) == headline(summary)
    assert [line.split(" ", 1)[0] for line in shown[-3:]] == ["Ask:", "Read:", "Compare:"]


def test_the_bar_is_the_ledger():
    """Of 72 cells: see build_summary's ledger, whose shares the headline gives."""
    summary = build_summary()
    (bar,) = (line for line in lines(summary) if line.startswith("time"))
    cells = bar.removeprefix("time").strip()
    assert len(cells) == 72
    (row,) = (
        one
        for one in summary.device_ledger
        if one.window == "steady" and one.device == summary.device_ledger[0].device
    )
    assert cells.count("█") == round(72 * row.compute_duration / row.window_duration)
    assert cells == "".join(sorted(cells, key="█▓▒?░".index))


@pytest.mark.parametrize("width", [1, NARROWEST, 60, 100])
def test_no_line_is_wider_than_the_terminal(width):
    doubts = ["A sentence about damage that is longer than the narrowest terminal. " * 3]
    summary = build_summary()
    trace = summary.trace_overview.model_copy(update={"doubts": doubts})
    shown = lines(summary.model_copy(update={"trace_overview": trace}), width)
    assert max(map(len, shown[:-3])) <= max(width, NARROWEST)
    assert any(line.startswith("! A sentence") for line in shown)


def test_the_advice_is_the_reports():
    summary = build_summary()
    text = joined(lines(summary))
    for at, one in enumerate(first_advice(summary, 3), 1):
        assert f"{at}. {one.title}" in text
        assert one.why in text


def test_memory_names_the_fullest_device():
    def device(number: int, headroom: int) -> AllocatorMemory:
        return AllocatorMemory(
            host="h",
            device=f"/device:TPU:{number}",
            in_use_size=1,
            most_in_use_size=1,
            allocated_peak_size=1,
            capacity_size=10_000_000_000,
            headroom_size=headroom,
        )

    devices = [device(0, 5_000_000_000), device(1, 2_500_000_000)]
    summary = build_summary().model_copy(update={"allocators": devices})
    (line,) = (line for line in lines(summary, 110) if line.startswith("memory"))
    assert line.endswith("2.5 GB of 10.0 GB free at least")


def test_a_name_is_a_word_of_the_shell_and_shows_what_cannot_be_seen():
    shown = lines(build_summary(), name="my runs/\x1b[31mred")
    assert shown[-2] == r"Read:    marin-profile report 'my runs/\x1b[31mred' -o report.md"


def test_a_style_decorates_parts_by_name():
    seen: set[str] = set()

    def style(part: str, text: str) -> str:
        seen.add(part)
        return text

    plain = render_screen(build_summary(), "a", width=80)
    assert render_screen(build_summary(), "a", width=80, style=style) == plain
    assert {"headline", "compute", "idle", "advice", "next"} <= seen


def test_the_slowest_step_can_be_seen_in_its_trace():
    summary = build_summary(step_time=uneven_steps())
    assert lines(summary)[-1] == "See:     marin-profile trace runs/a --step 7"
    summary_alone = lines(summary, name="a.json")
    assert not any(line.startswith("See:") for line in summary_alone)
    assert not any(line.startswith("See:") for line in lines(build_summary()))
