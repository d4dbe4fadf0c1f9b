"""Rules about the capture itself: what it lacks, and whether it can be trusted. None saves time."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import FIRST, LAST, Findings, Found, Rule, percent
from marin_profile.base.text import plural

ATTRIBUTED = 0.90
WITH_SCOPE = 0.50
FEW_STEPS = 3
DISTORTED = 1.10
PADDING = 0.10
STEPS_IN_ONE_OP = 2
LONG_OP = 0.3


def op_outlasts_steps(f: Findings) -> bool:
    return f.long_op is not None and f.long_op[1] >= STEPS_IN_ONE_OP and f.long_op[2] >= LONG_OP


def long_op(f: Findings) -> Iterator[Found]:
    if f.long_op is None or not op_outlasts_steps(f):
        return
    name, steps, share = f.long_op
    yield Found(
        f"Check the capture: {name} spans many steps",
        "An op cannot last longer than the step that it is in: the profiler joined or lost events, "
        "or the markers name something else.",
        (f"{name}: {percent(share)} of its device's time at once, {steps:,} typical steps",),
    )


def cut(f: Findings) -> Iterator[Found]:
    if f.is_cut:
        yield Found(
            "Take a whole capture first",
            "The capture is cut or damaged: totals are lower bounds, and steps may be missing.",
            ("a part of the profile is not in its files",),
        )


def distorted(f: Findings) -> Iterator[Found]:
    ratio = f.window_to_outside
    if ratio is None or ratio < DISTORTED:
        return
    yield Found(
        "Capture with less profiling",
        "Profiled steps take longer than steps outside the window, so that the profiler's own work "
        "stands in every figure.",
        (f"median profiled step: {ratio:.2f} times the median of other steps",),
    )


def few_steps(f: Findings) -> Iterator[Found]:
    if not f.steps or f.kept_steps >= FEW_STEPS:
        return
    yield Found(
        "Capture more steps",
        "So few steps give no spread: a slow step cannot be told from a usual one.",
        (f"steps whose period is known: {f.kept_steps} of {f.steps}",),
    )


def no_steps(f: Findings) -> Iterator[Found]:
    if not f.steps:
        yield Found(
            "Mark the steps",
            "No step was found, so nothing can be given a step, and start-up counts as work.",
            ("steps found: none",),
        )


def attribution(f: Findings) -> Iterator[Found]:
    if f.hlo_attributed is None or f.hlo_attributed >= ATTRIBUTED:
        return
    yield Found(
        "Attribute more kernels to HLO ops",
        "Much kernel time has no HLO op, so regions and families are incomplete.",
        (f"HLO-attributed: {percent(f.hlo_attributed)} of kernel time",),
    )


def no_protos(f: Findings) -> Iterator[Found]:
    if f.without_hlo:
        yield Found(
            "Capture with HLO protos",
            "The files hold no HLO protos: opcodes, scopes, costs and memory are not known.",
            (f"without HLO protos: {plural(len(f.without_hlo), 'file')}",),
        )


def scopes(f: Findings) -> Iterator[Found]:
    if f.without_hlo or f.scope_attributed is None or f.scope_attributed >= WITH_SCOPE:
        return
    yield Found(
        "Name the parts of the model",
        "Most op time stands in no scope, so it cannot be said which part of the model it is.",
        (f"with a scope: {percent(f.scope_attributed)} of op time",),
    )


def padding(f: Findings) -> Iterator[Found]:
    if not f.padding or f.padding[0].share < PADDING:
        return
    most = f.padding[0]
    yield Found(
        f"Choose shapes that {most.program} need not pad",
        "Arrays are padded to the tiles of the device, which takes memory and the time to move it.",
        (f"padding in {most.space} of {most.program}: {percent(most.share)} of the fullest peak",),
    )


_AGAIN = "summarize the next capture: the warning is gone"

READING = (
    Rule(
        "op-longer-than-steps",
        long_op,
        f"an op lasts >= {STEPS_IN_ONE_OP} typical steps and >= {LONG_OP:.0%} of the time",
        ("step_time.long_op",),
        ("Capture again, with fewer steps, and look at this op in the trace viewer.",),
        _AGAIN,
        place=FIRST,
    ),
    Rule(
        "capture-cut",
        cut,
        "the files are cut or damaged",
        ("trace_overview.suspected_truncation", "trace_overview.quality_warnings"),
        (
            "Capture fewer steps, and let the profiler write all of it "
            "(jax.profiler.stop_trace before the process ends).",
        ),
        _AGAIN,
        place=FIRST,
    ),
    Rule(
        "profiler-distortion",
        distorted,
        f"the median profiled step >= {DISTORTED} x the median of other steps",
        ("capture.profiling.window_to_outside",),
        (
            "Turn the Python tracer off (python_tracer_level=0 in jax.profiler.ProfileOptions), "
            "then lower host_tracer_level.",
        ),
        "capture.profiling.window_to_outside comes near to one",
        place=FIRST,
    ),
)

LACKS = (
    Rule(
        "capture-too-short",
        few_steps,
        f"the periods of fewer than {FEW_STEPS} steps are known",
        ("step_time.steps", "step_time.period.count"),
        ("Capture ten steps or more, after the first ones (ProfilerConfig.num_steps).",),
        "query step_time: count",
        place=LAST,
    ),
    Rule(
        "no-steps",
        no_steps,
        "no step is found",
        ("step_time.steps",),
        ("Put jax.profiler.StepTraceAnnotation('train', step_num=step) around each step.",),
        "query step_time: steps are listed",
        place=LAST,
    ),
    Rule(
        "low-attribution",
        attribution,
        f"HLO ops are known for < {ATTRIBUTED:.0%} of kernel time",
        ("coverage.hlo_attributed_share", "coverage.unattributed_ops[]"),
        (
            "Capture once with command buffers off (--xla_gpu_enable_command_buffer=) to see which "
            "ops they hold.",
        ),
        "coverage.hlo_attributed_share rises",
        place=LAST,
    ),
    Rule(
        "no-hlo-protos",
        no_protos,
        "a CPU's or GPU's xplane.pb holds no HLO protos",
        ("trace_overview.quality_warnings",),
        (
            "Set enable_hlo_proto of jax.profiler.ProfileOptions to True (in Levanter: "
            "--trainer.profiler.profile_options.enable_hlo_proto true).",
        ),
        _AGAIN,
        place=LAST,
    ),
    Rule(
        "missing-scopes",
        scopes,
        f"scopes are known for < {WITH_SCOPE:.0%} of op time",
        ("coverage.scope_attributed_share",),
        ("Put jax.named_scope around the parts of the model (Haliax and Flax modules have it).",),
        "coverage.scope_attributed_share rises",
        place=LAST,
    ),
    Rule(
        "memory-padding",
        padding,
        f"padding takes >= {PADDING:.0%} of what the fullest program needs at its peak",
        ("memory[].padding_size", "memory[].buffers[].padding"),
        ("Make the two last dimensions multiples of the tile (of 128 and 8 for float32 on TPU).",),
        "query memory: padding_size falls",
        place=LAST,
    ),
)
