"""The rows of a fleet as Parquet, for DuckDB, Polars or a notebook to go on from.

pyarrow (extra `fleet`) is imported here alone, when such a file is asked for.
"""

from __future__ import annotations

import io
import typing
from collections.abc import Sequence
from types import NoneType
from typing import Any

from marin_profile.base.errors import MissingPackageError
from marin_profile.base.units import unit_in
from marin_profile.fleet.row import FleetRow


def parquet_of(rows: Sequence[FleetRow]) -> bytes:
    """A column a field, with its unit as metadata; no rows still give all columns."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError(
            "A Parquet file needs pyarrow: pip install 'marin-profile[fleet]'."
        ) from error
    units = typing.get_type_hints(FleetRow, include_extras=True)
    fields = [
        pyarrow.field(name, _type_of(pyarrow, hint), metadata=_metadata(units[name]))
        for name, hint in typing.get_type_hints(FleetRow).items()
    ]
    table = pyarrow.Table.from_pylist([row.to_dict() for row in rows], pyarrow.schema(fields))
    written = io.BytesIO()
    parquet.write_table(table, written)
    return written.getvalue()


def _metadata(hint: Any) -> dict[str, str]:
    unit = unit_in(hint)
    return {} if unit is None else {"unit": unit}


def _type_of(pyarrow: Any, hint: Any) -> Any:
    plain = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    if hint in plain:
        return plain[hint]
    [inner] = [one for one in typing.get_args(hint) if one is not NoneType]
    if typing.get_origin(hint) is list:
        return pyarrow.list_(_type_of(pyarrow, inner))
    return _type_of(pyarrow, inner)
