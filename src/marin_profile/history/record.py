"""profile_history.v1: what a later verdict needs of one capture.

Contract
* Step times are microseconds, as in the summary: the periods of the kept steps, or with one step
  (or without periods) their durations; `time_basis` says which. The two are never mixed.
* A record has two step lengths: the typical one (the median), and the mean that training pays
  (first to last boundary by whole periods), which durations do not have.
* A record's time is the capture's own, never the current time; `recorded_at_utc` only if given.
* The same summary gives the same record, the same bytes and the same `content_hash`.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import msgspec
from pydantic import ConfigDict

from marin_profile.facts.step_time import DURATION, PERIOD, step_length
from marin_profile.schema import EPOCH_UTC, ProfileSummary, Record, canonical_json

HISTORY_SCHEMA = "profile_history.v1"
STEPS_KEPT = 1000

NO_STEP_TIME, NOT_RECORDED = "none", "unknown"

Estimand = Literal["typical", "mean"]
TYPICAL: Estimand = "typical"
MEAN: Estimand = "mean"

_STAMP = re.compile(r"(?:^|/)(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)(?:/|$)")


@dataclass(frozen=True)
class Configuration:
    """What two captures must share so that their step times are repeats of one measurement."""

    hardware_type: str | None
    mesh_or_topology: str | None
    config_hash: str | None
    label: str | None
    num_devices: int | None
    num_hosts: int | None
    time_basis: str
    step_source: str | None
    annotation: str | None
    duration_basis: str | None

    @property
    def is_known(self) -> bool:
        """Whether repeats can be recognised: by config hash or label, with a step length."""
        named = self.config_hash is not None or self.label is not None
        return named and self.time_basis in (PERIOD, DURATION)

    @property
    def measured(self) -> Configuration:
        """What groups records: a label stands for the config hash, which differs from run to run
        where the config holds the run's id or commit."""
        return self if self.label is None else replace(self, config_hash=None)

    @property
    def order(self) -> tuple[str, ...]:
        """A sort key; None goes first."""
        return tuple("" if value is None else f"={value}" for value in astuple(self))


class BucketShares(Record):
    """The summary's five buckets as shares of their sum, by `duration_basis` in `window`."""

    compute: float
    communication: float
    host: float
    stall: float
    other: float


class HistoryRecord(Record):
    """One capture. `time_source`: "capture" (the profile's own start), "folder" (its time stamp, in
    the time zone of the machine that profiled), "summary" (when the summary was made), "recorded"
    or "unknown". `steps` holds the first 1,000 kept step times; `num_steps`, `log_mean`, `log_sd`
    (n - 1), `median`, `p90` are those of all steps, `mean_period` that of all whole periods.
    `step_classes` names the class of each of `steps`, and is empty without classes."""

    model_config = ConfigDict(allow_inf_nan=False)

    schema_version: str = HISTORY_SCHEMA
    time: str = EPOCH_UTC
    time_source: str = NOT_RECORDED
    recorded_at_utc: str | None = None
    label: str | None = None
    hardware_type: str | None = None
    mesh_or_topology: str | None = None
    config_hash: str | None = None
    num_devices: int | None = None
    num_hosts: int | None = None
    git_sha: str | None = None
    run_path: str | None = None
    run_id: str | None = None
    source_path: str | None = None
    trace_sha256: str | None = None
    tool_version: str | None = None
    suspected_truncation: bool = False
    step_source: str | None = None
    annotation: str | None = None
    time_basis: str = NOT_RECORDED
    num_steps: int = 0
    log_mean: float | None = None
    log_sd: float | None = None
    median: float | None = None
    p90: float | None = None
    mean_period: float | None = None
    steps: tuple[float, ...] = ()
    step_classes: tuple[str | None, ...] = ()
    duration_basis: str | None = None
    window: str | None = None
    shares: BucketShares | None = None
    status: str | None = None
    confidence: str | None = None

    def length(self, estimand: Estimand) -> float | None:
        """The step length in microseconds."""
        value = self.median if estimand == TYPICAL else self.mean_period
        return value if value is not None and value > 0 else None

    @property
    def configuration(self) -> Configuration:
        return Configuration(
            hardware_type=self.hardware_type,
            mesh_or_topology=self.mesh_or_topology,
            config_hash=self.config_hash,
            label=self.label,
            num_devices=self.num_devices,
            num_hosts=self.num_hosts,
            time_basis=self.time_basis,
            step_source=self.step_source,
            annotation=self.annotation,
            duration_basis=self.duration_basis,
        )

    @property
    def content_hash(self) -> str:
        """sha256 of the record's line."""
        return hashlib.sha256(self.to_line()).hexdigest()

    def to_line(self) -> bytes:
        """Canonical JSON on one line, without the newline."""
        text = canonical_json(self.model_dump(mode="python", by_alias=True))
        return msgspec.json.format(text.encode(), indent=-1)


def record_of(
    summary: ProfileSummary,
    *,
    label: str | None = None,
    git_sha: str | None = None,
    status: str | None = None,
    confidence: str | None = None,
    recorded_at_utc: str | None = None,
) -> HistoryRecord:
    """The record of one summary; status and confidence are those of a verdict on it, if any, and
    `git_sha` its commit where the summary does not name one."""
    run, step_time, breakdown = summary.run_metadata, summary.step_time, summary.time_breakdown
    time, time_source = _time_of(summary)
    length = step_length(summary)
    basis = length[0] if length else NO_STEP_TIME
    kept = _kept_steps(summary, basis)
    logs = [math.log(value) for value, _ in kept]
    classes = tuple(name for _, name in kept[:STEPS_KEPT])
    return HistoryRecord(
        time=time,
        time_source=time_source,
        recorded_at_utc=recorded_at_utc,
        label=label,
        hardware_type=run.hardware_type,
        mesh_or_topology=run.mesh_or_topology,
        config_hash=run.config_hash,
        num_devices=run.num_devices,
        num_hosts=run.num_hosts,
        git_sha=run.git_sha or git_sha,
        run_path=run.run_path,
        run_id=run.run_id,
        source_path=summary.source_path,
        trace_sha256=summary.trace_provenance.trace_sha256,
        tool_version=summary.capture.tool_version if summary.capture else None,
        suspected_truncation=summary.trace_overview.suspected_truncation,
        step_source=step_time.source,
        annotation=step_time.annotation,
        time_basis=basis,
        num_steps=len(logs) or (length[1].count if length else 0),
        log_mean=math.fsum(logs) / len(logs) if logs else None,
        log_sd=_sample_sd(logs),
        median=length[1].median if length else None,
        p90=length[1].p90 if length else None,
        mean_period=step_time.mean_period if basis == PERIOD else None,
        steps=tuple(value for value, _ in kept[:STEPS_KEPT]),
        step_classes=classes if any(classes) else (),
        duration_basis=breakdown.duration_basis,
        window=breakdown.basis,
        shares=BucketShares(
            compute=breakdown.compute.share_of_total,
            communication=breakdown.communication.share_of_total,
            host=breakdown.host.share_of_total,
            stall=breakdown.stall.share_of_total,
            other=breakdown.other.share_of_total,
        ),
        status=status,
        confidence=confidence,
    )


def utc(text: str | None) -> str | None:
    """An ISO 8601 time as YYYY-MM-DDTHH:MM:SS.ffffffZ; without a zone it is taken as UTC. None if
    it is no time, or the epoch, which means "not known"."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    written = f"{moment.year:04}{moment.strftime('-%m-%dT%H:%M:%S.%fZ')}"
    return None if written == EPOCH_UTC else written


def _kept_steps(summary: ProfileSummary, basis: str) -> list[tuple[float, str | None]]:
    """(time, class) of the kept steps whose time on this basis is known."""
    if basis == NO_STEP_TIME:
        return []
    kept = [step for step in summary.step_time.steps if step.kept]
    timed = [(getattr(step, basis), step.step_class) for step in kept]
    return [(time, name) for time, name in timed if time is not None and time > 0]


def _time_of(summary: ProfileSummary) -> tuple[str, str]:
    start = utc(summary.capture.start) if summary.capture else None
    if start:
        return start, "capture"
    stamp = _STAMP.search(summary.source_path)
    if stamp:
        year, month, day, hour, minute, second = stamp.groups()
        folder = utc(f"{year}-{month}-{day}T{hour}:{minute}:{second}")
        if folder:
            return folder, "folder"
    generated = utc(summary.generated_at_utc)
    return (generated, "summary") if generated else (EPOCH_UTC, NOT_RECORDED)


def _sample_sd(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
