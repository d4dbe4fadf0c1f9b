"""What changed between two captures that an experiment took, and what XLA compiled differently.

Contract: None where a capture is gone, cannot be read or holds no steps to compare: an answer that
was paid for by many captures does not fail for want of its explanation.
"""

from __future__ import annotations

from marin_profile.base.errors import ProfileError
from marin_profile.base.startup import ready_to_read
from marin_profile.cache import cache_folder, cached_with_programs
from marin_profile.capture.sources import find_captures
from marin_profile.comparison import Comparison, compare

OF_TOP = 5


def explained(before: str, after: str, *, warmup_steps: int) -> Comparison | None:
    """The newest captures at or below two folders."""
    try:
        (one, programs), (two, other) = (
            cached_with_programs(
                find_captures(folder)[-1],
                warmup_steps=warmup_steps,
                folder=cache_folder(),
                about_to_read=ready_to_read,
            )
            for folder in (before, after)
        )
        found = compare(one, two, top_k=OF_TOP, programs=([programs], [other]))
    except (ProfileError, OSError, IndexError):
        return None
    return found if found.hlo is not None else None
