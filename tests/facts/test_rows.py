"""Rows: keyword records with units."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from builders_summary import build_summary
from marin_profile.base.units import Count, Microseconds
from marin_profile.facts.rows import Row, units_of
from marin_profile.queries import QUERIES
from marin_profile.queries.model import Answer, Parameters


class Base(Row, frozen=True, kw_only=True):
    name: str
    duration: Microseconds
    count: Count | None = None


class Derived(Base, frozen=True, kw_only=True, tag_field="record", tag="derived"):
    parts: list[Base]
    pass_: str | None = None


def test_what_is_written_of_a_row() -> None:
    row = Derived(name="a", duration=1.0, parts=[Base(name="b", duration=2.0)])
    assert row.to_dict() == {
        "record": "derived",
        "name": "a",
        "duration": 1.0,
        "count": None,
        "parts": [{"name": "b", "duration": 2.0, "count": None}],
        "pass": None,
    }
    assert units_of([Derived]) == {"duration": "us", "count": "count"}


def test_a_row_checks_its_fields() -> None:
    with pytest.raises(TypeError, match="duration"):
        Base(name="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="other"):
        Base(name="a", duration=1.0, other=2)  # type: ignore[call-arg]


def test_a_row_takes_the_fields_of_a_record_and_leaves_none_out() -> None:
    record = SimpleNamespace(name="a", duration=1.0, count=3, more=4)
    assert Base.of(record) == Base(name="a", duration=1.0, count=3)
    assert Base.of(record, count=None) == Base(name="a", duration=1.0)
    with pytest.raises(AttributeError, match="count"):
        Base.of(SimpleNamespace(name="a", duration=1.0))
    with pytest.raises(TypeError, match="more"):
        Base.of(record, more=4)


def test_rows_are_frozen_and_compared_by_value() -> None:
    row = Base(name="a", duration=1.0)
    with pytest.raises(AttributeError):
        row.name = "b"  # type: ignore[misc]
    assert row == Base(name="a", duration=1.0)
    assert row != Derived(name="a", duration=1.0, parts=[])


# The worst collective is one of two rows that no tag tells apart.
READ_BACK = [query for query in QUERIES if query.name != "compute_vs_communication"]


@pytest.mark.parametrize("query", READ_BACK, ids=lambda query: query.name)
def test_every_value_has_the_type_of_its_field(query) -> None:
    """Rows that are taken from records are typed as they say."""
    answer = query.run(build_summary(), Parameters())
    for row in answer.results if isinstance(answer, Answer) else ():
        assert msgspec.convert(row.to_dict(), type(row)) == row
        assert type(row) in query.rows
