"""The standard changes of a capture, each replayed: step now, step then.

Contract
* A saving is the difference of two replays, so that what a replay gets wrong cancels; it is never
  negative and never more than the time taken away.
* `saving` lets the host follow its devices: a gap begins when the last of them is done; what is
  hidden does not hold a device. `least`: the host launches no earlier than it did, unless it waits
  for its devices in each step; what was in flight is done when it was; of communication only the
  time goes in which every member is in the collective, of host gaps compiling and what people or
  the Python tracer name. Where devices share processors, those that leave a collective may have
  waited for them: `least` of communication is 0 there; and less work may shorten the step by as
  large a part as it is of all work, if that is more: `saving`. `least` of recompute is 0: what is
  not computed again must be kept. So the saving of the change is between the two, as far as nothing
  else changes with it.
* An average device takes for its own work before each meeting no longer than the median of the
  others: `saving`. `least`: only the time goes that it takes longer than they do on average over
  the steps, by place in the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.replay.graph import GAP, Graph, Points
from marin_profile.analysis.replay.track import OP, PASS, Part
from marin_profile.base.columns import run_starts, sum_by, unique_pairs
from marin_profile.events.timeline import Int64s

COMMUNICATION, GAPS, DEVICE = "communication", "host_gaps", "device"
REMOVED, AVERAGE, HALVED, ROOFLINE = "removed", "average", "halved", "roofline"
MOST_DEVICES = 64


@dataclass(frozen=True)
class Change:
    """change: COMMUNICATION (name: a kind, "" for all), GAPS, DEVICE (with its host), OP, SCOPE or
    PASS; target: what becomes of it, its own time multiplied by `factor`."""

    change: str
    target: str
    name: str
    host: str
    factor: float
    saving: float
    least: float


@dataclass(frozen=True)
class WhatIf:
    """Picoseconds of the mean step: measured, and by a replay of the capture as it is."""

    step: float
    replayed: float
    periods: int
    changes: tuple[Change, ...]


def what_if(graph: Graph, of_roofline: Mapping[str, float]) -> WhatIf | None:
    """None where the capture cannot be replayed. of_roofline: the part of their time that ops would
    take at their roofline, by canonical name, where it is known."""
    ends = graph.replay()
    least = graph.replay(least=True)
    if ends is None or least is None:
        return None
    replayed = graph.step(ends)
    base = replayed, graph.step(least)
    changes = [
        *_communication(graph, base),
        *_gaps(graph, base),
        *_devices(graph, base),
        *_parts(graph, base, of_roofline),
    ]
    return WhatIf(graph.step(graph.end), replayed, graph.periods, tuple(changes))


class _Savings:
    def __init__(self, graph: Graph, base: tuple[float, float]) -> None:
        self._graph = graph
        self._base = base

    def of(
        self,
        *,
        own: Int64s | None = None,
        after: Int64s | None = None,
        tail: Int64s | None = None,
        least: bool = False,
    ) -> float:
        ends = self._graph.replay(own=own, after=after, tail=tail, least=least)
        return self._base[least] - self._graph.step(ends) if ends is not None else 0.0

    def at_most(self, saving: float, removed: int) -> float:
        """Of a change that takes work away, over all devices and periods. Where they share
        processors the step may be as long as all work takes."""
        graph = self._graph
        work = int(graph.points.own.sum() + graph.tail.sum())
        if not graph.shared or not work:
            return saving
        return max(saving, min(self._base[0] * removed / work, removed / graph.periods))


def _communication(graph: Graph, base: tuple[float, float]) -> Iterator[Change]:
    points, savings = graph.points, _Savings(graph, base)
    kinds = [("", points.kind != GAP)]
    kinds += [(kind, points.kind == at) for at, kind in enumerate(graph.kinds)]
    for name, chosen in kinds:
        if not (chosen & points.departs).any():
            continue
        free = np.where(chosen, 0, points.after)
        on_wire = np.where(chosen, points.after - points.wire, points.after)
        saving = savings.of(after=free)
        least = 0.0 if graph.shared else savings.of(after=on_wire, least=True)
        yield Change(COMMUNICATION, REMOVED, name, "", 0.0, saving, min(least, saving))


def _gaps(graph: Graph, base: tuple[float, float]) -> Iterator[Change]:
    points = graph.points
    chosen = points.kind == GAP
    if chosen.any():
        after = np.where(chosen, points.after - points.wire, points.after)
        saving = _Savings(graph, base).of(after=after)
        yield Change(GAPS, REMOVED, "", "", 0.0, saving, saving * graph.avoidable)


def _devices(graph: Graph, base: tuple[float, float]) -> Iterator[Change]:
    points, savings = graph.points, _Savings(graph, base)
    if len(graph.names) < 2 or not len(points.own):
        return
    own, others = own_and_others(points)
    known = others >= 0
    excess = np.where(known, own - others, 0)
    places, devices, at = unique_pairs(points.place, points.device)
    total = sum_by(at, excess, len(places))
    usual = np.maximum(total, 0) // np.maximum(sum_by(at, known.astype(np.int64), len(places)), 1)
    of_device = sum_by(devices, np.maximum(total, 0), len(graph.names))
    order = sorted(range(len(graph.names)), key=lambda device: (-int(of_device[device]), device))
    for device in sorted(order[:MOST_DEVICES]):
        is_own = points.device == device
        extra = np.where(is_own, np.maximum(excess, 0), 0)
        saving = savings.at_most(savings.of(own=own - extra), int(extra.sum()))
        least = savings.of(own=own - np.minimum(extra, usual[at]), least=True)
        yield Change(
            change=DEVICE,
            target=AVERAGE,
            name=graph.names[device],
            host=graph.hosts[device],
            factor=1 - int(extra.sum()) / max(1, int(own[is_own].sum())),
            saving=saving,
            least=min(least, saving),
        )


def own_and_others(points: Points) -> tuple[Int64s, Int64s]:
    """Per arrival the device's own work for it, and the median of the others' for the same meeting
    (-1 where nobody else arrives, and at departures)."""
    rows = np.flatnonzero(~points.departs)
    order = rows[np.argsort(points.meeting[rows], kind="stable")]
    others = np.full(len(points.own), -1, np.int64)
    median_of_others(points.meeting[order], points.own[order], order, others)
    return points.own, others


def median_of_others(meeting: Int64s, own: Int64s, row: Int64s, others: Int64s) -> None:
    """Writes into `others`, by row; the meetings are in order. Halves are rounded down."""
    begins = run_starts(meeting)
    sizes = np.diff(np.append(begins, len(meeting)))
    first, size = np.repeat(begins, sizes), np.repeat(sizes, sizes)
    order = np.lexsort((own, meeting))
    rank = np.arange(len(meeting)) - first
    half = (size - 1) // 2
    # Of an odd number of others the one in the middle, of an even one those beside it; the value's
    # own rank is passed over.
    upper = half + (half >= rank)
    lower = np.where(size % 2 == 1, half - 1 + (half - 1 >= rank), upper)
    met = size > 1
    ranked = own[order]
    values = (ranked[(first + upper)[met]] + ranked[(first + lower)[met]]) // 2
    others[row[order[met]]] = values


def _parts(
    graph: Graph, base: tuple[float, float], of_roofline: Mapping[str, float]
) -> Iterator[Change]:
    savings = _Savings(graph, base)
    for part in _known_parts(graph):
        spent, in_tail = _spent(graph, part)
        if not spent.any() and not in_tail.any():
            continue
        kind, name = part
        targets = [(REMOVED, 0.0)] if kind == PASS else [(HALVED, 0.5)]
        if kind == OP and name in of_roofline:
            targets.append((ROOFLINE, of_roofline[name]))
        for target, factor in targets:
            own = graph.points.own - (spent * (1 - factor)).astype(np.int64)
            tail = graph.tail - (in_tail * (1 - factor)).astype(np.int64)
            removed = (graph.points.own - own).sum() + (graph.tail - tail).sum()
            saving = savings.at_most(savings.of(own=own, tail=tail), int(removed))
            # What is not computed again must be kept instead, which may cost as much.
            least = 0.0 if kind == PASS else savings.of(own=own, tail=tail, least=True)
            yield Change(kind, target, name, "", factor, saving, min(least, saving))


def _known_parts(graph: Graph) -> list[Part]:
    """The first host's, then what others add."""
    return list(dict.fromkeys(part for parts in graph.parts for part in parts))


def _spent(graph: Graph, part: Part) -> tuple[Int64s, Int64s]:
    """How much of the own work before each point, and of each device's after its last one, is for
    the part."""
    points = graph.points
    spent = np.zeros(len(points.own), np.int64)
    in_tail = np.zeros(len(graph.names), np.int64)
    for device, (track, parts) in enumerate(zip(graph.tracks, graph.parts, strict=True)):
        if part not in parts:
            continue
        before = track.spent[parts.index(part)]
        rows = slice(*np.searchsorted(points.device, (device, device + 1)).tolist())

        own_tail = int(graph.tail[device])
        ends = np.append(points.own_to[rows], track.end)
        starts = np.append(points.own_from[rows], track.end - own_tail)
        time = before[np.searchsorted(track.times, (starts, ends))]
        spent[rows], in_tail[device] = (time[1] - time[0])[:-1], (time[1] - time[0])[-1]
    return np.minimum(spent, points.own), np.minimum(in_tail, graph.tail)
