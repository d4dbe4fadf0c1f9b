"""A summary without home folders, user and host names, and source stacks.

Contract: every text of the record is masked, but for the names of its own fields, the format's
words, digests, and the run's identity (its path and id, its artifact).
"""

from __future__ import annotations

from typing import Any

from marin_profile.redact.names import Redactor
from marin_profile.redact.stacks import STACK_STATS, masked_stack
from marin_profile.schema import ProfileSummary, Record

_KEPT = frozenset(
    {
        *("schema_version", "source_format", "generated_at_utc", "duration_basis", "window"),
        *("sha256", "trace_sha256", "git_sha", "config_hash"),
        *("run_path", "run_id", "artifact_ref", "artifact_name"),
    }
)


def redact_summary(summary: ProfileSummary, redactor: Redactor) -> ProfileSummary:
    masked: ProfileSummary = _record(summary, redactor)
    return masked


def redact_json(value: Any, redactor: Redactor) -> Any:
    """A plain JSON value; under keys that a summary keeps (`run_id`, ...) texts stay."""
    return _masked("", value, redactor)


def _record(record: Any, redactor: Redactor) -> Any:
    fields = {name: getattr(record, name) for name in type(record).model_fields}
    fields |= record.model_extra or {}
    return record.model_copy(
        update={name: _masked(name, value, redactor) for name, value in fields.items()}
    )


def _masked(name: str, value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        if name in _KEPT:
            return value
        if name in STACK_STATS:
            return masked_stack(value.encode("utf-8", "surrogatepass")).decode()
        return redactor.text(value)
    if isinstance(value, Record):
        return _record(value, redactor)
    if isinstance(value, dict):
        return {
            redactor.text(key) if isinstance(key, str) else key: _masked(str(key), item, redactor)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_masked(name, item, redactor) for item in value)
    return value
