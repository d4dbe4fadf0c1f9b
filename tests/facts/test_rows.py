"""Rows: keyword records with units."""

from __future__ import annotations

import pytest

from marin_profile.facts.rows import Row, as_count, in_us, units_of


class Base(Row):
    name: str
    duration: float = in_us()
    count: int | None = as_count(default=None)


class Derived(Base):
    record: str = "derived"
    pass_: str | None = None


def test_fields_units_and_defaults() -> None:
    row = Derived(name="a", duration=1.0)
    assert row.to_dict() == {
        "name": "a",
        "duration": 1.0,
        "count": None,
        "record": "derived",
        "pass": None,
    }
    assert units_of([Derived]) == {"duration": "us", "count": "count"}


def test_a_row_checks_its_fields() -> None:
    with pytest.raises(TypeError, match="lacks duration"):
        Base(name="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no other"):
        Base(name="a", duration=1.0, other=2)  # type: ignore[call-arg]


def test_rows_are_frozen_and_compared_by_value() -> None:
    row = Base(name="a", duration=1.0)
    with pytest.raises(AttributeError, match="frozen"):
        row.name = "b"  # type: ignore[misc]
    assert row == Base(name="a", duration=1.0)
    assert row != Derived(name="a", duration=1.0)
