"""Does the first difference between two programs name the edit? `python scripts/hlo_pairs.py`.

Each case of `hlo_pairs_cases.py` is a JAX program on CPU devices with one known edit; those of
`hlo_pairs_held_out.py` (`--held-out`) are other programs, on which the diff was not written, those
of `hlo_pairs_mixed.py` (`--mixed`) edits as they come in practice, and `--levanter` takes pairs of
real trainings. Both sides run in turns, twice, in processes of their own. Right is a first
difference of the edit's kind and scope, in an op that shows the edit in the compiled program's
text; where the edit has no effect, no difference at all. Prints Markdown; `--keep` keeps the
captures and judges those that are there, `--write` puts the table into docs/hlo.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

from hlo_pairs_cases import CASES, Case
from hlo_pairs_held_out import HELD_OUT
from hlo_pairs_judge import Row, judged, markdown, truth_of, written
from hlo_pairs_levanter import TRAININGS, Training, train
from hlo_pairs_mixed import MIXED

RUN = Path(__file__).with_name("hlo_pairs_run.py")
PAGE = Path(__file__).parents[1] / "docs" / "hlo.md"
SIDES = ("before", "after")
TURNS = (("before", 1), ("after", 1), ("after", 2), ("before", 2))


def run(case: Case, side: str, place: Path) -> None:
    variables = os.environ | {"PAIR_DEVICES": str(case.devices)}
    subprocess.run([sys.executable, RUN, case.name, side, place], env=variables, check=True)


def capture(take: Callable[[str, Path], None], folder: Path) -> None:
    """In turns, so that a drift of the machine cancels."""
    for side, number in TURNS:
        place = folder / side / str(number)
        if not (place / "plugins").exists():
            take(side, place)


def row_of(case: Case | Training, folder: Path) -> Row:
    texts = [(folder / side / "1.hlo.txt").read_text() for side in SIDES]
    truth = truth_of(case, *texts)
    (folder / "truth.json").write_text(json.dumps(truth.as_json(), indent=1) + "\n")
    return judged(truth, *([folder / side / str(number) for number in (1, 2)] for side in SIDES))


def rows_of(cases: Sequence[Case | Training], folder: Path) -> list[Row]:
    rows = []
    for case in cases:
        take = partial(train if isinstance(case, Training) else run, case)
        capture(take, folder / case.name)
        rows.append(row_of(case, folder / case.name))
        print(f"{case.name}: {'right' if rows[-1].is_right else 'wrong'}", file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--held-out", action="store_true", help="other programs")
    parser.add_argument("--mixed", action="store_true", help="edits as they come in practice")
    parser.add_argument("--levanter", action="store_true", help="real trainings, some minutes")
    parser.add_argument("--only", action="append", help="this case")
    parser.add_argument("--keep", type=Path, help="keep the captures in this folder")
    parser.add_argument("--write", action="store_true", help="the table into docs/hlo.md")
    options = parser.parse_args()
    name, cases = "pairs", CASES
    if options.held_out:
        name, cases = "held-out", HELD_OUT
    if options.mixed:
        name, cases = "mixed", MIXED
    if options.levanter:
        name, cases = "levanter", TRAININGS
    chosen = [case for case in cases if not options.only or case.name in options.only]
    with tempfile.TemporaryDirectory() as made:
        rows = rows_of(chosen, options.keep or Path(made))
    table = markdown(rows)
    if options.write:
        PAGE.write_text(written(PAGE.read_text(), name, table))
    print(table, end="")


if __name__ == "__main__":
    main()
