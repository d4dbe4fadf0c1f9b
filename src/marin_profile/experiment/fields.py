"""Nested texts read field by field: each error is one sentence that names the field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.base.text import either, visible

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([smh]?)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Fields:
    """A mapping whose fields are asked for; "" is what a file leaves empty. `named`: what errors
    call it, such as "plan.yaml: arms"."""

    def __init__(self, texts: Any, named: str) -> None:
        self.named = named
        if texts in (None, ""):
            texts = {}
        if not isinstance(texts, Mapping):
            raise UsageError(f"{named}: this is no mapping of names; write each as 'name: value'.")
        self._texts = {str(name): value for name, value in texts.items()}
        self._asked: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._texts)

    def has(self, name: str) -> bool:
        return self._texts.get(name, "") not in ("", None)

    def error(self, name: str, what: str) -> UsageError:
        where = f"{self.named}{_joint(self.named)}{visible(name)}" if name else self.named
        return UsageError(f"{where}: {what}.")

    def below(self, name: str) -> Fields:
        self._asked[name] = None
        return Fields(self._texts.get(name), f"{self.named}{_joint(self.named)}{visible(name)}")

    def text(self, name: str, default: str | None) -> str | None:
        self._asked[name] = None
        value = self._texts.get(name)
        if value is None or value == "":
            return default if value is None else (default or None)
        if not isinstance(value, str):
            raise self.error(name, "this is one text, not a list or a mapping")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        self._asked[name] = None
        value = self._texts.get(name)
        if value in (None, ""):
            return ()
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        if not is_list or not all(isinstance(one, str) for one in value):
            raise self.error(name, 'this is a list of arguments, as in ["python", "train.py"]')
        return tuple(value)

    def switch(self, name: str) -> bool:
        text = self.text(name, "false") or ""
        if text.lower() not in _SWITCH:
            raise self.error(name, f"this is true or false, not {visible(text)}")
        return _SWITCH[text.lower()]

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """The first one by default."""
        text = self.text(name, choices[0]) or ""
        if text not in choices:
            raise self.error(name, f"this is {either(choices)}, not {visible(text)}")
        return text

    def count(self, name: str, default: int, *, least: int, most: int) -> int:
        text = self.text(name, str(default)) or ""
        if not _INTEGER.fullmatch(text) or not least <= int(text) <= most:
            raise self.error(name, f"this is a whole number from {least} to {most}")
        return int(text)

    def number(self, name: str, default: float, *, above: float, below: float) -> float:
        text = self.text(name, str(default)) or ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not above < value < below:
            raise self.error(name, f"this is a number above {above:g} and below {below:g}")
        return value

    def seconds(self, name: str) -> float | None:
        """None where there is none."""
        text = self.text(name, None)
        if text is None:
            return None
        found = _DURATION.fullmatch(text)
        value = float(found[1]) * _SECONDS[found[2]] if found else 0.0
        if not 0 < value < 1e9:
            raise self.error(name, "this is a time, as 90, 90s, 15m or 2h")
        return value

    def refuse_rest(self) -> None:
        """Raises UsageError for a field that nobody asked for."""
        for name in self._texts:
            if name not in self._asked:
                near = get_close_matches(name, self._asked, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self._asked)}."
                raise UsageError(
                    f"{self.named}{_joint(self.named)}{visible(name)}: there is no such field; "
                    f"{hint}"
                )


def _joint(named: str) -> str:
    return "." if ": " in named else ": "
