"""Typed rows, the results of queries and comparisons: frozen, each quantity with its unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, dataclass_transform

MICROSECONDS = "us"
SHARE = "share of 1"
COUNT = "count"

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
