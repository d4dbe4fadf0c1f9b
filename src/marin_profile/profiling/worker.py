"""Ingestion: a capture folder in; profile_summary.json, profile_report.md and what goes to the
tracker out.

Contract
* `ingest` works in any process and thread. Run as a program, this module lowers its own priority,
  limits itself, never imports jax, and ends soon after the process that started it. On few
  processors it also rests most of the time, until it is told through its standard input that
  training waits.
* Each output appears whole or not at all.
* Of several processes, each writes its host's part next to its capture. The first one writes a
  summary of its own capture at once, waits for the others' parts, within its limit, and then
  summarises all that came.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from marin_profile.base.durable import write_whole
from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import write_file
from marin_profile.capture.filenames import PAGE_FILE, REPORT_FILE, SUMMARY_FILE
from marin_profile.profiling.job import Job

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture
    from marin_profile.pipeline.host_parts import HostRead
    from marin_profile.schema import ProfileSummary

NICENESS = 10
# Two processors are often the two threads of one core: work on one slows the other down by a third,
# whatever its priority. There the work is spread over more steps, so that each is slowed less.
FEW_PROCESSORS = 4
WORK_SECONDS = 0.02
REST_FOR_WORK = 3
LONGEST_REST = 0.5  # seconds
CHECK_PARENT_EVERY = 0.5  # seconds
OVER_TIME = 124
DONE_WITH_A_PROBLEM = 75
HURRY = b"h"  # on standard input
_GIT_SECONDS = 5


def ingest(job: Job, is_in_a_hurry: Callable[[], bool] = lambda: False) -> list[str]:
    """Write summary and report; what else did not go well. Any error that leaves none is raised.
    `is_in_a_hurry`: whether training waits for it."""
    from marin_profile.profiling.signs import shown

    with shown(job.capture_dir, job.shared):
        return _ingest(job, is_in_a_hurry)


def _ingest(job: Job, is_in_a_hurry: Callable[[], bool]) -> list[str]:
    from marin_profile.capture.sources import from_folder
    from marin_profile.profiling.hosts import copy_to_shared, gather, leave_part
    from marin_profile.profiling.record import read_record

    started = time.monotonic()
    if _is_outdated(job.capture_dir):
        job = replace(job, copy_dir=None)
    own, _ = from_folder(str(job.capture_dir))
    known = {own.hosts[0].path: leave_part(own)} if job.leave_part else {}
    problems = []
    if job.shared is not None:
        try:
            copy_to_shared(job.capture_dir, job.shared)
        except Exception as error:
            problems.append(f"not copied to {job.shared}: {type(error).__name__}: {error}")
            job = replace(job, shared=None, copy_url=None)
    seconds = time.monotonic() - started
    if job.gather is None or problems:
        problems += _summarise(job, own, known, seconds)
    else:
        record = read_record(job.capture_dir)
        for capture, known, is_over in gather(job.gather, record, is_in_a_hurry):
            problems += _summarise(job, capture, known, seconds, is_final=is_over)
    return list(dict.fromkeys(problems))


def _is_outdated(capture_dir: Path) -> bool:
    """Whether a later capture is summarised already, as when this one is finished later."""
    later = (one for one in capture_dir.parent.iterdir() if one.name > capture_dir.name)
    return any((one / SUMMARY_FILE).exists() for one in later)


def _summarise(
    job: Job,
    capture: Capture,
    known: Mapping[str, HostRead],
    own_seconds: float,
    *,
    is_final: bool = True,
) -> list[str]:
    """What did not go well but leaves summary and report."""
    from marin_profile.pipeline import summarize_capture
    from marin_profile.reports.report import render_html, render_markdown

    started = time.monotonic()
    summary = with_run(summarize_capture(capture, known=known), job)
    contents = {
        SUMMARY_FILE: summary.to_json(),
        REPORT_FILE: render_markdown(summary),
        PAGE_FILE: render_html(summary),
    }
    seconds = own_seconds + time.monotonic() - started
    _write(job.output_dir, contents)
    if job.copy_dir is not None and job.copy_dir != job.output_dir:
        _write(job.copy_dir, contents)
    problems = _copy_outputs(job, contents)
    if job.publish is not None and is_final:
        from marin_profile.profiling.staging import stage

        stage(job, capture, summary, ingest_seconds=seconds)
    _note(f"{capture.source_path} of {len(capture.hosts)} host(s) summarised in {seconds:.1f} s")
    return problems


def _copy_outputs(job: Job, contents: dict[str, str]) -> list[str]:
    """Beside the shared copy of the capture, and where the newest go; why not, if not."""
    for url in (job.shared, job.copy_url):
        try:
            for name, text in contents.items() if url is not None else ():
                write_file(f"{url}/{name}", text.encode())
        except ProfileError as error:
            return [f"not copied to {url}: {type(error).__name__}: {error}"]
    return []


def with_run(summary: ProfileSummary, job: Job) -> ProfileSummary:
    """The summary with what training knows of the run."""
    known = {name: value for name, value in job.run.items() if value is not None}
    if "git_sha" in job.run and "git_sha" not in known and (sha := _git_sha()) is not None:
        known["git_sha"] = sha
    return summary.with_run(known)


@cache
def _git_sha() -> str | None:
    """The commit of the folder that training runs in. Found here, so that no step waits for git."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None


def _write(folder: Path, contents: dict[str, str]) -> None:
    write_whole(folder, {name: text.encode() for name, text in contents.items()})


def _note(line: str) -> None:
    if __name__ == "__main__":
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


# As a program


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Job.from_json, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--memory-gb", type=float, required=True)
    given = parser.parse_args(arguments)
    # Raised, so that half-written outputs are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _limit(given.seconds, given.memory_gb)
    _end_with(given.parent)
    hurry = _Hurry()
    try:
        with _resting(hurry):
            _slim_down()
            problems = ingest(given.job, lambda: hurry.told)
    except Exception as error:
        _note(f"{type(error).__name__}: {error}")
        return getattr(error, "exit_code", 1)
    if problems:
        _note("; ".join(problems))
        return DONE_WITH_A_PROBLEM
    return 0


class _Hurry:
    """`told` once the process that started this one says so, through standard input."""

    def __init__(self) -> None:
        self.told = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            self.told = os.read(0, 1) == HURRY
        if self.told:
            # Not every user may. Without it the work goes on where a processor is idle, as those of
            # a training that waits are.
            with suppress(AttributeError, OSError):
                for thread in os.listdir("/proc/self/task"):
                    os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))


def _limit(seconds: float, memory_gb: float) -> None:
    yield_to_training()
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _over_time(seconds))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = int(memory_gb * 2**30)
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (ImportError, OSError, ValueError) as error:
        _note(f"memory is not limited: {error}")


def yield_to_training() -> None:
    """Run only where a processor is idle; where the system has no such priority, be nice."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError):
        if hasattr(os, "nice"):
            os.nice(NICENESS)


@contextmanager
def _resting(hurry: _Hurry) -> Iterator[None]:
    """Sleep after each bit of work, until training waits."""
    if not hasattr(os, "SCHED_IDLE") or len(os.sched_getaffinity(0)) > FEW_PROCESSORS:
        yield
        return
    worked_until = time.process_time()

    def rest(*_: object) -> None:
        nonlocal worked_until
        if hurry.told:
            signal.setitimer(signal.ITIMER_PROF, 0)
            return
        now = time.process_time()  # compiled code is not interrupted: it may have been much work
        until = time.monotonic() + min(REST_FOR_WORK * (now - worked_until), LONGEST_REST)
        while not hurry.told and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, WORK_SECONDS))
        worked_until = now

    signal.signal(signal.SIGPROF, rest)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, WORK_SECONDS, WORK_SECONDS)
    try:
        yield
    finally:
        # Else it would kill the interpreter at exit, which removes its handlers first.
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


def _over_time(seconds: float) -> None:
    _note(f"stopped after its limit of {seconds:g} s")
    sys.exit(OVER_TIME)


def _end_with(parent: int) -> None:
    """End when the parent does: a process whose parent is gone gets another one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(CHECK_PARENT_EVERY)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)  # time for the work to remove half-written outputs
        os._exit(128 + signal.SIGTERM)

    if hasattr(os, "getppid"):
        threading.Thread(target=watch, daemon=True).start()


def _slim_down() -> None:
    from marin_profile.base.startup import ready_to_read

    ready_to_read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
