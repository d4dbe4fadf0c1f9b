"""Escaping and units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_profile.base.text import (
    duration,
    plural,
    share,
    size,
    visible,
)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (None, "n/a"),
        (0.0, "0 us"),
        (0.000001, "1 ps"),
        (0.0005, "500 ps"),
        (0.001, "1.00 ns"),
        (0.2, "200.00 ns"),
        (0.999994, "999.99 ns"),
        (0.999996, "1.00 us"),
        (1.0, "1.00 us"),
        (999.994, "999.99 us"),
        (999.996, "1.00 ms"),
        (48_810.0, "48.81 ms"),
        (1_334_072.8, "1.33 s"),
        (92_475_685.46, "92.48 s"),
        (5e9, "5,000.00 s"),
        (-1500.0, "-1.50 ms"),
    ],
)
def test_durations(microseconds: float | None, text: str) -> None:
    assert duration(microseconds) == text


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_a_duration_never_shows_a_thousand_of_a_unit_below_the_largest(value: float) -> None:
    number, unit = duration(value).split()
    assert unit == "s" or float(number) < 1000


def test_shares_sizes_and_plurals() -> None:
    assert share(0.41249) == "41.2 %"
    assert share(None) == "n/a"
    assert (size(999), size(81_372), size(2_000_000_000)) == ("999 B", "81.4 kB", "2.0 GB")
    assert (plural(1, "step"), plural(2, "step"), plural(3, "family", "families")) == (
        "1 step",
        "2 steps",
        "3 families",
    )


def test_what_cannot_be_seen_is_shown() -> None:
    assert visible("a\nb\tc\x00d\x1b\u202e\udc80\U000e0001") == (
        "a\\nb\\tc\\x00d\\x1b\\u202e\\udc80\\U000e0001"
    )
    assert visible("größe 時間") == "größe 時間"


def test_a_long_name_says_how_much_is_missing() -> None:
    shown = visible("x" * 40_000 + ".7", 72)
    assert shown == "x" * 54 + "…(+39,930 chars)…" + "x" * 16 + ".7"
