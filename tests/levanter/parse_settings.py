"""Reads configurations as train_lm does: `python parse_settings.py FOLDER`.

FOLDER/arguments.json names command lines; FOLDER/results.json then holds the profiler's settings of
each, or the refusal.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from marin_profile.levanter.entry import profiled_main
from marin_profile.levanter.lines import levanter_line

read_config = profiled_main("levanter.main.train_lm").read_config


def settings(arguments: list[str]) -> dict[str, Any]:
    try:
        profiler = read_config(arguments).trainer.profiler
    except SystemExit as refusal:
        return {"refused": str(refusal.code)}
    return asdict(profiler) | {"is_on": profiler.is_on}


def main(folder: Path) -> None:
    named = json.loads((folder / "arguments.json").read_text())
    results = {name: settings(arguments) for name, arguments in named.items()}
    early = settings(["--trainer.profiler.start_step", "1"])
    results["first hook"] = {
        "first": levanter_line().first_step,
        "refused": early.get("refused"),
    }
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
