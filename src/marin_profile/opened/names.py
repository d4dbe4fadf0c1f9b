"""Attributes that do not exist: which one was meant.

Contract: the error is an AttributeError too, so that `hasattr`, `copy`, `pickle` and notebooks find
what they expect; of a name with an underscore in front it is nothing else.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NoReturn

from marin_profile.base.errors import UnknownNameError
from marin_profile.base.text import visible

MOST_NEAR = 3


class Suggesting:
    """A class that says which of its names come near to one that it does not have."""

    def __getattr__(self, name: str) -> Any:
        no_attribute(self, name)


def no_attribute(one: object, name: str) -> NoReturn:
    kind = type(one)
    if name.startswith("_"):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    known = [known for known in dir(kind) if not known.startswith("_")]
    near = get_close_matches(name.lower(), known, n=MOST_NEAR, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}."
    raise UnknownNameError(f"A {kind.__name__} has no {visible(name)}; {hint}")
