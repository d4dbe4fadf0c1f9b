"""What a question's answer has to be: figures in their units, names, or that there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

US, SHARE, BYTES, COUNT, GBPS, RATIO = "us", "share", "byte", "count", "GB/s", "ratio"


@dataclass(frozen=True)
class Value:
    """A figure that is right within 2 %, or `within` in its unit."""

    unit: str
    accepted: tuple[float, ...]
    within: float = 0.0

    def holds(self, value: float) -> bool:
        return any(
            abs(value - one) <= max(0.02 * abs(one), self.within, 1e-9) for one in self.accepted
        )


@dataclass(frozen=True)
class Name:
    """Words that the answer must give: one of these patterns, as a whole."""

    accepted: tuple[str, ...]

    def holds(self, name: str) -> bool:
        return any(re.fullmatch(one, name, re.IGNORECASE) for one in self.accepted)


@dataclass(frozen=True)
class Ranked:
    """Names in the order of their figures; one within 1 % of the rank's own may take its place."""

    figures: tuple[tuple[str, float], ...]
    ranks: int

    def holds(self, names: list[str]) -> bool:
        known = dict(self.figures)
        wanted = sorted(known.values(), reverse=True)[: self.ranks]
        given = [known.get(name, -1.0) for name in names[: len(wanted)]]
        return len(given) == len(wanted) and all(
            abs(one - right) <= 0.01 * right for one, right in zip(given, wanted, strict=True)
        )


@dataclass(frozen=True)
class Nothing:
    """The right answer is that there is none of it, or zero."""


@dataclass(frozen=True)
class Absent:
    """The capture does not hold it: the right answer is that it cannot be told."""


Part = Value | Name | Ranked
Truth = dict[str, Part] | Nothing | Absent
Truths = dict[str, Truth]

NOT_HELD: Truths = {key: Absent() for key in ("loss", "power", "other_hardware", "before", "batch")}
NO_SUCH: Truths = {"op_none": Nothing(), "op_none_typo": Nothing(), "region_none": Nothing()}
NO_TRAINING: Truths = {
    "backward": Nothing(),
    "remat": Nothing(),
    "evaluation": Nothing(),
    "rs_none": Nothing(),
}
NO_COLLECTIVES: Truths = {
    key: Nothing()
    for key in ("exposed", "ar_exposed", "ag_overlap", "by_kind", "ar_total", "biggest")
}
NO_COSTS: Truths = {"bound": Absent(), "intensity": Absent(), "mfu": Absent()}
NO_MEMORY: Truths = {key: Absent() for key in ("peak", "lives", "parameters", "free", "oom")}
NO_TRANSFERS: Truths = {
    "host_transfer": Nothing(),
    "d2h_bytes": Nothing(),
    "memcpy": Nothing(),
}


def us(*accepted: float, within: float = 0.0) -> Value:
    return Value(US, accepted, within)


def share(*accepted: float, within: float = 0.003) -> Value:
    return Value(SHARE, accepted, within)


def count(*accepted: float) -> Value:
    return Value(COUNT, accepted)


def size_of(*accepted: float) -> Value:
    return Value(BYTES, accepted)


def name(*accepted: str) -> Name:
    return Name(tuple(re.escape(one) for one in accepted))
