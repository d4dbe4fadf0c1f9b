"""Sections of the Markdown report that rank: regions, ops, families, collectives, transfers,
gaps."""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.base.text import NOT_KNOWN, at_least, duration, number, rate, share, size
from marin_profile.documents.model import Block, Paragraph, left_out, table
from marin_profile.documents.text import INDENT, code, plain
from marin_profile.facts.device_time import (
    op_time,
    ratio,
)
from marin_profile.facts.waits import communication_wait
from marin_profile.queries.collectives import CollectiveRow, collective_rows
from marin_profile.queries.gap_before import context_rows, gap_rows
from marin_profile.queries.loops import loop_rows
from marin_profile.queries.regions import PassPart, RegionRow, region_rows, repeated_rows
from marin_profile.queries.stragglers import (
    HostRow,
    WaitingDeviceRow,
    waiting_device_rows,
    waiting_host_rows,
)
from marin_profile.queries.top_ops import by_time, hot_op_row
from marin_profile.queries.transfers import transfer_rows
from marin_profile.reports.headline import window_name
from marin_profile.reports.report_charts import region_icicle
from marin_profile.schema import ProfileSummary

DEEPEST_REGION = 4
MOST_LOOPS = 5


def regions(summary: ProfileSummary, top_k: int) -> list[Block]:
    rows = region_rows(summary)
    if not rows:
        return [Paragraph("No op carries a scope path, so there are no regions.")]
    shown = _tree([row for row in rows if row.depth <= DEEPEST_REGION], 2 * top_k)
    cells = [
        [
            INDENT * (row.depth - 1) + code(_last_segment(row)),
            duration(row.inclusive_duration),
            share(row.inclusive_share_of_total),
            duration(row.exclusive_duration),
            ", ".join(_pass_share(row, part) for part in row.inclusive_by_pass),
        ]
        for row in shown
    ]
    headers = ["region", "inclusive", "share", "exclusive", "by pass"]
    return [
        *_basis(summary, "hierarchical_regions"),
        *region_icicle(summary),
        table(headers, cells, "lrrrl"),
        *left_out(len(rows), len(shown), "region"),
        *_repeated(summary, top_k),
        *_loops(summary, top_k),
    ]


def _loops(summary: ProfileSummary, top_k: int) -> list[Block]:
    rows = loop_rows(summary)
    shown = rows[: min(top_k, MOST_LOOPS)]
    if not shown:
        return []
    cells = [
        [
            code(row.name),
            code(row.program),
            plain(row.pass_),
            duration(row.duration),
            share(row.share_of_op_time),
            number(row.iterations),
            duration(row.duration_per_iteration),
        ]
        for row in shown
    ]
    headers = ["loop", "program", "pass", "self time", "share", "iterations", "each"]
    return [
        Paragraph("Loops, with all ops in them:"),
        table(headers, cells, "lllrrrr"),
        *left_out(len(rows), len(shown), "loop"),
    ]


def _repeated(summary: ProfileSummary, top_k: int) -> list[Block]:
    rows = [row for row in repeated_rows(summary) if row.depth <= DEEPEST_REGION]
    shown = rows[:top_k]
    if not shown:
        return []
    cells = [
        [
            f"{code(row.path)} x {row.members}",
            duration(row.inclusive_duration),
            share(row.inclusive_share_of_total),
            duration(row.inclusive_duration / row.members),
            f"{duration(row.smallest_duration)} to {duration(row.largest_duration)}",
            code(row.largest),
        ]
        for row in shown
    ]
    headers = ["repeated region", "inclusive", "share", "each, mean", "from, to", "largest"]
    return [
        Paragraph("Regions that are alike, folded:"),
        table(headers, cells, "lrrrrl"),
        *left_out(len(rows), len(shown), "region"),
    ]


def _pass_share(row: RegionRow, part: PassPart) -> str:
    return f"{plain(part.pass_)} {share(ratio(part.inclusive_duration, row.inclusive_duration))}"


def _last_segment(row: RegionRow) -> str:
    return row.path.split("=>", row.depth - 1)[-1]


def _tree(rows: Sequence[RegionRow], limit: int) -> list[RegionRow]:
    """The `limit` largest regions in tree order, every parent before its children."""
    chosen = list(rows[:limit])
    size = {row.path: row.inclusive_duration for row in chosen}

    def order(row: RegionRow) -> list[tuple[float, str]]:
        parts = row.path.split("=>")
        paths = ["=>".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        return [(-size.get(path, 0.0), path) for path in paths]

    return sorted(chosen, key=order)


def top_ops(summary: ProfileSummary, top_k: int) -> list[Block]:
    if not summary.hot_ops:
        return [Paragraph("No device op was recorded.")]
    whole = op_time(summary, "hot_ops")
    ops = sorted((hot_op_row(op, whole) for op in summary.hot_ops), key=by_time)
    rows = [
        [
            code(op.name),
            code(op.category),
            plain(op.pass_ or ""),
            number(op.count),
            duration(op.exclusive_duration),
            share(op.share_of_op_time),
            duration(op.per_step_duration),
            duration(op.exposed_duration),
            code(op.shape_signature.replace("|", ", "), 40) if op.shape_signature else "",
            code(op.tf_op_path) if op.tf_op_path else "",
        ]
        for op in ops[:top_k]
    ]
    headers = [
        "op",
        "kind",
        "pass",
        "count",
        "self time",
        "share of op time",
        "per step and device",
        "exposed",
        "shape",
        "scope",
    ]
    return [
        *_basis(summary, "hot_ops", "all devices"),
        table(headers, rows, "lllrrrrrll"),
        *left_out(len(ops), len(rows), "op", "ops"),
    ]


def families(summary: ProfileSummary, top_k: int) -> list[Block]:
    families = sorted(
        summary.semantic_families, key=lambda one: (-one.exclusive_duration, one.family)
    )
    if not families:
        return [Paragraph("The summary holds no op families.")]
    rows = [
        [
            code(one.family),
            number(one.count),
            duration(one.exclusive_duration),
            share(one.share_of_total),
            code(one.example_op) if one.example_op else "",
        ]
        for one in families[:top_k]
    ]
    return [
        *_basis(summary, "semantic_families", "all devices"),
        table(["family", "count", "self time", "share", "example"], rows, "lrrrl"),
        *left_out(len(families), len(rows), "family", "families"),
    ]


def roofline_rows(summary: ProfileSummary, top_k: int) -> list[Block]:
    """The largest programs, passes, families and regions beside the peaks; nothing if there are
    none."""
    roofline = summary.roofline
    if roofline is None or not roofline.by:
        return []
    kinds = dict.fromkeys(row.by for row in roofline.by)
    shown = [row for kind in kinds for row in [r for r in roofline.by if r.by == kind][:top_k]]
    rows = [
        [
            plain(row.by),
            code(row.name),
            duration(row.duration),
            share(row.coverage),
            rate(row.achieved_tflops, "TFLOP/s"),
            rate(row.achieved_gbps, "GB/s"),
            *(
                share(value) if row.coverage == 1.0 else at_least(value)
                for value in (row.mfu, row.hfu)
            ),
        ]
        for row in shown
    ]
    headers = ["by", "name", "compute time", "known costs", "compute", "memory", "MFU", "HFU"]
    return [
        *_basis(summary, "roofline", "all devices"),
        table(headers, rows, "llrrrrrr"),
        *left_out(len(roofline.by), len(rows), "row"),
    ]


def collectives(summary: ProfileSummary, top_k: int) -> list[Block]:
    ops = collective_rows(summary)
    if not ops:
        return [Paragraph("No collective was found among the device ops.")]
    rows = [
        [
            code(op.collective),
            _members(op),
            number(op.count),
            duration(op.total_duration),
            duration(op.exposed_duration),
            duration(op.overlapped_duration),
            _at_least(duration(op.wait_duration), op.wait_is_lower_bound),
            _at_least(rate(op.algorithm_gbps, "GB/s"), op.bandwidth_is_lower_bound),
            _at_least(rate(op.bus_gbps, "GB/s"), op.bandwidth_is_lower_bound),
        ]
        for op in ops[:top_k]
    ]
    headers = [
        "collective",
        "group size",
        "count",
        "time",
        "exposed",
        "overlapped",
        "wait",
        "algorithm bandwidth",
        "bus bandwidth",
    ]
    source = "collectives" if summary.collectives else "communication_ops"
    return [
        *_basis(summary, source, "all devices"),
        table(headers, rows),
        *left_out(len(ops), len(rows), "row"),
    ]


def transfers(summary: ProfileSummary, top_k: int) -> list[Block]:
    found = transfer_rows(summary)
    rows = [
        [
            code(one.kind),
            number(one.count),
            NOT_KNOWN if one.bytes is None else size(one.bytes),
            duration(one.in_flight_duration),
            duration(one.waited_duration),
            share(one.waited_share),
            rate(one.gbps, "GB/s"),
            rate(one.throughput_gbps, "GB/s"),
        ]
        for one in found[:top_k]
    ]
    if not rows:
        return []
    headers = [
        "transfer",
        "count",
        "bytes",
        "in flight",
        "waited for",
        "of device time",
        "per transfer, at least",
        "per device, at least",
    ]
    return [
        *_basis(summary, "transfers", "all devices"),
        table(headers, rows),
        *left_out(len(found), len(rows), "kind"),
    ]


def _members(op: CollectiveRow) -> str:
    if op.group_size is None or op.members_seen in (None, op.group_size):
        return number(op.group_size)
    return f"{number(op.members_seen)} of {number(op.group_size)} seen"


def _at_least(text: str, is_lower_bound: bool) -> str:
    return f"at least {text}" if is_lower_bound else text


def stragglers(summary: ProfileSummary, top_k: int) -> list[Block]:
    wait = communication_wait(summary)
    if wait is None:
        return []
    names = ", ".join(map(code, wait.stragglers))
    verdict = (
        f"Straggler: {names}; the wait for it is {share(wait.wait_for_stragglers_share)} of all "
        "device time."
        if wait.stragglers
        else "No host and no device stands out."
    )
    exposed = duration(wait.exposed_communication_duration)
    waiting = _at_least(duration(wait.exposed_wait_duration), wait.is_lower_bound)
    told = (
        f"Of {exposed} of exposed communication, {waiting} "
        f"({share(wait.exposed_wait_share)}) is waiting for the last to arrive. {verdict}"
    )
    hosts, devices = waiting_host_rows(summary), waiting_device_rows(summary)
    common = ["waits", "makes others wait", "delay per step", "z", "straggler"]
    of_devices = ["waits", "makes others wait", "delay per step on its host", "z", "straggler"]
    of_hosts = [[code(row.host), number(row.devices), *_late_cells(row)] for row in hosts[:top_k]]
    cells = [
        [
            code(f"{row.host} {row.device}"),
            f"{number(row.arrived_last)} of {number(row.instances)}",
            *_late_cells(row),
        ]
        for row in devices[:top_k]
    ]
    return [
        Paragraph(told),
        *_basis(summary, "stragglers", "all devices"),
        *([table(["host", "devices", *common], of_hosts)] if hosts else []),
        *left_out(len(hosts), len(of_hosts), "host"),
        table(["device", "arrived last", *of_devices], cells),
        *left_out(sum(one.devices for one in summary.stragglers), len(cells), "device"),
    ]


def _late_cells(row: HostRow | WaitingDeviceRow) -> list[str]:
    return [
        duration(row.wait),
        duration(row.wait_caused),
        duration(row.delay_per_step),
        NOT_KNOWN if row.z is None else f"{row.z:.1f}",
        _verdict(row),
    ]


def _verdict(row: HostRow | WaitingDeviceRow) -> str:
    if isinstance(row, WaitingDeviceRow) and row.with_its_host:
        return "with its host"
    return "yes" if row.is_straggler else "no"


def gaps(summary: ProfileSummary, top_k: int) -> list[Block]:
    gaps = gap_rows(summary)
    if not gaps:
        return [Paragraph("No device idled before any op, or there is no device op.")]
    rows = [
        [
            code(gap.name),
            code(gap.marker_op) if gap.marker_op and gap.marker_op != gap.name else "",
            number(gap.count),
            duration(gap.total_gap_duration),
            duration(gap.max_gap_duration),
            duration(gap.avg_gap_duration),
        ]
        for gap in gaps[:top_k]
    ]
    headers = ["gap before", "ended by", "count", "total", "longest", "mean"]
    return [
        *_basis(summary, "gap_before_ops", "all devices"),
        table(headers, rows, "ll"),
        *left_out(len(gaps), len(rows), "op"),
    ]


def gap_contexts(summary: ProfileSummary, top_k: int) -> list[Block]:
    contexts = context_rows(summary)
    if not contexts:
        return [Paragraph("No gap could be tied to a region.")]
    rows = [
        [
            code(one.op_name),
            code(one.region_path),
            number(one.count),
            duration(one.total_gap_duration),
            duration(one.avg_gap_duration),
        ]
        for one in contexts[:top_k]
    ]
    return [
        *_basis(summary, "gap_region_contexts", "all devices"),
        table(["gap before", "in region", "count", "total", "mean"], rows, "ll"),
        *left_out(len(contexts), len(rows), "row"),
    ]


def _basis(summary: ProfileSummary, name: str, scope: str = "") -> list[Block]:
    basis = summary.list_basis.get(name)
    window = plain(window_name(basis)) if basis else "not stated"
    return [Paragraph(f"Basis: {window}{', ' + scope if scope else ''}.")]
