"""What to profile: a window of training steps, and what happens to the capture.

Contract: plain values only, readable by draccus from YAML and flags; a config that makes no sense
raises ValueError when it is built, before training starts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProfilerConfig:
    """Steps `start_step` to `start_step + num_steps - 1`, counted as Levanter counts, from 0.

    Levanter lines of June 2026 run their hooks from step 2 on: a `start_step` below 3 begins at
    step 3 there.
    """

    enabled: bool = True
    start_step: int = 5
    num_steps: int = 25
    output_dir: str | None = None
    """Where summary and report go; the run's log folder if not given."""
    python_tracer_level: int = 0
    """0 leaves Python frames out: they are nine tenths of a capture and seconds of its writing."""
    enable_hlo_proto: bool = True
    """HLO protos carry the scope names of ops on CPU and GPU."""
    ingest: bool = True
    """Summarise the capture in a process of its own while training goes on."""
    ingest_timeout: float = 120.0
    """Seconds that the end of training waits for that process."""

    def __post_init__(self) -> None:
        if self.start_step < 1:
            raise ValueError(f"start_step must be at least 1, not {self.start_step}")
        if self.num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, not {self.num_steps}")
        if self.ingest_timeout < 0:
            raise ValueError(f"ingest_timeout must not be negative, is {self.ingest_timeout}")

    def window(self, num_train_steps: int) -> range:
        """The steps to capture in a training of that length; empty if it ends before the window."""
        return range(self.start_step, min(self.start_step + self.num_steps, num_train_steps))
