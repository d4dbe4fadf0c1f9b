"""One screen for a terminal: where the step time goes, what to try, what to type next.

Contract: deterministic for a summary, a width and a style; no line is wider than `width`, which is
at least NARROWEST, but the commands, which are there to be copied. Every number is the report's
own. Names are shown with escapes for what cannot be seen. `style` decorates a text by the name of
its part and must not change its width.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence

from marin_profile.base.text import duration, share, size, visible
from marin_profile.facts.device_time import TERMS, device_times, headline_window
from marin_profile.facts.memory import fullest
from marin_profile.reports.charts import term_shares
from marin_profile.reports.first import first_advice, uncosted
from marin_profile.reports.headline import headline
from marin_profile.schema import ProfileSummary

Style = Callable[[str, str], str]
NARROWEST, WIDEST = 40, 110
ADVICES, DOUBTS = 3, 3
LABEL = 8
# A character for each of TERMS, so that no colour is needed.
PARTS = tuple(zip(TERMS, "█▓▒?░", strict=True))
LEVELS = "▁▂▃▄▅▆▇█"
ROOM_FOR_MORE = 16


def plain(part: str, text: str) -> str:
    """The style without any."""
    return text


def render_screen(
    summary: ProfileSummary, name: str, *, width: int = 80, style: Style = plain
) -> str:
    """`name`: what the user calls the capture, for the commands to type next."""
    width = min(max(width, NARROWEST), WIDEST)
    blocks = [
        _wrapped(headline(summary), width, style, "headline"),
        [
            line
            for doubt in summary.trace_overview.doubts[:DOUBTS]
            for line in _wrapped(f"! {visible(doubt, None)}", width, style, "doubt")
        ],
        [
            *_bar(summary, width, style),
            *_steps(summary, width),
            *_labelled("memory", _memory(summary), width),
            *_labelled("costs", uncosted(summary), width),
        ],
        list(_advice(summary, width, style)),
        list(_next(summary, name, style)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _wrapped(text: str, width: int, style: Style, part: str, indent: str = "") -> list[str]:
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=True
    )
    return [style(part, line) for line in lines]


def _bar(summary: ProfileSummary, width: int, style: Style) -> list[str]:
    times = device_times(summary, headline_window(summary))
    if not times or times[0].window_duration <= 0:
        return []
    shares = term_shares(times[0])
    cells = _cells(shares, width - LABEL)
    bar = "".join(
        style(name, character * count)
        for (name, character), count in zip(PARTS, cells, strict=True)
    )
    named = ", ".join(
        f"{character} {name.replace('_', ' ')} {share(value)}"
        for (name, character), value in zip(PARTS, shares, strict=True)
        if value
    )
    keys = textwrap.wrap(named, width - LABEL)
    return [f"{'time':<{LABEL}}{bar}", *(f"{'':<{LABEL}}{line}" for line in keys)]


def _cells(shares: Sequence[float], width: int) -> list[int]:
    """Whole cells that sum to the width, by the largest remainders; ties by place."""
    exact = [value * width for value in shares]
    cells = [int(value) for value in exact]
    by_rest = sorted(range(len(cells)), key=lambda at: (cells[at] - exact[at], at))
    for at in by_rest[: max(width - sum(cells), 0)]:
        cells[at] += 1
    return cells


def _steps(summary: ProfileSummary, width: int) -> list[str]:
    """Periods of the kept steps from the shortest to the longest level."""
    kept = [step.period for step in summary.step_time.steps if step.kept]
    periods = [period for period in kept if period is not None]
    if len(periods) < 2:
        return []
    low, high = min(periods), max(periods)
    shown = periods[: width - LABEL - ROOM_FOR_MORE]
    line = "".join(
        LEVELS[int((period - low) / (high - low) * (len(LEVELS) - 1))] if high > low else LEVELS[0]
        for period in shown
    )
    more = f" and {len(periods) - len(shown):,} more" if len(periods) > len(shown) else ""
    return [f"{'steps':<{LABEL}}{line}{more}", f"{'':<{LABEL}}{duration(low)} to {duration(high)}"]


def _labelled(label: str, text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width - LABEL, break_on_hyphens=False)
    return [f"{'' if at else label:<{LABEL}}{line}" for at, line in enumerate(lines)]


def _memory(summary: ProfileSummary) -> str:
    parts = []
    if summary.memory:
        first = fullest(summary.memory)
        program = visible(first.module or first.program_id, 40)
        parts.append(f"{size(first.peak_size)} at the peak of {program} ({first.space})")
    devices = [row for row in summary.allocators if row.device is not None]
    if devices:
        least = min(devices, key=lambda row: row.headroom_size)
        parts.append(f"{size(least.headroom_size)} of {size(least.capacity_size)} free at least")
    return "; ".join(parts)


def _advice(summary: ProfileSummary, width: int, style: Style) -> Iterator[str]:
    found = first_advice(summary, ADVICES)
    if not found:
        yield "No rule of advice fits this capture."
        return
    yield "What to try first, and what it saves:"
    for at, one in enumerate(found, 1):
        saves = f": {one.saves}" if one.saves else ""
        yield from _wrapped(
            f"{at}. {visible(one.title, None)}{saves}", width, style, "advice", "   "
        )
        why = textwrap.wrap(visible(one.why, 300), width - 3, break_on_hyphens=False)
        yield from (f"   {line}" for line in why)
    left = len(summary.optimization_candidates) - len(found)
    if left:
        yield f"   and {left:,} more in the report."


def _next(summary: ProfileSummary, name: str, style: Style) -> Iterator[str]:
    word = shlex.quote(visible(name, None))
    yield style("next", f'Ask:     marin-profile query {word} "which ops take longest?"')
    yield style("next", f"Read:    marin-profile report {word} -o report.md")
    yield style("next", f"Compare: marin-profile compare {word} ANOTHER")
    outliers = summary.step_time.outliers
    if outliers and not name.endswith(".json"):  # a summary alone has no trace
        slowest = min(outliers, key=lambda one: (-one.excess, one.index))
        step = slowest.index if slowest.step_num is None else slowest.step_num
        yield style("next", f"See:     marin-profile trace {word} --step {step}")
