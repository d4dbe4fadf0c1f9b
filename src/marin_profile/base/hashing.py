"""Hashing of numbers: of one inside a compiled loop, of an array anywhere."""

from __future__ import annotations

import numpy as np

from marin_profile.base.jit import jit_no_alloc


@jit_no_alloc
def mix64(value):
    """splitmix64's finaliser: spreads 64 bits over 64 bits."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
