"""`python -m marin_profile.levanter.main MODULE ...`: a main of Levanter with our profiler.

Contract
* MODULE is one of `levanter.main`, or a module of one's own of the same kind; what follows are its
  own flags. What is promised of them stands in `entry`.
* A Levanter that was never tried is refused before it is imported, and a main that does not train
  before anything is run: one sentence, exit status 1.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from marin_profile.levanter.lines import UnsupportedLevanterError, require_supported

USAGE = "usage: python -m marin_profile.levanter.main MODULE [--config_path YAML] [--FLAG VALUE]..."


def run_profiled(name: str, arguments: Sequence[str]) -> None:
    """Run the main of module `name` with the flags `arguments`, profiled."""
    try:
        require_supported()
    except UnsupportedLevanterError as refusal:
        sys.exit(str(refusal))
    from marin_profile.levanter.entry import NotATraining, profiled_main

    try:
        profiled = profiled_main(name)
    except NotATraining as refusal:
        sys.exit(str(refusal))
    config = profiled.read_config(arguments)
    logging.getLogger("marin_profile.levanter").setLevel(logging.INFO)
    profiled.run(config)


def main(arguments: Sequence[str] | None = None) -> None:
    name, *flags = (sys.argv[1:] if arguments is None else arguments) or [""]
    if not name or name.startswith("-"):
        sys.exit(USAGE)
    run_profiled(name, flags)


if __name__ == "__main__":
    main()
