"""Can captures on both sides be compared, where each side has several?

Contract: each capture is asked about the first one of the other side: if each such pair can be
compared, all can. A caveat that does not hold for all names its captures; `shapes` is of the first
pair. One capture counts once: named twice, it blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from marin_profile.comparison.comparable import comparability
from marin_profile.comparison.model import Caveat, Comparability
from marin_profile.schema import ProfileSummary


def comparability_of_all(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> Comparability:
    if len(before) == len(after) == 1:
        return comparability(before[0], after[0])
    where: dict[Caveat, list[tuple[int, int]]] = {}
    pairs = list(_pairs(len(before), len(after)))
    found_of = {pair: comparability(before[pair[0]], after[pair[1]]) for pair in pairs}
    for pair, one in found_of.items():
        for caveat in one.caveats:
            where.setdefault(caveat, []).append(pair)
    caveats = [*_twice([*_named("before", before), *_named("after", after)])]
    for caveat, found in where.items():
        if found != pairs:
            sentence = f"{_captures(found)}: {caveat.sentence}"
            caveat = caveat.model_copy(update={"sentence": sentence})
        caveats.append(caveat)
    blocked = any(caveat.severity == "blocking" for caveat in caveats)
    return Comparability(
        same_capture=False,
        comparable=not blocked,
        caveats=caveats,
        shapes=found_of[pairs[0]].shapes,
    )


def _pairs(before: int, after: int) -> Iterator[tuple[int, int]]:
    yield from ((one, 0) for one in range(before))
    yield from ((0, two) for two in range(1, after))


def _captures(pairs: Sequence[tuple[int, int]]) -> str:
    sides = [
        ", ".join(str(at + 1) for at in sorted(set(side))) for side in zip(*pairs, strict=True)
    ]
    return f"Before {sides[0]}, after {sides[1]}"


def _named(side: str, summaries: Sequence[ProfileSummary]) -> Iterator[tuple[str, str | None]]:
    for at, summary in enumerate(summaries):
        yield f"{side} {at + 1}", summary.trace_provenance.trace_sha256


def _twice(named: Sequence[tuple[str, str | None]]) -> Iterator[Caveat]:
    for (one, digest), (two, other) in combinations(named, 2):
        if digest is not None and digest == other:
            yield Caveat(
                about="capture",
                severity="blocking",
                sentence=f"One capture is named twice, as {one} and as {two}.",
            )
