"""Profiling a Levanter training: `install(trainer, ProfilerConfig(...))` and train.

Contract: importing this package imports neither jax nor levanter; the names below import what they
need on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marin_profile.profiling.config import ProfileOptions, ProfilerConfig, Window

if TYPE_CHECKING:
    from marin_profile.levanter.callback import ProfileCallback, install
    from marin_profile.profiling.loops import profile_window

_HOMES = {
    "ProfileCallback": "levanter.callback",
    "install": "levanter.callback",
    "profile_window": "profiling.loops",
}

__all__ = [
    "ProfileCallback",
    "ProfileOptions",
    "ProfilerConfig",
    "Window",
    "install",
    "profile_window",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"marin_profile.{_HOMES[name]}"), name)
