"""A list of a summary's records as a table: to read, and to hand to pandas or polars.

Contract
* A row is a record, with all that it holds. A column is a plain value, or a list of such, of each
  record: fields of records inside and entries of maps have columns of their own, named "a.b"; lists
  of records have none.
* What is not known is None. A list that the summary does not hold is empty, and `is_known` False.
* pandas and polars are imported when they are asked for, and not before.
"""

from __future__ import annotations

import html
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, TypeVar, overload

from marin_profile.base.errors import MissingPackageError
from marin_profile.base.text import plural, visible
from marin_profile.base.units import unit_in
from marin_profile.opened.names import Suggesting
from marin_profile.schema import Record

R = TypeVar("R", bound=Record)

PLAIN = (bool, int, float, str)
ROWS_SHOWN, COLUMNS_SHOWN, LONGEST_CELL = 10, 8, 48


@dataclass(frozen=True)
class Column:
    """`kind`: bool, int, float or str, of one value or, if `is_list`, of a list of them; `path`:
    the fields that lead to it, and the key if it is an entry of a map."""

    name: str
    path: tuple[str, ...]
    kind: type
    is_list: bool
    unit: str | None

    def of(self, record: Record) -> Any:
        value: Any = record
        for step in self.path:
            if value is None:
                return None
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, step)
        return list(value) if isinstance(value, list) else value


class Table(Suggesting, Sequence[R], Generic[R]):
    """Records in the summary's order. `basis`: the window that they cover, where it is stated."""

    def __init__(
        self, kind: type[R], records: Sequence[R] | None, *, basis: str | None = None
    ) -> None:
        self.kind = kind
        self.basis = basis
        self.is_known = records is not None
        self._records = tuple(records or ())

    @overload
    def __getitem__(self, at: int) -> R: ...
    @overload
    def __getitem__(self, at: slice) -> Table[R]: ...
    def __getitem__(self, at: int | slice) -> R | Table[R]:
        if isinstance(at, slice):
            records = self._records[at] if self.is_known else None
            return Table(self.kind, records, basis=self.basis)
        return self._records[at]

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _columns(self) -> tuple[Column, ...]:
        return tuple(_columns(self.kind, self._records))

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self._columns]

    @property
    def units(self) -> dict[str, str]:
        """Of the columns that are quantities."""
        return {column.name: column.unit for column in self._columns if column.unit is not None}

    def to_dict(self) -> dict[str, list[Any]]:
        """Column by column."""
        return {
            column.name: [column.of(record) for record in self._records] for column in self._columns
        }

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Raises MissingPackageError."""
        return _package("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """A polars.DataFrame; whole numbers that no 64 bits hold are floats there. Raises
        MissingPackageError."""
        polars = _package("polars")
        data, schema = self.to_dict(), {}
        for column in self._columns:
            kind = column.kind
            if kind is int and not column.is_list and not all(map(_is_int64, data[column.name])):
                kind, values = float, data[column.name]
                data[column.name] = [None if value is None else float(value) for value in values]
            schema[column.name] = polars.List(kind) if column.is_list else kind
        return polars.DataFrame(data, schema=schema)

    def __repr__(self) -> str:
        rows = plural(len(self), "row") if self.is_known else "not known"
        window = f", {visible(self.basis)}" if self.basis else ""
        return f"<Table of {self.kind.__name__}: {rows}{window}>"

    def _repr_html_(self) -> str:
        shown = [column for column in self._columns if not column.is_list][:COLUMNS_SHOWN]
        heads = (
            f"{column.name} ({column.unit})" if column.unit else column.name for column in shown
        )
        rows = [
            "".join(f"<td>{_cell(column.of(record))}</td>" for column in shown)
            for record in self._records[:ROWS_SHOWN]
        ]
        head = "".join(f"<th>{html.escape(visible(name))}</th>" for name in heads)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<p>{html.escape(repr(self))}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "" if value is None else html.escape(visible(str(value), LONGEST_CELL))


def _is_int64(value: int | None) -> bool:
    return value is None or -(1 << 63) <= value < 1 << 63


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"The {name} package is not installed; install it with pip install {name}."
        ) from error


# --- columns -----------------------------------------------------------------------------------


def _columns(
    kind: type[Record], records: Sequence[Any], path: tuple[str, ...] = (), above: str = ""
) -> Iterator[Column]:
    """`records`: of this kind, each with `path` still to go."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for field, about in kind.model_fields.items():
        name, here = above + (about.alias or field), (*path, field)
        inner, parts = _taken_apart(hints[field])
        if isinstance(inner, type) and issubclass(inner, Record):
            yield from _columns(inner, records, here, f"{name}.")
        elif inner is dict and _plain(parts[1]):
            unit = unit_in(parts[1])
            for key in _keys(records, here):
                value = _plain(parts[1])
                assert value is not None
                yield Column(f"{name}.{key}", (*here, key), value, False, unit)
        elif (value := _plain(parts[0] if inner is list else inner)) is not None:
            yield Column(name, here, value, inner is list, unit_in(hints[field]))


def _keys(records: Sequence[Any], path: tuple[str, ...]) -> list[str]:
    whole = Column("", path, dict, False, None)
    return sorted({key for record in records for key in whole.of(record) or ()})


def _taken_apart(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is without its unit and None, and what that is made of."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _taken_apart(parts[0])
    if origin in (typing.Union, types.UnionType):
        others = [part for part in parts if part is not type(None)]
        return _taken_apart(others[0]) if len(others) == 1 else (None, ())
    return origin or annotation, parts


def _plain(annotation: Any) -> type | None:
    inner, _ = _taken_apart(annotation)
    return inner if inner in PLAIN else None
