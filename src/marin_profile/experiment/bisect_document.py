"""A bisection as a document: its answer, the commits that were captured, and every try."""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration, number, plural, share
from marin_profile.comparison import Comparison
from marin_profile.documents.model import (
    Block,
    Document,
    Paragraph,
    Series,
    bullets,
    left_out,
    sections,
    table,
)
from marin_profile.documents.text import code, plain, strong
from marin_profile.experiment.bisect_result import (
    BisectResult,
    Change,
    CommitRow,
    by,
    name,
    percent,
    sentence,
    sure,
)
from marin_profile.experiment.commits import SHORT
from marin_profile.reports.hlo import hlo_answer, hlo_section

MOST_ROWS = 200
# Commits that were not captured are listed from this probability on.
WORTH_A_ROW = 0.001


def bisect_document(result: BisectResult, comparison: Comparison | None = None) -> Document:
    """`comparison`: of the last capture before the change with that of the commit found."""
    explained = hlo_answer(comparison) if comparison else []
    return Document(
        title=sentence(result),
        lead=(*_lead(result), *explained),
        sections=sections(
            (
                ("What XLA did differently", hlo_section(comparison) if comparison else []),
                ("Commits", _commits(result)),
                ("Left out", _skipped(result)),
                ("Captures", _tries(result)),
                ("How it was decided", _how(result)),
            )
        ),
    )


def _lead(result: BisectResult) -> list[Block]:
    told = []
    if result.change is not None and result.state == "found":
        told.append(f"{_from_to(result.change)}.")
    if result.ends is not None:
        told.append(f"Between the ends of the range: {_from_to(result.ends)}.")
    if result.state == "found":
        assert result.found is not None
        if result.commits[result.found].is_merge:
            told.append(
                "It is a merge: what it brought in can be bisected from where that branch left "
                "this line to the branch's last commit."
            )
        told += _what_changed(result)
    if result.state == "no_change" and _is_opposite(result):
        assert result.ends is not None
        other = "--faster" if result.direction == "slower" else "without --faster"
        told.append(f"The step got {by(result.ends.ratio)} instead: bisect {other}.")
    if result.state == "no_change":
        told.append(
            "Runs that import an installed package run that, whatever the commit: build each "
            "commit, or set PYTHONPATH to its worktree."
        )
    if result.state == "unsure":
        told += _what_would_help(result)
    return bullets(told)


def _from_to(change: Change) -> str:
    told = f"{duration(change.before)} before, {duration(change.after)} after, "
    told += strong(by(change.ratio))
    if change.low is None or change.high is None:
        return f"{told} (one capture on each side)"
    return f"{told} (95 % interval {100 * change.low:+.1f} to {100 * change.high:+.1f} %)"


def _what_changed(result: BisectResult) -> list[str]:
    before, after = (result.newest_capture(at) for at in (result.before, result.after))
    if before is None or after is None:
        return []
    line = code(f"marin-profile compare {before} {after}", None)
    return [f"What changed in it, asked in this folder: {line}"]


def _is_opposite(result: BisectResult) -> bool:
    wanted = 1 if result.direction == "slower" else -1
    ends = result.ends
    return ends is not None and ends.ratio * wanted < 0 and abs(ends.ratio) >= result.least_change


def _what_would_help(result: BisectResult) -> list[str]:
    inside = result.commits[result.before + 1 : result.after]
    lost = [one for one in inside if one.skipped is not None]
    told = []
    if lost:
        told.append(
            f"{plural(len(lost), 'commit')} between them could not be measured: see below. Make "
            "one of them build and run, and start again with --retry-failed."
        )
    if len(lost) < len(inside) or not inside:
        told.append("More captures would help: start again with a larger --most-captures.")
    return told


def _commits(result: BisectResult) -> list[Block]:
    rows = [
        (at, row)
        for at, row in enumerate(result.commits)
        if row.captures or (row.probability or 0.0) >= WORTH_A_ROW
    ]
    shown = rows[:MOST_ROWS]
    good = result.commits[0].step_time
    cells = [
        [
            number(at),
            code(row.commit[:SHORT]),
            plain(row.subject, 100),
            number(row.captures),
            duration(row.step_time),
            _against(row, good),
            _probability(row),
        ]
        for at, row in shown
    ]
    captured = [(at, row) for at, row in rows if row.step_time is not None]
    blocks: list[Block] = [
        Paragraph(
            f"{plural(len(result.commits) - 1, 'commit')} after the good one, by first parents"
            + (f" ({plural(result.merged, 'merged commit')} not searched)" if result.merged else "")
            + ". Probability: that it is the first one after the change."
        ),
        table(
            ["", "commit", "subject", "captures", "step", "against good", "probability"],
            cells,
            "rllrrrr",
        ),
        *left_out(len(rows), len(shown), "commit"),
    ]
    if len(captured) > 1:
        points = tuple(
            (
                f"{row.commit[:SHORT]} {plain(row.subject, 60)}",
                row.step_time or 0.0,
                duration(row.step_time),
            )
            for _, row in captured
        )
        marked = {at for at, (index, _) in enumerate(captured) if index == result.found}
        blocks.append(
            Series(
                "Step of the commits that were captured, in their order",
                points,
                of=("commit", "step"),
                from_zero=False,
                marked=frozenset(marked),
            )
        )
    return blocks


def _against(row: CommitRow, good: float | None) -> str:
    if row.step_time is None or good is None:
        return NOT_KNOWN
    return f"{100 * (row.step_time / good - 1):+.1f} %"


def _probability(row: CommitRow) -> str:
    if row.probability is None:
        return ""
    return "above 99.9 %" if row.probability > 0.9995 else share(row.probability)


def _skipped(result: BisectResult) -> list[Block]:
    rows = [
        [code(row.commit[:SHORT]), plain(row.subject, 100), plain(row.skipped or "", 400)]
        for row in result.skipped
    ]
    if not rows:
        return []
    return [
        table(["commit", "subject", "why"], rows[:MOST_ROWS], "lll"),
        *left_out(len(rows), min(len(rows), MOST_ROWS), "commit"),
    ]


def _tries(result: BisectResult) -> list[Block]:
    if not result.tries:
        return []
    rows = [
        [
            number(at),
            code(one.commit[:SHORT]),
            duration(one.typical),
            duration(one.mean),
            number(one.steps),
            f"{one.seconds:,.0f} s",
            plain(one.why or "", 400),
            code(one.capture or one.log, None),
        ]
        for at, one in enumerate(result.tries, 1)
    ]
    headers = ["", "commit", "typical step", "mean step", "steps", "took", "failed", "files"]
    return [
        table(headers, rows[:MOST_ROWS], "rlrrrrll"),
        *left_out(len(rows), min(len(rows), MOST_ROWS), "try", "tries"),
    ]


def _how(result: BisectResult) -> list[Block]:
    told = [
        f"Looked for: a commit from which on the {result.measure} step is "
        f"{percent(result.least_change)} {result.direction} or more.",
        f"First commit: {code(name(result, 0), 200)}; last commit: "
        f"{code(name(result, len(result.commits) - 1), 200)}.",
    ]
    if result.none is not None:
        told.append(f"Probability that there is none: {share(result.none)}.")
    if result.state == "unsure" and result.confidence is not None:
        told.append(f"The change lies between the two that are named: {sure(result.confidence)}.")
    return bullets(told)
