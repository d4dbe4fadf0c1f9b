"""Rules about single steps."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.host import causes_named
from marin_profile.analysis.advice.model import AT_MOST, KNOWN, Candidate, Certainty, Findings
from marin_profile.analysis.steps.outliers import PROGRAM
from marin_profile.base.text import plural

STEP_SPREAD = 1.4
SLOW_STEPS = 0.02
MOST_CAUSES = 3
MOST_OF_IT = 0.8
LOOK = "Look at the slow steps: evaluation, checkpoints, data stalls, recompilation."


def uneven(f: Findings) -> Iterator[Candidate]:
    """About the time that the mean step takes beyond the typical one, unless the host's account
    names what takes it."""
    median, mean, p90 = f.step_median_us, f.step_mean_us, f.step_p90_us
    if not median or not mean or p90 is None or f.kept_steps < 2:
        return
    beyond = max(0.0, 1 - median / mean)
    if p90 / median < STEP_SPREAD and beyond <= SLOW_STEPS:
        return
    named = sum(cause.share for cause in causes_named(f) if cause.steps)
    if beyond > 0 and named >= MOST_OF_IT * beyond:
        return
    largest = f.slow_steps[0] if f.slow_steps else None
    title, suggestions = "Find out why some steps are slow", (LOOK,)
    certainty: Certainty = AT_MOST
    if largest is not None and largest.kind == PROGRAM and largest.name:
        title = f"Run {largest.name} less often, or apart from the steps"
        suggestions = ("Evaluate on fewer batches or less often, or in a job of its own.",)
        certainty = KNOWN
    yield Candidate(
        "uneven-steps",
        title,
        "Training time follows the mean step, which slow steps make longer than the typical one.",
        (
            f"step period: typical (median) {median:.1f} us, mean {mean:.1f} us, p90 {p90:.1f} us "
            f"over {f.kept_steps} steps",
            *(
                f"{slow.cause}: {plural(slow.count, 'step')}"
                + (f", every {slow.every} steps" if slow.every else "")
                + f", {slow.excess_us:.1f} us of the mean step"
                for slow in f.slow_steps[:MOST_CAUSES]
            ),
        ),
        suggestions,
        beyond - named,
        certainty,
    )
