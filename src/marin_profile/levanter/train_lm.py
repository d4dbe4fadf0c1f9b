"""`python -m marin_profile.levanter.train_lm ...`: levanter.main.train_lm with our profiler.

Contract
* Every flag and YAML field of `levanter.main.train_lm` works; `trainer.profiler` is our
  ProfilerConfig, on unless `--trainer.profiler.enabled false`. Older profiler flags and fields are
  translated, with a note on stderr. What the profiler cannot do ends the process before it trains,
  with one sentence that names the field.
* Levanter's own profiler hook stays off.
* No postponed annotations in this module: Levanter reads the config's class off `train`.
* A Levanter that was never tried is refused before it is imported.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_profile.levanter.flags import translate
from marin_profile.levanter.lines import (
    UnsupportedLevanterError,
    levanter_line,
    require_supported,
)

try:
    require_supported()
except UnsupportedLevanterError as refusal:
    if __name__ != "__main__":
        raise
    sys.exit(str(refusal))

import draccus
import levanter.config
import levanter.main.train_lm as levanter_train_lm
from draccus.parsers.decoding import decode_dataclass
from draccus.utils import DecodingError, ParsingError
from levanter.callbacks.profiler import ProfilerConfig as LevanterProfilerConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter.callback import install
from marin_profile.levanter.settings import SettingError, current_form
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.schedule import refuse_too_early

logger = logging.getLogger("marin_profile.levanter")

_LEVANTERS_OWN_OFF = LevanterProfilerConfig(enabled=False, start_step=0, num_steps=0)


@dataclass
class ProfiledTrainerConfig(TrainerConfig):
    """TrainerConfig whose `profiler` is ours."""

    profiler: ProfilerConfig = field(default_factory=ProfilerConfig)


@dataclass
class ProfiledTrainLmConfig(levanter_train_lm.TrainLmConfig):
    """TrainLmConfig with our trainer."""

    trainer: ProfiledTrainerConfig = field(default_factory=ProfiledTrainerConfig)


class _Refused(ParsingError):
    """What the profiler cannot do; passes through draccus unchanged."""


def _decode(raw: Any, path: Sequence[str] = ()) -> ProfiledTrainLmConfig:
    trainer = raw.get("trainer", {}) if isinstance(raw, Mapping) else None
    if isinstance(trainer, Mapping):
        try:
            trainer, notes = current_form(trainer)
        except SettingError as error:
            raise _Refused(str(error)) from error
        _say(notes)
        _refuse_invalid(trainer["profiler"])
        raw = {**raw, "trainer": trainer}
    return decode_dataclass(ProfiledTrainLmConfig, raw, path)


def _refuse_invalid(profiler: Any) -> None:
    try:
        decode_dataclass(ProfilerConfig, profiler, ("trainer", "profiler"))
    except DecodingError as error:
        what = " ".join(error.message.replace("`", "").split())
        raise _Refused(f"{'.'.join(error.key_path)}: {what}") from error
    except ParsingError as error:
        raise _Refused(f"trainer.profiler: {error.__cause__ or error}") from error


# Of the whole config alone: draccus makes no flags for what lies below a class with a decoder.
draccus.decode.register(ProfiledTrainLmConfig, _decode)


class ProfiledTrainer(Trainer):
    """A Trainer that carries our callback in place of Levanter's profiler hook."""

    training_config: ProfiledTrainLmConfig | None = None

    def _add_default_hooks(self) -> None:
        ours = self.config.profiler
        self.config.profiler = _LEVANTERS_OWN_OFF
        try:
            super()._add_default_hooks()
        finally:
            self.config.profiler = ours
        install(self, ours, training_config=self.training_config)


def train(config: ProfiledTrainLmConfig) -> None:
    """Train as Levanter's train_lm does, profiled."""
    levanters = levanter_train_lm.Trainer
    levanter_train_lm.Trainer = type(
        "ProfiledTrainer", (ProfiledTrainer,), {"training_config": config}
    )
    try:
        levanter_train_lm.main(config)
    finally:
        levanter_train_lm.Trainer = levanters


def main(arguments: Sequence[str] | None = None) -> None:
    config = read_config(sys.argv[1:] if arguments is None else arguments)
    logger.setLevel(logging.INFO)
    train(config)


def read_config(arguments: Sequence[str]) -> ProfiledTrainLmConfig:
    """The config that YAML and flags make, read as Levanter reads it. Raises SystemExit with one
    sentence for what the profiler cannot do."""
    translated, notes = translate(arguments)
    _say(notes)
    try:
        config: ProfiledTrainLmConfig = levanter.config.main(_itself, args=translated)()
    except _Refused as refusal:
        sys.exit(str(refusal))
    if config.trainer.profiler.is_on:
        try:
            refuse_too_early(config.trainer.profiler, levanter_line().first_step)
        except ValueError as error:
            sys.exit(f"trainer.profiler: {error}")
    return config


def _itself(config: ProfiledTrainLmConfig) -> ProfiledTrainLmConfig:
    return config


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"note: {note}\n")


if __name__ == "__main__":
    main()
