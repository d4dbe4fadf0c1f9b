"""What YAML and flags say of the profiler, in older forms too -> fields of ProfilerConfig.

Contract: `current_form` takes the raw fields of `trainer`, YAML and flags merged, and gives those
of today with a note for each that was read another way or has no effect; what contradicts itself
raises SettingError, one sentence that names the field. Other fields stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from marin_profile.profiling.config import ProfilerConfig

_RENAMED = {
    "profiler_start_step": "start_step",
    "profiler_num_steps": "num_steps",
    "profiler_perfetto_link": "perfetto_link",
}
_ONE_WINDOW = ("start_step", "num_steps")


class SettingError(ValueError):
    """A setting that cannot be, in one sentence."""


def current_form(trainer: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    profiler, notes = as_fields(trainer.get("profiler"))
    for older, name in _RENAMED.items():
        if older not in trainer:
            continue
        if name in profiler:
            notes.append(f"trainer.{older} has no effect beside trainer.profiler.{name}")
        else:
            notes.append(f"trainer.{older} is an older field: read as trainer.profiler.{name}")
            profiler[name] = trainer[older]
    if isinstance(profiler.get("upload"), Mapping):
        notes.append(
            "trainer.profiler.upload, as Levanter means it, has no effect: captures are not sent "
            "to an XProf service"
        )
        del profiler["upload"]
    if profiler.get("windows"):
        notes += _beside_windows(profiler)
    others = {name: value for name, value in trainer.items() if name not in _RENAMED}
    return others | {"profiler": profiler}, notes


def as_fields(profiler: Any) -> tuple[dict[str, Any], list[str]]:
    """What `trainer.profiler` says, as fields, and the notes."""
    if profiler is None:
        return {}, []
    if isinstance(profiler, Mapping):
        return dict(profiler), []
    if isinstance(profiler, bool):
        note = "trainer.profiler is an older field: read as trainer.profiler.enabled"
        return {"enabled": profiler}, [note]
    raise SettingError(f"trainer.profiler must be fields, or true or false, is {profiler!r}")


def _beside_windows(profiler: Mapping[str, Any]) -> list[str]:
    """One that is not the default was meant to have an effect, which it has not."""
    defaults = {one.name: one.default for one in fields(ProfilerConfig)}
    given = [name for name in _ONE_WINDOW if name in profiler]
    for name in given:
        if profiler[name] != defaults[name]:
            raise SettingError(
                f"trainer.profiler.{name} has no effect beside trainer.profiler.windows: leave "
                "one of them out (--trainer.profiler.windows '[]' for none)"
            )
    return [f"trainer.profiler.{n} has no effect beside trainer.profiler.windows" for n in given]
