"""Collects the events of a JSON window into columns, and the ops, lines and planes they belong to.

Contract
* Rows are in file order; `line` and `op` number lines and ops by first appearance.
* A damaged object costs itself only: the scan goes on at the next object that is an event.
* More than MOST_OPS different ops raise BrokenInputError: each is kept in memory.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike, NDArray

from marin_profile.base.errors import BrokenInputError
from marin_profile.base.progress import advance
from marin_profile.events.timeline import Op
from marin_profile.readers.json_scan import (
    ARRAY_CLOSED,
    COMPLETE,
    DAMAGED,
    DURATION,
    FIRST_ID_COLUMN,
    FIRST_REASON,
    FRACTION_PS,
    HAS,
    ID_KEYS,
    LINE,
    LINES,
    METAS,
    NEW_OPS,
    NUM_COLUMNS,
    NUM_COUNTS,
    NUM_FIELDS,
    NUM_IDS,
    NUM_META_COLUMNS,
    NUM_OP_FIELDS,
    OBJECTS,
    OP,
    OP_KEYS,
    OPS,
    REASONS,
    ROOM_FULL,
    ROWS,
    TORCH,
    WHOLE_US,
    HashTable,
    copy_entries,
    find_event,
    known_keys,
    new_table,
    scan_json_events,
)
from marin_profile.readers.json_stream import MAX_OBJECT, StreamWindow
from marin_profile.readers.json_text import CUT
from marin_profile.readers.op_stats import describe_op

# Objects per call of the scanner, entries of a new table, rows by which a column grows.
CHUNK = 1 << 13
FIRST_TABLE = 1 << 14
GROWTH = 1 << 18
MOST_OPS = 1_000_000
# How a file ends whose last event is damaged: the array's end, perhaps some plain keys.
TAIL = 1 << 12
ARRAY_END = re.compile(rb"\](\s*,[^\[\]{}]*)?\s*\}?\s*$")


class Growing:
    """A column that grows in place."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._data = np.empty(0, dtype)
        self._count = 0

    def extend(self, values: NDArray) -> None:
        count = self._count + len(values)
        if count > len(self._data):
            self._data.resize(count + GROWTH, refcheck=False)
        self._data[self._count : count] = values
        self._count = count

    def finish(self) -> NDArray:
        """The column, which must not grow any more."""
        self._data.resize(self._count, refcheck=False)
        return self._data


@dataclass
class Damage:
    """Bytes that could not be read: positions and sizes in the uncompressed file."""

    first: int = -1
    size: int = 0
    count: int = 0

    def add(self, start: int, stop: int) -> None:
        if self.first < 0:
            self.first = start
        self.size += stop - start
        self.count += 1


@dataclass
class Events:
    """What `scan` found. Times are whole microseconds plus picoseconds, durations picoseconds."""

    line: Growing = field(default_factory=lambda: Growing(np.int32))
    op: Growing = field(default_factory=lambda: Growing(np.int32))
    whole_us: Growing = field(default_factory=lambda: Growing(np.int64))
    fraction_ps: Growing = field(default_factory=lambda: Growing(np.int32))
    duration: Growing = field(default_factory=lambda: Growing(np.int64))
    id_rows: list[Growing] = field(default_factory=lambda: [Growing(np.int64) for _ in ID_KEYS])
    id_values: list[Growing] = field(default_factory=lambda: [Growing(np.int64) for _ in ID_KEYS])
    ops: list[Op] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    tracks: list[tuple[int, int]] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    dropped: dict[str, int] = field(default_factory=dict)
    num_rows: int = 0
    num_objects: int = 0
    num_complete: int = 0
    num_torch: int = 0
    closed: bool = False
    cut: bool = False
    lost_tail: int = 0


def scan(window: StreamWindow) -> Events:
    """Read the events array whose first object is at `window.start`; leaves it after the `]`.

    `closed`: the end of the array was read. `cut`: the file ends inside the array, with `lost_tail`
    bytes of an incomplete event. Neither: the last event is damaged.
    """
    return _Scan(window).run()


class _Scan:
    def __init__(self, window: StreamWindow) -> None:
        self.window = window
        self.events = Events()
        self.known = known_keys()
        self.spans = np.zeros((NUM_FIELDS, 2), np.int64)
        self.columns = np.empty((NUM_COLUMNS, CHUNK), np.int64)
        self.new_ops = np.empty((CHUNK, NUM_OP_FIELDS, 2), np.int64)
        self.metas = np.empty((CHUNK, NUM_META_COLUMNS), np.int64)
        self.counts = np.zeros(NUM_COUNTS, np.int64)
        self.lines = new_table(FIRST_TABLE)
        self.ops = new_table(FIRST_TABLE)

    def run(self) -> Events:
        window, events = self.window, self.events
        while True:
            outcome = self._step()
            if outcome == ARRAY_CLOSED:
                events.closed = True
                break
            if outcome == ROOM_FULL or (outcome == CUT and window.grow()):
                continue
            if window.start == window.end:
                events.cut = True
                break
            if not self._resume(outcome):
                break
        self._finish()
        return events

    def _step(self) -> int:
        window, counts = self.window, self.counts
        self.lines = _with_room(self.lines, int(counts[LINES]))
        self.ops = _with_room(self.ops, int(counts[OPS]))
        counts[[ROWS, NEW_OPS, METAS]] = 0
        window.start, outcome = scan_json_events(
            window.buf,
            window.start,
            window.end,
            self.known,
            self.spans,
            self.lines,
            self.ops,
            self.columns,
            self.new_ops,
            self.metas,
            counts,
        )
        self._take()
        return int(outcome)

    def _take(self) -> None:
        events, columns = self.events, self.columns
        count = int(self.counts[ROWS])
        if count:
            events.line.extend(columns[LINE, :count])
            events.op.extend(columns[OP, :count])
            events.whole_us.extend(columns[WHOLE_US, :count])
            events.fraction_ps.extend(columns[FRACTION_PS, :count])
            events.duration.extend(columns[DURATION, :count])
            has = columns[HAS, :count]
            for at in range(NUM_IDS):
                rows = np.flatnonzero(has & (1 << at))
                if len(rows):
                    events.id_rows[at].extend(rows + events.num_rows)
                    events.id_values[at].extend(columns[FIRST_ID_COLUMN + at, rows])
            events.num_rows += count
            advance(events=count)
        if len(events.ops) + self.counts[NEW_OPS] > MOST_OPS:
            raise BrokenInputError(
                f"The trace names more than {MOST_OPS:,} different events, which no profile does; "
                "read the xplane file of the capture, or capture fewer steps."
            )
        for spans in self.new_ops[: self.counts[NEW_OPS]].tolist():
            events.ops.append(self._decode_op(spans))
        for pid, tid, *spans in self.metas[: self.counts[METAS]].tolist():
            kind, name = self._text(spans[:2]), self._text(spans[2:])
            if kind == "process_name":
                events.processes[pid] = name
            elif kind == "thread_name":
                events.threads[pid, tid] = name

    def _resume(self, outcome: int) -> bool:
        """Go on behind the unreadable object at `start`; False if no event follows."""
        window = self.window
        broken = window.offset + window.start
        at = window.start + 1
        while True:
            last = window.finished
            final = last or window.end - at > MAX_OBJECT
            at, found = find_event(window.buf, at, window.end, final, self.known, self.spans)
            if found:
                self.events.damage.add(broken, window.offset + at)
                window.start = at
                return True
            if last:
                self._lose_tail(broken, outcome)
                return False
            window.start = max(at - TAIL, window.start)
            kept = at - window.start
            window.more()
            at = window.start + kept

    def _lose_tail(self, broken: int, outcome: int) -> None:
        """The last event is damaged if the array's end follows it, else the file is cut."""
        window, events = self.window, self.events
        end = window.offset + window.end
        tail = window.bytes_at(max(window.end - TAIL, 0), window.end)
        window.start = window.end
        events.cut = outcome == CUT or ARRAY_END.search(tail) is None
        if events.cut:
            events.lost_tail = end - broken
        else:
            events.damage.add(broken, end)

    def _finish(self) -> None:
        events, counts = self.events, self.counts
        counts[DAMAGED] += events.damage.count + (events.lost_tail > 0)
        reasons = zip(REASONS, counts[FIRST_REASON:].tolist(), strict=True)
        events.dropped = {reason: count for reason, count in reasons if count}
        events.num_objects = int(counts[OBJECTS])
        events.num_complete = int(counts[COMPLETE])
        events.num_torch = int(counts[TORCH])
        used = self.lines[self.lines[:, 2] > 0]
        ids = used[np.argsort(used[:, 2]), :2].view(np.int64)
        events.tracks = [(pid, tid) for pid, tid in ids.tolist()]

    def _decode_op(self, spans: list[list[int]]) -> Op:
        name, *texts = map(self._text, spans)
        return describe_op(name, dict(zip(OP_KEYS, texts, strict=True)))

    def _text(self, span: list[int]) -> str:
        return decode(self.window.bytes_at(*span)) if span[0] >= 0 else ""


def _with_room(table: HashTable, count: int) -> HashTable:
    if 2 * (count + CHUNK) <= len(table):
        return table
    bigger = new_table(len(table))
    copy_entries(table, bigger)
    return bigger


def decode(raw: bytes) -> str:
    """The text of a JSON value: a string's content, anything else as it stands; never fails."""
    text = raw.decode("utf-8", "replace")
    if not text.startswith('"'):
        return "" if text == "null" else text
    if "\\" not in text:
        return text[1:-1]
    try:
        text = json.loads(text, strict=False)
    except ValueError:
        return text[1:-1]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
