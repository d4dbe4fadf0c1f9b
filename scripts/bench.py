"""Speed and memory, the verdict's operating curve and false alarms, the callback's cost.

Usage: python scripts/bench.py summarize [--events 3000000] [--repeat 3] [--peer-python PYTHON]
       python scripts/bench.py cold [--events 3000000] [--repeat 3] [--beside SRC]
       python scripts/bench.py verdict [--runs 20000] [--seed 1]
       python scripts/bench.py sequential [--runs 100000] [--seed 1]
       python scripts/bench.py hosts [--hosts 8 16 32 64] [--events 1000000]
       python scripts/bench.py pod [--hosts 1024] [--jobs 2]
       python scripts/bench.py callback [--captures 4] [--end]
       python scripts/bench.py step
       python scripts/bench.py page [--rows 5000] [--devices 1000]
       python scripts/bench.py soak [--captures 1000] [--ingest-in {subprocess,thread,off}]
       python scripts/bench.py repeats [--only {same,changed}] [--pairs 20] [--size 4] [--keep DIR]

`verdict` is described in bench_verdict.py, and so on. `summarize`, here, gives wall seconds, peak
RSS and ratios within one run. Its inputs repeat the real TPU v6e capture
(MARIN_PROFILE_TRACES/tpu_v6e_4dev) in time; they are made once and kept in the cache folder. Each
figure is a whole process, files in the page cache and compiled code on disk (one unmeasured run
first), the best of --repeat runs. --peer-python names an interpreter that has marin-core installed:
its time and memory stand beside ours.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bench_callback
import bench_cold
import bench_hosts
import bench_page
import bench_repeats
import bench_sequential
import bench_soak
import bench_step
import bench_verdict

from marin_profile.readers.protobuf import (
    WIRE_BYTES,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_VARINT,
    read_varint,
)

CAPTURE = "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00"
QUESTION = "top 5 ops by exclusive time"
PERIOD_PS = 100_000_000_000_000  # longer than the capture, so that repeats do not overlap


@dataclass(frozen=True)
class Measured:
    seconds: float
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    summarize = verbs.add_parser("summarize", help="summarize and query, small and large files")
    summarize.add_argument("--peer-python", default=os.environ.get("MARIN_PROFILE_PEER_PYTHON"))
    summarize.set_defaults(run=bench_summarize)
    cold = verbs.add_parser("cold", help="the first run on a machine, and the next")
    bench_cold.add_arguments(cold)
    cold.set_defaults(run=lambda options: bench_cold.bench_cold(options, _cases(options)))
    for verb in (summarize, cold):
        verb.add_argument("--events", type=int, default=3_000_000)
        verb.add_argument("--repeat", type=int, default=3)
        verb.add_argument(
            "--cache", type=Path, default=Path(tempfile.gettempdir()) / "marin-profile-bench"
        )
    verdict = verbs.add_parser("verdict", help="simulated false alarms, power and coverage")
    bench_verdict.add_arguments(verdict)
    verdict.set_defaults(run=bench_verdict.bench_verdict)
    sequential = verbs.add_parser("sequential", help="simulated looks after every pair")
    bench_sequential.add_arguments(sequential)
    sequential.set_defaults(run=bench_sequential.bench_sequential)
    hosts = verbs.add_parser("hosts", help="speed and memory by hosts and processes")
    bench_hosts.add_arguments(hosts)
    hosts.set_defaults(run=_bench_hosts)
    pod = verbs.add_parser("pod", help="a summary and a page of 1,024 hosts")
    bench_hosts.add_pod_arguments(pod)
    pod.set_defaults(run=bench_hosts.bench_pod)
    callback = verbs.add_parser("callback", help="what a training notices of its callback")
    bench_callback.add_arguments(callback)
    callback.set_defaults(run=bench_callback.bench_callback)
    step = verbs.add_parser("step", help="what a step outside all windows costs")
    bench_step.add_arguments(step)
    step.set_defaults(run=bench_step.bench_step)
    page = verbs.add_parser("page", help="how fast pages with many rows are")
    bench_page.add_arguments(page)
    page.set_defaults(run=bench_page.bench_page)
    soak = verbs.add_parser("soak", help="whether anything grows over many captures")
    bench_soak.add_arguments(soak)
    soak.set_defaults(run=bench_soak.bench_soak)
    repeats = verbs.add_parser("repeats", help="the verdict on real captures")
    bench_repeats.add_arguments(repeats)
    repeats.set_defaults(run=bench_repeats.bench_repeats)
    options = parser.parse_args()
    options.run(options)


def _bench_hosts(options: argparse.Namespace) -> None:
    raw = (_traces() / CAPTURE / "host0.xplane.pb").read_bytes()
    bench_hosts.bench_hosts(options, repeat_xplane(raw, options.events))


def _cases(options: argparse.Namespace) -> list[tuple[str, Path]]:
    """The inputs, made where they are not there yet."""
    folder = _traces() / CAPTURE
    options.cache.mkdir(parents=True, exist_ok=True)
    large_xplane = options.cache / f"repeated_{options.events}.xplane.pb"
    large_json = options.cache / f"repeated_{options.events}.trace.json.gz"
    if not large_xplane.exists():
        _write(
            large_xplane, repeat_xplane((folder / "host0.xplane.pb").read_bytes(), options.events)
        )
    if not large_json.exists():
        _write_json(large_json, folder / "host0.trace.json.gz", options.events)
    return [
        ("v6e 25 k, xplane", folder / "host0.xplane.pb"),
        ("v6e 25 k, json.gz", folder / "host0.trace.json.gz"),
        (f"repeated {options.events:,}, xplane", large_xplane),
        (f"repeated {options.events:,}, json.gz", large_json),
    ]


def bench_summarize(options: argparse.Namespace) -> None:
    cases = _cases(options)
    print(f"{'case':34} {'wall s':>8} {'peak MB':>8}   {'peer s':>8} {'peer MB':>8}   ratio")
    summaries = []
    for title, path in cases:
        summary = options.cache / f"{path.name}.summary.json"
        summaries.append(summary)
        flag = "--xplane-file" if path.suffix == ".pb" else "--trace-file"
        ours = _best(
            [
                sys.executable,
                "-m",
                "marin_profile",
                "summarize",
                flag,
                str(path),
                "--output",
                str(summary),
            ],
            options.repeat,
        )
        _line(title, ours, _peer_summarize(options, path))
    for title, summary in (("query, v6e 25 k", summaries[0]), ("query, repeated", summaries[2])):
        command = ["query", "--summary", str(summary), "--question", QUESTION]
        ours = _best([sys.executable, "-m", "marin_profile", *command], options.repeat)
        _line(title, ours, _peer_query(options, summary))


def _line(title: str, ours: Measured, peer: Measured | None) -> None:
    beside = (
        f"{peer.seconds:8.2f} {peer.megabytes:8.0f}   {peer.seconds / ours.seconds:5.1f} x faster"
        if peer
        else f"{'-':>8} {'-':>8}"
    )
    print(f"{title:34} {ours.seconds:8.2f} {ours.megabytes:8.0f}   {beside}", flush=True)


def _peer_summarize(options: argparse.Namespace, path: Path) -> Measured | None:
    if not options.peer_python:
        return None
    flag = "--xplane-file" if path.suffix == ".pb" else "--trace-file"
    output = options.cache / "peer.json"
    code = "import sys; from marin.profiling.cli import main; sys.exit(main())"
    command = [
        options.peer_python,
        "-c",
        code,
        "summarize",
        flag,
        str(path),
        "--output",
        str(output),
    ]
    return _best(command, 1)


def _peer_query(options: argparse.Namespace, summary: Path) -> Measured | None:
    if not options.peer_python:
        return None
    code = "import sys; from marin.profiling.cli import main; sys.exit(main())"
    return _best(
        [
            options.peer_python,
            "-c",
            code,
            "query",
            "--summary",
            str(summary),
            "--question",
            QUESTION,
        ],
        1,
    )


def _best(command: list[str], repeat: int) -> Measured:
    """One unmeasured run, then the fastest of `repeat`."""
    _measure(command)
    return min((_measure(command) for _ in range(repeat)), key=lambda run: run.seconds)


def _measure(command: list[str]) -> Measured:
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{errors.decode(errors='replace')}")
    return Measured(time.perf_counter() - started, usage.ru_maxrss / 1024)


def _traces() -> Path:
    traces = os.environ.get("MARIN_PROFILE_TRACES")
    if not traces:
        sys.exit("MARIN_PROFILE_TRACES is not set: the bench repeats the real TPU capture in it.")
    return Path(traces)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


# --- inputs ------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """(number, varint value, content, raw field) of a message without fixed-width groups."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        value, content = 0, b""
        if wire == WIRE_VARINT:
            value, at = read_varint(data, at)
        else:
            fixed = {WIRE_FIXED64: 8, WIRE_FIXED32: 4}.get(wire)
            length, at = (fixed, at) if fixed else read_varint(data, at)
            content = data[at : at + length]
            at += length
        yield number, value, content, data[begin:at]


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | WIRE_BYTES) + _varint(len(content)) + content


def repeat_xplane(raw: bytes, events: int) -> bytes:
    """The capture's planes with every event repeated, each time PERIOD_PS later."""
    planes = [content for number, _, content, _ in _fields(raw) if number == 1]
    present = sum(
        1
        for plane in planes
        for number, _, line, _ in _fields(plane)
        if number == 3
        for inner, _, _, _ in _fields(line)
        if inner == 4
    )
    times = max(1, -(-events // present))
    out = bytearray()
    for plane in planes:
        offset_id = next(
            (
                key
                for number, _, entry, _ in _fields(plane)
                if number == 5
                for key, name in [_stat_name(entry)]
                if name == b"device_offset_ps"
            ),
            -1,
        )
        body = bytearray()
        for number, _, content, raw_field in _fields(plane):
            body += (
                _message(3, _repeat_line(content, offset_id, times)) if number == 3 else raw_field
            )
        out += _message(1, bytes(body))
    return bytes(out)


def _stat_name(entry: bytes) -> tuple[int, bytes]:
    key, name = 0, b""
    for number, value, content, _ in _fields(entry):
        if number == 1:
            key = value
        elif number == 2:
            name = next((inner for tag, _, inner, _ in _fields(content) if tag == 2), b"")
    return key, name


def _repeat_line(line: bytes, offset_id: int, times: int) -> bytes:
    header = bytearray()
    templates = []
    for number, _, content, raw_field in _fields(line):
        if number == 4:
            templates.append(_event_template(content, offset_id))
        else:
            header += raw_field
    body = [bytes(header)]
    for index in range(times):
        shift = index * PERIOD_PS
        for rest, offset, device_offset in templates:
            event = rest + b"\x10" + _varint(offset + shift)
            if device_offset is not None:
                stat = b"\x08" + _varint(offset_id) + b"\x18" + _varint(device_offset + shift)
                event += _message(4, stat)
            body.append(_message(4, event))
    return b"".join(body)


def _event_template(event: bytes, offset_id: int) -> tuple[bytes, int, int | None]:
    rest, offset, device_offset = bytearray(), 0, None
    for number, value, content, raw_field in _fields(event):
        if number == 2:
            offset = value
            continue
        if number == 4:
            values = {tag: inner for tag, inner, _, _ in _fields(content)}
            if values.get(1) == offset_id:
                device_offset = values.get(3, values.get(4))
                continue
        rest += raw_field
    return bytes(rest), offset, device_offset


_TS = re.compile(rb'"ts":([0-9.eE+-]+)')
_OFFSET = re.compile(rb'"device_offset_ps":"(\d+)"')


def _write_json(path: Path, source: Path, events: int) -> None:
    from isal import igzip

    payload = json.loads(gzip.decompress(source.read_bytes()))["traceEvents"]
    meta = [
        json.dumps(event, separators=(",", ":")).encode()
        for event in payload
        if event.get("ph") == "M"
    ]
    tracks: dict[tuple[int, int], list[bytes]] = {}
    for event in payload:
        if event.get("ph") == "X":
            text = json.dumps(event, separators=(",", ":")).encode()
            tracks.setdefault((event["pid"], event["tid"]), []).append(text)
    times = max(1, round(events / sum(map(len, tracks.values()))))
    period_us = PERIOD_PS // 1_000_000
    temporary = path.with_suffix(".tmp")
    with igzip.open(temporary, "wb", compresslevel=2) as out:
        out.write(b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[')
        out.write(b",".join(meta) + b",")
        for track in tracks.values():
            parts = [_json_template(text) for text in track]
            for index in range(times):
                chunk = [_json_event(part, index, period_us) for part in parts]
                out.write(b",".join(chunk) + b",")
        out.write(b"{}]}")
    temporary.replace(path)


def _json_template(text: bytes) -> tuple[bytes, float, bytes, int | None, bytes]:
    stamp = _TS.search(text)
    assert stamp is not None
    offset = _OFFSET.search(text)
    if offset is None:
        return text[: stamp.start(1)], float(stamp.group(1)), text[stamp.end(1) :], None, b""
    first, second = sorted((stamp.span(1), offset.span(1)))
    if first == offset.span(1):
        raise ValueError("args before ts")
    return (
        text[: first[0]],
        float(stamp.group(1)),
        text[first[1] : second[0]],
        int(offset.group(1)),
        text[second[1] :],
    )


def _json_event(
    part: tuple[bytes, float, bytes, int | None, bytes], index: int, period_us: int
) -> bytes:
    head, ts, middle, offset, tail = part
    stamp = b"%.17g" % (ts + index * period_us)
    if offset is None:
        return head + stamp + middle
    return head + stamp + middle + b"%d" % (offset + index * PERIOD_PS) + tail


if __name__ == "__main__":
    main()
