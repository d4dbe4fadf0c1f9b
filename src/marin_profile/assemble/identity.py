"""Which capture this is: times, files, digests, hosts, hardware."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

from marin_profile import schema
from marin_profile.analysis.clocks import ClockCheck
from marin_profile.analysis.host import HostPart
from marin_profile.assemble.context import CaptureFacts, Context, us, us_or_none
from marin_profile.base.times import epoch_utc


def digest(digests: list[str]) -> str | None:
    unique = sorted(set(digests))
    if len(unique) <= 1:
        return unique[0] if unique else None
    return hashlib.sha256("\n".join(unique).encode()).hexdigest()


def most_common(counters: Iterable[Counter[str]], limit: int = 20) -> list[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return sorted(total, key=lambda name: (-total[name], name))[:limit]


def generated_at(parts: Sequence[HostPart]) -> str:
    starts = [part.profile_window_ns[0] for part in parts if part.profile_window_ns]
    return epoch_utc(min(starts)) if starts else schema.EPOCH_UTC


def capture_section(
    parts: Sequence[HostPart], facts: CaptureFacts, profiling: schema.Profiling | None
) -> schema.CaptureDetails:
    windows = [part.profile_window_ns for part in parts if part.profile_window_ns]
    return schema.CaptureDetails(
        start=epoch_utc(min(window[0] for window in windows)) if windows else None,
        stop=epoch_utc(max(window[1] for window in windows)) if windows else None,
        files=[file.name for file in facts.files],
        tool_version=facts.tool_version,
        jax_version=facts.jax_version or None,
        profiling=profiling,
    )


def hardware(context: Context) -> str | None:
    names = sorted({device.type_name for device in context.main_devices if device.type_name})
    kinds = sorted({device.kind for device in context.main_devices})
    return ", ".join(names) or ("cpu" if kinds == ["cpu"] else None)


def overview(
    context: Context,
    duration_basis: str,
    warnings: list[str],
    doubts: list[str],
    *,
    is_cut: bool,
) -> schema.TraceOverview:
    parts = context.parts
    return schema.TraceOverview(
        display_time_unit="ns",
        num_events_total=sum(part.num_events_total for part in parts),
        num_complete_events=sum(part.num_events for part in parts),
        num_processes=sum(part.num_processes for part in parts),
        num_threads=sum(part.num_threads for part in parts),
        profile_start_ts=0.0,
        profile_end_ts=us(max(part.span_ps for part in parts)),
        duration_basis=duration_basis,
        suspected_truncation=is_cut,
        quality_warnings=warnings,
        doubts=doubts,
    )


def hosts_section(context: Context, facts: CaptureFacts) -> list[schema.Host]:
    by_host = {part.host: part for part in context.parts}
    return [
        schema.Host(
            host=file.host,
            machine=by_host[file.host].machine or None,
            file=file.name,
            sha256=file.sha256,
            devices=[device.name for device in by_host[file.host].devices],
            warnings=[
                *by_host[file.host].doubts,
                *file.notes,
                *by_host[file.host].notes,
            ],
            source_format=by_host[file.host].source_format,
            chosen_because=file.reason or None,
            **_clock(by_host[file.host].clock),
        )
        for file in facts.files
        if file.host in by_host
    ]


class _Clock(TypedDict):
    clock_offset: float | None
    clock_offset_limit: float | None
    clock_uncertainty: float | None
    clock_conflicts: int | None


def _clock(check: ClockCheck) -> _Clock:
    offset = check.offset
    limit = check.at_most if offset is not None and offset > 0 else check.at_least
    return _Clock(
        clock_offset=us_or_none(offset),
        clock_offset_limit=None if offset is None else us_or_none(limit),
        clock_uncertainty=None if check.agrees else us(check.bound_ps),
        clock_conflicts=check.conflicts if check.compared else None,
    )
