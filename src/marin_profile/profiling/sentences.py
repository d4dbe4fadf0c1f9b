"""What is logged of a capture when its state changes, and at the end.

Contract: everything said comes from the record; the same record gives the same line.
"""

from __future__ import annotations

import logging

from marin_profile.profiling.record import CaptureRecord, Logged, State

Line = tuple[int, str]  # a level of logging, and the text


def line_of(record: CaptureRecord) -> Line | None:
    """What a change to this state is worth saying."""
    say = _LINES.get(record.state)
    return say(record) if say is not None else None


def unfinished_line(record: CaptureRecord) -> Line:
    """What is said of a capture that the process leaves behind."""
    doing = {
        State.TRACING: "was still being taken",
        State.SETTLING: "was not summarised yet",
        State.INGESTING: "was not summarised yet",
        State.SHARED: "was summarised, but not logged yet",
    }.get(record.state, "was not taken")
    return (
        logging.WARNING,
        f"training ended while the profile of {record.steps_text} {doing}; "
        f"the next start of this run finishes it, or: {finish_command(record)}",
    )


def finish_command(record: CaptureRecord) -> str:
    return f"marin-profile finish {record.folder}"


def logged_text(logged: tuple[Logged, ...]) -> str:
    """`wandb: profile-summary-r:v0 and 14 figures (uploaded); noop: nothing (it keeps nothing)`."""
    return "; ".join(map(_row_text, logged))


def lacking_text(logged: tuple[Logged, ...]) -> str | None:
    """`wandb: TimeoutError: ...`: the trackers that lack something, and why; None if none does."""
    lacking = [f"{one.tracker}: {one.error}" for one in logged if one.error is not None]
    return "; ".join(lacking) or None


def _row_text(one: Logged) -> str:
    figures = [f"{one.figures} figures"] if one.figures else []
    *first, last = (*one.artifacts, *figures) or ("nothing",)
    what = f"{', '.join(first)} and {last}" if first else last
    note = f" ({one.note})" if one.note else ""
    return f"{one.tracker}: {what}{note}"


def _tracing(record: CaptureRecord) -> Line:
    why = {"on_demand": " as requested", "slow_step": " after a slow step"}.get(record.trigger, "")
    return logging.INFO, f"profiling {record.steps_text}{why}"


def _settling(record: CaptureRecord) -> Line:
    text = f"profile of {record.steps_text} written to {record.folder}"
    if record.compiled is not None:
        return logging.WARNING, f"{text}; {record.compiled}: it shows more than the usual step"
    return logging.INFO, text


def _shared(record: CaptureRecord) -> Line:
    where = record.folder
    if record.problems:
        return (
            logging.WARNING,
            f"profile summary and report written to {where}; but {'; '.join(record.problems)}",
        )
    return logging.INFO, f"profile summary and report written to {where}"


def _published(record: CaptureRecord) -> Line | None:
    if not record.logged:
        return None
    where = "logged to" if any(one.holds_any for one in record.logged) else "not logged:"
    return logging.INFO, f"profile of {record.steps_text} {where} {logged_text(record.logged)}"


def _failed(record: CaptureRecord) -> Line:
    if record.failed_at is State.SHARED:
        return logging.WARNING, _not_logged(record)
    what = {
        State.PLANNED: "not profiled",
        State.TRACING: "profile lost",
    }.get(record.failed_at or State.PLANNED, "profile not summarised")
    text = f"{record.steps_text}: {what}: {record.why}"
    if record.is_taken:
        text += f"; to finish it: {finish_command(record)}"
    return logging.WARNING, text


def _not_logged(record: CaptureRecord) -> str:
    """Only a training has the trackers: `finish` knows W&B alone."""
    holding = tuple(one for one in record.logged if one.holds_any)
    logged = f" and logged to {logged_text(holding)}, but the rest is" if holding else ", but"
    return (
        f"{record.steps_text}: profile summarised{logged} not logged: {record.why}; "
        f"the next start of this run logs it, or to W&B: {finish_command(record)}"
    )


_LINES = {
    State.TRACING: _tracing,
    State.SETTLING: _settling,
    State.SHARED: _shared,
    State.PUBLISHED: _published,
    State.FAILED: _failed,
}

__all__ = ["Line", "finish_command", "lacking_text", "line_of", "logged_text", "unfinished_line"]
