"""Owned time by region, so that like is compared with like.

A region is an op's scope path without its leaf, which names the primitive, or the whole path where
other ops stand below it (a kernel or a loop names no primitive). A region that only one side has is
counted in the nearest region above it (below the program's root) whose other ops moved the other
way by at least LEAST_MOVED of its time: it was rewritten, not added or removed. Others stay what
they are: present on one side only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from marin_profile.comparison.matching import LEAST_MOVED, OpTime, region_of, scope_path

Path = tuple[str, ...]
NOTHING = Fraction(0)


@dataclass
class RegionTime:
    """Picoseconds per step and device; a side is None where no op stands in the region."""

    before: Fraction | None = None
    after: Fraction | None = None
    by_pass: dict[str, Fraction] = field(default_factory=dict)

    @property
    def delta(self) -> Fraction:
        return (self.after or NOTHING) - (self.before or NOTHING)

    def add(self, other: RegionTime) -> None:
        if other.before is not None:
            self.before = (self.before or NOTHING) + other.before
        if other.after is not None:
            self.after = (self.after or NOTHING) + other.after
        for name, delta in other.by_pass.items():
            self.by_pass[name] = self.by_pass.get(name, NOTHING) + delta


def own_times(before: Iterable[OpTime], after: Iterable[OpTime]) -> dict[Path, RegionTime]:
    """By the region that each op stands in; () holds ops without a scope."""
    return _times(before, after, lambda path: [path])


def inclusive_times(before: Iterable[OpTime], after: Iterable[OpTime]) -> dict[Path, RegionTime]:
    """Every region with all below it."""
    return _times(before, after, prefixes)


def prefixes(path: Path) -> list[Path]:
    return [path[:depth] for depth in range(1, len(path) + 1)]


def _times(
    before: Iterable[OpTime], after: Iterable[OpTime], regions: Callable[[Path], list[Path]]
) -> dict[Path, RegionTime]:
    before, after = list(before), list(after)
    known = {above for side in (*before, *after) for above in prefixes(region_of(side.group.scope))}
    found: dict[Path, RegionTime] = {}
    for sides, is_after in ((before, False), (after, True)):
        for side in sides:
            one = RegionTime(
                before=None if is_after else side.time,
                after=side.time if is_after else None,
                by_pass={side.group.pass_ or "": side.time if is_after else -side.time},
            )
            whole = scope_path(side.group.scope)
            own = whole if whole in known else region_of(side.group.scope)
            for path in regions(own):
                found.setdefault(path, RegionTime()).add(one)
    return found


def compared_times(before: Iterable[OpTime], after: Iterable[OpTime]) -> dict[Path, RegionTime]:
    """Own times with rewritten regions counted in the ones above them."""
    before, after = list(before), list(after)
    own, inclusive = own_times(before, after), inclusive_times(before, after)
    found: dict[Path, RegionTime] = {}
    for path in sorted(own):
        home = _home(path, own[path], inclusive)
        found.setdefault(home, RegionTime()).add(own[path])
    return found


def _home(path: Path, own: RegionTime, inclusive: dict[Path, RegionTime]) -> Path:
    if not path or (inclusive[path].before is not None and inclusive[path].after is not None):
        return path
    for above in reversed(prefixes(path)[1:-1]):
        elsewhere = inclusive[above].delta - own.delta
        if own.delta * elsewhere < 0 and abs(elsewhere) >= LEAST_MOVED * abs(own.delta):
            return above
    return path
