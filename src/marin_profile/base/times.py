"""Units of time, and moments in UTC as text, in the one form that summaries and histories have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

PS_PER_NS = 1_000
PS_PER_US = 1_000_000


def epoch_utc(nanoseconds: int) -> str:
    """Epoch nanoseconds as YYYY-MM-DDTHH:MM:SS.ffffffZ (cut, not rounded)."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return utc_text(epoch + timedelta(microseconds=nanoseconds // 1000))


def utc_text(moment: datetime) -> str:
    """A time in UTC as YYYY-MM-DDTHH:MM:SS.ffffffZ."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
