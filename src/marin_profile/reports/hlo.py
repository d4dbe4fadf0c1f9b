"""What XLA did differently, to read.

Contract: deterministic; every number is the comparison's own, and the rows sum to its change.
"""

from __future__ import annotations

import re

from marin_profile.base.text import plural
from marin_profile.comparison.model import (
    Comparison,
    HloChanges,
    HloDifference,
    HloProgramPair,
    SplitRow,
)
from marin_profile.documents.model import Block, Paragraph, bullets, table
from marin_profile.documents.text import code, plain
from marin_profile.events.scopes import split_path
from marin_profile.reports.basis import a_unit, per_unit
from marin_profile.reports.changes import interval, percent, present, signed, signed_size

NAMED = 2
_NAME = re.compile(r"[\w.\-]+")


def hlo_answer(comparison: Comparison) -> list[Block]:
    """For the first screen: the largest differences, or that there is none."""
    found = comparison.hlo
    if found is None or found.cannot_answer is not None:
        return []
    if found.total_differences < 2:
        return [Paragraph(f"XLA: {hlo_sentence(found)}")]
    return [Paragraph("What XLA did differently:"), *bullets(_largest(found))]


def hlo_sentence(found: HloChanges) -> str:
    """Of an answer."""
    return " ".join(_largest(found)) if found.differences else _nothing(found)


def _largest(found: HloChanges) -> list[str]:
    """The first, which causes lead, and the largest change where it is not among them."""
    first = found.differences[:NAMED]
    largest = max(found.differences, key=lambda row: abs(row.delta or 0.0))
    named = first if largest in first else [*first, largest]
    told = [
        f"{_told(row)}{_region(row)}: {plain(row.sentence, None)}{_follows(row)}" for row in named
    ]
    more = found.total_differences - len(named)
    return [*told, f"And {plural(more, 'other difference')}."] if more > 0 else told


def _region(row: HloDifference) -> str:
    """The innermost parts of the model that its heaviest instruction stands in; the equations that
    einsum names its parts by are none."""
    path = split_path(row.scope or "")[:-1]
    parts = [part for part in path if _NAME.fullmatch(part)][-NAMED:]
    return f" in {code('/'.join(parts))}" if parts else ""


def _told(row: HloDifference) -> str:
    noise = " (not told from noise)" if row.noise else ""
    return f"{signed(row.delta)}{noise}"


def _follows(row: HloDifference) -> str:
    return f" May follow from {code(row.may_follow_from)}." if row.may_follow_from else ""


def _nothing(found: HloChanges) -> str:
    if not found.programs:
        return "no program is known on both sides."
    matched = sum(one.matched_instructions for one in found.programs)
    instructions = sum(one.before_instructions for one in found.programs)
    return (
        f"it compiled the same program ({matched:,} of {instructions:,} instructions match), so "
        "what changed is how long its ops take."
    )


def hlo_section(comparison: Comparison) -> list[Block]:
    found = comparison.hlo
    if found is None:
        return []
    if found.cannot_answer is not None:
        return [Paragraph(plain(found.cannot_answer, None))]
    blocks: list[Block] = list(bullets(_program(one) for one in found.programs))
    if found.too_large:
        names = ", ".join(map(code, found.too_large))
        blocks.append(Paragraph(f"Too large to be compared: {names}."))
    if not found.differences:
        blocks.append(Paragraph(plain(_nothing(found)).capitalize()))
        return blocks
    note = f"{per_unit(comparison)}; the rows sum to the change of {a_unit(comparison)}."
    rows: list[SplitRow] = [*found.differences]
    rows += [one for one in (found.others, found.unchanged, found.elsewhere) if one is not None]
    return [
        *blocks,
        Paragraph(note),
        table(
            ["what", "where", "ops", "before", "after", "change", "95 %", "of the change"],
            [_row(row) for row in rows],
            "lll",
        ),
    ]


def _program(one: HloProgramPair) -> str:
    name = code(one.after) if one.before == one.after else f"{code(one.before)} → {code(one.after)}"
    return (
        f"{name}: {one.matched_instructions:,} of {one.before_instructions:,} instructions match "
        f"({one.after_instructions:,} after)."
    )


_NAMES = {
    "(same program)": "ops that compute the same",
    "(no program)": "idle, and ops of no known program",
    "(others)": "other differences",
}


def _row(row: SplitRow) -> list[str]:
    if not isinstance(row, HloDifference):
        what, where, ops = _NAMES[row.name], "", ""
    else:
        what = f"{code(row.kind)} {plain(row.sentence, None)}{_follows(row)}"
        place = " ".join(filter(None, (row.scope, row.pass_ if row.pass_ != "other" else None)))
        where = "; ".join(map(code, filter(None, (place, row.source))))
        ops = _ops(row)
        if row.memory_delta_size:
            what += f" Memory at the peak: {signed_size(row.memory_delta_size)}."
    return [
        what,
        where,
        ops,
        present(row.before),
        present(row.after),
        signed(row.delta),
        interval(row),
        percent(row.share_of_target),
    ]


def _ops(row: HloDifference) -> str:
    sides = []
    for names, count in (
        (row.before_ops, row.num_before_ops),
        (row.after_ops, row.num_after_ops),
    ):
        shown = ", ".join(map(code, names[:NAMED]))
        more = f" and {count - NAMED:,} more" if count > NAMED else ""
        sides.append(f"{shown}{more}" or "none")
    return " → ".join(sides)
