"""Run-to-run spread of step time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_REPEATS = 3


@dataclass(frozen=True)
class NoiseFloor:
    """`log_sd` is the sample standard deviation (n - 1) of the runs' log step times."""

    num_repeats: int
    log_sd: float


def noise_floor(log_step_times: Sequence[float]) -> NoiseFloor | None:
    """The spread over repeats of one configuration; None below three of them."""
    count = len(log_step_times)
    if count < FEWEST_REPEATS:
        return None
    mean = math.fsum(log_step_times) / count
    squares = math.fsum((value - mean) ** 2 for value in log_step_times)
    return NoiseFloor(count, math.sqrt(squares / (count - 1)))
