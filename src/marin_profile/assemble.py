"""Host parts -> ProfileSummary: the one place where picoseconds become microseconds.

Contract: deterministic (no clock, no environment); lists are sorted by size, ties by name; every
list's window stands in `list_basis`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from marin_profile import schema
from marin_profile.analysis import advice
from marin_profile.analysis.breakdown_v1 import BASIS_NAMES
from marin_profile.analysis.collectives import CollectiveTotals, bandwidth, merge_collectives
from marin_profile.analysis.devices import SPARSECORE
from marin_profile.analysis.families import family_totals
from marin_profile.analysis.gaps import NO_REGION, GapTotals, merge_gaps
from marin_profile.analysis.host import DevicePart, HostPart
from marin_profile.analysis.ledger import HOST_KINDS, Ledger
from marin_profile.analysis.merge_steps import MergedStep, MergedSteps, merge_steps
from marin_profile.analysis.ops import OpTotals, merge_op_totals
from marin_profile.analysis.regions import region_totals
from marin_profile.analysis.roofline import Peaks, op_rate, roofline_totals
from marin_profile.analysis.step_classes import classify_steps, periodicity
from marin_profile.classify import GROUP_COMPUTE, V1_COLLECTIVES
from marin_profile.readers.trace_json import JSON_LACKS
from marin_profile.scopes import RECOMPUTE
from marin_profile.timeline import PS_PER_US

DEVICE_LEDGER = "device_ledger"
OP_GROUP_LIMIT = 5000
REMAINDER = "(remainder)"
COMMAND_BUFFER = "command_buffer"


@dataclass(frozen=True)
class SourceFile:
    """One host's file as it was read."""

    host: str
    name: str
    sha256: str
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaptureFacts:
    """What the capture's folder tells. jax_version and tool_version may be empty."""

    source_path: str
    files: tuple[SourceFile, ...]
    notes: tuple[str, ...]
    tool_version: str
    jax_version: str


@dataclass(frozen=True)
class _Context:
    """Merged parts that several sections need."""

    parts: Sequence[HostPart]
    devices: tuple[tuple[HostPart, DevicePart], ...]
    steps: MergedSteps
    ops: list[OpTotals]
    gaps: list[GapTotals]
    collectives: list[CollectiveTotals]
    steady: bool

    @property
    def main_devices(self) -> list[DevicePart]:
        """Sparse cores are devices of their own kind and stay out of headline sums."""
        main = [device for _, device in self.devices if device.kind != SPARSECORE]
        return main or [device for _, device in self.devices]

    @property
    def window(self) -> str:
        return schema.STEADY if self.steady else schema.CAPTURE

    def headline(self, device: DevicePart) -> Ledger:
        return device.steady if self.steady and device.steady else device.capture

    @property
    def kept_steps(self) -> list[MergedStep]:
        return [step for step in self.steps.steps if step.kept]

    @property
    def peaks(self) -> Peaks:
        return self.main_devices[0].peaks


def us(picoseconds: int | float) -> float:
    return picoseconds / PS_PER_US


def _us_or_none(picoseconds: int | float | None) -> float | None:
    return None if picoseconds is None else us(picoseconds)


def assemble(
    parts: Sequence[HostPart], facts: CaptureFacts, *, hot_op_limit: int, breakdown_mode: str
) -> schema.ProfileSummary:
    """Merge the hosts of one capture. At least one part must hold device work."""
    devices = tuple((part, device) for part in parts for device in part.devices)
    context = _Context(
        parts=parts,
        devices=devices,
        steps=merge_steps(parts),
        ops=merge_op_totals(op for part in parts for op in part.ops),
        gaps=merge_gaps(gap for part in parts for gap in part.gaps),
        collectives=merge_collectives(row for part in parts for row in part.collectives),
        steady=all(device.steady is not None for _, device in devices),
    )
    breakdown = _time_breakdown(context, breakdown_mode)
    roofline = _roofline(context)
    step_time = _step_time(context)
    coverage = _coverage(context)
    warnings = _warnings(context, facts, coverage)
    return schema.ProfileSummary(
        generated_at_utc=_generated_at(parts),
        source_format=parts[0].source_format,
        source_path=facts.source_path,
        run_metadata=schema.RunMetadata(
            hardware_type=_hardware(context),
            num_devices=len(context.main_devices),
            num_hosts=len(parts),
        ),
        trace_overview=_overview(context, breakdown.duration_basis, warnings),
        trace_provenance=schema.TraceProvenance(
            trace_sha256=_digest([file.sha256 for file in facts.files]),
            run_ids=_most_common(part.run_ids for part in parts),
            source_file_hints=_most_common(part.sources for part in parts),
        ),
        step_time=step_time,
        time_breakdown=breakdown,
        hot_ops=[_hot_op(context, op) for op in context.ops[:hot_op_limit]],
        semantic_families=_families(context),
        communication_ops=_communication_ops(context),
        gap_before_ops=[_gap(gap) for gap in context.gaps],
        hierarchical_regions=_regions(context),
        gap_region_contexts=_gap_contexts(context),
        optimization_candidates=_advice(context, step_time, coverage),
        device_ledger=_device_ledger(context),
        op_groups=_op_groups(context),
        collectives=[_collective(row) for row in context.collectives],
        roofline=roofline,
        hosts=_hosts(context, facts),
        coverage=coverage,
        capture=_capture(parts, facts),
        list_basis={
            **dict.fromkeys(
                (
                    "hot_ops",
                    "op_groups",
                    "semantic_families",
                    "communication_ops",
                    "collectives",
                    "gap_before_ops",
                    "gap_region_contexts",
                    "hierarchical_regions",
                    "roofline",
                ),
                schema.CAPTURE,
            ),
            "time_breakdown": breakdown.basis or schema.CAPTURE,
            "optimization_candidates": context.window,
        },
    )


# --- identity ----------------------------------------------------------------------------------


def _digest(digests: list[str]) -> str | None:
    import hashlib

    unique = sorted(set(digests))
    if len(unique) <= 1:
        return unique[0] if unique else None
    return hashlib.sha256("\n".join(unique).encode()).hexdigest()


def _most_common(counters: Iterable[Counter[str]], limit: int = 20) -> list[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return sorted(total, key=lambda name: (-total[name], name))[:limit]


def epoch_utc(nanoseconds: int) -> str:
    """Epoch nanoseconds as YYYY-MM-DDTHH:MM:SS.ffffffZ (cut, not rounded)."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    moment = epoch + timedelta(microseconds=nanoseconds // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _generated_at(parts: Sequence[HostPart]) -> str:
    starts = [part.profile_window_ns[0] for part in parts if part.profile_window_ns]
    return epoch_utc(min(starts)) if starts else schema.EPOCH_UTC


def _capture(parts: Sequence[HostPart], facts: CaptureFacts) -> schema.Capture:
    windows = [part.profile_window_ns for part in parts if part.profile_window_ns]
    return schema.Capture(
        start=epoch_utc(min(window[0] for window in windows)) if windows else None,
        stop=epoch_utc(max(window[1] for window in windows)) if windows else None,
        files=[file.name for file in facts.files],
        tool_version=facts.tool_version,
        jax_version=facts.jax_version or None,
    )


def _hardware(context: _Context) -> str | None:
    names = sorted({device.type_name for device in context.main_devices if device.type_name})
    kinds = sorted({device.kind for device in context.main_devices})
    return ", ".join(names) or ("cpu" if kinds == ["cpu"] else None)


def _overview(
    context: _Context, duration_basis: str, warnings: list[str]
) -> schema.TraceOverview:
    parts = context.parts
    return schema.TraceOverview(
        display_time_unit="ns",
        num_events_total=sum(part.num_events_total for part in parts),
        num_complete_events=sum(part.num_events for part in parts),
        num_processes=sum(part.num_processes for part in parts),
        num_threads=sum(part.num_threads for part in parts),
        profile_start_ts=0.0,
        profile_end_ts=us(max(part.span_ps for part in parts)),
        duration_basis=duration_basis,
        suspected_truncation=any(part.truncated for part in parts),
        quality_warnings=warnings,
    )


def _hosts(context: _Context, facts: CaptureFacts) -> list[schema.Host]:
    by_host = {part.host: part for part in context.parts}
    return [
        schema.Host(
            host=file.host,
            file=file.name,
            sha256=file.sha256,
            devices=[device.name for device in by_host[file.host].devices],
            warnings=[*file.notes, *by_host[file.host].notes],
            source_format=by_host[file.host].source_format,
            chosen_because=file.reason or None,
        )
        for file in facts.files
        if file.host in by_host
    ]


# --- steps -------------------------------------------------------------------------------------


def duration_stats(values: Sequence[float | None]) -> schema.DurationStats:
    """Statistics of picosecond values, in microseconds; None values are left out of all but the
    count, which is that of the steps."""
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return schema.DurationStats(count=len(values))
    median, p90 = np.quantile(known, (0.5, 0.9), method="linear")
    return schema.DurationStats(
        count=len(values),
        mean=us(float(known.mean())),
        median=us(float(median)),
        p90=us(float(p90)),
        min=us(float(known.min())),
        max=us(float(known.max())),
    )


def _known(values: Iterable[float | None]) -> list[float | None]:
    return [value for value in values if value is not None]


def _step_time(context: _Context) -> schema.StepTime:
    merged = context.steps
    steps, kept = merged.steps, context.kept_steps
    classes, class_of = _step_classes(merged)
    return schema.StepTime(
        warmup_steps_ignored=merged.warmup_ignored,
        all_steps=duration_stats([step.duration for step in steps]),
        steady_state_steps=duration_stats([step.duration for step in kept]),
        classes=classes,
        source=merged.source,
        annotation=merged.annotation,
        linked=merged.linked if steps else None,
        period=duration_stats(_known(step.period for step in kept)),
        critical_path=duration_stats(_known(step.critical_path for step in kept)),
        steps=[
            schema.Step(
                index=index,
                step_num=step.number,
                start=us(step.start),
                duration=_us_or_none(step.duration),
                critical_path=_us_or_none(step.critical_path),
                period=_us_or_none(step.period),
                kept=step.kept,
                step_class=class_of.get(index),
                ledger=_step_ledger(step.terms),
            )
            for index, step in enumerate(steps)
        ],
    )


def _step_ledger(terms: Mapping[str, int]) -> schema.StepLedger | None:
    if not terms:
        return None
    return schema.StepLedger(
        window_duration=us(terms["window"]),
        compute_duration=us(terms["compute"]),
        exposed_communication_duration=us(terms["exposed_communication"]),
        exposed_transfer_duration=us(terms["exposed_transfer"]),
        unattributed_duration=us(terms["unattributed"]),
        idle_duration=us(terms["idle"]),
    )


def _step_classes(merged: MergedSteps) -> tuple[list[schema.StepClass], dict[int, str]]:
    """Classes of the kept steps, by duration (by period where the duration is not known)."""
    lengths = [
        (index, step.duration if merged.linked else step.period)
        for index, step in enumerate(merged.steps)
        if step.kept
    ]
    known = [(index, length) for index, length in lengths if length is not None]
    found = classify_steps([length for _, length in known])
    if found is None:
        return [], {}
    rows, class_of = [], {}
    for name, heavy in (("light", False), ("heavy", True)):
        members = [row for row, is_heavy in zip(known, found.heavy, strict=True) if is_heavy is heavy]
        stats = duration_stats([length for _, length in members])
        middle = sorted(members, key=lambda row: (row[1], row[0]))[(len(members) - 1) // 2]
        number = merged.steps[middle[0]].number
        rows.append(
            schema.StepClass(
                name=name,
                count=len(members),
                fraction_of_steady=len(members) / len(known),
                duration_stats=stats,
                representative_step=middle[0] if number is None else number,
                representative_duration=us(middle[1]),
                periodicity=periodicity([index for index, _ in members]),
            )
        )
        class_of.update({index: name for index, _ in members})
    return rows, class_of


# --- ledger ------------------------------------------------------------------------------------


def _device_ledger(context: _Context) -> list[schema.DeviceLedger]:
    rows = []
    for part, device in context.devices:
        for window, ledger in ((schema.STEADY, device.steady), (schema.CAPTURE, device.capture)):
            if ledger is None:
                continue
            rows.append(
                schema.DeviceLedger(
                    device=device.name,
                    host=part.host,
                    kind=device.kind,
                    window=window,
                    window_start=us(ledger.start - part.first_op),
                    window_duration=us(ledger.end - ledger.start),
                    compute_duration=us(ledger.compute),
                    overlapped_communication_duration=us(ledger.overlapped_communication),
                    exposed_communication_duration=us(ledger.exposed_communication),
                    exposed_transfer_duration=us(ledger.exposed_transfer),
                    unattributed_duration=us(ledger.unattributed),
                    idle_duration=us(ledger.idle),
                    exposed_communication_by_kind=_each_us(ledger.exposed_by_kind),
                    overlapped_communication_by_kind=_each_us(ledger.overlapped_by_kind),
                    exposed_transfer_by_kind=_each_us(ledger.transfer_by_kind),
                )
            )
    return rows


def _each_us(values: Mapping[str, int]) -> dict[str, float]:
    return {name: us(value) for name, value in values.items()}


def _time_breakdown(context: _Context, mode: str) -> schema.TimeBreakdown:
    """v1's five buckets; by the ledger unless an older basis was asked for."""
    if mode != DEVICE_LEDGER:
        buckets: Counter[str] = Counter()
        for part in context.parts:
            buckets.update(part.older or {})
        return _breakdown(BASIS_NAMES[mode], buckets, schema.CAPTURE)
    ledgers = [context.headline(device) for device in context.main_devices]
    buckets = Counter(
        compute=sum(ledger.compute for ledger in ledgers),
        communication=sum(ledger.exposed_communication for ledger in ledgers),
        host=sum(ledger.host for ledger in ledgers),
        stall=sum(ledger.idle + ledger.waits for ledger in ledgers),
        other=sum(ledger.unattributed + ledger.unknown_transfer for ledger in ledgers),
    )
    return _breakdown(DEVICE_LEDGER, buckets, context.window)


def _breakdown(basis: str, buckets: Mapping[str, int], window: str) -> schema.TimeBreakdown:
    total = sum(buckets.values())

    def part(name: str) -> schema.BreakdownPart:
        value = buckets.get(name, 0)
        return schema.BreakdownPart(
            total_duration=us(value), share_of_total=value / total if total else 0.0
        )

    return schema.TimeBreakdown(
        duration_basis=basis,
        total_duration=us(total),
        compute=part("compute"),
        communication=part("communication"),
        host=part("host"),
        stall=part("stall"),
        other=part("other"),
        basis=window,
    )


# --- ops ---------------------------------------------------------------------------------------


def _per_step(context: _Context, steady_exclusive: int) -> float | None:
    """Per kept step and device, in the steady window."""
    kept = len(context.kept_steps)
    if not context.steady or not kept:
        return None
    return us(steady_exclusive) / (kept * len(context.main_devices))


def _hot_op(context: _Context, op: OpTotals) -> schema.HotOp:
    facts = op.facts
    rate = op_rate(op, context.peaks)
    return schema.HotOp(
        name=facts.name,
        canonical_name=facts.canonical,
        category=facts.kind,
        count=op.count,
        total_duration=us(op.total),
        exclusive_duration=us(op.exclusive),
        avg_duration=us(op.total) / op.count,
        shape_signature=facts.shape or None,
        source_file=facts.source or None,
        tf_op_path=facts.scope_path or None,
        module=op.module or None,
        program_id=None if op.program_id is None else str(op.program_id),
        hlo_op=facts.hlo_op or None,
        hlo_category=facts.hlo_category or None,
        pass_=facts.pass_name,
        flops=facts.flops,
        bytes_accessed=facts.bytes_accessed,
        achieved_tflops=None if rate.impossible else rate.tflops,
        achieved_gbps=None if rate.impossible else rate.gbps,
        bound_by=rate.bound_by,
        exposed_duration=us(op.exposed),
        per_step_duration=_per_step(context, op.steady_exclusive),
    )


def _op_groups(context: _Context) -> list[schema.OpGroup]:
    groups: dict[tuple[str, str, str, str, str], list[OpTotals]] = {}
    for op in context.ops:
        f = op.facts
        key = (f.canonical, f.kind, f.shape, f.scope_path, f.pass_name)
        groups.setdefault(key, []).append(op)
    ordered = sorted(
        groups.items(), key=lambda item: (-sum(op.exclusive for op in item[1]), item[0])
    )
    rows = [_op_group(context, key, members) for key, members in ordered[:OP_GROUP_LIMIT]]
    rest = [op for _, members in ordered[OP_GROUP_LIMIT:] for op in members]
    if rest:
        rows.append(_op_group(context, (REMAINDER, "unknown", "", "", ""), rest))
    return rows


def _op_group(
    context: _Context, key: tuple[str, str, str, str, str], members: list[OpTotals]
) -> schema.OpGroup:
    canonical, kind, shape, scope, pass_name = key
    names = sorted({op.facts.name for op in members})
    steady_exclusive = sum(op.steady_exclusive for op in members)
    return schema.OpGroup(
        canonical_name=canonical,
        category=kind,
        shape_signature=shape or None,
        scope=scope or None,
        pass_=pass_name or None,
        names=names[:8],
        num_names=len(names),
        count=sum(op.count for op in members),
        exclusive_duration=us(sum(op.exclusive for op in members)),
        exposed_duration=us(sum(op.exposed for op in members)),
        steady_count=sum(op.steady_count for op in members) if context.steady else None,
        steady_exclusive_duration=us(steady_exclusive) if context.steady else None,
        per_step_duration=_per_step(context, steady_exclusive),
    )


def _families(context: _Context) -> list[schema.SemanticFamily]:
    rows = family_totals(context.ops)
    total = sum(row.exclusive for row in rows)
    return [
        schema.SemanticFamily(
            family=row.name,
            count=row.count,
            total_duration=us(row.total),
            exclusive_duration=us(row.exclusive),
            share_of_total=row.exclusive / total if total else 0.0,
            avg_duration=us(row.total) / row.count,
            avg_exclusive_duration=us(row.exclusive) / row.count,
            example_op=row.example,
            dominant_shape_signature=row.dominant_shape,
        )
        for row in rows
    ]


def _regions(context: _Context) -> list[schema.Region]:
    return [
        schema.Region(
            path=row.name,
            depth=len(row.path),
            count=row.count,
            inclusive_duration=us(row.inclusive),
            exclusive_duration=us(row.exclusive),
            inclusive_by_pass=_each_us(row.by_pass),
        )
        for row in region_totals(context.ops)
    ]


# --- communication and gaps --------------------------------------------------------------------


def _communication_ops(context: _Context) -> list[schema.CommunicationOp]:
    count: Counter[str] = Counter()
    duration: Counter[str] = Counter()
    exposed: Counter[str] = Counter()
    overlapped: Counter[str] = Counter()
    for row in context.collectives:
        name = V1_COLLECTIVES.get(row.kind, row.kind)
        count[name] += row.count
        duration[name] += row.duration
    for _, device in context.devices:
        for kind, value in device.capture.exposed_by_kind.items():
            exposed[V1_COLLECTIVES.get(kind, kind)] += value
        for kind, value in device.capture.overlapped_by_kind.items():
            overlapped[V1_COLLECTIVES.get(kind, kind)] += value
    return [
        schema.CommunicationOp(
            collective=name,
            count=count[name],
            total_duration=us(duration[name]),
            avg_duration=us(duration[name]) / count[name],
            exposed_duration=us(exposed[name]),
            overlapped_duration=us(overlapped[name]),
        )
        for name in sorted(count, key=lambda name: (-duration[name], name))
    ]


def _collective(row: CollectiveTotals) -> schema.Collective:
    algorithm, bus = bandwidth(row)
    return schema.Collective(
        collective=row.kind,
        group_size=row.group_size,
        count=row.count,
        bytes=row.payload,
        duration=us(row.duration),
        exposed_duration=us(row.exposed),
        overlapped_duration=us(row.overlapped),
        wait_duration=_us_or_none(row.wait),
        algorithm_gbps=algorithm,
        bus_gbps=bus,
    )


def _gap(gap: GapTotals) -> schema.GapBeforeOp:
    return schema.GapBeforeOp(
        name=gap.payload,
        count=gap.count,
        total_gap_duration=us(gap.total),
        max_gap_duration=us(gap.longest),
        avg_gap_duration=us(gap.total) / gap.count,
        payload_op=gap.payload,
        marker_op=gap.marker,
    )


def _gap_contexts(context: _Context) -> list[schema.GapRegionContext]:
    rows = [
        (gap.payload, region, gap.regions[region], total)
        for gap in context.gaps
        for region, total in gap.region_time.items()
    ]
    rows.sort(key=lambda row: (-row[3], row[0], row[1]))
    return [
        schema.GapRegionContext(
            op_name=payload,
            region_path=region,
            count=count,
            total_gap_duration=us(total),
            avg_gap_duration=us(total) / count,
        )
        for payload, region, count, total in rows
        if region != NO_REGION or count
    ]


# --- roofline, coverage, advice ----------------------------------------------------------------


def _roofline(context: _Context) -> schema.Roofline | None:
    totals = roofline_totals(context.ops)
    peaks = context.peaks
    if not totals.time:
        return None
    tflops = totals.flops / totals.time
    gbps = totals.bytes_accessed * 1000 / totals.time
    named = {"teraflops_per_second": peaks.teraflops, "hbm_gigabytes_per_second": peaks.hbm_gigabytes}
    known = {name: value for name, value in named.items() if value is not None}
    achieved = {"teraflops_per_second": tflops, "hbm_gigabytes_per_second": gbps}
    if totals.bytes_accessed:
        achieved["operational_intensity"] = totals.flops / totals.bytes_accessed
    utilization = {name: achieved[name] / peak for name, peak in known.items()}
    possible = all(value <= 1.0 for value in utilization.values())
    bound_by = None
    if possible and len(utilization) == 2:
        memory = utilization["hbm_gigabytes_per_second"] >= utilization["teraflops_per_second"]
        bound_by = "memory" if memory else "compute"
    return schema.Roofline(
        peaks=known,
        achieved=achieved,
        utilization=utilization if possible else {},
        bound_by=bound_by,
        mfu=_mfu(context, peaks),
        coverage=totals.coverage,
    )


def _mfu(context: _Context, peaks: Peaks) -> float | None:
    """Model flops of a step / (period x peak x devices); with one step, its duration."""
    kept = context.kept_steps
    if not context.steady or not kept or not peaks.teraflops:
        return None
    lengths = [step.period for step in kept if step.period is not None]
    if len(kept) == 1:
        lengths = [step.duration for step in kept if step.duration is not None]
    flops = sum(
        (op.facts.flops or 0) * op.steady_count
        for op in context.ops
        if op.facts.group == GROUP_COMPUTE
    )
    if not lengths or not flops:
        return None
    mfu = flops / len(kept) / (
        float(np.median(lengths)) * peaks.teraflops * len(context.main_devices)
    )
    return mfu if mfu <= 1.0 else None


def _coverage(context: _Context) -> schema.Coverage:
    total = sum(op.exclusive for op in context.ops)
    with_hlo = sum(op.exclusive for op in context.ops if _has_hlo(op))
    with_scope = sum(op.exclusive for op in context.ops if op.facts.scope)
    with_cost = sum(
        op.exclusive
        for op in context.ops
        if op.facts.flops is not None or op.facts.bytes_accessed is not None
    )
    dropped: Counter[str] = Counter()
    for part in context.parts:
        dropped.update(part.dropped)
        if part.sync_entries:
            dropped["driver_sync_entry"] += part.sync_entries
    json_parts = [part for part in context.parts if part.source_format != "xplane_pb"]
    return schema.Coverage(
        hlo_attributed_share=with_hlo / total if total else None,
        scope_attributed_share=with_scope / total if total else None,
        cost_share=with_cost / total if total else None,
        lines_not_analysed=sorted({line for part in context.parts for line in part.lines_not_analysed}),
        events_dropped=dict(sorted(dropped.items())),
        empty_devices=[
            f"{part.host}{name}" if len(context.parts) > 1 else name
            for part in context.parts
            for name in part.empty_devices
        ],
        unattributed_ops=[
            schema.UnattributedOp(
                name=op.facts.name,
                count=op.count,
                exclusive_duration=us(op.exclusive),
                reason=_why_unattributed(op),
            )
            for op in context.ops
            if not _has_hlo(op)
        ][:100],
        overlapping_events=sum(part.overlapping_events for part in context.parts),
        format_lacks=list(JSON_LACKS) if json_parts else [],
    )


def _has_hlo(op: OpTotals) -> bool:
    return op.facts.has_hlo and not op.facts.hlo_op.startswith(COMMAND_BUFFER)


def _why_unattributed(op: OpTotals) -> str:
    if op.facts.hlo_op.startswith(COMMAND_BUFFER):
        return f"command buffer ({op.facts.hlo_op})"
    return "the event names no HLO op"


def _warnings(
    context: _Context, facts: CaptureFacts, coverage: schema.Coverage
) -> list[str]:
    notes = [*facts.notes]
    for file in facts.files:
        notes += file.notes
    for part in context.parts:
        notes += part.notes
    notes += context.steps.notes
    if not context.steps.steps:
        notes.append("No steps were found: numbers cover the whole capture.")
    elif len(context.steps.steps) == 1:
        notes.append("There is only one step: its length is known, statistics are not.")
    if coverage.empty_devices:
        total = len(coverage.empty_devices) + len(context.devices)
        notes.append(
            f"{len(coverage.empty_devices)} of {total} device planes are empty and left out of "
            f"every sum: {', '.join(coverage.empty_devices)}."
        )
    share = coverage.hlo_attributed_share
    if share is not None and share < 1.0:
        buffers = any(op.reason.startswith("command buffer") for op in coverage.unattributed_ops)
        why = " (command buffer)" if buffers else ""
        notes.append(f"{100 * (1 - share):.1f} % of op time has no HLO attribution{why}.")
    if coverage.events_dropped:
        listed = ", ".join(f"{name}: {count}" for name, count in coverage.events_dropped.items())
        notes.append(f"Events left out: {listed}.")
    impossible = [op.facts.name for op in context.ops if op_rate(op, context.peaks).impossible]
    if impossible:
        notes.append(
            f"{len(impossible)} ops would exceed the device's peaks (for example "
            f"{impossible[0]}): their static costs or times are wrong, so no rate is given."
        )
    return list(dict.fromkeys(notes))


def _advice(
    context: _Context, step_time: schema.StepTime, coverage: schema.Coverage
) -> list[schema.OptimizationCandidate]:
    return [
        schema.OptimizationCandidate(
            candidate_id=candidate.id,
            title=candidate.title,
            rationale=candidate.rationale,
            evidence=[*candidate.evidence],
            suggestions=[*candidate.suggestions],
        )
        for candidate in advice.candidates(_findings(context, step_time, coverage))
    ]


def _findings(
    context: _Context, step_time: schema.StepTime, coverage: schema.Coverage
) -> advice.Findings:
    ledgers = [context.headline(device) for device in context.main_devices]
    window = sum(ledger.end - ledger.start for ledger in ledgers) or 1
    capture = sum(d.capture.end - d.capture.start for d in context.main_devices) or 1
    op_time = sum(op.exclusive for op in context.ops) or 1
    exposed = _summed(ledger.exposed_by_kind for ledger in ledgers)
    overlapped = _summed(ledger.overlapped_by_kind for ledger in ledgers)
    transfers = _summed(ledger.transfer_by_kind for ledger in ledgers)
    host_transfers = {kind: value for kind, value in transfers.items() if kind in HOST_KINDS}
    worst = _largest(exposed)
    transfer = _largest(host_transfers)
    top = context.ops[0] if context.ops else None
    gap = context.gaps[0] if context.gaps else None
    recompute = sum(op.exclusive for op in context.ops if op.facts.pass_name == RECOMPUTE)
    period = step_time.period or schema.DurationStats(count=0)
    return advice.Findings(
        window=context.window,
        exposed_communication=sum(ledger.exposed_communication for ledger in ledgers) / window,
        worst_collective=None
        if worst is None
        else (worst[0], worst[1] / window, overlapped.get(worst[0], 0) / window),
        host_transfer=sum(ledger.host for ledger in ledgers) / window,
        worst_transfer=None if transfer is None else (transfer[0], transfer[1] / window),
        idle=sum(ledger.idle for ledger in ledgers) / window,
        longest_gap=None if gap is None else (gap.payload, gap.total / capture, gap.count),
        top_op=None
        if top is None
        else (top.facts.name, top.facts.scope_path, top.exclusive / op_time),
        top_op_bound_by=None if top is None else op_rate(top, context.peaks).bound_by,
        recompute=recompute / op_time,
        step_median_us=period.median,
        step_p90_us=period.p90,
        kept_steps=period.count,
        hlo_attributed=coverage.hlo_attributed_share,
        memory_bound_share=None,
    )


def _summed(maps: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for values in maps:
        total.update(values)
    return dict(total)


def _largest(values: Mapping[str, int]) -> tuple[str, int] | None:
    if not values:
        return None
    name = min(values, key=lambda kind: (-values[kind], kind))
    return name, values[name]


__all__ = ["CaptureFacts", "SourceFile", "assemble", "epoch_utc", "us"]
