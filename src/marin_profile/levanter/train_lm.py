"""`python -m marin_profile.levanter.train_lm ...`: levanter.main.train_lm with our profiler.

Contract
* Every flag and YAML field of `levanter.main.train_lm` works; `trainer.profiler` is our
  ProfilerConfig, on unless `--trainer.profiler.enabled false`. Older profiler flags are translated.
* Levanter's own profiler hook stays off.
* No postponed annotations in this module: Levanter reads the config's class off `train`.
* A Levanter that was never tried is refused before it is imported.
"""

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from marin_profile.levanter.flags import translate
from marin_profile.levanter.lines import UnsupportedLevanterError, require_supported

try:
    require_supported()
except UnsupportedLevanterError as refusal:
    if __name__ != "__main__":
        raise
    sys.exit(str(refusal))

import levanter.config
import levanter.main.train_lm as levanter_train_lm
from levanter.callbacks.profiler import ProfilerConfig as LevanterProfilerConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter.callback import install
from marin_profile.profiling.config import ProfilerConfig

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


class ProfiledTrainer(Trainer):
    """A Trainer that carries our callback in place of Levanter's profiler hook."""

    def _add_default_hooks(self) -> None:
        ours = self.config.profiler
        self.config.profiler = _LEVANTERS_OWN_OFF
        try:
            super()._add_default_hooks()
        finally:
            self.config.profiler = ours
        install(self, ours)


def train(config: ProfiledTrainLmConfig) -> None:
    """Train as Levanter's train_lm does, profiled."""
    levanters = levanter_train_lm.Trainer
    levanter_train_lm.Trainer = ProfiledTrainer
    try:
        levanter_train_lm.main(config)
    finally:
        levanter_train_lm.Trainer = levanters


def main(arguments: Sequence[str] | None = None) -> None:
    translated, notes = translate(sys.argv[1:] if arguments is None else arguments)
    for note in notes:
        sys.stderr.write(f"note: {note}\n")
    logger.setLevel(logging.INFO)
    levanter.config.main(train, args=translated)()


if __name__ == "__main__":
    main()
