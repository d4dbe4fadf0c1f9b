"""Rules about compute: where most of it is, and what is computed twice."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import AT_MOST, Candidate, Findings, percent

TOP_REGION = 0.10
RECOMPUTE = 0.05
STEPS_IN_ONE_OP = 2
LONG_OP = 0.3


def top_region(f: Findings) -> Iterator[Candidate]:
    if f.long_op is not None and f.long_op[1] >= STEPS_IN_ONE_OP and f.long_op[2] >= LONG_OP:
        name, steps, share = f.long_op
        yield Candidate(
            "op-longer-than-steps",
            f"Check the capture: {name} spans many steps",
            "An op cannot last longer than the step that it is in: the profiler joined or lost "
            "events, or the markers name something else.",
            (f"{name}: {percent(share)} of its device's time at once, {steps:,} typical steps",),
            ("Capture again, with fewer steps, and look at this op in the trace viewer.",),
            share,
            AT_MOST,
        )
        return
    if f.top_region is None or f.top_region.share < TOP_REGION:
        return
    region = f.top_region
    evidence = [f"{region.path or region.op}: {percent(region.share)} of {f.basis}, in compute"]
    if region.path:
        evidence.append(f"its largest op: {region.op}")
    if region.bound_by:
        evidence.append(f"bound by: {region.bound_by}")
    yield Candidate(
        "dominant-region" if region.path else "dominant-op",
        f"Optimise {region.path or region.op} first",
        "One part of the program takes much of the time of all devices.",
        tuple(evidence),
        ("Try another kernel, precision, block size or layout for it, and compare.",),
        region.share,
        AT_MOST,
    )


def recompute(f: Findings) -> Iterator[Candidate]:
    if f.recompute < RECOMPUTE:
        return
    yield Candidate(
        "recompute",
        "Recompute less in the backward pass",
        "Checkpointing repeats a part of the forward pass.",
        (f"recompute: {percent(f.recompute)} of {f.basis}",),
        ("Save more activations (a checkpoint policy), if memory allows.",),
        f.recompute,
        AT_MOST,
    )
