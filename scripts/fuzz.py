"""Damage profiles at random, summarise them, and count what comes of it.

Usage: python scripts/fuzz.py --minutes 5 [--seed 1] [--jobs 1] [--keep fuzz_out]
       python scripts/fuzz.py --each 500        a fixed number per sample and kind
           [--silence 5000]                     ... and so many of one byte for each format
       MARIN_PROFILE_LOOPS=compiled NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=... \
           python scripts/fuzz.py
                                                every index of compiled code is checked
       python scripts/fuzz.py --replay v6e.xplane:one byte:17

Samples: the small real profiles below $MARIN_PROFILE_TRACES, and one made by hand. An input is a
sample, a kind of damage and a number; the three decide every byte of it. Each is summarised in a
worker process that has a limit of time and of memory.

Outcomes
    exit N     a defined error (see `marin_profile.cli`)
    said       a summary with a warning, or a count of what was left out, that the sample has not
    same       nothing said, and no headline figure moved
    MOVED      nothing said, and a headline figure moved: the number of devices or of steps, the
               typical step period by 2 %, a ledger's share or a share of the time breakdown by
               2 points
    traceback, hang, memory, killed, bounds
               what must never happen; bounds: compiled code looked beyond an array

The first table counts the outcomes of each kind of damage, with the most memory that an input took
beyond what the worker held before it. The second is of one-byte damage: of the inputs that a
headline figure moved in, or that were refused, how many say so, and how many do not.

Exit status 1: an input of the last row, or more MOVED among the one-byte inputs that moved than
MOST_SILENT of them. What failed is listed in `<keep>/failures.jsonl`, the first few of a sort as
files beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from marin_profile.base.errors import ProfileError
from marin_profile.pipeline import summarize
from marin_profile.readers.protobuf import WIRE_BYTES, WIRE_VARINT, read_varint
from marin_profile.schema import ProfileSummary

SECONDS_EACH = 20.0
MEMORY_ABOVE_START = 1 << 30
MOST_SILENT = 0.005
MOVED_PERIOD = 0.02
MOVED_SHARE = 0.02
KEPT_OF_A_SORT = 5
MADE_STEPS = 40
# Of larger ones a part serves: each input is read anew.
LARGEST_JSON = 2 << 20

SAID, SAME, MOVED = "said", "same", "MOVED"
TRACEBACK, HANG, MEMORY, KILLED = "traceback", "hang", "memory", "killed"
BOUNDS = "bounds"
NEVER = (TRACEBACK, HANG, MEMORY, KILLED, BOUNDS)
REFUSED = ("exit 3", "exit 4", "exit 5")
OUTCOMES = (*REFUSED, SAID, SAME, MOVED, *NEVER)
SILENCE_KIND = "one byte"
SILENCE = ("inputs", "refused", "moved", "unsaid")

# Name, file below $MARIN_PROFILE_TRACES.
REAL = (
    ("cpu8.xplane", "cpu_8dev/plugins/profile/2026_11_27_20_31_00/cpu8.xplane.pb"),
    ("v6e.xplane", "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00/host0.xplane.pb"),
    ("mi300x.xplane", "gpu_mi300x_gemm/plugins/profile/2025_10_01_00_00_00/tw003.xplane.pb"),
    ("cpu8.json.gz", "cpu_8dev/plugins/profile/2026_11_27_20_31_00/cpu8.trace.json.gz"),
    ("v6e.json.gz", "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00/host0.trace.json.gz"),
)


@dataclass(frozen=True)
class Sample:
    """A sound file; `suffix` is how its name must end."""

    name: str
    suffix: str
    content: bytes


@cache
def samples() -> dict[str, Sample]:
    """Real ones where they are at hand; each JSON also as plain text."""
    found = [
        Sample("made.xplane", ".xplane.pb", made_xplane()),
        Sample("made.json", ".trace.json", made_json()),
        Sample("made.json.gz", ".trace.json.gz", gzip.compress(made_json(), mtime=0)),
    ]
    traces = Path(os.environ.get("MARIN_PROFILE_TRACES", ""))
    for name, path in REAL:
        if not (traces / path).is_file():
            continue
        content = (traces / path).read_bytes()
        if name.endswith(".json.gz"):
            text = gzip.decompress(content)
            if len(text) > LARGEST_JSON:
                text = without_plain_host_events(text)
                content = gzip.compress(text, mtime=0)
            found.append(Sample(name, ".trace.json.gz", content))
            found.append(Sample(name.removesuffix(".gz"), ".trace.json", text))
        else:
            found.append(Sample(name, ".xplane.pb", content))
    return {sample.name: sample for sample in found}


def without_plain_host_events(text: bytes) -> bytes:
    """A trace JSON with the host's launches only, of all that the host did."""
    trace = json.loads(text)
    events = trace["traceEvents"]
    hosts = {
        event["pid"]
        for event in events
        if event.get("name") == "process_name" and event["args"]["name"].startswith("/host:")
    }
    trace["traceEvents"] = [
        event
        for event in events
        if event.get("pid") not in hosts or event["ph"] == "M" or "run_id" in event.get("args", ())
    ]
    return json.dumps(trace, separators=(",", ":")).encode()


def made_xplane() -> bytes:
    """Two TPUs, MADE_STEPS steps of three ops; one op is a collective of both."""
    from builders_xspace import Space

    space = Space("host-0")
    start_ns = 1_700_000_000 * 10**9
    for ordinal in range(2):
        tpu = space.tpu(ordinal, device_type_string="TPU v6 Lite")
        for step in range(MADE_STEPS):
            at = 1000 * step + 10
            tpu.step(step, at, 990).module("jit_step(7)", at, 900, run_id=step)
            tpu.op("dot.1", at, 500, category="convolution fusion", scope="jit(step)/mlp/dot")
            tpu.op(
                "all-reduce.2",
                at + 500,
                200 + 10 * (step % 3),
                category="all-reduce",
                long_name="%all-reduce.2 = f32[8] all-reduce(%dot.1), replica_groups={{0,1}}",
            )
            tpu.op("add.3", at + 760, 100, category="loop fusion", scope="jit(step)/mlp/add")
    host = space.host()
    for step in range(MADE_STEPS):
        host.event("python", "train", 1000 * step, 900, step_num=step)
    space.environment(start_ns, start_ns + (1000 * MADE_STEPS + 100) * 1000)
    return space.encode()


def made_json() -> bytes:
    """The ops and module executions of `made_xplane` as JAX exports them."""
    from builders_json import event, process, thread, trace

    events = []
    for ordinal in range(2):
        pid = 3 + ordinal
        events += [
            process(pid, f"/device:TPU:{ordinal}"),
            thread(pid, 2, "XLA Modules"),
            thread(pid, 3, "XLA Ops"),
        ]
        events += [
            event("jit_step(7)", str(1000 * step + 10), "900", pid=str(pid), tid="2", run_id=step)
            for step in range(MADE_STEPS)
        ]
        for step in range(MADE_STEPS):
            for name, at, duration, category in (
                ("dot.1", 0, 500, "convolution fusion"),
                ("all-reduce.2", 500, 200 + 10 * (step % 3), "all-reduce"),
                ("add.3", 760, 100, "loop fusion"),
            ):
                begin = str(1000 * step + 10 + at)
                events.append(
                    event(name, begin, str(duration), pid=str(pid), hlo_category=category)
                )
    return trace(*events, named=False)


# --- damage ------------------------------------------------------------------------------------


def one_byte(rng: random.Random, content: bytearray) -> bytearray:
    at = rng.randrange(len(content))
    content[at] = rng.choice([byte for byte in range(256) if byte != content[at]])
    return content


def several_bytes(rng: random.Random, content: bytearray) -> bytearray:
    for _ in range(rng.randint(2, 20)):
        one_byte(rng, content)
    return content


def one_bit(rng: random.Random, content: bytearray) -> bytearray:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def cut(rng: random.Random, content: bytearray) -> bytearray:
    return content[: rng.randrange(len(content))]


def repeated_range(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    return content[:last] + content[first:last] + content[last:]


def missing_range(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    return content[:first] + content[last:]


def zeros(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    content[first:last] = bytes(last - first)
    return content


def _range(rng: random.Random, content: bytearray) -> tuple[int, int]:
    first = rng.randrange(len(content))
    return first, min(len(content), first + int(2 ** rng.uniform(0, 14)))


def one_length(rng: random.Random, content: bytearray) -> bytearray:
    """Another length of a message, in as many bytes: what follows it is read from elsewhere."""
    at, behind, length = rng.choice(_lengths(bytes(content)))
    most = 1 << 7 * (behind - at)
    other = (length + rng.choice((-2, -1, 1, 2, rng.randrange(1, most)))) % most
    for place in range(at, behind):
        content[place] = other & 127 | (128 if place < behind - 1 else 0)
        other >>= 7
    return content


def cut_between_planes(rng: random.Random, content: bytearray) -> bytearray:
    return content[: rng.choice(_planes(bytes(content)))[0]]


def repeated_plane(rng: random.Random, content: bytearray) -> bytearray:
    first, last = rng.choice(_planes(bytes(content)))
    return content + content[first:last]


def one_number(rng: random.Random, content: bytearray) -> bytearray:
    """Another digit in a number of the JSON text, or one more."""
    digits = [at for at in _places(bytes(content)) if 48 <= content[at] <= 57]
    at = rng.choice(digits)
    if rng.random() < 0.5:
        content[at] = rng.choice(b"0123456789")
    else:
        content[at:at] = bytes(rng.choices(b"0123456789", k=rng.randint(1, 12)))
    return content


@cache
def _places(content: bytes) -> list[int]:
    pattern = re.compile(rb'"(?:ts|dur|pid|tid)": ?([\d.]+)')
    return [at for found in pattern.finditer(content) for at in range(*found.span(1))]


@cache
def _planes(content: bytes) -> list[tuple[int, int]]:
    """(first byte, the byte behind) of each field of the space."""
    at, found = 0, []
    while at < len(content):
        _, behind = read_varint(content, at)
        length, behind = read_varint(content, behind)
        found.append((at, behind + length))
        at = behind + length
    return found


@cache
def _lengths(content: bytes) -> list[tuple[int, int, int]]:
    """(place, place behind, value) of the lengths of planes, lines, events, metadata and stats."""
    found: list[tuple[int, int, int]] = []

    def look(at: int, end: int, depth: int) -> None:
        while at < end:
            tag, at = read_varint(content, at)
            if tag & 7 == WIRE_VARINT:
                _, at = read_varint(content, at)
            elif tag & 7 == WIRE_BYTES:
                length, behind = read_varint(content, at)
                found.append((at, behind, length))
                is_message = depth == 0 or tag >> 3 in (3, 4, 5)
                if is_message and depth < 3 and tag >> 3 != 2:
                    look(behind, behind + length, depth + 1)
                at = behind + length
            else:
                at += 8 if tag & 7 == 1 else 4

    look(0, len(content), 0)
    return found


Damage = Callable[[random.Random, bytearray], bytearray]
_ANY: dict[str, Damage] = {
    "one byte": one_byte,
    "one bit": one_bit,
    "several bytes": several_bytes,
    "cut": cut,
    "repeated range": repeated_range,
    "missing range": missing_range,
    "zeros": zeros,
}
KINDS: Mapping[str, Mapping[str, Damage]] = {
    ".xplane.pb": {
        **_ANY,
        "one length": one_length,
        "cut between planes": cut_between_planes,
        "repeated plane": repeated_plane,
    },
    ".trace.json": {**_ANY, "one number": one_number},
    ".trace.json.gz": _ANY,
}


@dataclass(frozen=True)
class Input:
    """Which damage to which sample; the number is the seed."""

    sample: str
    kind: str
    number: int

    @property
    def label(self) -> str:
        return f"{self.sample}:{self.kind}:{self.number}"

    @property
    def format(self) -> str:
        return samples()[self.sample].suffix.lstrip(".")

    def content(self) -> bytes:
        sample = samples()[self.sample]
        damage = KINDS[sample.suffix][self.kind]
        return bytes(damage(random.Random(self.label), bytearray(sample.content)))


# --- what came of it ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """What people read first, and what the summary says about the input."""

    devices: int | None
    steps: int | None
    period: float | None
    shares: Mapping[str, float]
    said: frozenset[str]

    @staticmethod
    def of(summary: ProfileSummary) -> Headline:
        time_of = summary.step_time
        dropped = {f"{why}: {n}" for why, n in summary.coverage.events_dropped.items()}
        warnings = {re.sub(r"\d[\d,.]*", "#", w) for w in summary.trace_overview.quality_warnings}
        return Headline(
            devices=summary.run_metadata.num_devices,
            steps=time_of.period.count if time_of.period else None,
            period=time_of.typical_period,
            shares=dict(_shares(summary)),
            said=frozenset(dropped | warnings),
        )

    def moved_from(self, sound: Headline) -> list[str]:
        """The figures that differ from those of the sound file."""
        found = []
        if self.devices != sound.devices:
            found.append(f"devices {sound.devices} -> {self.devices}")
        if self.steps != sound.steps:
            found.append(f"steps {sound.steps} -> {self.steps}")
        if not _is_near(self.period, sound.period):
            found.append(f"period {sound.period} -> {self.period}")
        for name in sorted({*self.shares, *sound.shares}):
            old, new = sound.shares.get(name), self.shares.get(name)
            if old is None or new is None or not abs(new - old) < MOVED_SHARE:
                found.append(f"{name} {old} -> {new}")
        return found


def _is_near(new: float | None, old: float | None) -> bool:
    if new is None or old is None:
        return new is old
    return math.isclose(new, old, rel_tol=MOVED_PERIOD)


def _shares(summary: ProfileSummary) -> Iterator[tuple[str, float]]:
    breakdown = summary.time_breakdown
    for name in ("compute", "communication", "host", "stall", "other"):
        yield f"breakdown {name}", getattr(breakdown, name).share_of_total
    for one in summary.device_ledger:
        for term in ("compute", "exposed_communication", "exposed_transfer", "idle"):
            share = getattr(one, f"{term}_duration") / (one.window_duration or 1.0)
            yield f"{one.host}{one.device} {one.window} {term}", share


@dataclass(frozen=True)
class Result:
    """moved: whether a headline figure did; peak: bytes beyond what the worker held before."""

    outcome: str
    detail: str = ""
    moved: bool = False
    seconds: float = 0.0
    peak: int = 0


class Summarizer:
    """Summarises inputs in this process and compares them with their samples."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sound: dict[str, Headline] = {}

    def sound(self, sample: Sample) -> Headline:
        if sample.name not in self._sound:
            self._sound[sample.name] = self._headline(sample.suffix, sample.content)
        return self._sound[sample.name]

    def _headline(self, suffix: str, content: bytes) -> Headline:
        path = self._folder / f"host-0{suffix}"
        path.write_bytes(content)
        summary = summarize(path)
        summary.to_json()
        return Headline.of(summary)

    def result(self, one: Input) -> Result:
        sample = samples()[one.sample]
        sound = self.sound(sample)
        content = one.content()
        begin, before = time.perf_counter(), _forget_peak()
        result = self._outcome(sample.suffix, content, sound)
        return replace(
            result, seconds=time.perf_counter() - begin, peak=max(0, _memory("VmHWM") - before)
        )

    def _outcome(self, suffix: str, content: bytes, sound: Headline) -> Result:
        try:
            found = self._headline(suffix, content)
        except ProfileError as error:
            if isinstance(error.__cause__, IndexError):
                return Result(BOUNDS, _traceback(error))
            return Result(f"exit {error.exit_code}", str(error))
        except MemoryError:
            return Result(MEMORY)
        except Exception as error:
            is_bounds = isinstance(error, IndexError)
            return Result(BOUNDS if is_bounds else TRACEBACK, _traceback(error))
        moved = found.moved_from(sound)
        if found.said - sound.said:
            said = "; ".join(sorted(found.said - sound.said))
            return Result(SAID, said, moved=bool(moved))
        if moved:
            return Result(MOVED, "; ".join(moved[:4]), moved=True)
        return Result(SAME)


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error, limit=-4))


def _memory(what: str) -> int:
    """Bytes of this process: VmRSS, or VmHWM, the most since `_forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])
    return 0


def _forget_peak() -> int:
    """Let the kernel count the peak anew; what is held now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _work(pipe: Connection) -> None:
    """A worker: inputs come through the pipe, results go back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as folder:
        summarizer = Summarizer(Path(folder))
        for sample in samples().values():
            summarizer.sound(sample)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY_ABOVE_START
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        pipe.send(None)
        while (one := pipe.recv()) is not None:
            pipe.send(summarizer.result(one))


class Worker:
    """A process that summarises one input after the other; one that hangs or dies is replaced."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def result(self, one: Input) -> Result:
        self._pipe.send(one)
        try:
            if self._pipe.poll(SECONDS_EACH):
                found: Result = self._pipe.recv()
                return found
            outcome = Result(HANG, f"more than {SECONDS_EACH} s", seconds=SECONDS_EACH)
        except EOFError:
            self._process.join()
            outcome = Result(KILLED, f"exit code {self._process.exitcode}")
        self._process.kill()
        self._process.join()
        self._start()
        return outcome

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


@dataclass
class Round:
    """Outcomes by (format, kind), and what failed."""

    counts: defaultdict[tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    failures: list[tuple[Input, Result]] = field(default_factory=list)
    moved: Counter[str] = field(default_factory=Counter)
    peak: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: float = 0.0

    def add(self, one: Input, result: Result) -> None:
        self.counts[one.format, one.kind][result.outcome] += 1
        if one.kind == SILENCE_KIND and result.moved:
            self.moved[one.format] += 1
        key = one.format, one.kind
        self.peak[key] = max(self.peak[key], result.peak)
        self.slowest = max(self.slowest, result.seconds)
        if result.outcome in (MOVED, *NEVER):
            self.failures.append((one, result))

    @property
    def never(self) -> int:
        return sum(counts[outcome] for counts in self.counts.values() for outcome in NEVER)

    def silence(self, file_format: str) -> dict[str, int]:
        """The one-byte inputs of a format: all, refused, those that moved a figure, and those of
        them that say nothing."""
        counts = self.counts[file_format, SILENCE_KIND]
        refused = sum(counts[outcome] for outcome in REFUSED)
        values = counts.total(), refused, self.moved[file_format], counts[MOVED]
        return dict(zip(SILENCE, values, strict=True))

    def silent_share(self, file_format: str) -> float:
        """MOVED among the one-byte inputs of a format that were refused or moved a figure."""
        found = self.silence(file_format)
        return found["unsaid"] / (found["refused"] + found["moved"] or 1)

    @property
    def formats(self) -> list[str]:
        return sorted({file_format for file_format, _ in self.counts})

    @property
    def failed(self) -> bool:
        return self.never > 0 or any(self.silent_share(one) > MOST_SILENT for one in self.formats)

    def table(self) -> str:
        columns = [one for one in OUTCOMES if any(counts[one] for counts in self.counts.values())]
        columns += [one for one in NEVER if one not in columns]
        heads = "".join(f"{one:>10}" for one in ("inputs", *columns, "MiB"))
        lines = [f"{'format':<15}{'damage':<20}{heads}"]
        for (file_format, kind), counts in sorted(self.counts.items()):
            numbers = [counts.total(), *(counts[one] for one in columns)]
            cells = "".join(f"{number or '-':>10}" for number in numbers)
            peak = self.peak[file_format, kind] / (1 << 20)
            lines.append(f"{file_format:<15}{kind:<20}{cells}{peak:>10.0f}")
        lines += ["", f"{'one byte':<15}" + "".join(f"{one:>10}" for one in SILENCE)]
        for one in self.formats:
            cells = "".join(f"{number:>10}" for number in self.silence(one).values())
            lines.append(f"{one:<15}{cells}  {100 * (1 - self.silent_share(one)):.2f} % said")
        total = sum(counts.total() for counts in self.counts.values())
        return "\n".join([*lines, f"{total} inputs; the slowest took {self.slowest:.2f} s"])


def inputs(
    chosen: Sequence[str],
    kinds: Sequence[str],
    seed: int,
    each: int | None = None,
    silence: int = 0,
) -> Iterator[list[Input]]:
    """One input of each sample and kind at a time: `each` of them (without end if None), and of the
    one-byte ones at least `silence` of each format."""
    suffixes = Counter(samples()[name].suffix for name in chosen)

    def is_wanted(name: str, kind: str, number: int) -> bool:
        least = each
        if each is not None and kind == SILENCE_KIND:
            least = max(each, math.ceil(silence / suffixes[samples()[name].suffix]))
        return least is None or number < least

    for number in count():
        batch = [
            Input(name, kind, seed * 1_000_000 + number)
            for name in chosen
            for kind in KINDS[samples()[name].suffix]
            if (not kinds or kind in kinds) and is_wanted(name, kind, number)
        ]
        if not batch:
            return
        yield batch


def run(stream: Iterable[list[Input]], jobs: int, until: Callable[[], bool], folder: Path) -> Round:
    """Summarise inputs in `jobs` workers until `until()`; failures go to `folder` as they come."""
    found = Round()
    workers = [Worker() for _ in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        for batch in stream:
            if until():
                break
            known = len(found.failures)
            parts = [batch[at::jobs] for at in range(jobs)]
            done = pool.map(lambda w, part: [w.result(one) for one in part], workers, parts)
            for part, results in zip(parts, done, strict=True):
                for one, result in zip(part, results, strict=True):
                    found.add(one, result)
            if len(found.failures) > known:
                keep(found, folder)
    for worker in workers:
        worker.close()
    return found


def keep(found: Round, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kept: Counter[tuple[str, str, str]] = Counter()
    with (folder / "failures.jsonl").open("w") as stream:
        for one, result in found.failures:
            row: dict[str, Any] = {"input": one.label, "outcome": result.outcome}
            stream.write(json.dumps({**row, "detail": result.detail}) + "\n")
            sort = (one.sample, one.kind, result.outcome)
            kept[sort] += 1
            if kept[sort] <= KEPT_OF_A_SORT:
                name = f"{result.outcome}-{one.label}".replace(" ", "_").replace(":", "-")
                (folder / f"{name}{samples()[one.sample].suffix}").write_bytes(one.content())


def replay(label: str) -> int:
    name, kind, number = label.split(":")
    with tempfile.TemporaryDirectory() as folder:
        result = Summarizer(Path(folder)).result(Input(name, kind, int(number)))
    print(f"{result.outcome}  {result.detail}")
    return result.outcome in (MOVED, *NEVER)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--each", type=int, help="so many of each sample and kind instead")
    parser.add_argument("--silence", type=int, default=0, help="one-byte inputs of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--samples", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--kinds", nargs="*", default=[], metavar="KIND")
    parser.add_argument("--keep", type=Path, default=Path("fuzz_out"))
    parser.add_argument("--replay", metavar="SAMPLE:KIND:NUMBER")
    given = parser.parse_args()
    if given.replay:
        return replay(given.replay)
    end = time.monotonic() + 60 * given.minutes
    until = (lambda: False) if given.each else (lambda: time.monotonic() > end)
    chosen = given.samples or list(samples())
    stream = inputs(chosen, given.kinds, given.seed, given.each, given.silence)
    found = run(stream, given.jobs, until, given.keep)
    keep(found, given.keep)
    print(found.table())
    return int(found.failed)


if __name__ == "__main__":
    sys.exit(main())
