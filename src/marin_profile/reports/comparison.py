"""A comparison, to read: the answer first, then what it rests on.

Contract: deterministic; every number is the comparison's own. What a side does not have is "not
present", never 0; lists say how many rows are left out. Rows that are not told from noise are one
line, and no answer names them.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.base.text import NOT_KNOWN, duration, number, plural, rate, size
from marin_profile.comparison.model import (
    Change,
    ComparedCapture,
    Comparison,
    GrossChange,
    MemoryScopeChange,
    OpChange,
    OpSide,
    RegionChange,
    Rename,
    Split,
    SplitRow,
    Target,
)
from marin_profile.documents import markdown
from marin_profile.documents.model import (
    Block,
    Document,
    Paragraph,
    Table,
    Waterfall,
    bullets,
    left_out,
    sections,
    table,
)
from marin_profile.documents.text import code, plain, strong
from marin_profile.events.classify import COLLECTIVES
from marin_profile.events.scopes import SEPARATOR
from marin_profile.reports.basis import a_unit, is_per_device, per_unit
from marin_profile.reports.changes import (
    NOT_PRESENT,
    interval,
    percent,
    present,
    signed,
    signed_size,
)
from marin_profile.reports.devices import accounting_device, device_table
from marin_profile.reports.hlo import hlo_answer, hlo_section

ROWS_NAMED = 3
# Of the largest part named in the answer, what others must reach to be named as well.
LEAST_NAMED = 0.1
DURATIONS = ["before", "after", "change"]


def render_comparison(comparison: Comparison) -> str:
    """The whole report as Markdown."""
    return markdown.render(comparison_report(comparison))


def render_comparison_html(comparison: Comparison) -> str:
    """The same as one page that works offline."""
    from marin_profile.documents import html

    return html.render(comparison_report(comparison))


def comparison_report(comparison: Comparison) -> Document:
    """The report as a document."""
    return Document(
        "Comparison", tuple(_answer(comparison)), sections(comparison_sections(comparison))
    )


def comparison_sections(comparison: Comparison) -> list[tuple[str, list[Block]]]:
    """What the answer rests on, section by section."""
    return [
        ("Can they be compared?", _comparability(comparison)),
        ("Where the change is: device time", _split(comparison, "ledger", "term")),
        ("Devices that changed otherwise than the others", device_table(comparison)),
        ("Where the change is: regions", _split(comparison, "headline", "region")),
        ("Where the change is: ops", _ops(comparison)),
        ("What XLA did differently", hlo_section(comparison)),
        ("Where the change is: regions by themselves", _split(comparison, "regions", "region")),
        ("Where the change is: op families", _families(comparison)),
        ("Step time", _steps(comparison)),
        ("Regions with all below them", _regions(comparison)),
        ("Collectives", _collectives(comparison)),
        ("Gaps", _gaps(comparison)),
        ("Memory", _memory(comparison)),
    ]


def _families(comparison: Comparison) -> list[Block]:
    """Known of steps only."""
    return _split(comparison, "families", "family") if comparison.basis is None else []


def _sums(comparison: Comparison) -> str:
    return f"{per_unit(comparison)}; the rows sum to the change of {a_unit(comparison)}."


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
    basis = comparison.basis
    lengths = f"{duration(target.before)} before, {duration(target.after)} after"
    if basis is None:
        lengths += f" (mean over devices, {_looks(target)}){_typical(target)}"
    first = "" if basis is None else f"{basis.sentence} "
    subject = a_unit(comparison)
    where = " on each device" if is_per_device(comparison) else ""
    if not target.delta:
        return f"{first}{subject.capitalize()} takes as long as before{where}: {lengths}."
    from_captures = min(target.before_captures, target.after_captures) > 1
    sure = f"; 95 %: {interval(target)}" if from_captures else ""
    more = f"{_longer(target.delta)}{where} ({percent(target.relative)}{sure})"
    if target.noise:
        return f"{first}No change is told from noise: {subject} takes {more}: {lengths}."
    return f"{first}{subject.capitalize()} takes {more}: {lengths}."


def _longer(delta: float) -> str:
    return f"{duration(abs(delta))} {'longer' if delta > 0 else 'less'}"


def _looks(target: Target) -> str:
    """How much was measured on each side."""
    if target.before_captures == target.after_captures == 1:
        return f"{plural(target.before_steps, 'step')} against {target.after_steps:,}"
    before = (
        f"{plural(target.before_captures, 'capture')} with {plural(target.before_steps, 'step')}"
    )
    return f"{before} against {target.after_captures:,} with {target.after_steps:,}"


def _typical(target: Target) -> str:
    """The median step, as the end of a sentence; one step is its own."""
    median = target.median
    if median is None or median.delta is None or target.before_steps == target.after_steps == 1:
        return ""
    if not median.delta:
        return "; the typical (median) step takes as long as before"
    return f"; the typical (median) step takes {_longer(median.delta)} ({percent(median.relative)})"


def _answer(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = [Paragraph(strong(plain(comparison_headline(comparison), None)))]
    state = comparison.comparability
    if not state.same_capture and state.blocking:
        why = " ".join(plain(caveat.sentence) for caveat in state.blocking)
        no_verdict = strong("The two are not comparable, so this is no verdict:")
        blocks.append(Paragraph(f"{no_verdict} {why}"))
    blocks += largest_parts(comparison)
    target = comparison.target
    split = comparison.attribution is not None and not state.same_capture
    lone = target is not None and target.before_steps == target.after_steps == 1
    if split and lone and comparison.basis is None:
        alone = "One step on each side has no statistics: the change may be noise."
        blocks.append(Paragraph(alone))
    elif split and target:
        blocks += _certainty(comparison)
    return blocks


def _certainty(comparison: Comparison) -> list[Block]:
    """What the intervals rest on, said once, unless it is captures."""
    assert comparison.attribution is not None
    basis = comparison.attribution.intervals_from
    if basis is None:
        known = "Nothing shows how much of this is noise"
    elif basis == "steps":
        known = (
            "The intervals of the step and its device time are from step to step within one "
            "capture a side"
        )
    else:
        return []
    return [
        Paragraph(f"{known}: what differs from run to run takes two captures or more on each side.")
    ]


def largest_parts(comparison: Comparison) -> list[Block]:
    """The device time, regions and ops that account for most of the change, a paragraph each,
    and how device time makes it."""
    attribution = comparison.attribution
    if comparison.comparability.same_capture or attribution is None or comparison.target is None:
        return []
    blocks: list[Block] = []
    for title, split in (
        ("Device time", attribution.ledger),
        ("Regions", attribution.headline),
        ("Ops", attribution.ops),
    ):
        named = ", ".join(f"{_name(row)} {signed(row.delta)}" for row in _leading(split))
        if named:
            blocks.append(Paragraph(f"{title}: {named}."))
        elif split.noise_rows and split.noise and split.noise.delta:
            blocks.append(Paragraph(f"{title}: nothing is told from noise."))
    return [
        *blocks,
        *hlo_answer(comparison),
        *_waterfall(comparison, attribution.ledger),
    ]


def _leading(split: Split) -> list[SplitRow]:
    """The largest first; the ledger's terms come in an order of their own."""
    rows = sorted(
        (row for row in split.rows if row.delta and not row.noise),
        key=lambda row: -abs(row.delta or 0.0),
    )
    least = LEAST_NAMED * abs(rows[0].delta or 0.0) if rows else 0.0
    return [row for row in rows[:ROWS_NAMED] if abs(row.delta or 0.0) >= least]


def _name(row: SplitRow) -> str:
    if row.name.startswith("("):
        return plain(row.name)
    if not isinstance(row, OpChange):
        return code(row.name)
    manner = ", ".join(filter(None, (_collective(row), _match(row), _pass(row))))
    return f"{_op_names(row)} ({plain(manner)})"


_MATCHES = {"only_before": "removed", "only_after": "added"}


def _match(row: OpChange) -> str:
    return _MATCHES.get(row.match) or row.match.replace("_", " ")


def _op_sides(row: OpChange) -> list[OpSide]:
    return [op for op in (row.before_op, row.after_op) if op is not None]


def _collective(row: OpChange) -> str:
    """Of a collective its kind, unless its names say so."""
    ops = _op_sides(row)
    kind = ops[0].category if ops else ""
    return kind if kind in COLLECTIVES and any(kind not in op.canonical_name for op in ops) else ""


def _pass(row: OpChange) -> str:
    """Where the row's ops are in one pass that has a name."""
    passes = {op.pass_ for op in _op_sides(row)}
    return (passes.pop() or "") if len(passes) == 1 and "other" not in passes else ""


def _op_names(row: OpChange) -> str:
    names = dict.fromkeys(op.canonical_name for op in _op_sides(row))
    return " → ".join(map(code, names))


def _change(change: Change) -> list[str]:
    return [
        present(change.before),
        present(change.after),
        signed(change.delta),
        percent(change.relative),
    ]


def _comparability(comparison: Comparison) -> list[Block]:
    state = comparison.comparability
    before, after = comparison.before, comparison.after
    rows = [
        [title, _facts(before, name), _facts(after, name)]
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
        if any(getattr(one, name) is not None for one in (*before, *after))
    ]
    same = "Same capture: there is nothing to compare."
    blocks: list[Block] = [
        *([Paragraph(strong(same))] if state.same_capture else []),
        *bullets(
            (strong("Not comparable:") + " " if one.severity == "blocking" else "")
            + plain(one.sentence)
            for one in state.caveats
        ),
    ]
    return [
        *(blocks or [Paragraph("Yes, without caveats.")]),
        table(["", "before", "after"], rows, "lll"),
    ]


def _facts(side: Sequence[ComparedCapture], name: str) -> str:
    """One for all captures, or each one's."""
    return ", ".join(dict.fromkeys(_fact(one, name) for one in side))


def _fact(side: ComparedCapture, name: str) -> str:
    value = getattr(side, name)
    if value is None:
        return NOT_KNOWN
    return code(str(value)[:12] if name == "trace_sha256" else str(value))


def _split(comparison: Comparison, name: str, header: str) -> list[Block]:
    if comparison.attribution is None:
        return []
    split: Split = getattr(comparison.attribution, name)
    shown = _shown(split)
    headers, aligned = [header, *DURATIONS, "relative", "of the change"], "l"
    rows = [[_name(row), *_change(row), percent(row.share_of_target)] for row in shown]
    if name in _GROSS:
        headers += _GROSS_HEADERS
        rows = [[*cells, *_gross(row)] for cells, row in zip(rows, shown, strict=True)]
    note = _sums(comparison)
    if name == "headline":
        note += " The fewest regions that account for it, each with all below it."
    renames = comparison.attribution.renames if name == "headline" else []
    return [
        Paragraph(note),
        *(_waterfall(comparison, split) if name != "ledger" else []),  # that one stands first
        _table(headers, rows, shown, aligned),
        *_left_out(split),
        *([Paragraph(_renames(comparison))] if renames else []),
    ]


def _waterfall(comparison: Comparison, split: Split) -> list[Block]:
    """How the rows make the change; nothing where one alone does."""
    told = [(_name(row), row.delta, signed(row.delta)) for row in _shown(split) if row.delta]
    target = comparison.target
    if len(told) < 2 or target is None or target.delta is None:
        return []
    sums = (f"change of {a_unit(comparison)}", target.delta, signed(target.delta))
    return [Waterfall(f"What makes the change of {a_unit(comparison)}", tuple(told), sums)]


_GROSS = ("headline", "regions")
_GROSS_HEADERS = ["added", "removed", "grown", "shrunk"]


def _gross(row: SplitRow) -> list[str]:
    gross = row.gross if isinstance(row, RegionChange) else None
    return ["", "", "", ""] if gross is None else _parts(gross)


def _parts(gross: GrossChange) -> list[str]:
    parts = (gross.added, gross.removed, gross.grown, gross.shrunk)
    return [signed(part) if part else "" for part in parts]


def _renames(comparison: Comparison) -> str:
    assert comparison.attribution is not None
    renames = comparison.attribution.renames
    named = ", ".join(
        f"{code(one.before)} → {code(_new_name(one))}" for one in renames[:ROWS_NAMED]
    )
    more = len(renames) - ROWS_NAMED
    return f"Renamed: {named}{f', and {more:,} more' if more > 0 else ''}."


def _new_name(rename: Rename) -> str:
    """The last part, unless that is as before and the scope stands elsewhere."""
    old, new = (path.rpartition(SEPARATOR)[2] for path in (rename.before, rename.after))
    return new if old != new else rename.after


def _table(
    headers: Sequence[str], rows: Sequence[list[str]], of: Sequence[SplitRow], aligned: str
) -> Table:
    """With a column of intervals where there are any."""
    if not any(row.interval for row in of):
        return table(headers, rows, aligned)
    at = headers.index("change") + 1
    with_intervals = [
        [*cells[:at], interval(row), *cells[at:]] for cells, row in zip(rows, of, strict=True)
    ]
    return table([*headers[:at], "95 %", *headers[at:]], with_intervals, aligned)


def _shown(split: Split) -> list[SplitRow]:
    """The rows that are told from noise, then the others of them and all noise as a line each."""
    told = [row for row in split.rows if not row.noise]
    if split.noise is None:
        return [*told, *([split.others] if split.others else [])]
    several = plural(split.noise_rows, "row")
    noise = split.noise.model_copy(update={"name": f"(not told from noise: {several})"})
    if split.total_rows - split.noise_rows > len(told) and split.others is not None:
        return [*told, _less(split.others, split.noise), noise]
    return [*told, noise]


def _less(others: SplitRow, noise: SplitRow) -> SplitRow:
    """What others hold beside the noise."""

    def rest(name: str) -> float | None:
        whole, part = getattr(others, name), getattr(noise, name)
        return None if whole is None else round(whole - (part or 0.0), 6)

    before, delta = rest("before"), rest("delta")
    return SplitRow(
        name=others.name,
        before=before,
        after=rest("after"),
        delta=delta,
        relative=delta / before if before and delta is not None else None,
        share_of_target=rest("share_of_target"),
    )


def _left_out(split: Split) -> list[Block]:
    told = [row for row in split.rows if not row.noise]
    return left_out(split.total_rows - split.noise_rows, len(told), "row")


def _ops(comparison: Comparison) -> list[Block]:
    if comparison.attribution is None:
        return []
    split = comparison.attribution.ops
    rows, shown = [], _shown(split)
    for row in shown:
        named = plain(row.name)
        if isinstance(row, OpChange) and row.match not in _NO_OPS:
            kind = _collective(row)
            named = _op_names(row) + (f" ({kind})" if kind else "")
        rows.append(
            [
                named,
                plain(_match(row)) if isinstance(row, OpChange) else "",
                plain(_pass(row)) if isinstance(row, OpChange) else "",
                _scope(row),
                *_calls(row),
                *_change(row),
                percent(row.share_of_target),
            ]
        )
    calls = ["calls before", "calls after"]
    headers = ["op", "match", "pass", "scope", *calls, *DURATIONS, "relative", "of the change"]
    parts = [
        f"{name} {signed(part)}"
        for name, part in zip(
            _GROSS_HEADERS,
            (split.gross.added, split.gross.removed, split.gross.grown, split.gross.shrunk),
            strict=True,
        )
        if part
    ]
    return [
        Paragraph(_sums(comparison)),
        *_waterfall(comparison, split),
        _table(headers, rows, shown, "llll"),
        *_left_out(split),
        *([Paragraph(f"All ops: {', '.join(parts)}.")] if parts else []),
    ]


def _calls(row: SplitRow) -> list[str]:
    if not isinstance(row, OpChange):
        return ["", ""]
    return ["" if op is None else _count(op.count) for op in (row.before_op, row.after_op)]


def _count(count: float | None) -> str:
    return "" if count is None else f"{count:,.1f}"


_NO_OPS = ("idle", "launch", "rest")


def _scope(row: SplitRow) -> str:
    ops = _op_sides(row) if isinstance(row, OpChange) else []
    return " → ".join(map(code, dict.fromkeys(op.scope for op in ops if op.scope)))


def _steps(comparison: Comparison) -> list[Block]:
    rows = [
        [
            plain(row.measure.replace("_", " ")),
            code(row.step_class) if row.step_class else "all",
            plain(row.statistic),
            number(row.before_count),
            number(row.after_count),
            *_change(row),
        ]
        for row in comparison.step_time
    ]
    if not rows:
        return [Paragraph("No step lengths are known.")]
    headers = ["length", "class", "statistic", "steps before", "after", *DURATIONS, "relative"]
    return [table(headers, rows, "lll")]


def _regions(comparison: Comparison) -> list[Block]:
    told = [row for row in comparison.regions if not row.noise]
    if not told:
        return []
    rows = [[code(row.path), *_change(row), *_parts(row.gross)] for row in told]
    note = f"{per_unit(comparison)}; a region contains those below it, so these do not sum."
    return [
        Paragraph(note),
        table(["region", *DURATIONS, "relative", *_GROSS_HEADERS], rows),
        *left_out(comparison.total_regions, len(rows), "region"),
    ]


def _collectives(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    rows = [
        [code(row.collective), name, *_change(change)]
        for row in comparison.collectives
        for name, change in (("exposed", row.exposed), ("overlapped", row.overlapped))
        if change.before or change.after
    ]
    if rows:
        blocks.append(table(["collective", "time", *DURATIONS, "relative"], rows, "ll"))
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
        blocks.append(table(headers, rates))
    return blocks


def _gaps(comparison: Comparison) -> list[Block]:
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
    note = f"{per_unit(comparison)}; ops of one name without its number together."
    return [
        Paragraph(note),
        table(headers, rows),
        *left_out(comparison.total_gaps, len(rows), "op"),
    ]


def _memory(comparison: Comparison) -> list[Block]:
    """Of the fullest program of each side."""
    found = comparison.memory
    if found is None:
        return []
    one, two = code(found.before_program), code(found.after_program)
    programs = one if one == two else f"{one}, then {two},"
    bound = "" if found.is_complete else " (at least: a plan could not be read to its end)"
    peak = (
        f"The peak that XLA planned for {programs} in {plain(found.space)}: "
        f"{size(found.before_size)} before, {size(found.after_size)} after, "
        f"{signed_size(found.delta_size)}{bound}."
    )
    if not found.rows:
        return [Paragraph(peak)]
    cells = [
        [
            code(row.scope) if row.scope else "buffers without a scope",
            plain(row.pass_ or ""),
            *(NOT_PRESENT if one is None else size(one) for one in _sizes(row)),
            signed_size(row.delta_size),
        ]
        for row in found.rows
    ]
    if found.others_size:
        cells.append(["others", "", "", "", signed_size(found.others_size)])
    return [
        Paragraph(f"{peak} By scope, what is alive at the peak:"),
        table(["scope", "pass", *DURATIONS], cells, "llrrr"),
    ]


def _sizes(row: MemoryScopeChange) -> tuple[int | None, int | None]:
    return row.before_size, row.after_size
