"""What becomes of each of Levanter's mains: `python mains.py MODULE...` prints it as JSON.

Per module the refusal, or the class of its config, the modules whose Trainer is replaced, and the
steps to profile that a flag sets.
"""

import json
import sys

from marin_profile.levanter.entry import NotATraining, ProfiledTrainerConfig, profiled_main

FLAGS = ["--trainer.profiler.start_step", "7", "--trainer.num_train_steps", "40"]
# What these mains cannot do without.
NEEDED = {
    "levanter.main.train_asr": ["--data", "{id: x, cache_dir: x}"],
    "levanter.main.lora_lm": ["--initialize_from_hf", "x"],
}


def told(name: str) -> dict:
    try:
        found = profiled_main(name)
    except NotATraining as refusal:
        return {"refused": str(refusal)}
    config = found.read_config(FLAGS + NEEDED.get(name, []))
    assert isinstance(config.trainer, ProfiledTrainerConfig)
    seen = []
    replaced = type(found)(lambda _: seen.extend(trainers(found)), type(config), found.modules)
    replaced.run(config)
    return {
        "config": found.config_class.__name__,
        "modules": [module.__name__ for module in found.modules],
        "steps": [config.trainer.profiler.start_step, config.trainer.num_train_steps],
        "while it runs": seen,
        "afterwards": trainers(found),
    }


def trainers(found) -> list[str]:
    return [module.Trainer.__name__ for module in found.modules]


if __name__ == "__main__":
    print(json.dumps({name: told(name) for name in sys.argv[1:]}))
