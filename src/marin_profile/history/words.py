"""Words for groups, records and changes.

Contract: plain text; names come out visible and cut, nothing is markup.
"""

from __future__ import annotations

import math
from statistics import median

from marin_profile.base.text import NOT_KNOWN, duration, plural, visible
from marin_profile.history.baseline import Baseline
from marin_profile.history.causes import Cause
from marin_profile.history.change_points import ChangePoint
from marin_profile.history.development import LINE
from marin_profile.history.findings import TrendFindings
from marin_profile.history.record import MEAN, TYPICAL, Configuration, Estimand, HistoryRecord
from marin_profile.history.trends import Group, Slope, Trend
from marin_profile.verdict.noise import NoiseFloor

_HASH = 12
STEPS: dict[Estimand, str] = {TYPICAL: "typical step", MEAN: "mean step"}
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


def trend(one: Trend) -> str:
    """First, median and last point, and the slope."""
    lengths = one.lengths
    if not lengths:
        return "no point of a trend: no record has a step time and a time of its own"
    text = (
        f"first {duration(lengths[0])}, median {duration(median(lengths))}, "
        f"last {duration(lengths[-1])} ({plural(len(lengths), 'capture')})"
    )
    return f"{text}; {_slope(one.slope, since=bool(one.changes))}" if one.slope else text


def _slope(slope: Slope, *, since: bool) -> str:
    where = " since the last change" if since else ""
    return (
        f"slope {100 * slope.per_record:+.2f} % per capture{where} "
        f"(standard error {100 * slope.standard_error:.2f} %)"
    )


def noise(group: Group, one: Trend) -> str:
    if one.noise:
        return _noise(one.noise) + _without_commit(group, "are not used")
    if not group.configuration.is_known:
        return (
            "noise floor and changes not known: only a config or a label, and a basis, show that "
            "captures repeat each other"
        )
    return (
        "noise floor not known: fewer than three repeats of one commit, or two of each of two"
        f"{_without_commit(group, 'are no repeats')}"
    )


def _noise(floor: NoiseFloor) -> str:
    outliers = f", {plural(floor.num_outliers, 'outlier')} left out" if floor.num_outliers else ""
    return (
        f"noise floor {100 * floor.log_sd:.2f} % (sd of {plural(floor.num_repeats, 'repeat')} of "
        f"{plural(floor.num_commits, 'commit')}{outliers})"
    )


def _without_commit(group: Group, verb: str) -> str:
    count = group.without_commit
    return f"; {plural(count, 'capture')} of unknown commit {verb}" if count else ""


def change(one: Trend, point: ChangePoint) -> str:
    """A change of level and the first record after it."""
    first = one.points[point.index]
    which = "first bad record" if point.ratio > 1 else "first of the new level"
    return (
        f"{_change(point)} from {when(first)} on: "
        f"{duration(math.exp(point.level_before))} -> {duration(math.exp(point.level_after))}, "
        f"p {probability(point.p)}; {which}: {name(first)}"
    )


def _change(point: ChangePoint) -> str:
    how = "slower" if point.ratio > 1 else "faster"
    return f"{100 * abs(point.ratio - 1):.1f} % {how}"


def ratio(point: ChangePoint) -> str:
    """A change of level in short."""
    return f"{100 * (point.ratio - 1):+.1f} %"


def cause(one: Trend, point: ChangePoint, found: Cause) -> str:
    """What accounts for a change, or what would show it."""
    since = f"since {one.points[point.index].time[:10]}"
    step = f"the {STEPS[one.estimand]} is {100 * (point.ratio - 1):+.1f} %"
    doubt = "".join(f" (not comparable: {visible(text, None)})" for text in found.caveats)
    if found.before is None or found.after is None:
        return str(found.why_not)
    if not found.parts:
        return f"{since} {step}: {found.why_not}{doubt}"
    parts = ", ".join(
        f"{visible(part.name)} {'+' if part.delta > 0 else ''}{duration(part.delta)}"
        for part in found.parts
    )
    how = "mostly" if found.parts[0].share >= 0.5 else "among others"
    return f"{since} {step}: {how} {parts}{doubt}"


def drift(one: Trend) -> str:
    """Of a trend that drifts."""
    found = one.drift
    if found is None:
        return "no drift"
    first = when(one.points[found.start])
    change = f"{100 * math.expm1(found.log_change):+.1f} % since {first}"
    if found.kind == LINE:
        return f"a drift, not a change: {change}, along a line"
    return f"a drift, not a change: the level wanders from capture to capture ({change})"


def baseline(found: Baseline, named: str) -> str:
    """The latest level against the baseline's."""
    of = f"the baseline {visible(named)} ({plural(found.num_records, 'record')}, "
    of += f"{duration(math.exp(found.level))})"
    if found.log_shift is None:
        return f"{of}: no later record"
    percent = 100 * math.expm1(found.log_shift)
    text = f"{abs(percent):.1f} % {'above' if percent >= 0 else 'below'} {of}: "
    text += f"the latest {plural(found.num_later, 'record')}"
    if found.interval is None:
        return f"{text}, too few for an interval"
    low, high = (100 * math.expm1(bound) for bound in found.interval)
    return f"{text}, 95 % interval {low:+.1f} % to {high:+.1f} %"


def slowdown(found: TrendFindings) -> str:
    """Of findings whose slowdown stands."""
    if found.baseline is not None and found.baseline.log_shift is not None:
        above = 100 * math.expm1(found.baseline.log_shift)
        return f"{above:.1f} % above the baseline of {plural(found.baseline.num_records, 'record')}"
    slower = [point for point in found.trend.changes if point.ratio > 1]
    return "; ".join(change(found.trend, point) for point in slower[-1:])


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
