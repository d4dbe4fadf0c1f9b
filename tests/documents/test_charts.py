"""Charts: where their marks lie, what they tell, and their figures as a table."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from marin_profile.documents.charts import drawn, figures
from marin_profile.documents.model import (
    Bars,
    Cell,
    Chart,
    Icicle,
    Level,
    Roofline,
    Series,
    Switch,
    Waterfall,
)

BARS = Bars("t", ("a", "b"), (("row", (0.25, 0.75)), ("other", (1.0, 0.0))))
SERIES = Series("t", (("s1", 10.0, "10 us"), ("s2", 40.0, "40 us"), ("s3", 20.0, "20 us")))
FALL = Waterfall("t", (("slower", 30.0, "+30"), ("faster", -50.0, "-50")), ("change", -20.0, "-20"))
ICICLE = Icicle("t", (Cell("a", 0, 0.0, 0.6, "a: 60"), Cell("b", 1, 0.0, 0.2, "a=>b: 20")))
# Peaks 1,000 TFLOP/s from 100 FLOP/byte on.
ROOF = Roofline("t", (("op", 10.0, 50.0, 0.25, "op: 50"),), 1000.0, 100.0)


def parsed(one: Chart) -> ElementTree.Element:
    """Well-formed, or it raises."""
    return ElementTree.fromstring(f"<figure>{drawn(one)}</figure>")


def marks(one: Chart) -> list[tuple[str, dict[str, str]]]:
    """Of each mark what it tells, and the attributes of its first shape."""
    found = []
    for mark in parsed(one).iter("g"):
        title, shape = list(mark)[:2]
        found.append((title.text or "", dict(shape.attrib)))
    return found


def places(one: Chart, *names: str) -> list[tuple[str, ...]]:
    return [(told, *(shape[name] for name in names)) for told, shape in marks(one)]


def test_bars_lie_behind_each_other():
    assert places(BARS, "x", "width", "y") == [
        ("row: a 25.0 %", "0%", "25%", "3"),
        ("row: b 75.0 %", "25%", "75%", "3"),
        ("other: a 100.0 %", "0%", "100%", "25"),
    ]


def test_bars_say_what_they_are_given():
    one = Bars("t", ("a",), (("row", (0.5,)),), (("9 GB",),))
    assert [told for told, _ in marks(one)] == ["row: a 9 GB"]


def test_columns_are_as_high_as_their_values():
    """124 pixels are the largest value, 40 us."""
    assert places(SERIES, "y", "height") == [
        ("s1: 10 us", "101.00", "31.00"),
        ("s2: 40 us", "8.00", "124.00"),
        ("s3: 20 us", "70.00", "62.00"),
    ]


def test_a_line_lies_between_its_extremes_and_names_its_changes():
    one = Series(
        "t",
        (("a", 10.0, "10 us"), ("b", 20.0, "20 us"), ("c", 20.0, "20 us"), ("d", 15.0, "15 us")),
        from_zero=False,
        marked=frozenset({3}),
        notes=("", "", "", "fail"),
        changes=((1, "+100 %", "slower from b on"),),
        levels=(Level(0, 1, 10.0, "level 10"), Level(1, 4, 20.0, "level 20")),
    )
    circles = [(told, shape["cx"], shape["cy"]) for told, shape in marks(one) if "cx" in shape]
    assert circles == [
        ("a: 10 us", "12.5%", "132.00"),
        ("b: 20 us", "37.5%", "8.00"),
        ("c: 20 us", "62.5%", "8.00"),
        ("d: 15 us, fail", "87.5%", "70.00"),
    ]
    lines = [(told, shape["x1"], shape["x2"]) for told, shape in marks(one) if "x1" in shape]
    assert lines == [
        ("level 10", "0%", "25%"),
        ("level 20", "25%", "100%"),
        ("slower from b on", "25%", "25%"),
    ]
    assert [shape["class"] for told, shape in marks(one) if "fail" in told] == ["step marked"]


def test_a_waterfall_goes_on_where_it_was_and_ends_at_the_sum():
    """From 0 up to 30, down to -20: 50 is the whole width, and 0 lies at 40 %."""
    assert places(FALL, "x", "width", "class") == [
        ("slower: +30", "40%", "60%", "longer"),
        ("faster: -50", "0%", "100%", "less"),
        ("change: -20", "0%", "40%", "total"),
    ]


def test_cells_lie_below_the_whole():
    assert places(ICICLE, "x", "width", "y") == [
        ("a: 60", "0%", "60%", "0"),
        ("a=>b: 20", "0%", "20%", "22"),
    ]


def test_a_point_lies_below_the_roof():
    """Along: decades 1 to 2, so 10 is at the left end. Down: decades 1 to 3, 244 pixels."""
    [(told, point)] = marks(ROOF)
    assert told == "op: 50"
    assert point["cx"] == "0%"
    # log10(50) is 1.69897: (3 - 1.69897) / 2 of 244 pixels below 8.
    assert float(point["cy"]) == pytest.approx(8 + 244 * 0.650515, abs=0.01)
    assert point["r"] == "6.0"  # a quarter of the time: half the largest radius
    [line] = parsed(ROOF).iter("polyline")
    # From (10, 100) up to the ridge (100, 1000).
    assert line.attrib["points"] == "0,130 1000,8 1000,8"


@pytest.mark.parametrize("one", [BARS, SERIES, FALL, ICICLE, ROOF], ids=lambda one: type(one))
def test_nothing_is_scaled_or_styled_by_attribute(one):
    """Letters keep their size; the policy of the page allows no style attribute."""
    text = str(drawn(one))
    assert not re.search(r"\sstyle=|\son\w+=", text)
    assert "<text" not in "".join(re.findall(r"<svg[^>]*viewBox.*?</svg>", text, re.DOTALL))


@pytest.mark.parametrize(
    ("one", "headers", "rows"),
    [
        (BARS, ("device", "a", "b"), [("row", "25.0 %", "75.0 %"), ("other", "100.0 %", "0.0 %")]),
        (SERIES, ("step", "period"), [("s1", "10 us"), ("s2", "40 us"), ("s3", "20 us")]),
        (
            Series("t", SERIES.points[:2], notes=("n", ""), changes=((1, "+", "in full"),)),
            ("step", "period", "note", "change"),
            [("s1", "10 us", "n", ""), ("s2", "40 us", "", "in full")],
        ),
        (FALL, ("part", "change"), [("slower", "+30"), ("faster", "-50"), ("change", "-20")]),
        (ROOF, ("op", "FLOP/byte", "TFLOP/s"), [("op", "10", "50")]),
    ],
)
def test_the_figures_as_a_table(one, headers, rows):
    found = figures(one)
    assert found is not None
    assert (found.headers, list(found.rows)) == (headers, rows)


def test_an_icicle_has_its_table_beside_it():
    assert figures(ICICLE) is None
    assert figures(Switch("t", (("a", ICICLE),))) is None


@pytest.mark.parametrize("values", [(0.0, 0.0), (5.0, 5.0)])
@pytest.mark.parametrize("from_zero", [True, False])
def test_equal_values_are_drawn(values, from_zero):
    one = Series("t", tuple(("p", value, "x") for value in values), from_zero=from_zero)
    assert len(marks(one)) == 2
