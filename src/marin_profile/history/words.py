"""Words for groups, records and changes that the terminal and the page share.

Contract: plain text; names come out visible and cut, nothing is markup.
"""

from __future__ import annotations

import math
from statistics import median

from marin_profile.base.text import NOT_KNOWN, duration, plural, visible
from marin_profile.history.change_points import ChangePoint
from marin_profile.history.record import Configuration, HistoryRecord
from marin_profile.history.trends import Group, Slope
from marin_profile.verdict.noise import LEAST_REPEATS, NoiseFloor

_HASH = 12
_TIME_SOURCES = {"folder": " (folder)", "summary": " (summarized)", "recorded": " (recorded)"}


def title(configuration: Configuration) -> str:
    """Hardware, topology, config and label; what is not known is left out."""
    parts = [
        visible(configuration.hardware_type or "hardware not known"),
        plural(configuration.num_devices, "device") if configuration.num_devices else None,
        plural(configuration.num_hosts, "host") if configuration.num_hosts else None,
        _named("topology", configuration.mesh_or_topology),
        _named("config", configuration.config_hash),
        _named("label", configuration.label),
    ]
    return ", ".join(part for part in parts if part)


def measure(configuration: Configuration) -> str:
    """What the step time is."""
    if configuration.time_basis == "unknown":
        return "median step time of the older tool; what it measures is not known"
    if configuration.time_basis == "none":
        return "no step time"
    source = visible(configuration.step_source or "source not known")
    named = f" {visible(configuration.annotation)}" if configuration.annotation else ""
    return f"median step {configuration.time_basis}; steps: {source}{named}"


def counts(group: Group) -> str:
    parts = ", ".join(
        f"{count:,} {visible(status) if status != 'unknown' else 'without verdict'}"
        for status, count in group.status_counts
    )
    return f"{plural(group.num_records, 'record')}: {parts}"


def trend(group: Group) -> str:
    """First, median and last point, and the slope."""
    medians = group.medians
    if not medians:
        return "no point of a trend: no record has a step time and a time of its own"
    text = (
        f"first {duration(medians[0])}, median {duration(median(medians))}, "
        f"last {duration(medians[-1])} ({plural(len(medians), 'capture')})"
    )
    return f"{text}; {_slope(group.slope, since=bool(group.changes))}" if group.slope else text


def _slope(slope: Slope, *, since: bool) -> str:
    where = " since the last change" if since else ""
    return (
        f"slope {100 * slope.per_record:+.2f} % per capture{where} "
        f"(standard error {100 * slope.standard_error:.2f} %)"
    )


def noise(group: Group) -> str:
    if group.noise:
        return _noise(group.noise)
    if not group.configuration.is_known:
        return (
            "noise floor and changes not known: only a config or a label, and a basis, show that "
            "captures repeat each other"
        )
    since = " since the last change" if group.changes else ""
    return f"noise floor not known: fewer than {LEAST_REPEATS} repeats{since}"


def _noise(floor: NoiseFloor) -> str:
    return f"noise floor {100 * floor.log_sd:.2f} % (sd of {plural(floor.num_repeats, 'repeat')})"


def change(group: Group, point: ChangePoint) -> str:
    """A change of level and the first record after it."""
    first = group.points[point.index]
    how = "slower" if point.ratio > 1 else "faster"
    which = "first bad record" if point.ratio > 1 else "first of the new level"
    return (
        f"{100 * abs(point.ratio - 1):.1f} % {how} from {when(first)} on: "
        f"{duration(math.exp(point.level_before))} -> {duration(math.exp(point.level_after))}, "
        f"p {probability(point.p)}; {which}: {name(first)}"
    )


def probability(p: float) -> str:
    return "< 1e-6" if p < 1e-6 else f"{p:.2g}"


def when(record: HistoryRecord) -> str:
    """To the second, as everybody reads it; where the time is not the capture's, whose it is."""
    return visible(record.time[:19]) + _TIME_SOURCES.get(record.time_source, "")


def name(record: HistoryRecord) -> str:
    """What one would look the capture up by."""
    known = record.run_path or record.run_id or record.source_path
    code = _named("git", record.git_sha and record.git_sha[:_HASH])
    digest = _named("trace", record.trace_sha256 and record.trace_sha256[:_HASH])
    parts = [visible(known) if known else None, code, digest]
    return ", ".join(part for part in parts if part) or NOT_KNOWN


def verdict(record: HistoryRecord) -> str:
    parts = [part for part in (record.status, record.confidence) if part]
    return visible(", ".join(parts)) if parts else NOT_KNOWN


def _named(kind: str, value: str | None) -> str | None:
    return f"{kind} {visible(value)}" if value else None
