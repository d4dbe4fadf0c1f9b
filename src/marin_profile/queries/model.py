"""What a query is, what it is asked with and what it answers.

Contract
* A `Query` is one question: a name, words, an example, intents (how people ask it) and one
  function from (summary, parameters) to an `Answer` or a `CannotAnswer`.
* The rows of an answer are frozen records; a field's unit stands in its type, so the `units` of an
  answer and its rows cannot disagree.
* Numbers carry no prose, and prose carries no number that is not in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_profile.facts.rows import Row, units_of
from marin_profile.schema import ProfileSummary

DEFAULT_LIMIT = 10


@dataclass(frozen=True)
class Answer:
    """Rows, how many matched before the limit, and the window (`basis`) that they cover."""

    basis: str
    results: tuple[Row, ...]
    total_matched: int
    note: str | None = None


@dataclass(frozen=True)
class CannotAnswer:
    """The summary does not hold what was asked for. `candidates`: names that may be meant."""

    reason: str
    what_would_help: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameters:
    """What a question asks with. `op` is the text as asked: each query looks it up itself;
    `device`: the number in its name; `gaps`: whether it asks what if there were no gaps."""

    limit: int | None = None
    op: str | None = None
    kind: str | None = None
    family: str | None = None
    pass_: str | None = None
    window: str | None = None
    device: int | None = None
    gaps: bool = False


@dataclass(frozen=True)
class Intent:
    """A way to ask: every one of `needs` must occur, none of `unless` may.

    Each entry is one or several concepts, "a|b" meaning a or b. The higher score wins.
    """

    score: int
    needs: tuple[str, ...]
    unless: tuple[str, ...] = ()

    def matches(self, concepts: frozenset[str]) -> bool:
        return all(_any_of(entry, concepts) for entry in self.needs) and not any(
            _any_of(entry, concepts) for entry in self.unless
        )


def _any_of(entry: str, concepts: frozenset[str]) -> bool:
    return any(concept in concepts for concept in entry.split("|"))


def intent(score: int, *needs: str, unless: Sequence[str] = ()) -> Intent:
    return Intent(score, needs, tuple(unless))


@dataclass(frozen=True)
class Query:
    """One question that a summary can be asked; `name` is the answer's `query_type`."""

    name: str
    description: str
    example: str
    run: Callable[[ProfileSummary, Parameters], Answer | CannotAnswer]
    intents: tuple[Intent, ...]
    rows: tuple[type[Row], ...] = ()
    parameters: tuple[str, ...] = ()

    def ask(self, summary: ProfileSummary, parameters: Parameters) -> dict[str, Any]:
        """The answer in its one shape."""
        answer = self.run(summary, parameters)
        if isinstance(answer, CannotAnswer):
            refusal: dict[str, Any] = {
                "reason": answer.reason,
                "what_would_help": answer.what_would_help,
            }
            if answer.candidates:
                refusal["candidates"] = list(answer.candidates)
            return {"query_type": self.name, "cannot_answer": refusal}
        shaped: dict[str, Any] = {
            "query_type": self.name,
            "basis": answer.basis,
            "units": units_of(self.rows),
            "results": [row.to_dict() for row in answer.results],
            "returned": len(answer.results),
            "total_matched": answer.total_matched,
            "truncated": len(answer.results) < answer.total_matched,
        }
        if answer.note:
            shaped["note"] = answer.note
        return shaped

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "example": self.example,
            "parameters": list(self.parameters),
        }


def listing(
    basis: str,
    *sections: Sequence[Row],
    limit: int | None,
    default_limit: int = DEFAULT_LIMIT,
    note: str | None = None,
) -> Answer:
    """An answer of one or several lists, each cut to the limit on its own."""
    most = default_limit if limit is None else limit
    shown = tuple(row for section in sections for row in section[:most])
    return Answer(basis, shown, sum(len(section) for section in sections), note)
