"""Summaries with given step periods, and step times drawn like the operating curve's."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from builders_summary import build_summary, step_time
from marin_profile.schema import DurationStats, ProfileSummary, Step, StepLedger, TraceProvenance

DEVICES = 2


def capture(
    periods: Sequence[float | None],
    *,
    classes: Sequence[str] | None = None,
    communication: float | Sequence[float] = 0.2,
    idle: float | Sequence[float] = 0.1,
    name: str | None = None,
    with_ledger: bool = True,
    **changes: Any,
) -> ProfileSummary:
    """One warm-up step, then kept steps of these periods (microseconds), of which 90 % are the
    step and the rest is between steps. Shares are of the period over both devices: `idle` the idle
    time in the step and after it. `name` makes the capture's digest; without one it is made of
    the periods."""
    steps = [_step(0, 5000.0, False, None, 0.2, 0.1, with_ledger)]
    for index, period in enumerate(periods):
        steps.append(
            _step(
                index + 1,
                period,
                True,
                classes[index] if classes else None,
                communication if isinstance(communication, float) else communication[index],
                idle if isinstance(idle, float) else idle[index],
                with_ledger,
            )
        )
    known = [period for period in periods if period is not None]
    digest = hashlib.sha256((name or repr(periods)).encode()).hexdigest()
    values: dict[str, Any] = {
        "step_time": step_time(
            steps=steps,
            classes=[],
            period=DurationStats(
                count=len(known),
                mean=math.fsum(known) / len(known) if known else None,
                median=float(np.median(known)) if known else None,
                p90=float(np.quantile(known, 0.9)) if known else None,
            ),
            mean_period=math.fsum(known) / len(known) if known else None,
            whole_periods=len(known),
        ),
        "trace_provenance": TraceProvenance(trace_sha256=digest),
    }
    return build_summary(**(values | changes))


def _step(
    index: int,
    period: float | None,
    kept: bool,
    step_class: str | None,
    communication: float,
    idle: float,
    with_ledger: bool,
) -> Step:
    length = period or 1000.0
    whole = DEVICES * length
    window = 0.9 * whole
    ledger = StepLedger(
        window_duration=window,
        compute_duration=whole * (1 - communication - idle),
        exposed_communication_duration=whole * communication,
        exposed_transfer_duration=0.0,
        unattributed_duration=0.0,
        idle_duration=whole * idle - 0.1 * whole,
    )
    return Step(
        index=index,
        start=1000.0 * index,
        duration=0.9 * length,
        period=period,
        kept=kept,
        step_class=step_class,
        ledger=ledger if with_ledger else None,
    )


def noisy(
    seed: int, steps: int, *, typical: float = 1000.0, variation: float = 0.03, phi: float = 0.0
) -> list[float]:
    """Lognormal AR(1) step times."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(steps)
    for step in range(1, steps):
        noise[step] = phi * noise[step - 1] + np.sqrt(1 - phi**2) * noise[step]
    return np.round(typical * np.exp(variation * noise), 6).tolist()
