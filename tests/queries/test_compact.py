"""The short view of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders_summary import build_summary, hot_op
from marin_profile.queries import QUERIES, answer, run_query
from marin_profile.queries.compact import compact_json

SUMMARY = build_summary()


def answered(*rows: dict[str, Any], total: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "query_type": "made",
        "basis": "capture",
        "units": {"time": "us", "part": "share of 1", "absent": "us"},
        "results": list(rows),
        "returned": len(rows),
        "total_matched": len(rows) if total is None else total,
        "truncated": False,
        **more,
    }


def view(given: dict[str, Any], **options: Any) -> dict[str, Any]:
    text = compact_json(given, **options)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    read: dict[str, Any] = json.loads(text)
    return read


def test_no_nulls_and_numbers_as_exact_as_needed() -> None:
    row = {"time": 1234.5678, "part": 0.123456, "absent": None, "list": [], "count": 123456789}
    assert view(answered(row, note=None)) == {
        "query_type": "made",
        "basis": "capture",
        "units": {"us": ["time"], "share of 1": ["part"]},
        "results": [{"time": 1235, "part": 0.1235, "count": 123456789}],
        "returned": 1,
        "total": 1,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, 0), (1.0, 1), (-0.0, 0), (999.96, 1000.0), (12.34567, 12.35), (2.5e-7, 2.5e-7)],
)
def test_rounding(value: float, written: float) -> None:
    assert view(answered({"time": value}))["results"] == [{"time": written}]


def test_rows_are_cut_to_the_budget_and_that_is_said() -> None:
    rows = [{"record": "a", "name": f"{at}" * 60} for at in range(100)]
    rows.append({"record": "b", "name": "last"})
    short = view(answered(*rows))
    assert len(compact_json(answered(*rows))) <= 2000
    assert short["returned"] == len(short["results"]) < 40
    assert (short["total"], short["truncated"]) == (101, True)
    # Of each kind of row the first is there, in the order of the answer.
    assert short["results"][-1] == {"record": "b", "name": "last"}
    assert short["results"][0] == rows[0]
    assert view(answered(*rows), full=True)["returned"] == 101
    more = view(answered(*rows, limit=101))
    assert short["returned"] < more["returned"]
    assert len(compact_json(answered(*rows, limit=101))) <= 6000


def test_what_is_cut_inside_of_a_row_is_said() -> None:
    row = {
        "parts": [1, 2, 3, 4, 5],
        "by": {"a": 1.0, "b": 3.0, "c": 2.0, "d": 4.0},
        "text": "x" * 500,
    }
    short = view(answered(row))
    assert short["truncated"] is True
    (one,) = short["results"]
    assert (one["parts"], one["parts_total"]) == ([1, 2, 3], 5)
    assert (one["by"], one["by_total"]) == ({"d": 4, "b": 3, "c": 2}, 4)
    assert len(one["text"]) == 160
    assert view(answered(row), full=True)["results"] == [row]


def test_one_row_is_always_there() -> None:
    row = {f"field_{at}": "x" * 100 for at in range(30)}
    assert view(answered(row, row))["returned"] == 1


def test_a_number_of_rows_that_was_asked_for_is_given() -> None:
    ops = [hot_op(f"fusion.{at}", 100.0 - at) for at in range(10)]
    short = view(answer(build_summary(hot_ops=ops), "top 10 ops"))
    assert [row["name"] for row in short["results"]] == [f"fusion.{at}" for at in range(10)]


def test_a_refusal_keeps_its_reason() -> None:
    refused = answer(SUMMARY, "time in layer_9?")
    assert view(refused) == refused


def test_all_queries_are_short() -> None:
    for query in QUERIES:
        given = run_query(SUMMARY, query.name)
        assert len(compact_json(given)) <= 2000, query.name
        full = view(given, full=True)
        if "results" in given:
            assert full["returned"] == given["returned"]
