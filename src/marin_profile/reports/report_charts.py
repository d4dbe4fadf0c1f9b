"""Charts of the report: regions by pass, memory at the peak, ops below the roofline.

Contract: every value is one of the summary's, or a share of the time or size that is stated with
it. What cannot be seen, or has no costs, is left out, and the chart says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from marin_profile.base.text import duration, rate, share, size
from marin_profile.documents.model import Bars, Block, Cell, Icicle, Roofline, Switch
from marin_profile.documents.text import code, plain
from marin_profile.events.scopes import SEPARATOR
from marin_profile.facts.device_time import op_time, ratio
from marin_profile.queries.regions import RegionRow, region_rows, region_time
from marin_profile.schema import HotOp, ProfileSummary, ProgramMemory

MOST_SCOPES = 12
SMALLEST_CELL = 0.002  # of the chart's width: what is smaller cannot be seen
DEEPEST_CELL = 10
WITHOUT_SCOPE = "(no scope)"


def region_icicle(summary: ProfileSummary) -> list[Block]:
    """Regions below the regions that they are part of, for all passes and for each."""
    rows, whole = region_rows(summary), region_time(summary)
    if not rows or not whole:
        return []
    outermost = [row for row in rows if row.depth == 1]
    by_pass: dict[str, float] = {}
    for row in outermost:
        for part in row.inclusive_by_pass:
            by_pass[part.pass_] = by_pass.get(part.pass_, 0.0) + part.inclusive_duration
    passes = sorted((name for name in by_pass if by_pass[name] > 0), key=lambda one: -by_pass[one])
    views = [("all passes", _icicle(rows, whole, lambda row: row.inclusive_duration, whole, ""))]
    for name in passes if len(passes) > 1 else ():
        of = f", {name.replace('_', ' ')} pass"
        value = _in_pass(name)
        views.append((plain(name), _icicle(rows, by_pass[name], value, whole, plain(of))))
    return [Switch("Pass", tuple(views))]


def _in_pass(name: str) -> Callable[[RegionRow], float]:
    return lambda row: sum(
        part.inclusive_duration for part in row.inclusive_by_pass if part.pass_ == name
    )


def _icicle(
    rows: Sequence[RegionRow],
    width: float,
    value: Callable[[RegionRow], float],
    whole: float,
    of: str,
) -> Icicle:
    """`width` is the time that the chart is wide; shares are of `whole`, as in the table."""
    children: dict[str, list[RegionRow]] = {}
    for row in rows:
        children.setdefault(row.path.rpartition(SEPARATOR)[0], []).append(row)
    cells: list[Cell] = []

    def told(path: str, time: float) -> str:
        return f"{plain(path)}: {duration(time)}, {share(time / whole)} of op time{of}"

    def place(path: str, start: float) -> None:
        for row in sorted(children.get(path, ()), key=lambda one: (-value(one), one.path)):
            time = value(row)
            if time < SMALLEST_CELL * width or row.depth > DEEPEST_CELL:
                continue
            name = row.path.rpartition(SEPARATOR)[2]
            text = told(row.path, time)
            cells.append(Cell(plain(name), row.depth - 1, start / width, time / width, text))
            place(row.path, start)
            start += time

    place("", 0.0)
    scoped = sum(value(row) for row in children.get("", ()))
    if width - scoped >= SMALLEST_CELL * width:
        rest = width - scoped
        text = told(WITHOUT_SCOPE, rest)
        cells.append(Cell(WITHOUT_SCOPE, 0, scoped / width, rest / width, text))
    small = f"what takes less than {share(SMALLEST_CELL)} of it is left out"
    shown = f"Self time of all devices by region{of}: {duration(width)}"
    return Icicle(f"{shown}, {share(width / whole)} of op time; {small}", tuple(cells))


def memory_bars(program: ProgramMemory) -> list[Block]:
    """What is alive at the peak, by kind and by scope."""
    peak = program.peak_size
    if not peak:
        return []
    kinds = ("parameter", "output", "constant", "temporary")
    sizes = [getattr(program, f"{kind}_size") for kind in kinds]
    name = code(program.module or program.program_id)
    bound = "" if program.is_complete else "at least "
    title = f"Alive at the peak of {name}, {bound}{size(peak)}"

    def told(one: int) -> str:
        return f"{size(one)} ({share(one / peak)})"

    parts = ("parameters", "outputs", "constants", "temporaries")
    by_kind = Bars(
        f"{title}, by kind",
        parts,
        ((plain(program.space), tuple(one / peak for one in sizes)),),
        (tuple(map(told, sizes)),),
        of="memory",
    )
    shown = program.by_scope[:MOST_SCOPES]
    if not shown:
        return [by_kind]
    more = len(program.by_scope) - len(shown)
    cut = f", the first {len(shown)} of {len(program.by_scope):,}" if more else ""
    rows = tuple((_scope(one.scope, one.pass_), (one.size / peak,)) for one in shown)
    texts = tuple((told(one.size),) for one in shown)
    return [by_kind, Bars(f"{title}, by scope{cut}", ("",), rows, texts, of="scope")]


def _scope(scope: str | None, pass_: str | None) -> str:
    named = plain(scope) if scope else "buffers without a scope"
    return f"{named} ({plain(pass_)})" if pass_ and pass_ != "other" else named


def roofline_chart(summary: ProfileSummary) -> list[Block]:
    """The top ops that have costs of both kinds, below the device's peaks."""
    roofline = summary.roofline
    if roofline is None:
        return []
    peak = roofline.peaks.get("teraflops_per_second")
    bandwidth = roofline.peaks.get("hbm_gigabytes_per_second")
    points = _points(summary.hot_ops, op_time(summary, "hot_ops"))
    if not peak or not bandwidth or not points:
        return []
    ridge = 1000 * peak / bandwidth
    title = (
        f"{len(points)} of {len(summary.hot_ops):,} top ops, those with known costs: a larger "
        f"point takes more time. The peaks are {rate(peak, 'TFLOP/s')} and "
        f"{rate(bandwidth, 'GB/s')}, which meet at {ridge:,.1f} FLOP/byte"
    )
    return [Roofline(title, points, peak, ridge)]


def _points(
    ops: Iterable[HotOp], whole: float | None
) -> tuple[tuple[str, float, float, float, str], ...]:
    points = []
    for op in ops:
        if not op.flops or not op.bytes_accessed or not op.achieved_tflops:
            continue
        part = ratio(op.exclusive_duration, whole)
        intensity = op.flops / op.bytes_accessed
        told = f"{rate(op.achieved_tflops, 'TFLOP/s')} at {intensity:,.4g} FLOP/byte"
        bound = f", bound by {plain(op.bound_by)}" if op.bound_by else ""
        told += f"{bound}; {share(part)} of op time"
        name = plain(op.name)
        points.append((name, intensity, op.achieved_tflops, part or 0.0, f"{name}: {told}"))
    return tuple(points)
