"""Ingestion beside training: capture folder in, profile_summary.json and profile_report.md out.

Contract
* The work runs in a plain subprocess of low priority, without jax: work in a thread would take the
  GIL from training, a forked child would inherit jax's locks.
* Each output appears whole or not at all: it is written next to its place and renamed into it.
* What the process prints goes to `profile_ingest.log` beside the outputs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SUMMARY_NAME = "profile_summary.json"
REPORT_NAME = "profile_report.md"
LOG_NAME = "profile_ingest.log"

NICENESS = 10
# The child needs no accelerator, and flags meant for training must not reach it.
_TRAINING_VARIABLES = ("JAX_", "XLA_", "LIBTPU_", "TPU_")
_SAFE_PYTHON = (sys.executable, "-P", "-m")


@dataclass(frozen=True)
class Ingestion:
    """A running ingestion process, seen from training."""

    process: subprocess.Popen[bytes]
    capture_dir: Path
    output_dir: Path

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def finish(self, timeout: float) -> str | None:
        """Wait up to `timeout` seconds, then stop it. None if it succeeded, else what happened."""
        log = self.output_dir / LOG_NAME
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._kill()
            return (
                f"the profile in {self.capture_dir} was not summarised within {timeout:g} s; "
                f"see {log}"
            )
        if code != 0:
            return f"the profile in {self.capture_dir} was not summarised (exit {code}); see {log}"
        return None

    def _kill(self) -> None:
        # The process leads a group of its own: its commands go with it.
        for signum in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, signum)
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                pass
            return


def start_ingestion(capture_dir: Path, output_dir: Path) -> Ingestion:
    """Start summarising the newest capture under `capture_dir`; returns at once."""
    output_dir.mkdir(parents=True, exist_ok=True)
    with open(output_dir / LOG_NAME, "wb") as log:
        process = subprocess.Popen(
            [*_SAFE_PYTHON, "marin_profile.levanter.worker", str(capture_dir), str(output_dir)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(),
            start_new_session=True,
        )
    return Ingestion(process, capture_dir, output_dir)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(_TRAINING_VARIABLES)}


def ingest(capture_dir: Path, output_dir: Path) -> int:
    """Write summary and report; the exit code of the first command that fails, else 0."""
    summary, report = output_dir / SUMMARY_NAME, output_dir / REPORT_NAME
    summarize = ["summarize", "--profile-dir", str(capture_dir)]
    return _write(summarize, summary) or _write(["report", "--summary", str(summary)], report)


def _write(arguments: list[str], target: Path) -> int:
    with tempfile.TemporaryDirectory(prefix=".ingest-", dir=target.parent) as folder:
        written = Path(folder) / target.name
        command = [*_SAFE_PYTHON, "marin_profile", *arguments, "--output", str(written)]
        started = time.monotonic()
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        if code == 0:
            os.replace(written, target)
        _note(f"{arguments[0]}: exit {code} after {time.monotonic() - started:.1f} s")
    return code


def _note(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    capture_dir, output_dir = map(Path, arguments)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # A stop from training must still remove the half-written output.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return ingest(capture_dir, output_dir)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
