"""Summaries as files.

Contract: a summary that is read has the schema's version, the schema's types and numbers that can
be reckoned with; all else raises BrokenInputError, which names the field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.base.json_text import read_json
from marin_profile.base.storage import read_at_most
from marin_profile.base.text import visible
from marin_profile.schema.record import SCHEMA_VERSION
from marin_profile.schema.summary import ProfileSummary

LARGEST_SUMMARY = 100_000_000  # bytes; a hundred times what a long capture of a large model takes
_MAKE_ONE = "make one with 'marin-profile summarize'"


def parse_summary(text: str | bytes, *, path: str = "the summary") -> ProfileSummary:
    """Read a profile_summary.v1 JSON text. Raises BrokenInputError if it is none."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        version = _version(read_json(content))
    except ValueError as error:
        raise _is_none(path, str(error)) from error
    if version != SCHEMA_VERSION:
        raise BrokenInputError(
            f"{path} has schema_version {visible(repr(version))}, but this version reads "
            f"{SCHEMA_VERSION!r}; summarize the profile again."
        )
    try:
        return ProfileSummary.model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise _is_none(path, f"{visible(where, 200)}: {visible(first['msg'], 200)}") from error


def load_summary(path: str | Path) -> ProfileSummary:
    """Read a summary from a local file or an fsspec URL."""
    try:
        content = read_at_most(str(path), LARGEST_SUMMARY)
    except NotFoundError as error:
        raise NotFoundError(
            f"{str(error).rstrip('.')}; name a summary that 'marin-profile summarize' wrote."
        ) from error
    return parse_summary(content, path=str(path))


def _version(data: Any) -> Any:
    if not isinstance(data, dict):
        raise ValueError("the top level is no object")
    if "schema_version" not in data:
        raise ValueError("schema_version: it is missing")
    return data["schema_version"]


def _is_none(path: str, why: str) -> BrokenInputError:
    return BrokenInputError(f"{path} is no {SCHEMA_VERSION}: {why}; {_MAKE_ONE}.")
