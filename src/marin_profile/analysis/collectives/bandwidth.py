"""Bytes of a collective, and the factor from algorithm to bus bandwidth of nccl-tests.

Contract: bytes are those of the full tensor (all devices' shards together), from shapes; None where
shapes do not show them. Algorithm bandwidth = bytes / time, bus = algorithm x factor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from marin_profile.analysis.op_facts import OpFacts
from marin_profile.events.shapes import array_bytes

_START = re.compile(r"-start(?:\.\d+)?$")
_CONTEXTS = ("u32[]", "s32[]")
_SCATTERED = ("all-gather", "reduce-scatter", "all-to-all")
_WHOLE = ("collective-permute", "broadcast")


def bus_factor(kind: str, group_size: int | None) -> float | None:
    """None where nccl-tests has no convention, the group is not known, or nothing is sent."""
    if kind in _WHOLE:
        return 1.0
    if kind not in ("all-reduce", *_SCATTERED) or group_size is None or group_size < 2:
        return None
    return (2.0 if kind == "all-reduce" else 1.0) * (group_size - 1) / group_size


def payload_bytes(fact: OpFacts, group_size: int | None) -> int | None:
    """None where the shape is not known (for a reduce-scatter's shard, also where the group size
    is not)."""
    if _is_start(fact) and not _gives_result_alone(fact):
        return _operands_or_results(fact.shape.split("|"))
    full = _sum(array_bytes(fact.shape))
    if fact.kind == "reduce-scatter":
        return full * group_size if full and group_size else None
    return full or None


def _is_start(fact: OpFacts) -> bool:
    """A GPU's kernel has no role of its own: it is launched for an op that is a start by name."""
    return fact.op_class.role == "start" or bool(_START.search(fact.hlo_op))


def _gives_result_alone(fact: OpFacts) -> bool:
    """An all-reduce-start has the shape of its result; other starts (also the generic async-start)
    give operands, results and context."""
    return fact.kind == "all-reduce" and not fact.hlo_category.startswith("async")


def _operands_or_results(shapes: list[str]) -> int | None:
    """The larger of the two halves, several tensors each: an all-gather's results are the full
    tensors, a reduce-scatter's operands."""
    while shapes and shapes[-1] in _CONTEXTS:
        shapes = shapes[:-1]
    half, odd = divmod(len(shapes), 2)
    halves = [_sum(array_bytes("|".join(part))) for part in (shapes[:half], shapes[half:])]
    known = [size for size in halves if size is not None]
    return max(known) or None if len(known) == 2 and not odd else None


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None
