"""The device events of a capture as a table: Parquet, CSV, JSON lines, or a table of Arrow.

In goes a `capture.sources.Capture`, out come its events, block by block.
"""

from __future__ import annotations

from marin_profile.export.files import ENDINGS, format_of_file, write_events
from marin_profile.export.rows import COLUMNS, Block, event_blocks

__all__ = ["COLUMNS", "ENDINGS", "Block", "event_blocks", "format_of_file", "write_events"]
