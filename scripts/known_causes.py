"""Does the first advice name the cause? `python scripts/known_causes.py [--pairs N] [--only CASE]`.

Each case of `known_causes_cases.py` is a small training loop on CPU devices with one flaw, and its
twin the same loop without it. Both are captured in turns, so that a drift of the machine cancels.
Per case: the first advice of the captures with the flaw, whether it names the flaw, its ceiling a
step, and what the twin really saves (the mean of the differences of the mean step periods, with
their standard deviation). The ceiling holds if, known, it is within 25 % of that or, a bound, not
below it; where only the spread of the pairs speaks against that it is undecided. Prints Markdown,
and writes JSON to --output. A busy machine measures little.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from known_causes_cases import CASES, Case, Step, jax
from known_causes_table import First, Pair, Row, as_json, markdown, row_of

from marin_profile import summarize
from marin_profile.schema import ProfileSummary

STEPS = 24
WARM = 4


def captured(step: Step, folder: Path, marked: bool) -> ProfileSummary:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        for number in range(STEPS):
            # A marker begins when it is made.
            with (
                jax.profiler.StepTraceAnnotation("train", step_num=number)
                if marked
                else nullcontext()
            ):
                last = step()
        jax.block_until_ready(last)
    return summarize(folder)


def first_of(summary: ProfileSummary) -> First | None:
    if not summary.optimization_candidates:
        return None
    one = summary.optimization_candidates[0]
    return First(one.candidate_id, one.title, one.ceiling_per_step, one.certainty)


def measured(case: Case, pairs: int, folder: Path, marked: bool) -> Row:
    steps = {flawed: case.build(flawed) for flawed in (True, False)}
    for step in steps.values():
        for _ in range(WARM):
            jax.block_until_ready(step())
    found = []
    for pair in range(pairs):
        both = {}
        for flawed in (True, False) if pair % 2 == 0 else (False, True):
            place = folder / f"{case.name}_{pair}_{'flawed' if flawed else 'twin'}"
            both[flawed] = captured(steps[flawed], place, marked)
        periods = {flawed: one.step_time.mean_period for flawed, one in both.items()}
        if periods[True] is None or periods[False] is None:
            raise SystemExit(f"{case.name}: a capture has no whole step")
        found.append(Pair(periods[True], periods[False], first_of(both[True])))
    return row_of(case.name, case.flaw, found, case.right, case.names)


def main() -> None:
    names = [one.name for one in CASES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--unmarked", action="store_true", help="without step markers")
    parser.add_argument("--keep", type=Path, help="keep the captures in this folder")
    parser.add_argument("--output", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    chosen = [one for one in CASES if one.name in (options.only or names)]
    rows = []
    with tempfile.TemporaryDirectory() as made:
        for case in chosen:
            rows.append(
                measured(case, options.pairs, options.keep or Path(made), not options.unmarked)
            )
            print(f"{case.name}: {rows[-1].right} of {options.pairs} right", file=sys.stderr)
    if options.output is not None:
        options.output.write_text(json.dumps(as_json(rows), indent=1, sort_keys=True) + "\n")
    print(markdown(rows), end="")


if __name__ == "__main__":
    main()
