"""Summaries as files."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.schema.record import SCHEMA_VERSION
from marin_profile.schema.summary import ProfileSummary


def parse_summary(text: str | bytes, *, path: str = "the summary") -> ProfileSummary:
    """Read a profile_summary.v1 JSON text. Raises BrokenInputError if it is none."""
    try:
        summary = ProfileSummary.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise BrokenInputError(
            f"{path} is no {SCHEMA_VERSION}: {where}: {first['msg']}; make one with "
            "'marin-profile summarize'."
        ) from error
    if summary.schema_version != SCHEMA_VERSION:
        raise BrokenInputError(
            f"{path} has schema_version {summary.schema_version!r}, but this version reads "
            f"{SCHEMA_VERSION!r}; summarize the profile again."
        )
    return summary


def load_summary(path: str | Path) -> ProfileSummary:
    """Read a summary from a local file or an fsspec URL."""
    text = _read_bytes(str(path))
    return parse_summary(text, path=str(path))


def _read_bytes(path: str) -> bytes:
    try:
        if "://" in path:
            import fsspec

            with fsspec.open(path, "rb") as stream:
                return stream.read()
        return Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(
            f"{path} does not exist or is no file; name a summary that 'marin-profile summarize' "
            "wrote."
        ) from error
