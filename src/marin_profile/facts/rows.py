"""Typed rows, the results of queries and comparisons: frozen, each quantity with its unit.

Contract: a row is a `msgspec.Struct` whose fields are what is written of it, `pass_` as `pass`. A
quantity's unit stands in its type (`base.units`), so rows and the `units` of an answer agree.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from functools import cache
from typing import Any, Self

import msgspec

from marin_profile.base.units import unit_in


class Row(msgspec.Struct, frozen=True, kw_only=True, rename={"pass_": "pass"}):
    """Base of all result rows; subclasses say `frozen=True, kw_only=True` too. Rows of several
    kinds in one answer are told apart by `tag_field="record"`."""

    @classmethod
    def of(cls, record: object, **other: Any) -> Self:
        """The row with these fields, and for each further one what `record` calls by the same name.
        Raises AttributeError where it has no such name: no field is left at its default."""
        taken = {name: getattr(record, name) for name in cls.__struct_fields__ if name not in other}
        return cls(**taken, **other)

    def to_dict(self) -> dict[str, Any]:
        written: dict[str, Any] = msgspec.to_builtins(self)
        return written


def units_of(row_types: Iterable[type[Row]]) -> dict[str, str]:
    """Field name -> unit over all quantities of these row types."""
    return {name: unit for row_type in row_types for name, unit in _units(row_type).items()}


@cache
def _units(row_type: type[Row]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, annotation in typing.get_type_hints(row_type, include_extras=True).items():
        unit = unit_in(annotation)
        if unit is not None:
            found[name] = unit
    return found
