"""What a query is, what it is asked with and what it answers.

Contract
* A `Query` is one question: a name, words, an example, intents (how people ask it) and one
  function from (summary, parameters) to an `Answer` or a `CannotAnswer`.
* The rows of an answer are frozen records; a field's unit stands beside the field, so the
  `units` of an answer and its rows cannot disagree.
* Numbers carry no prose, and prose carries no number that is not in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, dataclass_transform

from marin_profile.schema import ProfileSummary

MICROSECONDS = "us"
SHARE = "share of 1"
COUNT = "count"

DEFAULT_LIMIT = 10


_REQUIRED: Any = object()


class Measured(NamedTuple):
    """A row field that holds a quantity: its unit, and its value where none is given."""

    unit: str
    default: Any


def measured(unit: str, *, default: Any = _REQUIRED) -> Any:
    """A row field that holds a quantity in `unit`."""
    return Measured(unit, default)


def in_us(*, default: Any = _REQUIRED) -> Any:
    return Measured(MICROSECONDS, default)


def as_share(*, default: Any = _REQUIRED) -> Any:
    return Measured(SHARE, default)


def as_count(*, default: Any = _REQUIRED) -> Any:
    return Measured(COUNT, default)


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(measured, in_us, as_share, as_count),
)
class Row:
    """Base of all result rows: frozen, made with keywords, compared by value.

    A subclass only annotates its fields. Real dataclasses would do, but generating some thirty of
    them takes a quarter of the time that a query has. A field called `pass_` is written `pass`.
    """

    field_names: ClassVar[tuple[str, ...]] = ()
    field_units: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: cls.__dict__.get(name, _REQUIRED) for name in cls.__annotations__}
        cls.field_names = (*cls.field_names, *(name for name in own if name not in cls.field_names))
        for name, value in own.items():
            if isinstance(value, Measured):
                cls.field_units = cls.field_units | {name: value.unit}
                if value.default is _REQUIRED:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - set(self.field_names)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        for name in self.field_names:
            if name not in values and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} lacks {name}")
            self.__dict__[name] = values[name] if name in values else getattr(type(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        return {name.rstrip("_"): _plain(value) for name, value in vars(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def units_of(row_types: Iterable[type[Row]]) -> dict[str, str]:
    """Field name -> unit over all quantities of these row types."""
    return {name: unit for row_type in row_types for name, unit in row_type.field_units.items()}


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
    """What a question asks with. `op` is the text as asked: each query looks it up itself."""

    limit: int | None = None
    op: str | None = None
    kind: str | None = None
    family: str | None = None
    pass_: str | None = None
    window: str | None = None


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
