"""What the verbs that judge a change share: thresholds, history, and the exit code of a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.text import plural
from marin_profile.cli.options import all_of, note

if TYPE_CHECKING:
    from marin_profile.schema import ProfileSummary
    from marin_profile.verdict import Assessment


REFUSED, LIKELY = 1, 7


def _threshold(name: str, default: float, text: str) -> Any:
    return click.option(
        name, type=click.FloatRange(min=0), default=default, show_default=True, help=text
    )


_THRESHOLDS = (
    _threshold(
        "--max-step-median-regression-pct",
        5.0,
        "Mean and typical step time: more of either is a fail, in per cent.",
    ),
    _threshold("--max-step-p90-regression-pct", 10.0, "p90 of the step time, in per cent."),
    _threshold(
        "--max-communication-share-regression-abs",
        0.05,
        "Exposed communication per step, as a share of the step before.",
    ),
    _threshold(
        "--max-stall-share-regression-abs",
        0.05,
        "Idle time per step, as a share of the step before.",
    ),
    click.option(
        "--allow-inconclusive", is_flag=True, help="Exit 0 if the verdict is inconclusive."
    ),
    click.option(
        "--fail-on-likely",
        is_flag=True,
        help="Exit 7 if a slowdown is likely, but one capture a side cannot confirm it.",
    ),
    click.option(
        "--pair",
        is_flag=True,
        help="Judge the captures as pairs, one by one in the order given: for captures taken in "
        "turn. Done by itself for four pairs or more whose times show that they were.",
    ),
    click.option(
        "--sequential",
        is_flag=True,
        help="Judge the pairs so far, with bounds that hold if you look after every pair and stop "
        "at the first that settles (3 to 20 pairs).",
    ),
)


def commit_option(text: str) -> Any:
    return click.option("--commit", metavar="SHA", help=text)


_HISTORY = (
    click.option(
        "--label",
        metavar="L",
        help="A name for what is measured; in a history it stands for the config.",
    ),
    click.option(
        "--history",
        metavar="H",
        help="Take the noise floor from this history, and append the captures after the change.",
    ),
    commit_option("The commit after the change, where the summaries do not name it."),
    click.option(
        "--no-append", is_flag=True, help="Leave the history as it is: judge by it alone."
    ),
    click.option("--stamp", is_flag=True, help="Also keep the current time in the history."),
)


threshold_options = all_of(*_THRESHOLDS)
history_options = all_of(*_HISTORY)


def require_history(history: str | None, stamp: bool, commit: str | None, no_append: bool) -> None:
    if history is not None:
        return
    if stamp:
        raise UsageError("--stamp records when captures enter a history; name one with --history.")
    if commit is not None or no_append:
        raise UsageError("--commit and --no-append are about a history; name one with --history.")


def keep(
    history: str | None,
    after: Sequence[ProfileSummary],
    assessment: Assessment,
    *,
    stamp: bool,
    commit: str | None,
    no_append: bool,
) -> None:
    """Append the captures after the change to the history, if there is one."""
    if history is None or no_append:
        return
    from marin_profile.tracking import record

    when = now() if stamp else None
    added = record(history, after, assessment, git_sha=commit, recorded_at_utc=when)
    note_appended(history, added, len(after), " after the change")


def note_appended(history: str, added: int, given: int, which: str = "") -> None:
    """How many of the captures given the history took, and how many it had."""
    already = f"; {given - added:,} were there" if added < given else ""
    note(f"{history}: {plural(added, 'capture')}{which} appended{already}.")


def now() -> str:
    from datetime import UTC, datetime

    from marin_profile.base.times import utc_text

    return utc_text(datetime.now(UTC))


def exit_code(
    assessment: Assessment, *, allow_inconclusive: bool = False, fail_on_likely: bool = False
) -> int:
    """0 lets a change pass."""
    codes = {
        "fail": REFUSED,
        "likely_fail": LIKELY if fail_on_likely else 0,
        "inconclusive": 0 if allow_inconclusive else REFUSED,
    }
    return codes.get(assessment.status, 0)
