"""An answer as one short line of JSON, for agents: a view, the same for all queries.

Contract
* No nulls and nothing empty; numbers as exact as decisions need: counts and bytes whole, others of
  1,000 or more without decimals, else to four digits. Units stand by unit, for the fields that
  are there.
* Rows are taken while they fit into a budget of characters (a larger one where a number of rows is
  asked for), of each kind of row the first before others, and at least one; long lists in rows and
  long texts are cut. What is cut is said: `returned` of `total` rows, `truncated`, and
  "<list>_total" beside a list.
"""

from __future__ import annotations

import json
from typing import Any

BUDGET, BUDGET_IF_ASKED = 1900, 5600
MOST_OF_LIST = 3
MOST_OF_TEXT = 160


def compact_json(answered: dict[str, Any], *, full: bool = False) -> str:
    """One line that ends in a line feed; `full`: nothing is cut."""
    shaped = _refusal(answered) if "cannot_answer" in answered else _answer(answered, full)
    return f"{_line(shaped)}\n"


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _refusal(answered: dict[str, Any]) -> dict[str, Any]:
    return {name: _short(value, cut=True) for name, value in answered.items()}


def _answer(answered: dict[str, Any], full: bool) -> dict[str, Any]:
    rows = [_short(row, cut=not full) for row in answered["results"]]
    kept = set(range(len(rows))) if full else _fitting(rows, _budget(answered))
    shown = [row for at, row in enumerate(rows) if at in kept]
    total = answered["total_matched"]
    shaped = {
        name: _short(answered[name], cut=False)
        for name in ("query_type", "basis", "per", "note", "read_as")
        if answered.get(name)
    }
    whole = [_short(answered["results"][at], cut=False) for at in sorted(kept)]
    return {
        **shaped,
        "units": _units(answered["units"], _names(shown)),
        "results": shown,
        "returned": len(shown),
        "total": total,
        "truncated": len(shown) < total or shown != whole,
    }


def _budget(answered: dict[str, Any]) -> int:
    """For the rows; more of it where a number of rows was asked for."""
    names = _names(answered["results"])
    beside = [answered.get("note"), answered.get("per"), _units(answered["units"], names)]
    return (BUDGET_IF_ASKED if "limit" in answered else BUDGET) - len(_line(beside))


def _fitting(rows: list[Any], budget: int) -> set[int]:
    """The first of each kind of row, then the others in order, while they fit."""
    seen: set[object] = set()
    firsts: list[int] = []
    others: list[int] = []
    for at, row in enumerate(rows):
        kind = row.get("record")
        (others if kind in seen else firsts).append(at)
        seen.add(kind)
    kept: set[int] = set()
    for at in (*firsts, *others):
        budget -= len(_line(rows[at])) + 1
        if budget < 0 and kept:
            break
        kept.add(at)
    return kept


def _short(value: Any, cut: bool) -> Any:
    if isinstance(value, dict):
        shaped: dict[str, Any] = {}
        for name, item in value.items():
            if item is None or item in ([], {}, ""):
                continue
            if (
                cut
                and isinstance(item, list | dict)
                and len(item) > MOST_OF_LIST
                and _is_long(item)
            ):
                shaped[f"{name}_total"] = len(item)
                item = _first(item)
            shaped[name] = _short(item, cut)
        return shaped
    if isinstance(value, list):
        return [_short(item, cut) for item in value]
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, str) and cut and len(value) > MOST_OF_TEXT:
        return f"{value[: MOST_OF_TEXT - 1]}…"
    return value


def _is_long(item: Any) -> bool:
    """A map of names to numbers is a list too; a record's fields are not."""
    if isinstance(item, dict):
        return len(item) > MOST_OF_LIST and all(
            isinstance(one, int | float) for one in item.values()
        )
    return isinstance(item, list) and len(item) > MOST_OF_LIST


def _first(item: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
    if isinstance(item, list):
        return item[:MOST_OF_LIST]
    return dict(sorted(item.items(), key=lambda one: (-one[1], one[0]))[:MOST_OF_LIST])


def _rounded(value: float) -> float | int:
    if value == int(value) or abs(value) >= 1000:
        return round(value)
    return float(f"{value:.4g}")


def _names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in _names(item)}
    if isinstance(value, list):
        return {name for item in value for name in _names(item)}
    return set()


def _units(units: dict[str, str], present: set[str]) -> dict[str, list[str]]:
    by_unit: dict[str, list[str]] = {}
    for name in sorted(present & set(units)):
        by_unit.setdefault(units[name], []).append(name)
    return by_unit
