"""Profiling a Levanter training: `install(trainer, ProfilerConfig(...))` and train.

Contract: importing this package imports neither jax nor levanter, so the ingestion process, which
lives here, stays light; `install` and `ProfileCallback` bring them in when they are first asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marin_profile.levanter.config import ProfilerConfig

if TYPE_CHECKING:
    from marin_profile.levanter.callback import ProfileCallback, install

__all__ = ["ProfileCallback", "ProfilerConfig", "install"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from marin_profile.levanter import callback

    return getattr(callback, name)
