"""Kinds of ops as people say them, and which ops are of a kind.

Contract: a kind is one of `COLLECTIVES` and `TRANSFERS`, `COMPUTE` (see `classify`), or one of the
groups "communication" and "transfer", which stand for all their members.
"""

from __future__ import annotations

import re

from marin_profile.events.classify import COLLECTIVES, TRANSFERS

COMMUNICATION = "communication"
TRANSFER = "transfer"
_MEMBERS = {COMMUNICATION: frozenset(COLLECTIVES), TRANSFER: frozenset(TRANSFERS)}

_COPIES = r"(?:[-_ ](?:copies|copy|memcpy))?"
# How people write a kind, the longer spelling first.
_SPELLINGS = (
    ("ragged-all-to-all", r"ragged[-_ ]all[-_ ]to[-_ ]all"),
    ("all-to-all", r"all[-_ ]?to[-_ ]?all|a2a"),
    ("all-reduce", r"all[-_ ]?reduce|psum"),
    ("all-gather", r"all[-_ ]?gather"),
    ("reduce-scatter", r"reduce[-_ ]?scatter|psum[-_ ]scatter"),
    ("collective-permute", r"collective[-_ ]?permute|ppermute"),
    ("send-recv", r"send[-_/ ]?recv"),
    ("host_to_device", rf"(?:host[-_ ]to[-_ ]device|h2d){_COPIES}"),
    ("device_to_host", rf"(?:device[-_ ]to[-_ ]host|d2h){_COPIES}"),
    ("device_to_device", rf"(?:device[-_ ]to[-_ ]device|d2d){_COPIES}"),
    ("on_chip", r"on[-_ ]chip"),
    ("infeed", r"infeed"),
    ("outfeed", r"outfeed"),
    ("sparsecore", r"sparse[-_ ]?core"),
)
_PATTERN = re.compile(
    r"(?<![\w.\-])(?:"
    + "|".join(f"(?P<k{index}>{spelling})" for index, (_, spelling) in enumerate(_SPELLINGS))
    + r")(?:s|d|ed)?(?![\w\-]|\.\w)",
    re.IGNORECASE,
)


def find_kinds(text: str) -> tuple[str, list[str]]:
    """The text with every kind in its canonical spelling, and the kinds in order."""
    found: list[str] = []

    def canonical(match: re.Match[str]) -> str:
        kind = next(
            kind
            for index, (kind, _) in enumerate(_SPELLINGS)
            if match.group(f"k{index}") is not None
        )
        found.append(kind)
        return kind

    return _PATTERN.sub(canonical, text), found


def is_of_kind(category: str, kind: str) -> bool:
    return category == kind or category in _MEMBERS.get(kind, ())
