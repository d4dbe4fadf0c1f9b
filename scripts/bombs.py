"""What input that is made to exhaust a machine comes to: `python scripts/bombs.py [KIND ...]`.

Each kind is written to a temporary folder and summarised by a process of its own. Printed are the
size of the file, the exit code, the peak memory and the processor time. Names, tracks and
lines come in three sizes, which show whether time grows with the input or faster.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Outcome:
    size: int
    code: int
    peak: int
    seconds: float
    said: str

    @property
    def allowed(self) -> int:
        """The largest peak: 1 GB, or four times the file."""
        return max(10**9, 4 * self.size)


def zeros_in_gzip(path: Path) -> None:
    path.write_bytes(b"".join(_compressed(b"", bytes(_BLOCK), 6 * GIB)))


def sparse_zeros(path: Path) -> None:
    path.touch()
    os.truncate(path, 4 * 10**9)


def blanks_in_json(path: Path) -> None:
    path.write_bytes(b"".join(_compressed(b'{"traceEvents": [', b" " * _BLOCK, 6 * GIB)))


def one_long_string(path: Path) -> None:
    head = b'{"traceEvents": [{"ph": "X", "name": "'
    path.write_bytes(b"".join(_compressed(head, b"a" * _BLOCK, 6 * GIB)))


def open_brackets(path: Path) -> None:
    head = b'{"traceEvents": [{"ph": "X", "args": '
    path.write_bytes(b"".join(_compressed(head, b"[" * _BLOCK, GIB)))


def lying_lengths(path: Path) -> None:
    """A million messages, each of which says that it holds all that follows, and 2 GB more."""
    path.write_bytes(b"\x0a\xff\xff\xff\xff\x07" * 1_000_000)


def endless_varints(path: Path) -> None:
    path.write_bytes(b"\xff" * 100_000_000)


def pipe(path: Path) -> None:
    """Nobody writes to it."""
    os.mkfifo(path)


def endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def metadata_names(count: int) -> Callable[[Path], None]:
    """One plane, so many event metadata with a name each, and no event."""

    def write(path: Path) -> None:
        entries = (
            _field(4, _number(1, at) + _field(2, _number(1, at) + _field(2, b"op_%d" % at)))
            for at in range(1, count + 1)
        )
        path.write_bytes(_field(1, _field(2, b"/device:TPU:0") + b"".join(entries)))

    return write


def operands_without_end(path: Path) -> None:
    _program(path, _field(36, b"\x05" * 17_000_000))


def group_without_end(path: Path) -> None:
    _program(path, _field(49, _field(1, b"\x05" * 17_000_000)))


def endless_dimensions(path: Path) -> None:
    """An iota list of 2^100,000 devices."""
    iota = _number(1, 1) + _number(2, 2) + _field(3, b"\x02" * 100_000)
    _program(path, _field(87, _field(2, iota)))


def _program(path: Path, extra: bytes) -> None:
    """A device that runs an all-reduce, and its program, with `extra` in the instruction."""
    instruction = _field(1, b"all-reduce.1") + _field(2, b"all-reduce") + _number(35, 1) + extra
    computation = _field(1, b"main") + _field(2, instruction) + _number(5, 1) + _number(6, 1)
    proto = _field(1, _field(1, b"jit_f") + _field(3, computation))
    stat = _field(5, _number(1, 1) + _field(2, _number(1, 1) + _field(2, b"Hlo Proto")))
    named = _number(1, 7) + _field(2, b"jit_f(7)") + _field(5, _number(1, 1) + _field(6, proto))
    programs = _field(2, b"/host:metadata") + stat + _field(4, _number(1, 7) + _field(2, named))
    op = _field(4, _number(1, 1) + _field(2, _number(1, 1) + _field(2, b"all-reduce.1")))
    event = _field(4, _number(1, 1) + _number(2, 0) + _number(3, 1000))
    device = _field(2, b"/device:TPU:0") + op + _field(3, _field(2, b"XLA Ops") + event)
    path.write_bytes(_field(1, programs) + _field(1, device))


def xplane_lines(count: int) -> Callable[[Path], None]:
    """One plane of so many lines, an event each."""

    def write(path: Path) -> None:
        named = _field(4, _number(1, 1) + _field(2, _number(1, 1) + _field(2, b"op")))
        event = _field(4, _number(1, 1) + _number(2, 1000) + _number(3, 1000))
        lines = (_field(3, _number(1, at) + event) for at in range(1, count + 1))
        path.write_bytes(_field(1, _field(2, b"/host:CPU") + named + b"".join(lines)))

    return write


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _number(tag: int, value: int) -> bytes:
    return _varint(tag << 3) + _varint(value)


def _field(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(content)) + content


def _compressed(head: bytes, block: bytes, size: int) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=31)
    yield packer.compress(head)
    for _ in range(size // len(block)):
        yield packer.compress(block)
    yield packer.flush()


def named_ops(count: int) -> Callable[[Path], None]:
    """So many ops of one device, each with a name of its own."""

    def write(path: Path) -> None:
        _trace(path, ((3, f"op_{at}.{at}", at, 1, 1) for at in range(count)))

    return write


def tracks(count: int) -> Callable[[Path], None]:
    """So many threads of the host, an event each, beside one op."""

    def write(path: Path) -> None:
        rows = ((2, f"f{at % 7}", at, 1, 10 + at) for at in range(count))
        _trace(path, ((3, "op.1", 0, 5, 1), *rows))

    return write


def _trace(path: Path, events: Iterable[tuple[int, str, int, int, int]]) -> None:
    """As JAX writes it: process 3 is a TPU, whose thread 1 runs ops, process 2 the host."""
    named = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "/host:CPU"}},
    ]
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        file.write(",".join(map(json.dumps, named)))
        for pid, name, start, duration, tid in events:
            file.write(
                f',{{"ph":"X","pid":{pid},"tid":{tid},"name":"{name}","ts":{start},'
                f'"dur":{duration}}}'
            )
        file.write("]}")


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "6 GiB of zeros, gzipped": ("h.xplane.pb", zeros_in_gzip),
    "4 GB of zeros, sparse": ("h.xplane.pb", sparse_zeros),
    "6 GiB of blanks in JSON, gzipped": ("h.trace.json.gz", blanks_in_json),
    "a name of 6 GiB, gzipped": ("h.trace.json.gz", one_long_string),
    "2^30 open brackets, gzipped": ("h.trace.json.gz", open_brackets),
    "a million lengths of 2 GB": ("h.xplane.pb", lying_lengths),
    "numbers of 100 MB": ("h.xplane.pb", endless_varints),
}
# What is odd in a program is left out; the rest is read.
ODD_PROGRAMS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "17 million operands": ("h.xplane.pb", operands_without_end),
    "a group of 17 million": ("h.xplane.pb", group_without_end),
    "100,000 dimensions": ("h.xplane.pb", endless_dimensions),
}
NO_FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a pipe": ("h.xplane.pb", pipe),
    "/dev/zero": ("h.trace.json", endless_device),
}
GROWING: dict[str, tuple[str, Callable[[Path], None]]] = {
    f"{count:,} {what}": (name, made(count))
    for what, name, made, most in (
        ("names", "h.trace.json.gz", named_ops, 1_000_000),
        ("tracks", "h.trace.json.gz", tracks, 300_000),
        ("metadata names", "h.xplane.pb", metadata_names, 1_000_000),
        ("lines", "h.xplane.pb", xplane_lines, 300_000),
    )
    for count in (most // 4, most // 2, most)
}
ALL = BOMBS | ODD_PROGRAMS | NO_FILES | GROWING


_WATCH = """
import json, resource, subprocess, sys
child = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([child.returncode, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime]))
"""


def outcome(kind: str, folder: Path) -> Outcome:
    """Summarise one kind in a process of its own."""
    name, write = ALL[kind]
    path = folder / name
    write(path)
    flag = "--xplane-file" if name.endswith(".pb") else "--trace-file"
    command = [sys.executable, "-m", "marin_profile", "summarize", flag, str(path)]
    command += ["--output", str(folder / "summary.json")]
    # By a small process: what forks counts as a part of its child's peak.
    with (folder / "said").open("wb") as said:
        watched = subprocess.run(
            [sys.executable, "-c", _WATCH, *command],
            stderr=said,
            stdout=subprocess.PIPE,
            check=True,
        )
    code, peak, seconds = json.loads(watched.stdout)
    text = (folder / "said").read_text(errors="replace").strip()
    size = path.stat().st_size
    path.unlink()
    return Outcome(
        size=size,
        code=code,
        peak=peak,
        seconds=seconds,
        said=text.splitlines()[-1] if text else "",
    )


def main() -> None:
    print("| input | file, MB | exit code | peak, MB | processor, s |\n|---|---:|---:|---:|---:|")
    for kind in sys.argv[1:] or ALL:
        with tempfile.TemporaryDirectory() as folder:
            found = outcome(kind, Path(folder))
        print(
            f"| {kind} | {found.size / 1e6:,.1f} | {found.code} | {found.peak / 1e6:,.0f} "
            f"| {found.seconds:.1f} |",
            flush=True,
        )
        if found.said:
            print(found.said[:300], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
