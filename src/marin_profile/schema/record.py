"""What every record of a summary is, and the two windows that its lists cover.

Contract: a record that is read from a file keeps the fields that it does not know, so that they
survive a round trip. Making a record with such a field, or copying one with a field that it does
not have, raises TypeError: there it is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

SCHEMA_VERSION = "profile_summary.v1"
EPOCH_UTC = "1970-01-01T00:00:00.000000Z"

CAPTURE = "capture"
STEADY = "steady"
# From the first kept step's start to the last one's: what per-step figures are sums of.
WHOLE_PERIODS = "whole_periods"

StepNumber = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]


_CONTAINERS = frozenset({dict, list, tuple})


class _Checked(ModelMetaclass):
    """Checks what a constructor is given. Reading does not pass here: pydantic's validator makes
    the records by itself."""

    if not TYPE_CHECKING:  # mypy knows the constructor from the fields

        def __call__(cls, **values):
            field_names = _field_names(cls)
            if not values.keys() <= field_names.keys():
                _refuse_unknown(cls, values, field_names)
            # A summary has tens of thousands of records: the validator makes them without the
            # detour over BaseModel.__init__, and only plain data inside is looked into.
            made = cls.__pydantic_validator__.validate_python(values)
            for key, value in values.items():
                if type(value) in _CONTAINERS:
                    _check_given(value, getattr(made, field_names[key]))
            return made


class Record(BaseModel, metaclass=_Checked):
    """Base of all records: frozen, and keeps fields that it does not know when it is read."""

    # Deferred: a process builds the validators that it uses, not those of all records.
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, defer_build=True)

    @classmethod
    def of_columns(cls, **columns: Iterable[Any]) -> list[Self]:
        """A record for each place of columns that are equally long, of plain values and ready
        records: of many in half the time."""
        _refuse_unknown(cls, columns, _field_names(cls))
        made = cls.__pydantic_validator__.validate_python
        rows = zip(*columns.values(), strict=True)
        return [made(dict(zip(columns, row, strict=True))) for row in rows]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        own = {*type(self).model_fields, *(self.model_extra or ())}
        _refuse_unknown(type(self), update or (), own)
        return super().model_copy(update=update, deep=deep)


@cache
def _field_names(kind: type[Record]) -> dict[str, str]:
    """Every key that a field may be given as -> the field's name."""
    names = {}
    for name, field in kind.model_fields.items():
        other = field.validation_alias
        choices = other.choices if isinstance(other, AliasChoices) else [other]
        names.update({key: name for key in (name, *choices) if isinstance(key, str)})
    return names


def _refuse_unknown(kind: type[Record], given: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(given).difference(known))
    if unknown:
        raise TypeError(f"{kind.__name__} has no {', '.join(unknown)}")


def _check_given(given: Any, made: Any) -> None:
    """The same for records that are given as plain data; ready ones may come from a file."""
    if isinstance(given, dict) and isinstance(made, Record):
        field_names = _field_names(type(made))
        _refuse_unknown(type(made), given, field_names)
        for key, value in given.items():
            _check_given(value, getattr(made, field_names[key]))
    elif isinstance(given, list | tuple) and isinstance(made, list | tuple):
        for part, made_part in zip(given, made, strict=True):
            if type(part) in _CONTAINERS:
                _check_given(part, made_part)
