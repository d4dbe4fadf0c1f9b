"""Many hosts at once: speed and memory by the number of hosts and processes, and a whole pod.

`hosts`: 8, 16, 32 and 64 hosts of --events each (the real TPU capture repeated, each file with a
host's name in it, so that none is like another), summarised by one process and by two, and by one
and two workers of Dask where it is installed. A figure is a whole command with the files in the
page cache; memory is the peak of the sum over all its processes (proportional set sizes), "cpu s"
what they computed, which a busy machine changes little. "free s" is what the command would take if
each process had a processor: what the first one computes before and after the others, and the most
that one of the others does. The last columns are by how much two are faster than one, by wall time
and by that.

`pod`: hosts of 4 devices and 25 steps, all different, one device late: seconds, peak memory, bytes
of the summary and of the page, and who is named. --jobs as of `summarize`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import bench_inputs

SAMPLE_EVERY = 0.1  # seconds
IDLE = 0.1  # what workers compute, at most, that only wait
SUMMARIZE = ("-m", "marin_profile", "summarize", "--no-cache", "--profile-dir")


@dataclass(frozen=True)
class Measured:
    """processor: seconds that all processes together computed; free: on the longest way through
    them, see the module docstring."""

    seconds: float
    processor: float
    free: float
    megabytes: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--events", type=int, default=1_000_000)
    bench_inputs.add_arguments(parser)


def bench_hosts(options: argparse.Namespace) -> None:
    one_host = bench_inputs.repeated(
        bench_inputs.XPLANE, options.events, options.cache
    ).read_bytes()
    crews = {"1 job": ("--jobs", "1"), "2 jobs": ("--jobs", "2")}
    if find_spec("distributed") is not None:
        for jobs in ("1", "2"):
            crews[f"dask {jobs}"] = ("--jobs", jobs, "--scheduler", "local")
    heads = "".join(f"{f'{name} s':>10} {'cpu s':>6} {'free s':>6} {'MB':>5}" for name in crews)
    print(f"{'hosts':>6}{heads}   two faster than one: wall, free")
    for hosts in options.hosts:
        folder = _write(options.cache / f"hosts_{hosts}_{options.events}", hosts, one_host)
        outputs = {name: folder / f"{name.replace(' ', '_')}.json" for name in crews}
        found = {
            name: measured([*SUMMARIZE, str(folder), *flags, "-o", str(outputs[name])])
            for name, flags in crews.items()
        }
        if len({path.read_bytes() for path in outputs.values()}) > 1:
            sys.exit("the summaries differ")
        cells = "".join(
            f"{one.seconds:>10.2f} {one.processor:>6.1f} {one.free:>6.1f} {one.megabytes:>5.0f}"
            for one in found.values()
        )
        pairs = (("jobs", "1 job", "2 jobs"), ("dask", "dask 1", "dask 2"))
        ratios = ", ".join(
            f"{name} {found[one].seconds / found[two].seconds:.2f} x, "
            f"{found[one].free / found[two].free:.2f} x"
            for name, one, two in pairs
            if two in found
        )
        print(f"{hosts:>6}{cells}   {ratios}", flush=True)


def _write(root: Path, hosts: int, one_host: bytes) -> Path:
    folder = root / "plugins/profile/2026_01_02_03_04_05"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(hosts):
        name = f"host-{number:04}"
        path = folder / f"{name}.xplane.pb"
        if not path.exists():
            partial = path.with_suffix(".tmp")
            partial.write_bytes(one_host + b"\x22" + bytes([len(name)]) + name.encode())
            partial.replace(path)
    return root


def add_pod_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", type=int, default=1024)
    parser.add_argument("--jobs", type=int, default=2)
    bench_inputs.add_arguments(parser)


def bench_pod(options: argparse.Namespace) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from builders_pod import write_pod
    from marin_profile.schema import load_summary, straggler_names

    root = options.cache / f"pod_{options.hosts}"
    late = (options.hosts // 2, 2)
    write_pod(root, options.hosts, late=late)
    summary, page = root / "summary.json", root / "report.html"
    first = measured([*SUMMARIZE, str(root), "--jobs", str(options.jobs), "-o", str(summary)])
    second = measured(["-m", "marin_profile", "report", "--summary", str(summary), "-o", str(page)])
    content = load_summary(summary)
    named = straggler_names(content.stragglers, content.straggler_hosts)
    took = f"{first.seconds:.1f} s ({first.processor:.1f} cpu), {first.megabytes:.0f} MB"
    print(f"{options.hosts} hosts, {options.jobs} jobs: {took}")
    sizes = [path.stat().st_size / 1e6 for path in (summary, page)]
    print(f"summary {sizes[0]:.2f} MB; page {sizes[1]:.2f} MB in {second.seconds:.1f} s")
    print(f"stragglers: {', '.join(named[:5])}")
    parts = {
        name: len(json.dumps(value, indent=2))
        for name, value in json.loads(summary.read_bytes()).items()
    }
    for name, size in sorted(parts.items(), key=lambda one: -one[1])[:8]:
        print(f"  {name:24} {size / 1e6:8.3f} MB")


def measured(arguments: list[str]) -> Measured:
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    peak = _Peak(child.pid)
    _, errors = child.communicate()
    seconds = time.perf_counter() - started
    if child.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{errors.decode(errors='replace')}")
    return Measured(seconds, *peak.stop())


class _Peak:
    """Of a process and all below it: what they computed, as last seen, and the largest sum of their
    proportional set sizes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._most = 0
        self._computed: dict[int, float] = {}
        self._others = 0.0  # computed, all others together
        self._before: float | None = None  # what this process had computed when they began,
        self._until = 0.0  # and when they last did anything
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_EVERY):
            processes = _below(self._pid)
            self._most = max(self._most, sum(map(_bytes_of, processes)))
            for pid in processes:
                self._computed[pid] = max(self._computed.get(pid, 0.0), _seconds_of(pid))
            own = self._computed.get(self._pid, 0.0)
            others = sum(self._computed.values()) - own
            if others > self._others + IDLE:
                self._before = own if self._before is None else self._before
                self._others, self._until = others, own

    def stop(self) -> tuple[float, float, float]:
        """Seconds of all and on the longest way, and megabytes."""
        self._over.set()
        self._thread.join()
        own = self._computed.pop(self._pid, 0.0)
        others = self._computed.values()
        beside = own - self._until + (self._before or 0.0)
        free = max(own, beside + max(others)) if others else own
        return own + sum(others), free, self._most / 1e6


def _below(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{task}/children").read_text()
                found += map(int, children.split())
        except OSError:
            continue
    return found


def _seconds_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bytes_of(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
