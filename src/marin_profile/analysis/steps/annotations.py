"""The step markers of a host: its StepTraceAnnotations.

Contract: events of one number that follow each other on a thread, and those of other threads, are
one step; a number that comes back later begins a new round. Times are the event clock's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.flows import Spans
from marin_profile.events.timeline import Int64s, Timeline


@dataclass(frozen=True)
class Markers:
    """One annotation: n steps in order of their start, and the events that they consist of."""

    name: str
    numbers: Int64s
    start: Int64s
    spans: Spans

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def is_lone(self) -> bool:
        """One step only: the annotation may stand around a whole program, or inside jit."""
        return self.count == 1


def find_markers(timeline: Timeline) -> list[Markers]:
    """All annotations, those with the most steps first, ties by name."""
    rows = timeline.step_num.rows
    if not len(rows):
        return []
    by_name: dict[str, list[tuple[int, int, int, int]]] = {}
    for row, number in zip(rows.tolist(), timeline.step_num.values.tolist(), strict=True):
        begin = int(timeline.start[row])
        event = (begin, number, begin + int(timeline.duration[row]), int(timeline.line[row]))
        by_name.setdefault(timeline.ops[timeline.op[row]].name, []).append(event)
    found = [_markers(name, events) for name, events in by_name.items()]
    return sorted(found, key=lambda markers: (-markers.count, markers.name))


def _markers(name: str, events: list[tuple[int, int, int, int]]) -> Markers:
    events = sorted(events)
    rounds: Counter[int] = Counter()
    last: dict[int, int] = {}
    seen: set[tuple[int, int, int]] = set()
    keys = []
    for _, number, _, line in events:
        if last.get(line) != number and (line, rounds[line], number) in seen:
            rounds[line] += 1
        last[line] = number
        seen.add((line, rounds[line], number))
        keys.append((rounds[line], number))
    step_of = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    starts: dict[int, int] = {}
    for event, key in zip(events, keys, strict=True):
        starts.setdefault(step_of[key], event[0])
    return Markers(
        name=name,
        numbers=np.array([number for _, number in step_of], np.int64),
        start=np.array([starts[index] for index in range(len(step_of))], np.int64),
        spans=Spans(
            start=np.array([event[0] for event in events], np.int64),
            end=np.array([event[2] for event in events], np.int64),
            line=np.array([event[3] for event in events], np.int64),
            step=np.array([step_of[key] for key in keys], np.int64),
        ),
    )
