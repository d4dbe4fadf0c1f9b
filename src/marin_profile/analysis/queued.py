"""When the devices of a host have work that is launched and has not begun.

Contract
* From the end of the call that launched a program to the program's first op, on any main device.
* TPU executions meet their launches by run id. CPU executions do not: where all calls of a function
  are the main thread's, its executions belong to calls in the same order, each to the latest one
  that this leaves. So what is told is no longer than it was.
* GPUs launch by kernel: of them nothing is told. Times are picoseconds on the event clock.
"""

from __future__ import annotations

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.host_thread import HostThread
from marin_profile.analysis.launches import find_launches
from marin_profile.analysis.planes import CPU
from marin_profile.base.columns import extent_by, rows_with
from marin_profile.base.intervals import Intervals
from marin_profile.events.host_events import DISPATCH, launched_function
from marin_profile.events.timeline import Int64s, Timeline


def queued(host: HostDevices, thread: HostThread) -> Intervals:
    calls = thread.of(DISPATCH).outermost
    found = Intervals.empty()
    on_cpu = [device for device in host.main if device.kind == CPU]
    functions = _functions(host.timeline, calls) if on_cpu else {}
    for device in on_cpu:
        found |= _by_order(device, functions)
    for matched in find_launches(host).begun:
        if matched.device.executions is not None:
            found |= _spans(_ends(calls, matched.host_time), matched.device_time)
    return found


def _spans(launched: Int64s, begun: Int64s) -> Intervals:
    waited = launched < begun
    return Intervals.union_of(launched[waited], begun[waited])


def _ends(calls: HostThread, times: Int64s) -> Int64s:
    """Of the call around each time; the time itself where there is none."""
    if not len(calls.op):
        return times
    at = np.maximum(np.searchsorted(calls.start, times, side="right") - 1, 0)
    inside = (calls.start[at] <= times) & (times < calls.end[at])
    return np.where(inside, calls.end[at], times)


def _letters(name: str) -> str:
    """Of a function and of its module alike: "<lambda>" and "jit__lambda"."""
    return "".join(filter(str.isalnum, name))


def _functions(timeline: Timeline, calls: HostThread) -> dict[str, tuple[Int64s, Int64s]]:
    """Starts and ends of the calls of each function that no other thread calls."""
    names = {at: launched_function(op.name) for at, op in enumerate(timeline.ops)}
    ops: dict[str, list[int]] = {}
    for at, name in names.items():
        if name is not None:
            ops.setdefault(_letters(name), []).append(at)
    found = {}
    for key, own in sorted(ops.items()):
        here = np.isin(calls.op, own)
        if not here.any():
            continue
        rows = rows_with(timeline.op, own, len(timeline.ops))
        if (timeline.line[rows] == timeline.line[rows[0]]).all():
            found[key] = calls.start[here], calls.end[here]
    return found


def _by_order(device: DeviceOps, functions: dict[str, tuple[Int64s, Int64s]]) -> Intervals:
    found = Intervals.empty()
    executions = device.executions
    if executions is None or not len(executions.start):
        return found
    size = len(executions.start)
    begin, end = extent_by(device.execution, device.event_start, device.event_end, size)
    modules = [_letters(name.removeprefix("jit_")) for name, _ in executions.modules]
    for module in sorted(set(modules) & set(functions)):
        own = [at for at, name in enumerate(modules) if name == module]
        begun = np.sort(begin[np.isin(executions.key, own) & (begin < end)])
        starts, ends = functions[module]
        called = np.searchsorted(starts, begun, side="right")
        place = np.arange(len(begun))
        call = place + np.minimum.accumulate((called - 1 - place)[::-1])[::-1]
        found |= _spans(ends[call[call >= 0]], begun[call >= 0])
    return found
