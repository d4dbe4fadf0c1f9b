"""How a change is written."""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration, size
from marin_profile.comparison.model import JudgedChange

NOT_PRESENT = "not present"


def signed(microseconds: float | None) -> str:
    sign = "+" if microseconds is not None and microseconds > 0 else ""
    return sign + duration(microseconds)


def percent(relative: float | None) -> str:
    return NOT_KNOWN if relative is None else f"{100 * relative:+.1f} %"


def interval(change: JudgedChange) -> str:
    if change.interval is None:
        return ""
    low, high = change.interval
    return f"{signed(low)} to {signed(high)}"


def present(microseconds: float | None) -> str:
    return NOT_PRESENT if microseconds is None else duration(microseconds)


def signed_size(delta: int) -> str:
    return f"{'-' if delta < 0 else '+'}{size(abs(delta))}"
