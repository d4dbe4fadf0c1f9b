"""Trace JSON (`*.trace.json.gz` as JAX or XProf write it) -> Timeline, as a stream.

Contract
* Complete events (ph X) and instants (i, I) become rows; processes become planes, threads lines.
  Planes are sorted by pid, lines by (pid, tid); rows keep the file's order inside a line.
* `ts` and `dur` are read as decimal text and rounded to the nearest picosecond, ties to even. A
  `dur` of 1 ps is how JAX writes an instant: 0.
* Events that cannot be placed in time are left out and counted in `dropped`.
* Damage never crashes: what parses is used and a note names the byte offset in the uncompressed
  text. BrokenInputError is raised if nothing usable remains or if the file is no JAX trace.
* A host event's args describe an op only if it has one of OP_ANCHORS, as in the protobuf reader.
"""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from marin_profile.base.errors import BrokenInputError
from marin_profile.capture.formats import TRACE_JSON
from marin_profile.events.timeline import Int64s, Line, Sparse, Timeline
from marin_profile.readers.json_events import Events
from marin_profile.readers.json_layout import Columns, distinct_ops, without_host_args
from marin_profile.readers.json_scan import scan
from marin_profile.readers.json_stream import StreamWindow
from marin_profile.readers.json_text import BAD, CUT, skip_space, string_end, value_end
from marin_profile.readers.plausible import checked

PS_PER_SECOND = 1_000_000_000_000
EXPORT_CAPS = (1_000_000, 5_000_000)
# A file with a larger share of unreadable bytes, and more than a few events', is no whole profile.
MOST_DAMAGED, LEAST_DAMAGED = 0.01, 1 << 12
JAX_PROCESSES = ("/device:", "/host:")
TORCH_KEYS = {"schemaVersion", "deviceProperties", "traceName", "distributedInfo"}
EVENTS_KEY = "traceEvents"
EVENTS_HEAD = re.compile(rb'"traceEvents"\s*:\s*\[')
DERIVED_HEAD = re.compile(rb'\s*\[?\s*\{\s*"(cols|rows)"\s*:')
DERIVED_NAME = re.compile(r"([A-Za-z_]+)\.json(\.gz)?$")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

ARRAY_OPENED, NEXT_MEMBER, OBJECT_CLOSED = 1, 2, 3
# A device time of this size plus a duration of this size fits int64.
MAX_DEVICE_PS = 1 << 62


def read_trace_json(stream: BinaryIO, *, path: str) -> Timeline:
    """Read one trace; `stream` may be gzip-compressed, `path` is for messages only.

    Times are picoseconds from the earliest event. Raises BrokenInputError if the file is no JAX
    trace or holds no usable event; the message is one sentence that names `path`.
    """
    window = StreamWindow(stream)
    keys: list[str] = []
    notes: list[str] = []
    is_object = _open(window, keys, notes, path)
    _refuse_torch(keys, path)
    events = scan(window)
    notes += _damage_notes(events, window)
    if events.closed:
        notes += _read_rest(window, keys, is_object)
        _refuse_torch(keys, path)
    _refuse_foreign(events, window, path)
    most = max(LEAST_DAMAGED, MOST_DAMAGED * (window.offset + window.end))
    lost = events.cut or events.damage.size > most
    return checked(_timeline(events, notes, lost=lost))


def _open(window: StreamWindow, keys: list[str], notes: list[str], path: str) -> bool:
    """Go to the first event; True if the events stand in an object (its earlier keys: `keys`)."""
    if not window.end:
        what = window.damage or "nothing was written, or nothing was copied"
        raise BrokenInputError(f"{path} is empty ({what}): copy it again, or record it again.")
    if window.bytes_at(0, 3) == BYTE_ORDER_MARK:
        window.start = 3
    window.start = skip_space(window.buffer, window.start, window.end)
    head = window.bytes_at(window.start, min(window.start + 512, window.end))
    if DERIVED_HEAD.match(head):
        name = DERIVED_NAME.search(path)
        raise BrokenInputError(
            f"{path} is a derived XProf tool output ({name[1] if name else 'a table'}), not a "
            "trace: name the .trace.json.gz or .xplane.pb of the capture."
        )
    if head[:1] not in (b"{", b"["):
        raise BrokenInputError(_why_no_json(head, path))
    window.start += 1
    if head[:1] == b"[":
        return False
    outcome = _walk(window, keys)
    if outcome != ARRAY_OPENED:
        found = EVENTS_HEAD.search(window.bytes_at(0, window.end))
        if outcome != BAD or not found:
            raise BrokenInputError(_why_no_events(window, keys, outcome, path))
        notes.append(
            f"the text before the events is damaged at byte {window.offset + window.start}; it is "
            "skipped."
        )
        window.start = found.end()
    return True


def _why_no_json(head: bytes, path: str) -> str:
    if head.startswith(b"<"):
        return f"{path} is an HTML page or XML, not a trace: download the file itself."
    if not head.strip():
        return f"{path} holds only white space, no trace: copy it again, or record it again."
    return (
        f"{path} is not JSON (it starts with {head[:8]!r}): name a .trace.json or .trace.json.gz, "
        "or use --xplane-file for an .xplane.pb."
    )


def _why_no_events(window: StreamWindow, keys: list[str], outcome: int, path: str) -> str:
    at = window.offset + window.start
    if outcome == CUT:
        end = window.offset + window.end
        return f"{path} is cut before its first event, at byte {end}: copy it again."
    if outcome == BAD:
        return f"{path} is not JSON from byte {at} on, before any event: copy it again."
    if EVENTS_KEY in keys:
        return f"{path} holds no events (traceEvents is not an array): record the profile again."
    return (
        f"{path} is JSON without traceEvents, so no trace: name the .trace.json.gz or .xplane.pb "
        "of the capture."
    )


def _walk(window: StreamWindow, keys: list[str]) -> int:
    """Pass the members of the top-level object, up to the events array (ARRAY_OPENED), its end
    (OBJECT_CLOSED) or something unreadable (CUT, BAD)."""
    while True:
        outcome, window.start = _member(window, keys)
        if outcome != NEXT_MEMBER and not (outcome == CUT and window.grow()):
            return outcome


def _member(window: StreamWindow, keys: list[str]) -> tuple[int, int]:
    buf, start, end = window.buffer, window.start, window.end
    at = skip_space(buf, start, end)
    if at < end and buf[at] == ord(","):
        at = skip_space(buf, at + 1, end)
    if at >= end:
        return CUT, start
    if buf[at] == ord("}"):
        return OBJECT_CLOSED, at + 1
    if buf[at] != ord('"'):
        return BAD, at
    stop = string_end(buf, at, end)
    colon = skip_space(buf, stop, end) if stop > 0 else end
    value = skip_space(buf, colon + 1, end) if colon < end else end
    if value >= end:
        return CUT, start
    if buf[colon] != ord(":"):
        return BAD, at
    key = window.bytes_at(at + 1, stop - 1).decode("utf-8", "replace")
    if key == EVENTS_KEY and buf[value] == ord("["):
        return ARRAY_OPENED, value + 1
    after = value_end(buf, value, end)
    if after < 0:
        return after, start
    keys.append(key)
    return NEXT_MEMBER, after


def _read_rest(window: StreamWindow, keys: list[str], is_object: bool) -> list[str]:
    """Read what follows the events; notes on it."""
    at = window.offset + window.start
    sound = not is_object or _walk(window, keys) == OBJECT_CLOSED
    while not window.finished:
        window.start = window.end
        window.more()
    if sound and not window.damage:
        return []
    reason = f" ({window.damage})" if window.damage else ""
    return [f"file is cut or damaged{reason} after its events, at byte {at}; no event is lost."]


def _damage_notes(events: Events, window: StreamWindow) -> list[str]:
    notes = []
    damage = events.damage
    if damage.count:
        notes.append(
            f"damaged events are skipped: {damage.size} bytes in {damage.count} place(s), the "
            f"first at byte {damage.first}."
        )
    if window.first_zero >= 0:
        notes.append(
            "the text holds zero bytes, which JSON does not, the first at byte "
            f"{window.first_zero}: events there are lost or changed."
        )
    if events.cut:
        reason = f" ({window.damage})" if window.damage else ""
        lost = (
            f"{events.lost_tail} bytes of an incomplete event are lost"
            if events.lost_tail
            else "no incomplete event is left"
        )
        notes.append(
            f"file is cut at byte {window.offset + window.end}{reason}; the events before it are "
            f"used, {lost}, totals are lower bounds."
        )
    return notes


def _refuse_torch(keys: list[str], path: str) -> None:
    if TORCH_KEYS.intersection(keys):
        raise BrokenInputError(
            f"{path} is a PyTorch (Kineto) profile, not a JAX profile: name a trace that "
            "jax.profiler wrote."
        )


def _refuse_foreign(events: Events, window: StreamWindow, path: str) -> None:
    """Raise unless there are events and something says that JAX wrote them."""
    if events.is_torch:
        _refuse_torch(list(TORCH_KEYS), path)
    is_jax = any(name.startswith(JAX_PROCESSES) for name in events.processes.values())
    is_jax = is_jax or any(op.hlo_op or op.category for op in events.ops)
    if events.num_objects and not is_jax:
        raise BrokenInputError(
            f"{path} is a trace of another program, not a JAX profile (it has no /device: or "
            "/host: process and no hlo_op): name a trace that jax.profiler wrote."
        )
    if events.num_rows:
        return
    if events.cut:
        end = window.offset + window.end
        why = f"is cut at byte {end}, before its first usable event: copy it again."
    elif events.damage.count:
        why = f"is damaged from byte {events.damage.first} on, no event is usable: copy it again."
    else:
        why = "holds no usable event: record the profile again while the program works."
    raise BrokenInputError(f"{path} {why}")


def _timeline(events: Events, notes: list[str], *, lost: bool) -> Timeline:
    columns = Columns(events)
    dropped = {reason: count for reason, count in events.dropped.items() if count}
    far = columns.drop_far_starts()
    if far:
        dropped["bad_timestamp"] = dropped.get("bad_timestamp", 0) + far
    planes, lines = columns.lay_out(events)
    host = np.array([planes[line.plane].name.startswith("/host:") for line in lines])
    ops = distinct_ops(without_host_args(events.ops, columns, host), columns.op)
    start, first_ts = columns.take_starts()
    cap = _reached_cap(events, lines, start, columns.duration)
    if cap:
        until = _complete_until(lines, start, columns.duration)
        notes.append(
            f"truncated: the export stops at {cap:,} events; it covers only until "
            f"{until / PS_PER_SECOND:.6f} s, totals are lower bounds."
        )
    ids = columns.numbers()
    device_start = _device_times(ids["device_offset_ps"])
    if len(device_start):
        values = device_start.values - device_start.values.min()
        device_start = Sparse(device_start.rows, values)
    return Timeline(
        source_format=TRACE_JSON,
        planes=planes,
        lines=lines,
        ops=ops,
        line=columns.line,
        op=columns.op,
        start=start,
        duration=columns.duration,
        device_start=device_start,
        device_duration=_device_times(ids["device_duration_ps"]),
        run_id=ids["run_id"],
        correlation_id=ids["correlation_id"],
        step_num=ids["step_num"],
        device_ordinal=ids["device_ordinal"],
        first_ts=first_ts,
        dropped=dropped,
        notes=tuple(notes),
        truncated=lost or cap > 0,
    )


def _reached_cap(events: Events, lines: tuple[Line, ...], start: Int64s, duration: Int64s) -> int:
    """The export's cap on events if the file shows it, else 0."""
    for cap in EXPORT_CAPS:
        if events.num_complete == cap:
            return cap
        if abs(events.num_complete - cap) <= cap // 1000 and _ends_ragged(lines, start, duration):
            return cap
    return 0


def _large_line_ends(lines: tuple[Line, ...], start: Int64s, duration: Int64s) -> list[int]:
    """When each line with at least 1 % of the events ends."""
    ends = []
    for line in lines:
        if line.count * 100 >= len(start):
            rows = slice(line.first, line.first + line.count)
            ends.append(int((start[rows] + duration[rows]).max()))
    return ends


def _ends_ragged(lines: tuple[Line, ...], start: Int64s, duration: Int64s) -> bool:
    """Whether a large line ends in the first 80 % of the capture."""
    ends = _large_line_ends(lines, start, duration)
    return bool(ends) and min(ends) * 5 < max(ends) * 4


def _complete_until(lines: tuple[Line, ...], start: Int64s, duration: Int64s) -> int:
    """Until when no large line has ended, picoseconds."""
    return min(_large_line_ends(lines, start, duration), default=0)


def _device_times(column: Sparse) -> Sparse:
    """The column without values that are no time."""
    sound = (column.values >= 0) & (column.values < MAX_DEVICE_PS)
    return column if sound.all() else Sparse(column.rows[sound], column.values[sound])
