"""What a query is, what it is asked with and what it answers.

Contract
* A `Query` is one question: a name, words, an example, intents (how people ask it) and one
  function from (summary, parameters) to an `Answer` or a `CannotAnswer`.
* The rows of an answer are frozen records; a field's unit stands in its type, so the `units` of an
  answer and its rows cannot disagree.
* Numbers carry no prose, and prose carries no number that is not in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from marin_profile.facts.rows import Row, units_of
from marin_profile.queries.lexicon import concept_of, words_of
from marin_profile.queries.parameters import DECLARED, LEAST, Parameters
from marin_profile.schema import ProfileSummary

DEFAULT_LIMIT = 10

R = TypeVar("R")

# What else may be asked of a named thing than its time.
SUBJECTS = (
    *("op", "gap", "context", "memory", "if", "bound", "before", "free", "compile", "launch"),
    *("donate", "transfer", "wait", "expose", "overlap", "hide", "byte", "roofline", "without"),
    *("loop", "straggler", "late", "attribution", "flop", "mfu", "buffer", "bandwidth", "compare"),
)


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

    @property
    def concepts(self) -> frozenset[str]:
        return frozenset(concept for entry in self.needs for concept in entry.split("|"))


def _any_of(entry: str, concepts: frozenset[str]) -> bool:
    return any(concept in concepts for concept in entry.split("|"))


def intent(score: int, *needs: str, unless: Sequence[str] = ()) -> Intent:
    return Intent(score, needs, tuple(unless))


@dataclass(frozen=True)
class Query:
    """One question that a summary can be asked; `name` is the answer's `query_type`. `parameters`:
    those of `DECLARED` that it takes; `gives`: per what it can be asked, and the fields of that;
    `leaves_out`: what its figures leave out by what they are, so that one may ask for it."""

    name: str
    description: str
    example: str
    run: Callable[[ProfileSummary, Parameters], Answer | CannotAnswer]
    intents: tuple[Intent, ...]
    rows: tuple[type[Row], ...] = ()
    parameters: tuple[str, ...] = ()
    gives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaves_out: tuple[str, ...] = ()

    @property
    def told(self) -> frozenset[str]:
        """The concepts that it speaks of."""
        words = words_of(f"{self.name} {self.description}")
        return frozenset(map(concept_of, words)).union(*(one.concepts for one in self.intents))

    @property
    def takes(self) -> tuple[str, ...]:
        """The parameters by name, "per" among them where the query gives figures per something."""
        return (*self.parameters, *(("per",) if self.gives else ()))

    def ask(self, summary: ProfileSummary, parameters: Parameters) -> dict[str, Any]:
        """The answer in its one shape."""
        answer = self.run(summary, parameters)
        fields = self.gives.get(parameters.per or "", ())
        if isinstance(answer, Answer) and parameters.per is not None:
            answer = self._per(answer, parameters.per, fields)
        if isinstance(answer, CannotAnswer):
            return refused(self.name, answer)
        shaped: dict[str, Any] = {
            "query_type": self.name,
            "basis": answer.basis,
            "units": units_of(self.rows),
            "results": [row.to_dict() for row in answer.results],
            "returned": len(answer.results),
            "total_matched": answer.total_matched,
            "truncated": len(answer.results) < answer.total_matched,
        }
        if parameters.limit is not None:
            shaped["limit"] = parameters.limit
        if parameters.per is not None:
            known = [name for name in fields if _is_known(answer.results, name)]
            shaped["per"] = {"unit": parameters.per, "fields": known}
        if answer.note:
            shaped["note"] = answer.note
        return shaped

    def _per(self, answer: Answer, unit: str, fields: Sequence[str]) -> Answer | CannotAnswer:
        """The answer, if it holds what was asked for in the unit that was asked for."""
        if answer.results and not any(_is_known(answer.results, name) for name in fields):
            return self.not_per(unit)
        return answer

    def not_per(self, unit: str) -> CannotAnswer:
        """Why there is no answer in this unit."""
        known = ", ".join(map(_said, self.gives)) or "as it is"
        return CannotAnswer(
            f"{self.name} is not known {_said(unit)}"
            + (" in this capture." if unit in self.gives else f"; it is known {known}."),
            "Ask without the unit: the answer then says what its figures cover.",
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "example": self.example,
            "parameters": [DECLARED[name].to_dict() for name in self.takes],
        }


def _said(unit: str) -> str:
    return "as a share" if unit == "share" else f"per {unit}"


def _is_known(rows: Sequence[Row], name: str) -> bool:
    return any(getattr(row, name, None) not in (None, []) for row in rows)


def refused(name: str | None, why: CannotAnswer) -> dict[str, Any]:
    """A refusal in its one shape."""
    refusal: dict[str, Any] = {"reason": why.reason, "what_would_help": why.what_would_help}
    if why.candidates:
        refusal["candidates"] = list(why.candidates)
    return {"query_type": name, "cannot_answer": refusal}


def in_order(rows: Sequence[R], order: str | None) -> list[R]:
    """Rows whose largest stand first, as asked for."""
    return list(reversed(rows)) if order == LEAST else list(rows)


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
