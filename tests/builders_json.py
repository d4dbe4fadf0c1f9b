"""Synthetic trace JSON, and what its reader made of it.

Numbers go in as text, so that a test decides every digit.
"""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

from marin_profile.events.timeline import Sparse, Timeline
from marin_profile.readers.trace_json import read_trace_json

PATH = "some/host.trace.json.gz"
HEADER = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":['


def event(
    name: str = "f",
    /,
    ts: str | None = "0",
    dur: str | None = "1",
    *,
    ph: str = "X",
    pid: str = "3",
    tid: str = "3",
    **args: Any,
) -> str:
    """One event as JAX writes it; `ts`, `dur`, `pid` and `tid` stand in the text as they are."""
    parts = [f'"ph":"{ph}","pid":{pid},"tid":{tid}']
    if ts is not None:
        parts.append(f'"ts":{ts}')
    if dur is not None:
        parts.append(f'"dur":{dur}')
    parts.append(f'"name":{json.dumps(name)}')
    if args:
        parts.append(f'"args":{json.dumps(args, separators=(",", ":"))}')
    return "{" + ",".join(parts) + "}"


def process(pid: int = 3, name: str = "/device:TPU:0") -> str:
    return json.dumps({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})


def thread(pid: int = 3, tid: int = 3, name: str = "XLA Ops") -> str:
    return json.dumps(
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
    )


def trace(*objects: str, named: bool = True) -> bytes:
    """A whole file; `named` puts the names of process 3 and its thread 3 in front."""
    first = [process(), thread()] if named else []
    return (HEADER + ",".join([*first, *objects, "{}"]) + "]}").encode()


def gz(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def read(text: bytes) -> Timeline:
    return read_trace_json(io.BytesIO(text), path=PATH)


def names(timeline: Timeline) -> list[str]:
    return [timeline.ops[op].name for op in timeline.op]


def times(timeline: Timeline) -> list[tuple[int, int]]:
    return list(zip(timeline.start.tolist(), timeline.duration.tolist(), strict=True))


def pairs(column: Sparse) -> list[tuple[int, int]]:
    return list(zip(column.rows.tolist(), column.values.tolist(), strict=True))
