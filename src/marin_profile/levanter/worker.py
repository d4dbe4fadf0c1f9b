"""Ingestion: a capture folder in, profile_summary.json and profile_report.md out, and beside them
in profile_figures.json the few numbers that a tracker is told.

Contract
* `ingest` works in any process and thread; as a program this module gives itself low priority and
  limits, never imports jax, and ends soon after the process that started it.
* Each output appears whole or not at all: it is written to a folder beside its place and renamed
  into it; what a killed predecessor left there is removed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from marin_profile.filenames import FIGURES_FILE, REPORT_FILE, SUMMARY_FILE

NICENESS = 10
LOOK_FOR_PARENT_EVERY = 0.5  # seconds
OVER_TIME = 124
_PARTIAL = ".ingest-"


@dataclass(frozen=True)
class Job:
    """Summarise the newest capture at or below `capture_dir` into `output_dir`, and copy the
    outputs to `copy_dir`."""

    capture_dir: Path
    output_dir: Path
    copy_dir: Path | None = None

    @property
    def command(self) -> str:
        """What does the same by hand."""
        summary = self.output_dir / SUMMARY_FILE
        return f"marin-profile summarize --profile-dir {self.capture_dir} --output {summary}"


def ingest(job: Job) -> None:
    """Write summary and report; raises what stands in the way."""
    from marin_profile import render_markdown, summarize
    from marin_profile.artifact import artifact_metadata
    from marin_profile.levanter.figures import figures

    started = time.monotonic()
    summary = summarize(job.capture_dir)
    contents = {SUMMARY_FILE: summary.to_json(), REPORT_FILE: render_markdown(summary)}
    seconds = time.monotonic() - started
    told = {
        "metadata": artifact_metadata(summary),
        "figures": figures(summary) | {"ingest_seconds": round(seconds, 3)},
    }
    beside = contents | {FIGURES_FILE: json.dumps(told, indent=1, sort_keys=True) + "\n"}
    _write(job.output_dir, beside)
    if job.copy_dir is not None and job.copy_dir != job.output_dir:
        _write(job.copy_dir, contents)
    _note(f"{job.capture_dir} summarised in {seconds:.1f} s")


def _write(folder: Path, contents: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=folder) as partial:
        for name, text in contents.items():
            (Path(partial) / name).write_text(text)
        for name in contents:
            os.replace(Path(partial) / name, folder / name)


def _note(line: str) -> None:
    if __name__ == "__main__":
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


# As a program


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--capture-dir", type=Path, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--copy-dir", type=Path)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--memory-gb", type=float, required=True)
    given = parser.parse_args(arguments)
    # Raised, so that half-written outputs are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _limit(given.seconds, given.memory_gb)
    _end_with(given.parent)
    _slim_down()
    try:
        ingest(Job(given.capture_dir, given.output_dir, given.copy_dir))
    except Exception as error:
        _note(f"{type(error).__name__}: {error}")
        return getattr(error, "exit_code", 1)
    return 0


def _limit(seconds: float, memory_gb: float) -> None:
    if hasattr(os, "nice"):
        os.nice(NICENESS)
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


def _over_time(seconds: float) -> None:
    _note(f"stopped after its limit of {seconds:g} s")
    sys.exit(OVER_TIME)


def _end_with(parent: int) -> None:
    """End when the parent does: a process whose parent is gone gets another one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_FOR_PARENT_EVERY)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)  # for outputs to be removed, should the work come to it
        os._exit(128 + signal.SIGTERM)

    if hasattr(os, "getppid"):
        threading.Thread(target=watch, daemon=True).start()


def _slim_down() -> None:
    from marin_profile.cli.startup import import_numba, return_large_blocks

    return_large_blocks()
    import_numba()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
