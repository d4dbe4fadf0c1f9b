"""Pages fit, follow one another without a gap, and say what they leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_profile.base.errors import UsageError
from marin_profile.mcp.pages import MESSAGE, MOST_CHARACTERS, page_of

ROOM = MOST_CHARACTERS - MESSAGE


def pages(answered: dict[str, Any]) -> list[dict[str, Any]]:
    """All pages, each of which fits."""
    found: list[dict[str, Any]] = []
    cursor = None
    while cursor is not None or not found:
        text = page_of(answered, cursor)
        assert len(json.dumps(text)) <= ROOM
        found.append(json.loads(text))
        cursor = found[-1].get("cursor")
        assert found[-1]["truncated"] is (cursor is not None)
        assert found[-1]["returned"] == len(found[-1]["results"])
    return found


def test_an_answer_that_fits_is_one_page_without_nulls() -> None:
    answered = {
        "query_type": "top_ops",
        "units": {"time": "us", "bytes": "byte", "size": "byte"},
        "results": [{"name": "a", "time": 0.1 + 0.2, "bytes": None, "of": {"size": 0, "x": None}}],
        "returned": 1,
        "total_matched": 7,
        "truncated": True,
        "note": None,
    }
    assert json.loads(page_of(answered, None)) == {
        "query_type": "top_ops",
        "units": {"time": "us", "size": "byte"},
        "results": [{"name": "a", "time": 0.3, "of": {"size": 0}}],
        "returned": 1,
        "total": 1,
        "total_matched": 7,
        "truncated": False,
    }


def test_pages_together_are_the_answer() -> None:
    rows = [{"name": f"op.{number}", "why": "x" * 200} for number in range(100)]
    found = pages({"query_type": "q", "results": rows})
    assert [row for page in found for row in page["results"]] == rows
    assert {page["total"] for page in found} == {100}
    # A row is 226 characters of JSON within JSON, and 5,700 hold some 24 of them.
    assert len(found) == 5


TEXTS = st.text(max_size=400) | st.sampled_from(["\x1b[2J" * 50, "\u202e" * 300, '"' * 500])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), TEXTS | st.integers(), min_size=1)))
def test_pages_of_any_rows_fit_and_are_the_answer(rows: list[dict[str, Any]]) -> None:
    found = pages({"query_type": "q", "units": dict.fromkeys("abc", "us"), "results": rows})
    assert [row for page in found for row in page["results"]] == rows


def test_a_row_that_does_not_fit_is_cut_and_says_so() -> None:
    rows = [{"name": "small"}, {"name": "n" * 9000, "all": list(range(5000))}, {"name": "last"}]
    first, second, third = pages({"query_type": "q", "results": rows})
    assert first["results"] == [{"name": "small"}]
    assert "shortened" not in first
    assert second["shortened"] is True
    assert second["results"][0]["name"] == f"{'n' * 1000}…(+8,000 characters)"
    assert second["results"][0]["all"] == [*range(40), "…(+4,960 items)"]
    assert third["results"] == [{"name": "last"}]
    assert "shortened" not in third


def test_a_refusal_that_does_not_fit_is_cut() -> None:
    refusal = {"query_type": None, "cannot_answer": {"reason": "r" * 9000}}
    [page] = pages(refusal)
    assert page["cannot_answer"]["reason"].startswith("r" * 1000 + "…")
    assert (page["returned"], page["total"], page["shortened"]) == (0, 0, True)


@pytest.mark.parametrize("cursor", ["", "x", "é", "0", "LTE6YWJj", "=" * 500, "\0", "9" * 5000])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        page_of({"results": [{"name": "a"}]}, cursor)


def test_a_cursor_of_an_answer_that_has_changed_is_refused() -> None:
    answered = {"results": [{"name": "x" * 200, "at": number} for number in range(100)]}
    cursor = json.loads(page_of(answered, None))["cursor"]
    assert json.loads(page_of(answered, cursor))["results"][0]["at"] > 0
    answered["results"][99]["at"] = 1
    with pytest.raises(UsageError, match="of another answer"):
        page_of(answered, cursor)


def test_what_a_terminal_would_act_on_is_escaped() -> None:
    name = "\x1b[2J\u202e</script>\u2028"
    text = page_of({"results": [{"name": name}]}, None)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["results"][0]["name"] == name
