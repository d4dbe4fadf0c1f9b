"""Compiled programs before and after, with what their ops took -> what XLA did differently.

Contract
* Pure: same programs and times, same rows. Rows, the ops that compute the same, and what runs
  elsewhere sum to the change of the target, exactly.
* A difference is claimed where programs differ in what they compute or in which op computes it;
  names, ids and the order of parameters are none. Whether its time is more than noise is judged as
  all rows of a comparison are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marin_profile.comparison.attribution import Sides
from marin_profile.comparison.hlo.components import Part, find_parts
from marin_profile.comparison.hlo.found import Found, differences, without_partner
from marin_profile.comparison.hlo.matching import Matched, is_alike, match
from marin_profile.comparison.hlo.pairs import pair_programs
from marin_profile.comparison.hlo.rows import summed
from marin_profile.comparison.hlo.sides import SideProgram, read_side
from marin_profile.comparison.model import Basis, HloChanges, HloProgramPair
from marin_profile.pipeline.programs import CapturedPrograms

ONLY_SUMMARIES = (
    "A summary holds no compiled programs; name the profiles themselves to see what XLA did "
    "differently."
)
NO_PROTOS = (
    "no HLO protos, which tell what XLA compiled: capture an xplane with enable_hlo_proto of "
    "jax.profiler.ProfileOptions set to True"
)


def hlo_changes(
    sides: Sides,
    basis: Basis | None,
    before: Sequence[CapturedPrograms | None],
    after: Sequence[CapturedPrograms | None],
    top_k: int,
) -> HloChanges:
    """`before` and `after`: of each capture of the sides, in their order."""
    known = [[one for one in side if one is not None] for side in (before, after)]
    if len(known[0]) < len(before) or len(known[1]) < len(after):
        return HloChanges(cannot_answer=ONLY_SUMMARIES)
    without = [
        name
        for name, side in zip(("before", "after"), known, strict=True)
        if not all(one.programs for one in side)
    ]
    if without:
        where = "on both sides" if len(without) == 2 else without[0]
        return HloChanges(cannot_answer=f"Captures {where} hold {NO_PROTOS}.")
    one = read_side(sides.before, known[0], basis)
    two = read_side(sides.after, known[1], basis)
    found: list[Found] = []
    programs: list[HloProgramPair] = []
    for left, right in pair_programs(one.programs, two.programs):
        if left is None or right is None:
            found.append(without_partner(left, right))
        else:
            matched = match(left.opened, right.opened)
            parts = find_parts(matched)
            found += differences(left, right, matched, parts)
            programs.append(_pair(left, right, matched, parts))
    return summed(found, programs, one, two, sides, top_k)


def _pair(
    left: SideProgram, right: SideProgram, matched: Matched, parts: Iterable[Part]
) -> HloProgramPair:
    regrouped = {one.node.name for part in parts for one, _ in part.regrouped}
    alike = {one.at for one, two in matched.pairs() if is_alike(one, two)}
    differs = regrouped | {step.node.name for step in matched.before.steps if step.at not in alike}
    instructions = left.opened.program.nodes
    return HloProgramPair(
        before=left.name,
        after=right.name,
        before_instructions=len(instructions),
        after_instructions=len(right.opened.program.nodes),
        matched_instructions=len(instructions) - len(differs & instructions.keys()),
        same_names=len(instructions.keys() & right.opened.program.nodes.keys()),
    )
