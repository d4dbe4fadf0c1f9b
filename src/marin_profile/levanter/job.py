"""One capture to ingest, as training hands it to the worker.

Contract: plain values; `Job.from_json(job.to_json()) == job`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.capture.filenames import SUMMARY_FILE


@dataclass(frozen=True)
class Gather:
    """Below `root`, a folder or an fsspec URL, `processes` leave their parts of the capture that
    `session` is one of; the wait for them is at most `seconds`."""

    root: str
    session: str
    processes: list[int]
    seconds: float


@dataclass(frozen=True)
class Publish:
    """What to log to the tracker: see ProfilerConfig.upload and .redact."""

    run_id: str
    upload: str
    redact: bool


@dataclass(frozen=True)
class Job:
    """Summarise the capture in `capture_dir` into `output_dir`, and copy the outputs to `copy_dir`.

    `run`: fields of RunMetadata that training knows. `leave_part`: for the process that merges.
    `shared`: a URL that the capture is copied to. `gather`: take the other processes' captures in.
    """

    capture_dir: Path
    output_dir: Path
    copy_dir: Path | None = None
    run: dict[str, Any] = field(default_factory=dict)
    leave_part: bool = False
    shared: str | None = None
    gather: Gather | None = None
    publish: Publish | None = None

    @property
    def command(self) -> str:
        """The command line that does the same."""
        summary = self.output_dir / SUMMARY_FILE
        source = self.capture_dir if self.gather is None else self.gather.root
        return f"marin-profile summarize --profile-dir {source} --output {summary}"

    def to_json(self) -> str:
        return msgspec.json.encode(self, enc_hook=str).decode()

    @staticmethod
    def from_json(text: str) -> Job:
        return msgspec.json.decode(text, type=Job, dec_hook=lambda kind, value: kind(value))
