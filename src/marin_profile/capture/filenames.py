"""Where JAX puts a capture, and the files that are written beside it.

Contract: names only. Of what is `WRITTEN_BESIDE` a summary of a capture reads the context alone.
"""

from __future__ import annotations

# A capture lies in plugins/profile/<local time at its start>/.
PROFILE_FOLDERS = ("plugins", "profile")
STAMP_FORMAT = "%Y_%m_%d_%H_%M_%S"

SUMMARY_FILE = "profile_summary.json"
REPORT_FILE = "profile_report.md"
PAGE_FILE = "profile_report.html"
PART_FILE = "profile_part.msgpack"
CONTEXT_FILE = "profile_context.json"
RECORD_FILE = "capture_record.json"
DEVICE_MEMORY_FILE = "device_memory.prof"
INGEST_LOG_FILE = "profile_ingest.log"
METADATA_FILE = "metadata.json"

WRITTEN_BESIDE = frozenset(
    {
        SUMMARY_FILE,
        REPORT_FILE,
        PAGE_FILE,
        PART_FILE,
        CONTEXT_FILE,
        RECORD_FILE,
        DEVICE_MEMORY_FILE,
        INGEST_LOG_FILE,
        METADATA_FILE,
    }
)


def process_folder(index: int) -> str:
    """Where one of several processes puts its captures, below the run's profiler folder."""
    return f"process_{index}"
