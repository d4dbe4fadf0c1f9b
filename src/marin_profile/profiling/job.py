"""One capture to ingest, as training hands it to the worker.

Contract: plain values; `Job.from_json(job.to_json()) == job`. What `job_of` makes depends on the
configuration, the run and the capture's folder alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.base.storage import is_url
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.run import Run


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
    """What to log to the tracker: see ProfilerConfig.upload and .redact. `files_stay`: false where
    `keep_captures` removes them some day, so that nothing should refer to them."""

    run_id: str
    upload: str
    redact: bool
    files_stay: bool = True


@dataclass(frozen=True)
class Job:
    """Summarise the capture in `capture_dir` into `output_dir`, and copy the outputs to `copy_dir`
    and `copy_url`.

    `run`: fields of RunMetadata that training knows. `leave_part`: for the process that merges.
    `shared`: a URL that the capture and its outputs are copied to. `gather`: take the other
    processes' captures in.
    """

    capture_dir: Path
    output_dir: Path
    copy_dir: Path | None = None
    copy_url: str | None = None
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


def job_of(config: ProfilerConfig, run: Run, folder: Path, facts: dict[str, Any]) -> Job:
    """What is to be done with the capture in `folder`. The first process that captures takes the
    others' captures in, and publishes."""
    capturing = config.capturing(run.count)
    is_first = run.index == capturing[0]
    shared = run.shared_session(folder.name)
    gather = publish = None
    if is_first and run.count > 1:
        root = run.shared or str(run.profile_dir)
        gather = Gather(root, shared or str(folder), capturing, config.hosts_timeout)
    if is_first and config.log:
        files_stay = config.keep_captures is None or shared is not None
        publish = Publish(run.run_id, config.upload, config.redact, files_stay)
    return Job(
        capture_dir=folder,
        output_dir=folder,
        copy_dir=newest_outputs(config, run) if is_first else None,
        copy_url=_newest_url(config, run) if is_first else None,
        run=facts,
        leave_part=run.count > 1,
        shared=shared,
        gather=gather,
        publish=publish,
    )


def newest_outputs(config: ProfilerConfig, run: Run) -> Path:
    """Where the run's newest summary and report also go on this machine."""
    if config.output_dir and not is_url(config.output_dir):
        return Path(config.output_dir) / run.run_id
    return run.folder


def _newest_url(config: ProfilerConfig, run: Run) -> str | None:
    """Where they also go, if the config names a URL or the run's folder is copied to one."""
    if config.output_dir:
        return f"{config.output_dir}/{run.run_id}" if is_url(config.output_dir) else None
    return run.shared.rpartition("/")[0] if run.shared is not None else None
