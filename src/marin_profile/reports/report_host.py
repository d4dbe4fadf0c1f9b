"""The section of the Markdown report on what hosts did while their devices idled."""

from __future__ import annotations

from marin_profile.base.text import duration, number, plural, share
from marin_profile.documents.model import Block, Paragraph, bullets, left_out, table
from marin_profile.documents.text import code, plain
from marin_profile.facts.device_time import left_out_of
from marin_profile.queries.host_activity import known_hosts
from marin_profile.schema import HostActivity, HostCause, ProfileSummary

MOST_HOSTS = 4
MOST_STEPS = 6
MOST_LAUNCHED = 5


def host_activity(summary: ProfileSummary, top_k: int) -> list[Block]:
    hosts = known_hosts(summary)
    named = len(summary.hosts) > 1
    reasons = sorted({one.reason for one in summary.host_activity if one.reason})
    return [
        *(block for host in hosts[:MOST_HOSTS] for block in _host(host, top_k, named=named)),
        *left_out(
            len(hosts) + left_out_of(summary, "host_activity"),
            min(len(hosts), MOST_HOSTS),
            "host",
        ),
        *(Paragraph(f"Not known: {plain(reason)}.") for reason in reasons),
    ]


def _host(host: HostActivity, top_k: int, *, named: bool) -> list[Block]:
    window = plural(host.whole_periods, "step") if host.whole_periods else "the capture"
    all_idle, some_idle = (
        share(_part(host, time)) for time in (host.idle_duration, host.partly_idle_duration)
    )
    idle = (
        f"{f'Host {code(host.host)}: all' if named else 'All'} devices of the host idle at once "
        f"for {all_idle} of {window}; single ones, while others work, for another {some_idle}."
    )
    rows = [
        [
            plain(row.cause.replace("_", " ")),
            code(row.name, 60) if row.name else "",
            plain(row.place or ""),
            duration(row.idle_per_step if host.whole_periods else row.idle_duration),
            share(row.share_of_window),
            number(row.count) if row.count else "",
            _steps(row, host.whole_periods),
        ]
        for row in host.causes[:top_k]
    ]
    per = "a step" if host.whole_periods else "in all"
    headers = ["the host was in", "name", "step markers", per, "share", "events", "steps"]
    facts = [
        f"Compiled {code(one.function or '?')} for {duration(one.duration)}"
        + (f" in step {one.step}." if one.step is not None else ".")
        for one in host.compilations[:top_k]
    ]
    if len(host.compilations) > top_k:
        facts.append(f"{plural(len(host.compilations) - top_k, 'compilation')} left out.")
    if host.launches:
        facts.append(f"Launches from Python{_rate(host)}.")
    if host.device_reads:
        often = (
            f", {host.device_reads / host.whole_periods:,.1f} a step" if host.whole_periods else ""
        )
        facts.append(f"Reads of device values: {number(host.device_reads)}{often}.")
    return [
        Paragraph(idle),
        *([table(headers, rows, "lll")] if rows else []),
        *left_out(len(host.causes), len(rows), "cause"),
        *bullets(facts),
    ]


def _part(host: HostActivity, time: float | None) -> float | None:
    return None if time is None or not host.window_duration else time / host.window_duration


def _steps(row: HostCause, periods: int | None) -> str:
    if not periods or row.step_count is None:
        return ""
    if row.step_count == periods:
        return "all"
    if row.periodicity:
        return f"every {row.periodicity}"
    listed = ", ".join(map(str, row.steps[:MOST_STEPS]))
    return listed + (", ..." if len(row.steps) > MOST_STEPS else "")


def _rate(host: HostActivity) -> str:
    shown = host.launches[:MOST_LAUNCHED]
    names = ", ".join(
        f"{code(one.function, 40)} "
        + (f"{one.per_step:,.1f}" if one.per_step is not None else number(one.count))
        for one in shown
    )
    return f"{' a step' if host.whole_periods else ''}: {names}"
