"""Rules about compute: what is computed twice, moved for nothing, or far from the device's peaks.

Contract: an op belongs to one rule, the first in OWNERS that takes it; so no time is claimed by two
of them. Where costs and peaks are known a ceiling is time less what the op needs at
the peaks, else all of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from marin_profile.analysis.advice.capture import op_outlasts_steps
from marin_profile.analysis.advice.model import (
    COMMUNICATION,
    COMPUTE,
    KNOWN,
    Findings,
    Found,
    OpShare,
    Rule,
    percent,
)
from marin_profile.analysis.advice.steps import programs_of_slow_steps
from marin_profile.analysis.roofline import MEMORY_BOUND
from marin_profile.events.scopes import numbered_as_one

RECOMPUTE = 0.05
COPIES = 0.10
WIDE = 0.05
THIN = 0.05
FAR = 0.05
FAR_FROM_PEAK = 0.25
MEMORY = 0.10
TOP_REGION = 0.10
# So large a region, or an op, stands out whatever it computes.
LARGE_REGION = 0.5
LARGE_OP = 0.25
# The mean rate of products says roughly what others would take.
BEYOND_MEAN_RATE = 0.15
# A region goes on in the part that can save most while that is at least this much of it, or so many
# times the next part.
MOST_OF_REGION = 0.4
TIMES_THE_NEXT = 1.5
MOST_NAMED = 3


@dataclass(frozen=True)
class _Owner:
    """A rule takes the ops that meet its condition, if together they can save `least` or more."""

    id: str
    meets: Callable[[OpShare], bool]
    saves: Callable[[OpShare], float]
    least: float


def _all(op: OpShare) -> float:
    return op.share


def _beyond_peaks(op: OpShare) -> float:
    """Time less what the peaks ask for; all of it where that is not known."""
    return op.share - (op.least or 0.0)


def _beyond_flops(op: OpShare) -> float:
    """What remains if fewer bytes are moved: time less what the flops need at peak."""
    return op.share - (op.least_compute or 0.0)


def _is_far(op: OpShare) -> bool:
    return op.least is not None and op.least < FAR_FROM_PEAK * op.share


def _is_bound_by_memory(op: OpShare) -> bool:
    return op.bound_by == MEMORY_BOUND


OWNERS = (
    _Owner("recompute", lambda op: op.is_recompute, _all, RECOMPUTE),
    _Owner("loop-copies", lambda op: op.is_copy and op.in_loop, _all, COPIES),
    _Owner("layout-copies", lambda op: op.is_copy, _all, COPIES),
    _Owner("wide-products", lambda op: op.is_product and op.is_wide, _beyond_peaks, WIDE),
    _Owner(
        "thin-products", lambda op: op.is_product and _is_bound_by_memory(op), _beyond_flops, THIN
    ),
    _Owner("far-from-peaks", _is_far, _beyond_peaks, FAR),
    _Owner(
        "memory-bound-region",
        lambda op: not op.is_product and _is_bound_by_memory(op),
        _beyond_flops,
        MEMORY,
    ),
)
REST = ""


def _owned(f: Findings, rule: str) -> list[OpShare]:
    """The largest first; REST: what no rule takes. Programs that only slow steps run are a rule's
    of their own."""
    others = programs_of_slow_steps(f)
    left = [op for op in f.ops if op.module not in others]
    for owner in OWNERS:
        own = [op for op in left if owner.meets(op)]
        takes = sum(map(owner.saves, own)) >= owner.least
        if owner.id == rule:
            return own if takes else []
        if takes:
            left = [op for op in left if not owner.meets(op)]
    return left


def _sum(ops: Sequence[OpShare]) -> float:
    return sum(map(_all, ops))


def _beyond(ops: Sequence[OpShare]) -> float:
    return sum(map(_beyond_peaks, ops))


def _region(op: OpShare) -> str:
    """The scope around the op, numbered layers as one; "" for none."""
    return numbered_as_one(op.scope[:-1])


def _by_region(ops: Sequence[OpShare]) -> list[tuple[str, list[OpShare]]]:
    """The largest first."""
    regions: dict[str, list[OpShare]] = {}
    for op in ops:
        regions.setdefault(_region(op), []).append(op)
    return sorted(regions.items(), key=lambda item: (-_sum(item[1]), item[0]))


def _named(ops: Sequence[OpShare]) -> str:
    return ", ".join(f"{op.name} {percent(op.share)}" for op in ops[:MOST_NAMED])


def recompute(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "recompute")
    if not ops:
        return
    where = _by_region(ops)[0][0]
    yield Found(
        "Recompute less in the backward pass",
        "Checkpointing repeats a part of the forward pass.",
        (
            f"recompute: {percent(_sum(ops))} of {f.basis}",
            *([f"most of it in {where}"] if where else []),
        ),
        _sum(ops),
        KNOWN,
    )


def loop_copies(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "loop-copies")
    if ops:
        yield Found(
            "Copy less in every iteration of a loop",
            "A buffer that a loop carries or starts from is copied again in each iteration.",
            (f"copies in loops: {percent(_sum(ops))} of {f.basis}", f"largest: {_named(ops)}"),
            _sum(ops),
        )


def layout_copies(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "layout-copies")
    if ops:
        yield Found(
            "Avoid copies that change layout or padding",
            "Copies, transposes, reshapes and pads move data and compute nothing.",
            (f"such copies: {percent(_sum(ops))} of {f.basis}", f"largest: {_named(ops)}"),
            _sum(ops),
        )


def wide_products(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "wide-products")
    if not ops:
        return
    narrow = [op for op in ops if op.from_narrow]
    evidence = [f"products in float32 or wider: {percent(_sum(ops))} of {f.basis}"]
    evidence.append(f"largest: {_named(ops)}")
    if narrow:
        evidence.append(f"of values converted from a narrower type: {percent(_sum(narrow))}")
    yield Found(
        "Multiply in bfloat16",
        "Wide products run at a fraction of the device's peak, and move twice the bytes.",
        tuple(evidence),
        _beyond(ops),
    )


def thin_products(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "thin-products")
    if ops:
        yield Found(
            "Make thin products larger",
            "These products load more than they multiply, so memory bounds them.",
            (
                f"products bound by memory: {percent(_sum(ops))} of {f.basis}",
                f"largest: {_named(ops)}",
            ),
            sum(map(_beyond_flops, ops)),
        )


def far_from_peaks(f: Findings) -> Iterator[Found]:
    ops = _owned(f, "far-from-peaks")
    if ops:
        yield Found(
            f"Find out why {ops[0].name} is slow",
            "These ops reach neither the device's flops nor its memory bandwidth.",
            (
                f"ops far below both peaks: {percent(_sum(ops))} of {f.basis}",
                f"at the peaks they need: {percent(_sum(ops) - _beyond(ops))}",
                f"largest: {_named(ops)}",
            ),
            _beyond(ops),
        )


def memory_bound(f: Findings) -> Iterator[Found]:
    """A region at a time: fused with its neighbours it needs no more than its flops do."""
    for region, ops in _by_region(_owned(f, "memory-bound-region"))[:MOST_NAMED]:
        share = sum(map(_beyond_flops, ops))
        if share < MEMORY:
            continue
        name = region or ops[0].name
        yield Found(
            f"Move fewer bytes in {name}",
            "Memory bandwidth bounds these ops.",
            (
                f"ops of {name} bound by memory: {percent(_sum(ops))} of {f.basis}",
                f"at the peak of memory they need: {percent(sum(op.least or 0.0 for op in ops))}",
                f"largest: {_named(ops)}",
            ),
            share,
        )


def top_region(f: Findings) -> Iterator[Found]:
    """Of what is left: from the whole to the part that can save most again and again, as long as
    that stands out; where no part of the program does, the op that can save most. Products as fast
    as the others are what a model is made of: they stand out only where they are much of it."""
    if op_outlasts_steps(f):
        return
    own = [op for op in _owned(f, REST) if not op.is_container]
    ops = sorted(own, key=lambda op: -_beyond_peaks(op))
    path, inside = _most_of(ops)
    if len(path) < 2:
        path, inside = (), ops[:1]
    if not inside:
        return
    share = _beyond(inside)
    collectives = _collectives_in(path, f)
    if share < TOP_REGION or not _stands_out(inside, f.ops):
        return
    where = "/".join(inside[0].scope[:-1])
    name = "/".join(path) or inside[0].name + (f" in {where}" if where else "")
    evidence = [f"{name}: {percent(_sum(inside))} of {f.basis}, in compute"]
    if path:
        evidence.append(f"its largest op: {inside[0].name}")
    if collectives:
        evidence.append(f"its collectives: {percent(collectives)} exposed")
    if inside[0].bound_by:
        evidence.append(f"bound by: {inside[0].bound_by}")
    yield Found(
        f"Optimise {name} first",
        "One part of the program takes much of the time of all devices.",
        tuple(evidence),
        share + collectives,
        also={COMMUNICATION: collectives} if collectives else {},
        weight=share / 2,
    )


def _collectives_in(path: Sequence[str], f: Findings) -> float:
    """They go with their region, as far as no other advice is about them."""
    region = numbered_as_one(path)
    if not path:
        return 0.0
    return sum(row.share for row in f.collectives if f"{row.scope}/".startswith(f"{region}/"))


def _stands_out(inside: Sequence[OpShare], ops: Sequence[OpShare]) -> bool:
    if _beyond(inside) >= LARGE_REGION or max(map(_beyond_peaks, inside)) >= LARGE_OP:
        return True
    usual = _at_mean_rate(inside, ops)
    return not usual or _beyond(inside) - usual >= BEYOND_MEAN_RATE


def _at_mean_rate(inside: Sequence[OpShare], ops: Sequence[OpShare]) -> float:
    """What its products would take at the mean rate of all products whose peaks are not known."""
    paced = [op for op in ops if op.is_product and op.least is None and op.flops]
    flops = sum(op.flops or 0 for op in paced)
    own = sum(op.flops or 0 for op in inside if op.is_product and op.least is None)
    return _sum(paced) * own / flops if flops else 0.0


def _most_of(ops: Sequence[OpShare]) -> tuple[tuple[str, ...], list[OpShare]]:
    """A scope's last part is the primitive, which is no region, unless it stands right below the
    program, as kernels do."""
    path: tuple[str, ...] = ()
    inside = list(ops)
    while True:
        parts: dict[str, float] = {}
        for op in inside:
            is_region = len(op.scope) > len(path) + (len(path) != 1)
            part = op.scope[len(path)] if is_region else ""
            parts[part] = parts.get(part, 0.0) + _beyond_peaks(op)
        if not parts:
            return path, inside
        largest, *others = sorted(parts, key=lambda part: (-parts[part], part))
        after = parts[others[0]] if others else 0.0
        is_most = parts[largest] >= MOST_OF_REGION * _beyond(inside)
        stands_out = parts[largest] >= max(TIMES_THE_NEXT * after, TOP_REGION)
        if not largest or not (is_most or stands_out):
            return path, inside
        path = (*path, largest)
        inside = [op for op in inside if op.scope[: len(path)] == path]


_OPS = ("op_groups[].per_step_duration", "hot_ops[]")
_COSTS = ("roofline.by[]", "hot_ops[].bound_by", "hot_ops[].achieved_gbps")
_ALL = "self time of these ops"
_LESS = "self time of these ops less what they need at the device's peaks, all where not known"
_TOP_OPS = "query top_ops: per_step_duration of the op falls"

RULES = (
    Rule(
        "loop-copies",
        loop_copies,
        f"copies inside loops take >= {COPIES:.0%} of device time",
        _OPS,
        (
            "Do not carry what does not change: close over it, or pass it as scanned input (xs).",
            "Update the carry in place (.at[].set, dynamic_update_slice) and donate its buffer.",
            "On GPU: --xla_gpu_enable_while_loop_double_buffering=true.",
        ),
        "query semantic_families: copy falls",
        COMPUTE,
        _ALL,
    ),
    Rule(
        "layout-copies",
        layout_copies,
        f"other copies, transposes, reshapes and pads take >= {COPIES:.0%} of device time",
        _OPS,
        (
            "Keep one order of dimensions through the model; let einsum transpose inside the dot.",
            "Choose dimensions that fill the device's tiles, so that nothing is padded.",
        ),
        "query semantic_families: copy falls",
        COMPUTE,
        _ALL,
    ),
    Rule(
        "wide-products",
        wide_products,
        f"products in float32 or wider can save >= {WIDE:.0%} of device time (TPU, GPU)",
        ("op_groups[].shape_signature", *_COSTS),
        (
            "Compute in bfloat16 (in Levanter: --trainer.mp p=f32,c=bfloat16), and let the product "
            "accumulate in float32 (preferred_element_type).",
            "Look for .astype(float32), float32 constants and jax_default_matmul_precision before "
            "these products.",
        ),
        _TOP_OPS,
        COMPUTE,
        _LESS,
    ),
    Rule(
        "thin-products",
        thin_products,
        f"products bound by memory can save >= {THIN:.0%} of device time",
        _COSTS,
        (
            "Multiply more rows at once: a larger batch for each device, or several products in "
            "one.",
            "Shard another dimension, so that none of a product's becomes small.",
        ),
        "query bound_by: the product is bound by compute; achieved_tflops rises",
        COMPUTE,
        "self time less what the flops need at peak",
    ),
    Rule(
        "far-from-peaks",
        far_from_peaks,
        f"ops below {FAR_FROM_PEAK:.0%} of both peaks can save >= {FAR:.0%} of device time",
        _COSTS,
        (
            "Look at gathers, scatters, sorts, loops of tiny ops, and shapes that fill no tile.",
            "Try another kernel (Pallas, cuDNN), block size or layout for it, and compare.",
        ),
        _TOP_OPS,
        COMPUTE,
        _LESS,
    ),
    Rule(
        "memory-bound-region",
        memory_bound,
        f"ops of one region that memory bounds can save >= {MEMORY:.0%} of device time",
        _COSTS,
        (
            "Fuse it with its neighbours, or use a fused kernel (flash attention, a fused loss).",
            "Keep its arrays in bfloat16, and do not write what is read only once.",
        ),
        "query hierarchical_regions: the region's time falls; bytes_accessed of its ops fall",
        COMPUTE,
        "self time less what the flops need at peak",
    ),
    Rule(
        "dominant-region",
        top_region,
        f"one region, or where none does one op, can save >= {TOP_REGION:.0%} of device time; one "
        f"with products >= {BEYOND_MEAN_RATE:.0%} beyond their mean rate, unless an op takes >= "
        f"{LARGE_OP:.0%} or the region >= {LARGE_REGION:.0%}",
        ("hierarchical_regions[]", "hot_ops[]"),
        ("Try another kernel, precision, block size or layout for it, and compare.",),
        "query hierarchical_regions: the region's time falls",
        COMPUTE,
        _LESS,
    ),
    Rule(
        "recompute",
        recompute,
        f"the recompute pass takes >= {RECOMPUTE:.0%} of device time",
        ("hierarchical_regions[].inclusive_by_pass", "op_groups[pass=recompute]"),
        (
            "Save more activations, if memory allows: jax.checkpoint(policy="
            "jax.checkpoint_policies.dots_saveable); in Levanter --model.gradient_checkpointing "
            "false or another policy.",
        ),
        "query passes: recompute falls; query memory: the peak rises",
        COMPUTE,
        "self time of the recompute pass",
    ),
)
