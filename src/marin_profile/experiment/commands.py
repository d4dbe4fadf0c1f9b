"""What a command is told, and what may be told of it: placeholders, variables, masked values.

Contract
* Placeholders are replaced once: what is put in is not looked through again.
* The value of a variable that was given for a command is masked in all that it says, if it has
  LEAST_MASKED characters or more: shorter ones stand in many words. Of all values together a salted
  digest, slow to guess, tells whether they changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from marin_profile.base.text import visible
from marin_profile.experiment.process import Ended

OUT, WORKTREE = "{out}", "{worktree}"
OUT_VARIABLE, WORKTREE_VARIABLE = "MARIN_PROFILE_OUT", "MARIN_PROFILE_WORKTREE"
MASK = "***"
LEAST_MASKED = 4
_LOG_END = 1 << 16
_MOST_QUOTED = 200


def filled(word: str, places: Mapping[str, str]) -> str:
    """The word with what each placeholder stands for."""
    pattern = "|".join(map(re.escape, places))
    return re.sub(pattern, lambda found: places[found[0]], word)


def masked(text: str, values: Iterable[str]) -> str:
    return _masked(text.encode(), values).decode(errors="replace")


def mask_file(path: Path, values: Iterable[str]) -> None:
    """Rewrite it, if it is there and holds any of them."""
    with suppress(FileNotFoundError):
        content = path.read_bytes()
        clean = _masked(content, values)
        if clean != content:
            path.write_bytes(clean)


def digest_of(values: Any, salt: str) -> str:
    """Of what JSON can hold."""
    text = json.dumps(values, sort_keys=True).encode()
    return hashlib.scrypt(text, salt=salt.encode(), n=1 << 14, r=8, p=1, dklen=16).hex()


def why_failed(ended: Ended, timeout: float | None, log: Path) -> str:
    """As the end of a sentence, with the log's last line."""
    why = ended.why_not(timeout)
    last = "" if ended.problem is not None else visible(last_line(log), _MOST_QUOTED)
    return f"{why}; the log ends: {last}" if last else why


def last_line(log: Path) -> str:
    """That says anything; "" without one."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _LOG_END))
            lines = stream.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _masked(content: bytes, values: Iterable[str]) -> bytes:
    """The longest goes first: one may hold another one."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= LEAST_MASKED:
            content = content.replace(value.encode(), MASK.encode())
    return content
