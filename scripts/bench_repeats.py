"""False alarms on real captures: the demo model against itself.

Each capture is a training of its own, one after the other. They are judged in pairs, first against
second, third against fourth, ..., with a history that holds five of them as repeats. Those are no
two of one pair and spread over the whole session, so that the noise floor includes what drifts in
it; in judging a pair its own captures are left out of the history. More than one alarm exits 1.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

from demo_captures import take_capture

from marin_profile import load_summary, summarize
from marin_profile.history.record import record_of
from marin_profile.history.store import append
from marin_profile.schema import ProfileSummary
from marin_profile.tracking import track
from marin_profile.verdict import Assessment

REPEATS = 5
MOST_ALARMS = 1
LABEL, COMMIT = "demo", "unchanged"
STATUSES = ("pass", "warn", "fail", "inconclusive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--captures", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="keep the captures here; go on with those there")


def bench_repeats(options: argparse.Namespace) -> None:
    if options.captures < 2 * REPEATS or options.captures % 2:
        sys.exit(f"--captures must be even and at least {2 * REPEATS}")
    if options.keep is not None:
        _bench(options.keep, options.captures)
        return
    with tempfile.TemporaryDirectory() as folder:
        _bench(Path(folder), options.captures)


def repeats_of(captures: int) -> list[int]:
    """Which captures the history holds: the first of a pair, of pairs as far apart as can be."""
    pairs = captures // 2
    return [2 * round(at * (pairs - 1) / (REPEATS - 1)) for at in range(REPEATS)]


def _bench(folder: Path, captures: int) -> None:
    summaries = [_summary(folder / f"{at + 1:02}", at, captures) for at in range(captures)]
    history = folder / "history.jsonl"
    history.unlink(missing_ok=True)
    repeats = repeats_of(captures)
    for at in repeats:
        append(str(history), record_of(summaries[at], label=LABEL, git_sha=COMMIT))
    print(
        f"{'pair':>7} {'before ms':>9} {'after ms':>9} {'change':>8} {'95 % interval':>19}  "
        f"{'status':24} without the history"
    )
    verdicts = []
    for at in range(0, captures, 2):
        sides = ([summaries[at]], [summaries[at + 1]])
        with_history = track(*sides, history=str(history), label=LABEL).assessment
        alone = track(*sides).assessment
        verdicts.append((with_history, alone))
        print(_line(at, with_history, alone))
    for title, column in (("with the history", 0), ("without", 1)):
        counts = Counter(pair[column].status for pair in verdicts)
        listed = ", ".join(f"{status} {counts[status]}" for status in STATUSES)
        print(f"{title}: {counts['fail']} alarms in {len(verdicts)} pairs ({listed})")
    logs = [math.log(_median(summary)) for summary in summaries]
    named = ", ".join(str(at + 1) for at in repeats)
    print(
        f"between runs, standard deviation of log median step times: all {captures} "
        f"{_spread(logs)}, the {REPEATS} repeats (captures {named}) "
        f"{_spread([logs[at] for at in repeats])}"
    )
    within = [statistics.stdev(_log_periods(summary)) for summary in summaries]
    print(f"within runs, of log step times: median {100 * statistics.median(within):.1f} %")
    alarms = sum(pair[0].status == "fail" for pair in verdicts)
    if alarms > MOST_ALARMS:
        sys.exit(f"{alarms} alarms, where nothing changed; at most {MOST_ALARMS} is expected")


def _summary(folder: Path, at: int, captures: int) -> ProfileSummary:
    kept = folder / "profile_summary.json"
    profiles = take_capture(folder)
    if not kept.exists():
        kept.write_text(summarize(str(profiles)).to_json())
    print(f"capture {at + 1} of {captures}", file=sys.stderr, flush=True)
    return load_summary(str(kept))


def _line(at: int, judged: Assessment, alone: Assessment) -> str:
    before, after = (side.step_time or math.nan for side in (judged.before, judged.after))
    low, high = judged.interval_pct or (math.nan, math.nan)
    status = f"{judged.status} ({judged.confidence})"
    return (
        f"{f'{at + 1}-{at + 2}':>7} {before / 1e3:9.1f} {after / 1e3:9.1f} "
        f"{judged.change_pct:+7.1f}% {low:+8.1f}%{high:+9.1f}%  "
        f"{status:24} {alone.status} ({alone.confidence})"
    )


def _median(summary: ProfileSummary) -> float:
    median = record_of(summary).median
    assert median is not None, "the demo's captures have steps"
    return median


def _log_periods(summary: ProfileSummary) -> list[float]:
    return [math.log(step.period) for step in summary.step_time.steps if step.kept and step.period]


def _spread(logs: list[float]) -> str:
    return f"{100 * statistics.stdev(logs):.1f} %"
