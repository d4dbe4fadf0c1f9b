"""Masks home folders, user and host names, and source stacks in what leaves the machine.

    redactor = Redactor.here(capture_host_names(files))
    redact_capture(files, into, redactor)
    redact_summary(summary, redactor)
    redactor.text(report)

Contract: masks keep the length in bytes, so a masked file has the structure of the original and
gives the same numbers. The same redactor applied twice changes nothing.
"""

from __future__ import annotations

from marin_profile.redact.names import Redactor
from marin_profile.redact.records import redact_summary

__all__ = ["Redactor", "capture_host_names", "redact_capture", "redact_summary"]


def __getattr__(name: str) -> object:
    # Needs numba; masking a summary or a report does not.
    if name in ("capture_host_names", "redact_capture"):
        from marin_profile.redact import capture

        return getattr(capture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
