"""What the profile is of, whether it is whole, and what must be known before its figures."""

from __future__ import annotations

from marin_profile.base.units import Count, Devices, Steps
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, Query, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import CAPTURE, ProfileSummary


class CaptureRow(Row, frozen=True, kw_only=True):
    """whole: nothing is known to be cut, dropped or left out; null in files that do not say it."""

    hardware_type: str | None
    num_devices: Devices | None
    num_hosts: Count | None
    jax_version: str | None
    start: str | None
    steps: Steps
    events: Count
    whole: bool | None
    warnings: Count


class WarningRow(Row, frozen=True, kw_only=True):
    warning: str


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    run, trace, details = summary.run_metadata, summary.trace_overview, summary.capture
    warnings = [WarningRow(warning=text) for text in trace.quality_warnings]
    coverage = summary.coverage
    whole = not trace.suspected_truncation and (
        None if coverage is None else not coverage.events_dropped and not coverage.empty_devices
    )
    row = CaptureRow(
        hardware_type=run.hardware_type or _kind_of_device(summary),
        num_devices=run.num_devices,
        num_hosts=run.num_hosts,
        jax_version=details.jax_version if details else None,
        start=details.start if details else None,
        steps=len(summary.step_time.steps),
        events=trace.num_events_total,
        whole=whole,
        warnings=len(warnings),
    )
    return listing(CAPTURE, [row], warnings, limit=parameters.limit)


def _kind_of_device(summary: ProfileSummary) -> str | None:
    """What the devices are called by, where the file does not name the hardware."""
    kinds = {row.device.split(":")[1] for row in summary.device_ledger if ":" in row.device[8:]}
    return next(iter(kinds)) if len(kinds) == 1 else None


QUERY = Query(
    name="capture",
    description="What the profile is of: hardware, steps, whether it is whole, and its warnings.",
    example="Is the profile complete?",
    run=run,
    rows=(CaptureRow, WarningRow),
    parameters=("limit",),
    intents=(
        intent(10, "complete|truncated|damaged|corrupt|cut", unless=("@op", "op", "region")),
        intent(10, "warning|note", unless=("@op",)),
        intent(10, "hardware", unless=("roofline",)),
        intent(9, "host", "many", "how"),
        intent(8, "jax|version"),
        intent(8, "when", "recorded|taken|take|made|started|capture"),
        intent(9, "event", "many|drop|lose|missing"),
        intent(9, "lose|missing", "data|anything"),
    ),
)
