"""Everything that is asked of one host's Timeline, as one mergeable part of a summary.

Contract: a HostPart keeps totals and small arrays only, never event columns, so that the hosts of
a capture can be read one after the other. Times are picoseconds on that host's device clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from marin_profile.analysis.allocators import AllocatorUse, allocators
from marin_profile.analysis.async_spans import find_spans
from marin_profile.analysis.breakdown_v1 import breakdown_v1
from marin_profile.analysis.clocks import ClockCheck, host_clock
from marin_profile.analysis.collectives.instances import HostCollectives, HostInstances
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.gaps import GapTotals, gap_totals
from marin_profile.analysis.host_account import HostAccount, host_account
from marin_profile.analysis.host_thread import thread_beside
from marin_profile.analysis.ledger import DeviceIntervals, Ledger
from marin_profile.analysis.memory import ProgramMemory, program_memory
from marin_profile.analysis.missing import find_missing
from marin_profile.analysis.ops import OpTotals, merge_op_totals, op_totals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.program_calls import ProgramCalls, merge_calls, program_calls
from marin_profile.analysis.program_runs import launches_by_name
from marin_profile.analysis.replay.track import HostTrack, host_track
from marin_profile.analysis.roofline import Peaks, peaks_of
from marin_profile.analysis.shared_processors import SharedProcessors, SharedTime
from marin_profile.analysis.steps.account import (
    EXECUTION,
    AccountWindows,
    DeviceAccount,
    account_windows,
    launch_time,
)
from marin_profile.analysis.steps.find import find_steps
from marin_profile.analysis.steps.outliers import Cause, explain, slow_steps
from marin_profile.analysis.steps.series import SharedSteps, StepSeries
from marin_profile.analysis.transfers import (
    TransferTotals,
    merge_transfers,
    transfer_totals,
)
from marin_profile.base.columns import counts_of
from marin_profile.base.intervals import Window
from marin_profile.base.text import plural
from marin_profile.events.timeline import Int64s, Timeline


@dataclass(frozen=True)
class DevicePart:
    """One device and its ledgers; `steady` is None without kept steps, `account` also where the
    device took no part in them."""

    name: str
    kind: str
    type_name: str
    capture: Ledger
    steady: Ledger | None
    account: DeviceAccount | None
    peaks: Peaks


@dataclass(frozen=True)
class HostPart:
    """See the module docstring. first_kept: the position of the first step that is neither cut nor
    warm-up. periods: how many whole periods the per-step op totals cover. doubts: notes that change
    the reading of the numbers.
    step_terms: ledger terms per step, summed over devices; older: buckets of an older breakdown
    basis, if one was asked for; slow_steps: why the outliers among this host's steps are slow, by
    their position. has_hlo: whether the file holds HLO protos.
    ends_early: see Timeline; devices_told: see `missing`.
    machine: the same for processes of one machine; origin: when the first event began, as (epoch
    ns, ps), and step_begin: (d, n) when each step began on each device after that, event clock.
    calls: see `program_calls`; launches: by program name, see `program_runs`. account_of_idle: see
    `host_account`; memory: see `memory`, None where the file holds no plans. shared: of the
    headline window, see `shared_processors`; track: see `replay.track`."""

    host: str
    source_format: str
    devices: tuple[DevicePart, ...]
    steps: StepSeries
    warmup_ignored: int
    first_kept: int
    periods: int
    account: AccountWindows | None
    step_terms: Mapping[str, Int64s]
    ops: list[OpTotals]
    transfers: list[TransferTotals]
    collectives: HostCollectives
    gaps: list[GapTotals]
    empty_devices: tuple[str, ...]
    lines_not_analysed: tuple[str, ...]
    overlapping_events: int
    sync_entries: int
    num_events: int
    num_events_total: int
    num_processes: int
    num_threads: int
    span_ps: int
    run_ids: Counter[str]
    sources: Counter[str]
    profile_window_ns: tuple[int, int] | None
    dropped: Mapping[str, int]
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    truncated: bool
    ends_early: bool
    devices_told: int
    clock: ClockCheck
    has_hlo: bool
    hostname: str
    machine: str
    origin: tuple[int, int] | None
    step_begin: Int64s
    older: Mapping[str, int] | None = None
    slow_steps: Mapping[int, Cause] = field(default_factory=dict)
    first_op: int = 0
    calls: tuple[ProgramCalls, ...] = ()
    launches: Mapping[str, int] = field(default_factory=dict)
    account_of_idle: HostAccount | None = None
    memory: tuple[ProgramMemory, ...] | None = None
    allocators: tuple[AllocatorUse, ...] = ()
    shared: SharedTime | None = None
    track: HostTrack | None = None

    @property
    def main_devices(self) -> int:
        """How many: without sparse cores, which are devices of their own kind."""
        return sum(device.kind != SPARSECORE for device in self.devices)


def analyse_host(
    timeline: Timeline,
    host: str,
    *,
    warmup_steps: int,
    breakdown_v1_mode: str | None = None,
    only_steps: SharedSteps | None = None,
) -> HostPart:
    """Answer every question for one host. `host` prefixes device identities across hosts;
    `only_steps` are the steps that the other hosts have too."""
    found = find_devices(timeline, host)
    spans = [find_spans(found, device) for device in found.devices]
    clock = host_clock(found)
    steps = find_steps(found, clock)
    missing = find_missing(found, steps)
    if only_steps is not None:
        steps = steps.only(only_steps)
    whole = len(steps.whole)
    ignored = warmup_steps if warmup_steps < whole else 0
    first = steps.whole.start + ignored
    notes = list(timeline.notes) + list(steps.notes)
    if whole and ignored < warmup_steps:
        notes.append(
            f"Only {plural(whole, 'whole step')}, too few to drop {warmup_steps} as warm-up: none "
            "was dropped."
        )
    # While the least is held: it looks at the most events.
    thread = thread_beside(found, clock)
    account = host_account(found, steps, first, thread)
    steady = steps.window(first)
    period_windows, periods = steps.periods(first)
    windows = account_windows(steps, first)
    in_account: list[Window | None] = []
    # Interval sets are large: each device's are dropped before the next one's are made.
    devices: list[DevicePart] = []
    ops: list[OpTotals] = []
    transfers: list[TransferTotals] = []
    calls: list[ProgramCalls] = []
    collectives = HostInstances(found, steps, steady)
    shared = SharedProcessors()
    terms: list[dict[str, Int64s]] = []
    slow = slow_steps(steps, first)
    begin, end, _ = steps.spans
    period_terms: list[dict[str, Int64s]] = []
    in_steps = [device.name for device in found.main]
    for device, span in zip(found.devices, spans, strict=True):
        time = DeviceIntervals(found, device, span)
        row = in_steps.index(device.name) if device.name in in_steps else 0
        own_periods = period_windows[row] if period_windows else None
        own_window = windows.windows[row] if windows and device.name in in_steps else None
        in_account.append(own_window)
        devices.append(_device_part(device, time, steady, windows, own_window))
        # What a sparse core does for a TensorCore is a wait there, and counts there.
        if device.kind != SPARSECORE:
            waited = devices[-1].capture.transfer_by_kind
            transfers += transfer_totals(found, device, span, waited)
            collectives.add(device, span, time)
            shared.add(device, time, steady or device.window)
            boundary = steps.boundary[row][steps.present[row]] if steps.count else device.start[:0]
            calls += program_calls(device, time, own_periods, periods, np.sort(boundary))
        ops += op_totals(found.facts, device, time, steady, own_periods, own_window)
        if device.name in in_steps and steps.linked:
            terms.append(time.step_terms(steps.start[row], steps.end[row]))
        if device.name in in_steps and slow:
            period_terms.append(time.step_terms(begin[row], np.maximum(begin[row], end[row])))
    merged_ops = merge_op_totals(ops)
    gathered = collectives.gathered()
    return HostPart(
        host=host,
        source_format=timeline.source_format,
        devices=tuple(devices),
        steps=steps,
        warmup_ignored=ignored,
        first_kept=first,
        periods=periods,
        account=windows,
        step_terms=_summed_terms(terms),
        ops=merged_ops,
        transfers=merge_transfers(transfers),
        collectives=gathered,
        gaps=gap_totals(found, steady, in_account),
        empty_devices=found.empty_devices,
        lines_not_analysed=found.lines_not_analysed,
        overlapping_events=sum(device.overlapping for device in found.devices),
        sync_entries=found.sync_entries,
        num_events=timeline.num_events,
        num_events_total=timeline.num_events + sum(timeline.dropped.values()),
        num_processes=len({line.plane for line in timeline.lines if line.count}),
        num_threads=sum(1 for line in timeline.lines if line.count),
        span_ps=_span(timeline),
        run_ids=_run_ids(timeline),
        sources=_sources(timeline),
        profile_window_ns=_profile_window(timeline),
        dropped=timeline.dropped,
        notes=tuple(notes),
        doubts=(*timeline.doubts, *missing.doubts, *steps.doubts),
        truncated=timeline.truncated or missing.is_cut,
        ends_early=timeline.ends_early,
        devices_told=missing.devices_told,
        slow_steps=explain(found, steps, first, slow, period_terms, thread),
        clock=clock,
        has_hlo=bool(timeline.hlo),
        hostname=timeline.hostname,
        machine=timeline.hostname or host,
        origin=timeline.origin,
        step_begin=_step_begin(found, steps),
        older=breakdown_v1(timeline, breakdown_v1_mode) if breakdown_v1_mode else None,
        first_op=min((int(device.start.min()) for device in found.devices), default=0),
        calls=tuple(merge_calls(calls)),
        launches=launches_by_name(timeline),
        account_of_idle=account,
        memory=_memory(found),
        allocators=allocators(timeline),
        shared=shared.time(),
        track=host_track(
            found,
            period_windows,
            periods,
            gathered,
            merged_ops,
            account,
            agrees=clock.agrees,
        ),
    )


def _memory(found: HostDevices) -> tuple[ProgramMemory, ...] | None:
    kind = found.main[0].kind if found.main else ""
    return program_memory(found.timeline, kind) if found.timeline.hlo_memory else None


def _device_part(
    device: DeviceOps,
    time: DeviceIntervals,
    steady: Window | None,
    account: AccountWindows | None,
    own_window: Window | None,
) -> DevicePart:
    ledgers = iter(time.ledgers([w for w in (device.window, steady, own_window) if w]))
    stats = device.plane_stats
    type_name = (
        stats.get("device_type_string")
        or stats.get("gpu_device_name")
        or stats.get("device_vendor")
    )
    return DevicePart(
        name=device.name,
        kind=device.kind,
        type_name=str(type_name or ""),
        capture=next(ledgers),
        steady=next(ledgers) if steady else None,
        account=_account(device, next(ledgers), account) if own_window and account else None,
        peaks=peaks_of(stats),
    )


def _account(device: DeviceOps, ledger: Ledger, account: AccountWindows) -> DeviceAccount:
    if account.basis != EXECUTION:
        return DeviceAccount(ledger, None)
    return DeviceAccount(ledger, launch_time(device, (ledger.start, ledger.end)))


def _summed_terms(devices: list[dict[str, Int64s]]) -> dict[str, Int64s]:
    """Ledger terms per step, summed over devices."""
    if not devices:
        return {}
    return {
        name: np.asarray(np.sum([terms[name] for terms in devices], axis=0)) for name in devices[0]
    }


def _step_begin(found: HostDevices, steps: StepSeries) -> Int64s:
    if not steps.count or not len(found.timeline.device_start):
        return steps.start
    return np.stack(
        [
            device.to_event_clock(start)
            for device, start in zip(found.main, steps.start, strict=True)
        ]
    )


def _span(timeline: Timeline) -> int:
    if not timeline.num_events:
        return 0
    ends = [
        int((timeline.start[rows] + timeline.duration[rows]).max())
        for line in timeline.lines
        if line.count
        for rows in [slice(line.first, line.first + line.count)]
    ]
    return max(ends) - int(timeline.start.min())


def _run_ids(timeline: Timeline) -> Counter[str]:
    values, counts = np.unique(timeline.run_id.values, return_counts=True)
    return Counter(
        {str(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}
    )


def _sources(timeline: Timeline) -> Counter[str]:
    named = [index for index, op in enumerate(timeline.ops) if op.source]
    if not named:
        return Counter()
    counts = counts_of(timeline.op, len(timeline.ops))
    totals: Counter[str] = Counter()
    for index in named:
        totals[timeline.ops[index].source] += int(counts[index])
    return totals


def _profile_window(timeline: Timeline) -> tuple[int, int] | None:
    if timeline.profile_start_ns is None or timeline.profile_stop_ns is None:
        return None
    return timeline.profile_start_ns, timeline.profile_stop_ns
