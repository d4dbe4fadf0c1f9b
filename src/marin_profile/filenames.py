"""The names of the files that are written beside a capture; summaries of it never read them."""

from __future__ import annotations

SUMMARY_FILE = "profile_summary.json"
REPORT_FILE = "profile_report.md"
FIGURES_FILE = "profile_figures.json"
CONTEXT_FILE = "profile_context.json"
INGEST_LOG_FILE = "profile_ingest.log"
METADATA_FILE = "metadata.json"

WRITTEN_BESIDE = frozenset(
    {SUMMARY_FILE, REPORT_FILE, FIGURES_FILE, CONTEXT_FILE, INGEST_LOG_FILE, METADATA_FILE}
)
