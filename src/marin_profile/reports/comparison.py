"""A comparison as Markdown: the answer first, then what it rests on.

Contract: deterministic; every number is the comparison's own. What a side does not have is "not
present", never 0; lists say how many rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marin_profile.base.text import (
    NOT_KNOWN,
    code,
    duration,
    left_out,
    number,
    plural,
    prose,
    rate,
    table,
)
from marin_profile.comparison.model import (
    Change,
    ComparedCapture,
    Comparison,
    OpChange,
    OpSide,
    Split,
    SplitRow,
)
from marin_profile.events.classify import COLLECTIVES
from marin_profile.reports.devices import accounting_device, device_table

NOT_PRESENT = "not present"
ROWS_NAMED = 3
# Of the largest part named in the answer, what others must reach to be named as well.
LEAST_NAMED = 0.1
DURATIONS = ["before", "after", "change"]


def render_comparison(comparison: Comparison) -> str:
    """The whole report."""
    return "\n".join(
        ["# Comparison", "", *_answer(comparison), "", *comparison_sections(comparison)]
    )


def comparison_sections(comparison: Comparison) -> list[str]:
    """What the answer rests on, section by section."""
    sections = [
        ("Can they be compared?", _comparability(comparison)),
        ("Where the change is: device time", _split(comparison, "ledger", "term")),
        ("Devices that changed otherwise than the others", device_table(comparison)),
        ("Where the change is: regions", _split(comparison, "regions", "region")),
        ("Where the change is: ops", _ops(comparison)),
        ("Where the change is: op families", _split(comparison, "families", "family")),
        ("Step time", _steps(comparison)),
        ("Regions with all below them", _regions(comparison)),
        ("Collectives", _collectives(comparison)),
        ("Gaps", _gaps(comparison)),
    ]
    lines = []
    for title, body in sections:
        if body:
            lines += [f"## {title}", "", *body, ""]
    return lines


def comparison_headline(comparison: Comparison) -> str:
    """What changed and by how much, as plain text; and the device that accounts for it."""
    return " ".join(filter(None, (_headline(comparison), accounting_device(comparison))))


def _headline(comparison: Comparison) -> str:
    if comparison.comparability.same_capture:
        return (
            "Same capture: both summaries are of the same bytes; differences in "
            "figures come from how they were summarized."
        )
    target = comparison.target
    if target is None or target.delta is None:
        return comparison.cannot_attribute or "The cost of a step is not known on both sides."
    lengths = f"{duration(target.before)} before, {duration(target.after)} after"
    steps = f"{plural(target.before_steps, 'step')} against {target.after_steps:,}"
    if not target.delta:
        return f"A step takes as long as before on each device: {lengths} ({steps})."
    more = "longer" if target.delta > 0 else "less"
    return (
        f"A step takes {duration(abs(target.delta))} {more} on each device "
        f"({percent(target.relative)}): {lengths} (mean over devices, {steps})."
    )


def _answer(comparison: Comparison) -> list[str]:
    lines = [f"**{prose(comparison_headline(comparison), None)}**"]
    state = comparison.comparability
    if not state.same_capture and state.blocking:
        why = " ".join(prose(caveat.sentence) for caveat in state.blocking)
        lines += ["", f"**The two are not comparable, so this is no verdict:** {why}"]
    lines += largest_parts(comparison)
    target = comparison.target
    split = comparison.attribution is not None and not state.same_capture
    if split and target and target.before_steps == target.after_steps == 1:
        lines += ["", "One step on each side has no statistics: the change may be noise."]
    return lines


def largest_parts(comparison: Comparison) -> list[str]:
    """The device time, regions and ops that account for most of the change, a paragraph each."""
    attribution = comparison.attribution
    if comparison.comparability.same_capture or attribution is None or comparison.target is None:
        return []
    lines = []
    for title, split in (
        ("Device time", attribution.ledger),
        ("Regions", attribution.regions),
        ("Ops", attribution.ops),
    ):
        named = ", ".join(f"{_name(row)} {signed(row.delta)}" for row in _leading(split))
        if named:
            lines += ["", f"{title}: {named}."]
    return lines


def _leading(split: Split) -> list[SplitRow]:
    """The largest first; the ledger's terms come in an order of their own."""
    rows = sorted((row for row in split.rows if row.delta), key=lambda row: -abs(row.delta or 0.0))
    least = LEAST_NAMED * abs(rows[0].delta or 0.0) if rows else 0.0
    return [row for row in rows[:ROWS_NAMED] if abs(row.delta or 0.0) >= least]


def _name(row: SplitRow) -> str:
    if row.name.startswith("("):
        return prose(row.name)
    if not isinstance(row, OpChange):
        return code(row.name)
    manner = ", ".join(filter(None, (_collective(row), row.match.replace("_", " "), _pass(row))))
    return f"{_op_names(row)} ({prose(manner)})"


def _collective(row: OpChange) -> str:
    """Of a row of one kind of collective, that kind, unless its ops' names say so."""
    ops = (*row.before_ops, *row.after_ops)
    kinds = {op.category for op in ops}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return kind if kind in COLLECTIVES and any(kind not in op.canonical_name for op in ops) else ""


def _pass(row: OpChange) -> str:
    """Where all the row's ops are in one pass that has a name."""
    passes = {op.pass_ for op in (*row.before_ops, *row.after_ops)}
    return (passes.pop() or "") if len(passes) == 1 and "other" not in passes else ""


def _op_names(row: OpChange) -> str:
    before, after = _side_names(row.before_ops), _side_names(row.after_ops)
    if not row.before_ops or not row.after_ops:
        return before or after
    return before if before == after else f"{before} → {after}"


def _side_names(ops: Sequence[OpSide]) -> str:
    names = list(dict.fromkeys(op.canonical_name for op in ops))
    shown = ", ".join(code(name) for name in names[:ROWS_NAMED])
    return shown if len(names) <= ROWS_NAMED else f"{shown}, ..."


def signed(microseconds: float | None) -> str:
    sign = "+" if microseconds is not None and microseconds > 0 else ""
    return sign + duration(microseconds)


def percent(relative: float | None) -> str:
    return NOT_KNOWN if relative is None else f"{100 * relative:+.1f} %"


def _present(microseconds: float | None) -> str:
    return NOT_PRESENT if microseconds is None else duration(microseconds)


def _change(change: Change) -> list[str]:
    return [
        _present(change.before),
        _present(change.after),
        signed(change.delta),
        percent(change.relative),
    ]


def _comparability(comparison: Comparison) -> list[str]:
    state = comparison.comparability
    before, after = comparison.before, comparison.after
    rows = [
        [title, _fact(before, name), _fact(after, name)]
        for title, name in (
            ("source", "source_path"),
            ("format", "source_format"),
            ("sha256", "trace_sha256"),
            ("run", "run_id"),
            ("commit", "git_sha"),
            ("config", "config_hash"),
            ("hardware", "hardware_type"),
            ("devices", "num_devices"),
            ("hosts", "num_hosts"),
            ("steps from", "step_source"),
            ("steps kept", "kept_steps"),
            ("summarized by", "tool_version"),
            ("jax", "jax_version"),
        )
        if getattr(before, name) is not None or getattr(after, name) is not None
    ]
    lines = []
    if state.same_capture:
        lines.append("**Same capture: there is nothing to compare.**")
    lines += [
        f"- {'**Not comparable:** ' if one.severity == 'blocking' else ''}{prose(one.sentence)}"
        for one in state.caveats
    ]
    if not lines:
        lines.append("Yes, without caveats.")
    return [*lines, "", *table(["", "before", "after"], rows, "lll")]


def _fact(side: ComparedCapture, name: str) -> str:
    value = getattr(side, name)
    if value is None:
        return NOT_KNOWN
    return code(str(value)[:12] if name == "trace_sha256" else str(value))


def _split(comparison: Comparison, name: str, header: str) -> list[str]:
    if comparison.attribution is None:
        return []
    split: Split = getattr(comparison.attribution, name)
    rows = [[_name(row), *_change(row), percent(row.share_of_target)] for row in _all(split)]
    headers = [header, *DURATIONS, "relative", "of the change"]
    note = "Per step and device; the rows sum to the change of a step."
    return [note, "", *table(headers, rows), *left_out(split.total_rows, len(split.rows), "row")]


def _all(split: Split) -> Iterable[SplitRow]:
    return [*split.rows, *([split.others] if split.others else [])]


def _ops(comparison: Comparison) -> list[str]:
    if comparison.attribution is None:
        return []
    split = comparison.attribution.ops
    rows = []
    for row in _all(split):
        named = _op_names(row) if isinstance(row, OpChange) and row.match not in _NO_OPS else None
        if isinstance(row, OpChange) and row.match == "same_kind":
            named = f"{prose(row.name)}: {_op_names(row)}"
        elif named and isinstance(row, OpChange) and _collective(row):
            named += f" ({_collective(row)})"
        rows.append(
            [
                named or prose(row.name),
                prose(row.match.replace("_", " ")) if isinstance(row, OpChange) else "",
                prose(_pass(row)) if isinstance(row, OpChange) else "",
                _scope(row),
                *_calls(row),
                *_change(row),
                percent(row.share_of_target),
            ]
        )
    calls = ["calls before", "calls after"]
    headers = ["op", "match", "pass", "scope", *calls, *DURATIONS, "relative", "of the change"]
    lines = ["Per step and device; the rows sum to the change of a step.", ""]
    lines += [*table(headers, rows, "llll"), *left_out(split.total_rows, len(split.rows), "row")]
    for one, sentence in (
        (split.rest, "has no partner on the other side"),
        (split.loose, "is of ops that are matched by kind alone"),
    ):
        if one.before or one.after:
            lines += [
                "",
                f"{signed(one.delta)} {sentence}: {_present(one.before)} before, "
                f"{_present(one.after)} after.",
            ]
    return lines


def _calls(row: SplitRow) -> list[str]:
    if not isinstance(row, OpChange):
        return ["", ""]
    return [_count(row.before_count), _count(row.after_count)]


def _count(count: float | None) -> str:
    return "" if count is None else f"{count:,.1f}"


_NO_OPS = ("idle", "launch", "rest")


def _scope(row: SplitRow) -> str:
    if not isinstance(row, OpChange) or row.match == "same_kind":
        return ""
    scopes = [ops[0].scope for ops in (row.before_ops, row.after_ops) if ops and ops[0].scope]
    return " → ".join(code(scope) for scope in dict.fromkeys(scopes) if scope)


def _steps(comparison: Comparison) -> list[str]:
    rows = [
        [
            prose(row.measure.replace("_", " ")),
            code(row.step_class) if row.step_class else "all",
            prose(row.statistic),
            number(row.before_count),
            number(row.after_count),
            *_change(row),
        ]
        for row in comparison.step_time
    ]
    if not rows:
        return ["No step lengths are known."]
    headers = ["length", "class", "statistic", "steps before", "after", *DURATIONS, "relative"]
    return table(headers, rows, "lll")


def _regions(comparison: Comparison) -> list[str]:
    rows = [[code(row.path), *_change(row)] for row in comparison.regions]
    if not rows:
        return []
    note = "Per step and device; a region contains those below it, so these do not sum."
    return [
        note,
        "",
        *table(["region", *DURATIONS, "relative"], rows),
        *left_out(comparison.total_regions, len(rows), "region"),
    ]


def _collectives(comparison: Comparison) -> list[str]:
    lines: list[str] = []
    rows = [
        [code(row.collective), name, *_change(change)]
        for row in comparison.collectives
        for name, change in (("exposed", row.exposed), ("overlapped", row.overlapped))
        if change.before or change.after
    ]
    if rows:
        lines += table(["collective", "time", *DURATIONS, "relative"], rows, "ll")
    rates = [
        [
            code(row.collective),
            number(row.group_size),
            *(
                NOT_PRESENT if value is None else rate(value, "GB/s")
                for value in (row.bus_gbps.before, row.bus_gbps.after)
            ),
            percent(row.bus_gbps.relative),
        ]
        for row in comparison.bandwidth
    ]
    if rates:
        headers = ["collective", "group", "bus before", "bus after", "relative"]
        lines += ([""] if lines else []) + table(headers, rates)
    return lines


def _gaps(comparison: Comparison) -> list[str]:
    rows = [
        [
            code(row.name),
            _count(row.before_count),
            _count(row.after_count),
            *_change(row),
        ]
        for row in comparison.gaps
    ]
    if not rows:
        return []
    headers = ["idle before", "gaps before", "gaps after", *DURATIONS, "relative"]
    note = "Per step and device; ops of one name without its number together."
    return [note, "", *table(headers, rows), *left_out(comparison.total_gaps, len(rows), "op")]
