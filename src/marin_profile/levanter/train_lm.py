"""`python -m marin_profile.levanter.train_lm ...`: levanter.main.train_lm with our profiler.

Contract: that of `python -m marin_profile.levanter.main levanter.main.train_lm ...`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from marin_profile.levanter.main import run_profiled


def main(arguments: Sequence[str] | None = None) -> None:
    run_profiled("levanter.main.train_lm", sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    main()
