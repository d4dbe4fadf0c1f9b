"""How the planned peak of memory changed, and which scopes account for it.

Contract
* Of each side the fullest program of the first capture: a plan is the same in every capture of one
  program. Bytes, exact: the rows and `others` sum to the change.
* A scope that only one side lists, while the other side has scopes that are not listed, may be
  among these: it is part of `others`.
* Scopes that are renamed are one, under the name after.
"""

from __future__ import annotations

from marin_profile.comparison.model import MemoryChange, MemoryScopeChange
from marin_profile.comparison.renames import Renames
from marin_profile.events.scopes import split_path
from marin_profile.facts.memory import fullest
from marin_profile.schema import REMAINDER, ProfileSummary, ProgramMemory

Key = tuple[str | None, str | None]  # scope, in the names of before, and pass
NO_RENAMES = Renames({})


def memory_change(
    before: ProfileSummary,
    after: ProfileSummary,
    top_k: int,
    renames: Renames = NO_RENAMES,
) -> MemoryChange | None:
    """None where a side has no plan, or the two are of different memories."""
    if not before.memory or not after.memory:
        return None
    one, two = fullest(before.memory), fullest(after.memory)
    if one.space != two.space:
        return None
    rows = _rows(one, two, renames)
    shown = rows[:top_k]
    delta = two.peak_size - one.peak_size
    return MemoryChange(
        space=one.space,
        before_program=one.module or one.program_id,
        after_program=two.module or two.program_id,
        before_size=one.peak_size,
        after_size=two.peak_size,
        delta_size=delta,
        relative=round(delta / one.peak_size, 6) if one.peak_size else None,
        rows=shown,
        others_size=delta - sum(row.delta_size for row in shown),
        total_rows=len(rows),
        is_complete=one.is_complete and two.is_complete,
    )


def _rows(one: ProgramMemory, two: ProgramMemory, renames: Renames) -> list[MemoryScopeChange]:
    """Those that changed, the largest change first."""
    sizes = _sizes(one, NO_RENAMES), _sizes(two, renames)
    has_rest = [any(scope.scope == REMAINDER for scope in row.by_scope) for row in (one, two)]
    names = {_before(scope.scope, renames): scope.scope for scope in two.by_scope}
    found = []
    for key in sizes[0].keys() | sizes[1].keys():
        sides = [size.get(key) for size in sizes]
        if any(side is None and rest for side, rest in zip(sides, has_rest, strict=True)):
            continue
        delta = (sides[1] or 0) - (sides[0] or 0)
        if delta:
            found.append(
                MemoryScopeChange(
                    scope=names.get(key[0], key[0]),
                    pass_=key[1],
                    before_size=sides[0],
                    after_size=sides[1],
                    delta_size=delta,
                )
            )
    return sorted(found, key=lambda row: (-abs(row.delta_size), row.scope or "", row.pass_ or ""))


def _sizes(row: ProgramMemory, renames: Renames) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for one in row.by_scope:
        if one.scope != REMAINDER:
            key = _before(one.scope, renames), one.pass_
            found[key] = found.get(key, 0) + one.size
    return found


def _before(scope: str | None, renames: Renames) -> str | None:
    return None if scope is None else "/".join(renames.before_path(tuple(split_path(scope))))
