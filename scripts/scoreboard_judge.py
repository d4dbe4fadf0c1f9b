"""Whether a reply is right, honestly unanswered or confidently wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from scoreboard_truth import Absent, Name, Nothing, Part, Ranked, Truth, Value

Outcome = Literal["right", "unanswered", "wrong"]
OUTCOMES: tuple[Outcome, ...] = ("right", "unanswered", "wrong")


@dataclass(frozen=True)
class Found:
    value: float
    unit: str


Read = Found | str | list[str] | None


@dataclass(frozen=True)
class Reply:
    """What a tool said to a question.

    `refused`: it says that it cannot tell. `fits`: what it says (or refuses for) is of this
    question. `none`: it says that there is none. `parts`: the figures and names read from where its
    documents say that they stand; None where the place is there and empty.
    """

    refused: bool = False
    fits: bool = True
    none: bool = False
    parts: Mapping[str, Read] = field(default_factory=dict)
    chars: int = 0


UNANSWERED = Reply(refused=True, fits=False)


def judge(truth: Truth, reply: Reply) -> Outcome:
    if isinstance(truth, Absent):
        left_empty = bool(reply.parts) and set(reply.parts.values()) == {None}
        if not reply.refused and not (reply.fits and left_empty):
            return "wrong"
        return "right" if reply.fits else "unanswered"
    if isinstance(truth, Nothing):
        if reply.fits and (reply.none or reply.refused):
            return "right"
        return "unanswered" if reply.refused else "wrong"
    if reply.refused:
        return "unanswered"
    if not reply.fits or reply.none:
        return "wrong"
    checked = [_checked(part, reply.parts.get(key)) for key, part in truth.items()]
    if "wrong" in checked:
        return "wrong"
    return "unanswered" if "unanswered" in checked else "right"


def _checked(part: Part, read: Read) -> Outcome:
    if read is None:
        return "unanswered"
    return "right" if _holds(part, read) else "wrong"


def _holds(part: Part, read: Read) -> bool:
    if isinstance(part, Value):
        return isinstance(read, Found) and read.unit == part.unit and part.holds(read.value)
    if isinstance(part, Ranked):
        return isinstance(read, list) and part.holds(read)
    assert isinstance(part, Name)
    return isinstance(read, str) and part.holds(read)
