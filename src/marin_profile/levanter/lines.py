"""Which Levanter is installed, and what it does differently.

Contract: `levanter_line()` finds what the callback must know by trying it, not from the version; a
version that was never tested is refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

DISTRIBUTION = "marin-levanter"
OLDER_DISTRIBUTION = "levanter"
OLDEST = (0, 2, 20)
NOT_BELOW = (0, 3)
_STEPS_TRIED = 8


class UnsupportedLevanterError(RuntimeError):
    """The installed Levanter is not one that this package works with."""


@dataclass(frozen=True)
class LevanterLine:
    """`first_step`: the first step that a hook can profile."""

    version: str
    first_step: int

    def recompiles_at(self, watch: Any) -> int | None:
        """The step after the first at which Levanter compiles the training step once more.

        Where hooks run from the first step on, the variant that watches gradients is compiled when
        it is first due; elsewhere step 0 is due already.
        """
        due_first = self.first_step == 1
        return watch.interval - 1 if due_first and watch.is_enabled and watch.interval > 1 else None


def levanter_line() -> LevanterLine:
    """Raises UnsupportedLevanterError."""
    installed = require_supported()
    return LevanterLine(installed, _first_step())


def require_supported() -> str:
    """The installed version, without importing Levanter; raises UnsupportedLevanterError."""
    try:
        installed = version(DISTRIBUTION)
    except PackageNotFoundError:
        raise UnsupportedLevanterError(_refusal(*_other_levanter())) from None
    numbers = tuple(int(number) for number in re.findall(r"\d+", installed)[:3])
    if numbers < OLDEST or numbers >= NOT_BELOW:
        raise UnsupportedLevanterError(_refusal(DISTRIBUTION, installed))
    return installed


def _other_levanter() -> tuple[str, str]:
    try:
        return OLDER_DISTRIBUTION, version(OLDER_DISTRIBUTION)
    except PackageNotFoundError:
        return DISTRIBUTION, "(not installed)"


def _refusal(name: str, installed: str) -> str:
    oldest, below = (".".join(map(str, numbers)) for numbers in (OLDEST, NOT_BELOW))
    return (
        f"{name} {installed} is not supported; install {DISTRIBUTION} >= {oldest}, < {below}: "
        f"pip install 'marin-profile[levanter]'"
    )


def _first_step() -> int:
    from levanter.trainer import TrainerHooks

    seen: list[int] = []
    hooks = TrainerHooks()
    hooks.add_hook(lambda info: seen.append(info.next_step), every=1)
    for step in range(_STEPS_TRIED):
        hooks.run_hooks(SimpleNamespace(step=step, next_step=step + 1))
        if seen:
            return seen[0]
    raise UnsupportedLevanterError("this Levanter calls no hook in its first steps")
