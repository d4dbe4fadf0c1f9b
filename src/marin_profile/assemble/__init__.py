"""Host parts -> ProfileSummary: the one place where picoseconds become microseconds.

Contract: deterministic (no clock, no environment); lists are sorted by size, ties by name; every
list's window stands in `list_basis`. One module per section of the summary.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile import schema
from marin_profile.analysis.gaps import merge_gaps
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.ops import merge_op_totals
from marin_profile.analysis.steps.merge import merge_steps
from marin_profile.analysis.transfers import merge_transfers
from marin_profile.assemble import invariants
from marin_profile.assemble.abridged import abridged_tables
from marin_profile.assemble.communication import (
    collective,
    communication_ops,
    gap_contexts,
    gap_row,
    judged_hosts,
    merged_collectives,
    straggler_hosts,
    stragglers,
    transfer,
)
from marin_profile.assemble.context import CaptureFacts, Context, SourceFile
from marin_profile.assemble.coverage import (
    coverage_section,
    doubts_section,
    is_cut,
    warnings_section,
)
from marin_profile.assemble.findings import advice_section
from marin_profile.assemble.identity import (
    capture_section,
    digest,
    generated_at,
    hardware,
    hosts_section,
    most_common,
    overview,
)
from marin_profile.assemble.ledger import (
    DEVICE_LEDGER,
    device_ledger,
    step_account,
    time_breakdown,
)
from marin_profile.assemble.loops import loops
from marin_profile.assemble.memory import memory
from marin_profile.assemble.ops import families, hot_op, op_groups, regions, repeated_regions
from marin_profile.assemble.profiling import profiling_section
from marin_profile.assemble.programs import programs
from marin_profile.assemble.roofline import roofline_section
from marin_profile.assemble.steps import step_time_section
from marin_profile.assemble.what_if import what_if_section

WHOLE_CAPTURE_LISTS = (
    "hot_ops",
    "op_groups",
    "programs",
    "loops",
    "semantic_families",
    "communication_ops",
    "collectives",
    "transfers",
    "gap_before_ops",
    "gap_region_contexts",
    "hierarchical_regions",
    "repeated_regions",
)


def assemble(
    parts: Sequence[HostPart], facts: CaptureFacts, *, hot_op_limit: int, breakdown_mode: str
) -> schema.ProfileSummary:
    """Merge the hosts of one capture. At least one part must hold device work."""
    devices = tuple((part, device) for part in parts for device in part.devices)
    steady = all(device.steady is not None for _, device in devices)
    context = Context(
        parts=parts,
        devices=devices,
        steps=merge_steps(parts),
        ops=merge_op_totals(op for part in parts for op in part.ops),
        gaps=merge_gaps(gap for part in parts for gap in part.gaps),
        transfers=merge_transfers(row for part in parts for row in part.transfers),
        collectives=merged_collectives(parts, steady=steady),
        steady=steady,
    )
    breakdown = time_breakdown(context, breakdown_mode)
    roofline = roofline_section(context)
    step_time = step_time_section(context)
    coverage = coverage_section(context)
    host_waits = judged_hosts(context)
    late = stragglers(context, host_waits), straggler_hosts(context, host_waits)
    tables = abridged_tables(context, late[0])
    profiling = profiling_section(facts.contexts)
    warnings = [*warnings_section(context, facts, coverage, profiling), *tables.notes]
    summary = schema.ProfileSummary(
        generated_at_utc=generated_at(parts),
        source_format=parts[0].source_format,
        source_path=facts.source_path,
        run_metadata=schema.RunMetadata(
            hardware_type=hardware(context),
            num_devices=len(context.main_devices),
            num_hosts=len({part.machine for part in parts}),
        ),
        trace_overview=overview(
            context,
            breakdown.duration_basis,
            warnings,
            doubts_section(context, facts),
            is_cut=is_cut(context),
        ),
        trace_provenance=schema.TraceProvenance(
            trace_sha256=digest([file.sha256 for file in facts.files]),
            run_ids=most_common(part.run_ids for part in parts),
            source_file_hints=most_common(part.sources for part in parts),
        ),
        step_time=step_time,
        time_breakdown=breakdown,
        hot_ops=[hot_op(context, op) for op in context.ops[:hot_op_limit]],
        semantic_families=families(context),
        communication_ops=communication_ops(context),
        gap_before_ops=[gap_row(context, gap) for gap in context.gaps],
        hierarchical_regions=regions(context),
        repeated_regions=repeated_regions(context),
        gap_region_contexts=gap_contexts(context),
        optimization_candidates=advice_section(context, step_time, coverage, late, profiling),
        device_ledger=device_ledger(context, tables.devices),
        device_quantiles=tables.quantiles,
        step_account=step_account(context),
        op_groups=op_groups(context),
        programs=programs(context),
        loops=loops(context),
        transfers=[transfer(row) for row in context.transfers],
        collectives=[collective(row) for row in context.collectives.rows],
        stragglers=tables.stragglers,
        straggler_hosts=late[1],
        roofline=roofline,
        hosts=hosts_section(context, facts),
        host_activity=tables.activity,
        memory=memory(context),
        allocators=tables.allocators,
        abridged=tables.abridged,
        what_if=what_if_section(context),
        coverage=coverage,
        capture=capture_section(parts, facts, profiling),
        list_basis={
            **dict.fromkeys(WHOLE_CAPTURE_LISTS, schema.CAPTURE),
            "roofline": schema.WHOLE_PERIODS if context.in_periods else schema.CAPTURE,
            "time_breakdown": breakdown.basis or schema.CAPTURE,
            "optimization_candidates": context.window,
            "host_activity": schema.WHOLE_PERIODS if context.in_periods else schema.CAPTURE,
            "what_if": schema.WHOLE_PERIODS if context.in_periods else schema.CAPTURE,
            "stragglers": context.window,
            "straggler_hosts": context.window,
        },
    )
    invariants.check(context, facts, summary)
    return summary


__all__ = ["DEVICE_LEDGER", "CaptureFacts", "SourceFile", "assemble"]
