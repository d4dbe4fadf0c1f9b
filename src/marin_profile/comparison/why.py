"""Why did it get slower? A question in words about a comparison -> its rows, as queries answer.

Contract: rows are the comparison's own: what XLA did differently, then the ops that changed, each
list by its own order. Words of the question that name a scope, an op, a program or a kind choose
the rows; where none does, all are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from marin_profile.comparison.model import Comparison, HloDifference, OpChange

QUERY_TYPE = "why_changed"
DEFAULT_LIMIT = 10
_WORD = re.compile(r"[\w.\-]+")
# Words of questions that are also words of what answers them.
_NO_NAMES = frozenset(
    {"a", "all", "and", "before", "after", "by", "did", "do", "does", "faster", "for", "from"}
    | {"get", "got", "in", "is", "it", "its", "my", "of", "on", "op", "ops", "pass", "slower"}
    | {"step", "than", "that", "the", "this", "time", "to", "was", "what", "which", "why", "with"}
    | {"change", "changed", "differently", "longer", "take", "takes", "xla"}
)


def why(comparison: Comparison, question: str, *, limit: int | None = None) -> dict[str, Any]:
    hlo, attribution = comparison.hlo, comparison.attribution
    if attribution is None:
        return _refused(
            comparison.cannot_attribute or "There is no cost of a step on both sides to split.",
            "Capture whole steps before and after the change.",
        )
    rows: list[dict[str, Any]] = []
    words = {word.lower() for word in _WORD.findall(question)} - _NO_NAMES
    if hlo is not None:
        rows += [_difference(one) for one in hlo.differences]
    rows += [_op(one) for one in attribution.ops.rows if one.delta and not one.name.startswith("(")]
    named = [row for row in rows if _mentions(row, words)]
    chosen = named or rows
    shown = chosen[: limit or DEFAULT_LIMIT]
    notes = []
    if words and not named:
        notes.append("No scope, op, program or kind of the comparison has a name in the question.")
    if hlo is not None and hlo.cannot_answer:
        notes.append(hlo.cannot_answer)
    elif hlo is not None and not hlo.differences:
        notes.append("XLA compiled the same on both sides.")
    return {
        "query_type": QUERY_TYPE,
        "basis": comparison.units["durations"],
        "units": dict.fromkeys(("before", "after", "delta", "interval"), "us"),
        "results": shown,
        "returned": len(shown),
        "total_matched": len(chosen),
        "truncated": len(shown) < len(chosen),
        **({"note": " ".join(notes)} if notes else {}),
    }


def _refused(reason: str, what_would_help: str) -> dict[str, Any]:
    return {
        "query_type": QUERY_TYPE,
        "cannot_answer": {"reason": reason, "what_would_help": what_would_help},
    }


def _difference(row: HloDifference) -> dict[str, Any]:
    return {
        "record": "difference",
        **row.model_dump(mode="json", by_alias=True, exclude={"name"}, exclude_none=True),
    }


def _op(row: OpChange) -> dict[str, Any]:
    sides = [side for side in (row.before_op, row.after_op) if side is not None]
    return {
        "record": "op",
        "name": row.name,
        "match": row.match,
        "scope": sides[-1].scope if sides else None,
        "before": row.before,
        "after": row.after,
        "delta": row.delta,
        "interval": list(row.interval) if row.interval else None,
        "noise": row.noise,
    }


def _mentions(row: dict[str, Any], words: Iterable[str]) -> bool:
    """Whole parts of names: "mlp" is in "blocks/mlp/dot_general"."""
    names = [
        *(str(row.get(key) or "") for key in ("kind", "program", "scope", "name")),
        *row.get("before_ops", ()),
        *row.get("after_ops", ()),
    ]
    parts = {part.lower() for name in names for part in (name, *re.split(r"[/_.\-()=>]+", name))}
    return not parts.isdisjoint(words)
