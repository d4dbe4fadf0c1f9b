"""From a capture's files to its summary: hosts are read, in turn or at once, then merged.

In goes a `capture.sources.Capture` (or a path), out comes a `schema.ProfileSummary`.
"""

from __future__ import annotations

from marin_profile.pipeline.summarizing import (
    BREAKDOWN_MODES,
    SummarizeOptions,
    read_host,
    summarize,
    summarize_capture,
)

__all__ = ["BREAKDOWN_MODES", "SummarizeOptions", "read_host", "summarize", "summarize_capture"]
