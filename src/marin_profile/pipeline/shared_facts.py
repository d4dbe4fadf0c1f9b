"""What is equal on many hosts is held once: hosts of a pod run the same ops, and a group of all its
devices names thousands of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from marin_profile.analysis.host import HostPart

T = TypeVar("T")


class SharedFacts:
    """Facts by what they are equal to, the first host's."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def in_part(self, part: HostPart) -> HostPart:
        """An equal part."""
        collectives = part.collectives
        return replace(
            part,
            ops=[replace(op, facts=self._one(op.facts)) for op in part.ops],
            collectives=replace(
                collectives,
                partners=tuple(map(self._one, collectives.partners)),
                ops=tuple(map(self._one, collectives.ops)),
            ),
            memory=None if part.memory is None else tuple(map(self._one, part.memory)),
        )

    def _one(self, fact: T) -> T:
        known: T = self._known.setdefault(fact, fact)
        return known
