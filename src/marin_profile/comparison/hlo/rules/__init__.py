"""What XLA did differently in one part: a table of rules, the first that fits names it.

Contract: a rule looks at one part and gives a kind with a sentence, or None where it is not of its
kind. Rules stand in the order of causes before what follows from them: another dtype also adds
conversions and tears fusions, so it is asked for first. The last one always fits.
"""

from __future__ import annotations

from marin_profile.comparison.hlo.donation import GAINED, LOST
from marin_profile.comparison.hlo.rules.asked import Asked, Kind, Rule
from marin_profile.comparison.hlo.rules.collectives import (
    asynchronous,
    collective_grouping,
    collective_kind,
)
from marin_profile.comparison.hlo.rules.copies import donated_copy, layout_copy, loop_copy
from marin_profile.comparison.hlo.rules.kernels import fusion, kernel, rest
from marin_profile.comparison.hlo.rules.loops import loop, moved_between_loops, recomputed
from marin_profile.comparison.hlo.rules.types import dtype, shape

RULES: tuple[Rule, ...] = (
    donated_copy,
    loop,
    moved_between_loops,
    recomputed,
    collective_kind,
    dtype,
    shape,
    collective_grouping,
    asynchronous,
    loop_copy,
    layout_copy,
    kernel,
    fusion,
    rest,
)
# Every kind there is, causes before what follows from them.
KINDS = (
    "program_added",
    "program_removed",
    LOST,
    GAINED,
    "loop_unrolled",
    "loop_rolled",
    "loop_trips",
    "loop_hoisted",
    "loop_sunk",
    "remat_on",
    "remat_off",
    "collective_kind",
    "dtype",
    "accumulate_dtype",
    "shape",
    "collective_grouping",
    "async_to_sync",
    "sync_to_async",
    "loop_copy",
    "layout_copy",
    "kernel_replaced",
    "fusion_split",
    "fusion_merged",
    "op_replaced",
    "op_added",
    "op_removed",
    "op_changed",
)

# What may follow from a difference of another kind.
CONSEQUENCES = frozenset(KINDS[KINDS.index("loop_copy") :]) - {"kernel_replaced"}


def kind_of(asked: Asked) -> Kind:
    return next(kind for rule in RULES if (kind := rule(asked)) is not None)
