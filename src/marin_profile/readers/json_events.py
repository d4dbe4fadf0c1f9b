"""The events of a JSON trace as columns, and the ops, lines and planes they belong to.

Contract
* Rows are in the order in which they are added. `line` and `op` are indices into `tracks` and
  `ops`, which may name the same thing twice.
* Times are whole microseconds plus picoseconds, durations picoseconds.
* More than MOST_OPS different ops raise BrokenInputError: each is kept in memory.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_profile.base.errors import BrokenInputError
from marin_profile.events.timeline import Op
from marin_profile.readers.json_objects import Members
from marin_profile.readers.json_text import MILLION, decode, parse_decimal, parse_int
from marin_profile.readers.op_stats import EVENT_NUMBERS, OP_STATS, describe_op

# 53 days: a start and a duration of this size add up to less than 2^63 picoseconds.
MAX_SPAN_US = 4_600_000_000_000
MOST_OPS = 1_000_000

OpTexts = tuple[bytes | None, ...]

_ID_KEYS = [key.encode() for key in EVENT_NUMBERS]
_OP_KEYS = [key.encode() for key in OP_STATS]
_NO_MEMBERS: Mapping[bytes, bytes] = {}


def _whole() -> array[int]:
    return array("i")


def _long() -> array[int]:
    return array("q")


def _longs() -> list[array[int]]:
    return [array("q") for _ in EVENT_NUMBERS]


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
    """What was read so far. `id_rows` and `id_values`: for each of EVENT_NUMBERS, the rows that
    have it. `num_objects`: objects with a `ph`; `num_complete`: those of phase X.

    `closed`: the end of the array was read. `cut`: the file ends inside the array, with `lost_tail`
    bytes of an incomplete event. Neither: the last event is damaged.
    """

    line: array[int] = field(default_factory=_whole)
    op: array[int] = field(default_factory=_whole)
    whole_us: array[int] = field(default_factory=_long)
    fraction_ps: array[int] = field(default_factory=_whole)
    duration: array[int] = field(default_factory=_long)
    id_rows: list[array[int]] = field(default_factory=_longs)
    id_values: list[array[int]] = field(default_factory=_longs)
    ops: list[Op] = field(default_factory=list)
    tracks: list[tuple[int, int]] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    damage: Damage = field(default_factory=Damage)
    dropped: Counter[str] = field(default_factory=Counter)
    num_objects: int = 0
    num_complete: int = 0
    is_torch: bool = False
    closed: bool = False
    cut: bool = False
    lost_tail: int = 0
    _line_of: dict[tuple[bytes | None, bytes | None], int] = field(default_factory=dict)
    _op_of: dict[OpTexts, int] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        return len(self.line)

    def add_object(self, own: Members, args: Members | None) -> None:
        """One object of the array: an event becomes a row, or is dropped for a reason."""
        phase = own.get(b"ph")
        if phase is None:
            self.dropped["damaged_event"] += bool(own) or args is not None
            return
        self.num_objects += 1
        if phase == b'"M"':
            self._add_name(own, args or _NO_MEMBERS)
        elif phase == b'"X"':
            self.num_complete += 1
            self._add_event(own, args or _NO_MEMBERS, is_instant=False)
        elif phase in (b'"i"', b'"I"'):
            if args is not None or b"name" in own or b"args" in own:
                self._add_event(own, args or _NO_MEMBERS, is_instant=True)
        else:
            return
        if b"cat" in own and args and b"External id" in args and phase != b'"M"':
            self.is_torch = True

    def _add_name(self, own: Members, args: Mapping[bytes, bytes]) -> None:
        pid, tid = _id_of(own.get(b"pid")), _id_of(own.get(b"tid"))
        kind, name = own.get(b"name"), decode(args.get(b"name", b""))
        if kind == b'"process_name"':
            self.processes[pid] = name
        elif kind == b'"thread_name"':
            self.threads[pid, tid] = name

    def _add_event(self, own: Members, args: Mapping[bytes, bytes], *, is_instant: bool) -> None:
        if b"ts" not in own:
            self.dropped["missing_timestamp"] += 1
            return
        start = parse_decimal(own[b"ts"])
        if start is None:
            self.dropped["bad_timestamp"] += 1
            return
        duration = 0
        if not is_instant:
            if b"dur" not in own:
                self.dropped["missing_duration"] += 1
                return
            length = parse_decimal(own[b"dur"])
            if length is None or length[0] > MAX_SPAN_US:
                self.dropped["bad_duration"] += 1
                return
            if length[0] < 0:
                self.dropped["negative_duration"] += 1
                return
            duration = length[0] * MILLION + length[1]
        row = len(self.line)
        self.line.append(self._line(own.get(b"pid"), own.get(b"tid")))
        self.op.append(self.op_of((own.get(b"name"), *map(args.get, _OP_KEYS))))
        self.whole_us.append(start[0])
        self.fraction_ps.append(start[1])
        # JAX writes instants as 1 ps.
        self.duration.append(duration if duration != 1 else 0)
        for at, key in enumerate(_ID_KEYS):
            if key in args and (value := parse_int(args[key])) is not None:
                self.id_rows[at].append(row)
                self.id_values[at].append(value)

    def _line(self, pid: bytes | None, tid: bytes | None) -> int:
        line = self._line_of.get((pid, tid))
        if line is None:
            line = self._line_of[pid, tid] = len(self.tracks)
            self.tracks.append((_id_of(pid), _id_of(tid)))
        return line

    def op_of(self, texts: OpTexts) -> int:
        """The op of a name and OP_STATS, each as its value stands in the text."""
        op = self._op_of.get(texts)
        if op is None:
            op = self._op_of[texts] = len(self.ops)
            self.add_op(texts)
        return op

    def add_op(self, texts: OpTexts) -> None:
        if len(self.ops) >= MOST_OPS:
            raise BrokenInputError(
                f"The trace names more than {MOST_OPS:,} different events, which no profile does; "
                "read the xplane file of the capture, or capture fewer steps."
            )
        name, *stats = (decode(text) if text is not None else "" for text in texts)
        self.ops.append(describe_op(name, dict(zip(OP_STATS, stats, strict=True))))


def _id_of(text: bytes | None) -> int:
    """An integer, 0 where it is missing or none."""
    return (parse_int(text) if text is not None else 0) or 0
