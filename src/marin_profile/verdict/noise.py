"""How much one configuration varies from run to run, measured on repeats.

Contract: the spread is that of the log step time (a run's median), as a sample standard deviation;
fewer than three repeats are no measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_REPEATS = 3


@dataclass(frozen=True)
class NoiseFloor:
    """Run-to-run spread (sample sd, n-1) of the log step time of one configuration."""

    num_repeats: int
    log_sd: float


def noise_floor(log_step_times: Sequence[float]) -> NoiseFloor | None:
    """From one log step time a run; None below three runs."""
    if len(log_step_times) < LEAST_REPEATS:
        return None
    return NoiseFloor(len(log_step_times), statistics.stdev(log_step_times))
