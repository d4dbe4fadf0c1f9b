"""Levanter's mains that train, with our profiler in place of Levanter's.

Contract
* `profiled_main(NAME)` works for every module whose `main(config)` takes a dataclass with a field
  `trainer: TrainerConfig` and builds a Trainer from it, in that module or in one of its package
  that it calls. Others raise NotATraining, one sentence.
* Every flag and YAML field of that main works; `trainer.profiler` is our ProfilerConfig, on unless
  `--trainer.profiler.enabled false`. Older profiler flags and fields are translated, with a note on
  stderr. What the profiler cannot do ends the process before it trains, with one sentence that
  names the field.
* Levanter's own profiler hook stays off.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any
from unittest import mock

import draccus
import levanter.config
from draccus import cfgparsing
from draccus.parsers.decoding import decode_dataclass
from draccus.utils import DecodingError, ParsingError
from levanter.callbacks.profiler import ProfilerConfig as LevanterProfilerConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter.callback import install
from marin_profile.levanter.flags import translate, without_effect
from marin_profile.levanter.lines import levanter_line
from marin_profile.levanter.settings import SettingError, as_fields, current_form
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.schedule import refuse_too_early

_LEVANTERS_OWN_OFF = LevanterProfilerConfig(enabled=False, start_step=0, num_steps=0)


class NotATraining(ValueError):
    """A main without a Trainer, in one sentence."""


@dataclass
class ProfiledTrainerConfig(TrainerConfig):
    """TrainerConfig whose `profiler` is ours."""

    profiler: ProfilerConfig = field(default_factory=ProfilerConfig)


class ProfiledTrainer(Trainer):
    """A Trainer that carries our callback in place of Levanter's profiler hook."""

    training_config: Any = None

    def _add_default_hooks(self) -> None:
        ours = self.config.profiler
        self.config.profiler = _LEVANTERS_OWN_OFF
        try:
            super()._add_default_hooks()
        finally:
            self.config.profiler = ours
        install(self, ours, training_config=self.training_config)


@dataclass(frozen=True)
class ProfiledMain:
    """`config_class` is the main's own but for the trainer's profiler; `modules` name a Trainer."""

    main: Callable[[Any], Any]
    config_class: type
    modules: tuple[ModuleType, ...]

    def read_config(self, arguments: Sequence[str]) -> Any:
        """The config that YAML and flags make, read as Levanter reads it. Raises SystemExit with
        one sentence for what the profiler cannot do."""
        translated, notes = translate(arguments)
        _say(notes)
        try:
            with mock.patch.object(cfgparsing, "load_config", _load_config):
                config = levanter.config.main(self._itself(), args=translated)()
        except _Refused as refusal:
            sys.exit(str(refusal))
        if not config.trainer.profiler.enabled:
            _say(without_effect(translated))
        if config.trainer.profiler.is_on:
            try:
                refuse_too_early(config.trainer.profiler, levanter_line().first_step)
            except ValueError as error:
                sys.exit(f"trainer.profiler: {error}")
        return config

    def run(self, config: Any) -> None:
        """What Levanter's main does, profiled."""
        trainer = type("ProfiledTrainer", (ProfiledTrainer,), {"training_config": config})
        with ExitStack() as stack:
            for module in self.modules:
                stack.enter_context(mock.patch.object(module, "Trainer", trainer))
            self.main(config)

    def _itself(self) -> Callable[[Any], Any]:
        """Levanter reads the config's class off the function that it calls with a config."""

        def itself(config: Any) -> Any:
            return config

        itself.__annotations__ = {"config": self.config_class}
        return itself


def profiled_main(name: str) -> ProfiledMain:
    """Raises NotATraining, and whatever the module raises when it is imported."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise NotATraining(f"There is no module {error.name}.") from error
    main = getattr(module, "main", None)
    config_class = _config_class(main)
    modules = tuple(_modules_with_a_trainer(module))
    if main is None or config_class is None or not modules:
        raise NotATraining(
            f"{name} has no main(config) that builds a Trainer, so there are no training steps to "
            "profile: in a script of your own, put marin_profile.profiler around its loop, or "
            "marin_profile.profile_window around its work."
        )
    ours = _profiled(config_class)
    # Of the whole config alone: draccus makes no flags for what lies below a class with a decoder.
    draccus.decode.register(ours, partial(_decode, ours))
    return ProfiledMain(main, ours, modules)


def _config_class(main: Any) -> type | None:
    """The class of the config that `main` takes, if it has a TrainerConfig."""
    try:
        first = next(iter(inspect.signature(main).parameters))
        found = typing.get_type_hints(main)[first]
    except (TypeError, ValueError, KeyError, NameError, StopIteration):
        return None
    if not dataclasses.is_dataclass(found) or not isinstance(found, type):
        return None
    trainer = typing.get_type_hints(found).get("trainer")
    return found if trainer is TrainerConfig else None


def _modules_with_a_trainer(module: ModuleType) -> Iterator[ModuleType]:
    """The module, or those of its package whose functions it names."""
    package = module.__name__.rpartition(".")[0]
    called = {
        value.__module__
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__module__.rpartition(".")[0] == package
    }
    for name in sorted({module.__name__, *called}):
        found = sys.modules[name]
        if getattr(found, "Trainer", None) is Trainer:
            yield found


def _profiled(config_class: Any) -> type:
    """The config with our trainer."""
    ours = dataclasses.make_dataclass(
        f"Profiled{config_class.__name__}",
        [("trainer", ProfiledTrainerConfig, field(default_factory=ProfiledTrainerConfig))],
        bases=(config_class,),
        frozen=config_class.__dataclass_params__.frozen,
    )
    ours.__module__, ours.__doc__ = __name__, config_class.__doc__
    return ours


# --- the config as it is read --------------------------------------------------------------------


class _Refused(ParsingError):
    """What the profiler cannot do; passes through draccus unchanged."""


_LOAD_CONFIG = cfgparsing.load_config


def _load_config(*arguments: Any, **named: Any) -> Any:
    """A file's `trainer.profiler: false` as fields: flags are merged into fields, and would replace
    a word."""
    raw = _LOAD_CONFIG(*arguments, **named)
    trainer = raw.get("trainer") if isinstance(raw, Mapping) else None
    if not isinstance(trainer, Mapping) or not isinstance(trainer.get("profiler"), bool):
        return raw
    fields, notes = as_fields(trainer["profiler"])
    _say(notes)
    return {**raw, "trainer": {**trainer, "profiler": fields}}


def _decode(config_class: type, raw: Any, path: Sequence[str] = ()) -> Any:
    trainer = raw.get("trainer", {}) if isinstance(raw, Mapping) else None
    if isinstance(trainer, Mapping):
        try:
            trainer, notes = current_form(trainer)
        except SettingError as error:
            raise _Refused(str(error)) from error
        _say(notes)
        _refuse_invalid(trainer["profiler"])
        raw = {**raw, "trainer": trainer}
    return decode_dataclass(config_class, raw, path)


def _refuse_invalid(profiler: Any) -> None:
    try:
        decode_dataclass(ProfilerConfig, profiler, ("trainer", "profiler"))
    except DecodingError as error:
        what = " ".join(error.message.replace("`", "").split())
        raise _Refused(f"{'.'.join(error.key_path)}: {what}") from error
    except ParsingError as error:
        raise _Refused(f"trainer.profiler: {error.__cause__ or error}") from error


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"note: {note}\n")
