"""Which program's plan of memory is the one to look at, and what of it is rematerialised."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marin_profile.schema import ProfileSummary, ProgramMemory

HBM = "hbm"
# XLA names what its rematerialisation computes again "fusion.3.remat", "fusion.3.remat2".
_REMATERIALISED = re.compile(r"\.remat\d*(?:\.|$)")


def fullest(programs: Sequence[ProgramMemory]) -> ProgramMemory:
    """The fullest in the device's own memory, where there is any such."""
    return next((row for row in programs if row.space == HBM), programs[0])


def rematerialised(summary: ProfileSummary) -> int:
    """How many ops XLA computes again because the program would not fit; jax.checkpoint's are none
    of them."""
    return sum(
        group.num_names
        for group in summary.op_groups
        if _REMATERIALISED.search(group.canonical_name)
    )
