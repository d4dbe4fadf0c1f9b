"""Rules about single steps."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.host import causes_named
from marin_profile.analysis.advice.model import (
    COMPUTE,
    KNOWN,
    LAST,
    ONE_OFF,
    RECURRING,
    STEP,
    CauseOfSlowSteps,
    Findings,
    Found,
    Rule,
    percent,
)
from marin_profile.analysis.steps.outliers import PROGRAM
from marin_profile.base.text import plural

STEP_SPREAD = 1.4
SLOW_STEPS = 0.02
OTHER_PROGRAM = 0.02
MOST_CAUSES = 3
MOST_OF_IT = 0.8


def programs_of_slow_steps(f: Findings) -> dict[str, CauseOfSlowSteps]:
    """Programs that only slow steps run, by name."""
    return {one.name: one for one in f.slow_steps if one.kind == PROGRAM and one.name}


def other_program(f: Findings) -> Iterator[Found]:
    """A program of its own in some steps: all that they grow by, a part of which is compute."""
    if not f.step_mean_us:
        return
    for name, slow in programs_of_slow_steps(f).items():
        computed = sum(op.share for op in f.ops if op.module == name)
        share = slow.excess_us / f.step_mean_us
        if share < OTHER_PROGRAM:
            continue
        seen = _in_words(slow)
        yield Found(
            f"Run {name} less often, or apart from the steps",
            "Some steps run another program too, as an evaluation is.",
            (seen, f"its ops compute for {percent(computed)} of {f.basis}"),
            share,
            KNOWN,
            occurs=ONE_OFF if slow.count == 1 else RECURRING,
            line=seen,
            also={COMPUTE: min(share, computed)},
        )


def uneven(f: Findings) -> Iterator[Found]:
    """The mean step takes longer than the typical one, and neither the host's account nor a program
    says why. Its time may be that of any other advice, so it claims none."""
    median, mean, p90 = f.step_median_us, f.step_mean_us, f.step_p90_us
    if not median or not mean or p90 is None or f.kept_steps < 2:
        return
    beyond = max(0.0, 1 - median / mean)
    if p90 / median < STEP_SPREAD and beyond <= SLOW_STEPS:
        return
    named = sum(cause.share for cause in causes_named(f) if cause.steps)
    named += sum(slow.excess_us for slow in programs_of_slow_steps(f).values()) / mean
    if beyond > 0 and named >= MOST_OF_IT * beyond:
        return
    yield Found(
        "Find out why some steps are slow",
        "Training time follows the mean step, which slow steps make longer than the typical one.",
        (
            f"step period: typical (median) {median:.1f} us, mean {mean:.1f} us, p90 {p90:.1f} us "
            f"over {f.kept_steps} steps",
            *map(_in_words, f.slow_steps[:MOST_CAUSES]),
        ),
    )


def _in_words(slow: CauseOfSlowSteps) -> str:
    often = f", every {slow.every} steps" if slow.every else ""
    adds = f"{slow.excess_us:.1f} us of the mean step"
    return f"{slow.cause}: {plural(slow.count, 'step')}{often}, {adds}"


RULES = (
    Rule(
        "other-program",
        other_program,
        f"slow steps run a program that the others do not, >= {OTHER_PROGRAM:.0%} of the mean step",
        ("step_time.outlier_causes[cause=program]", "op_groups[].exposed_by_program"),
        (
            "Evaluate on fewer batches or less often (in Levanter: --trainer.max_eval_batches, "
            "--trainer.steps_per_eval), or in a job of its own.",
        ),
        "query step_time: the mean comes closer to the median",
        STEP,
        "what the slow steps exceed the typical one by, over all steps",
    ),
)

UNEVEN = Rule(
    "uneven-steps",
    uneven,
    f"p90 >= {STEP_SPREAD} x the median period, or the mean > {SLOW_STEPS:.0%} above it, and no "
    "other advice says why",
    ("step_time.period", "step_time.mean_period", "step_time.outlier_causes"),
    (
        "Look at the slow steps: evaluation, checkpoints, data stalls, recompilation.",
        "Name the parts of the loop with jax.profiler.TraceAnnotation and capture again.",
    ),
    "query step_time: mean and p90 come closer to the median",
    place=LAST,
)
