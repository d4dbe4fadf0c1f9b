"""How much the summary can speak for, and what a reader must know first."""

from __future__ import annotations

from collections import Counter
from itertools import filterfalse, islice

from marin_profile import schema
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import CPU, GPU
from marin_profile.analysis.roofline import op_rate
from marin_profile.assemble.context import CaptureFacts, Context, us
from marin_profile.assemble.profiling import profiling_notes
from marin_profile.base.times import PS_PER_US
from marin_profile.capture.formats import XPLANE, format_named
from marin_profile.events.classify import GRAPH

COMMAND_BUFFER = "command_buffer"
UNATTRIBUTED_LIMIT = 100
_PS_PER_MS = 1000 * PS_PER_US


def coverage_section(context: Context) -> schema.Coverage:
    total = sum(op.exclusive for op in context.ops)
    with_hlo = sum(op.exclusive for op in context.ops if _has_hlo(op))
    with_scope = sum(op.exclusive for op in context.ops if op.facts.scope)
    dropped: Counter[str] = Counter()
    for part in context.parts:
        dropped.update(part.dropped)
        if part.sync_entries:
            dropped["driver_sync_entry"] += part.sync_entries
    lacks = [lack for part in context.parts for lack in format_named(part.source_format).lacks]
    return schema.Coverage(
        hlo_attributed_share=with_hlo / total if total else None,
        scope_attributed_share=with_scope / total if total else None,
        lines_not_analysed=sorted(
            {line for part in context.parts for line in part.lines_not_analysed}
        ),
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
            for op in islice(filterfalse(_has_hlo, context.ops), UNATTRIBUTED_LIMIT)
        ],
        overlapping_events=sum(part.overlapping_events for part in context.parts),
        format_lacks=list(dict.fromkeys(lacks)),
    )


def _has_hlo(op: OpTotals) -> bool:
    return op.facts.has_hlo and not op.facts.hlo_op.startswith(COMMAND_BUFFER)


def _why_unattributed(op: OpTotals) -> str:
    if op.facts.hlo_op.startswith(COMMAND_BUFFER) or op.facts.op_class.base == GRAPH:
        return f"command buffer ({op.facts.hlo_op or op.facts.name})"
    return "the event names no HLO op"


def is_cut(context: Context) -> bool:
    """Whether some of the profile is not in the files that were read."""
    return any(part.truncated for part in context.parts) or bool(_cut_behind_a_plane(context))


def _cut_behind_a_plane(context: Context) -> list[str]:
    """A file that ends behind a device's plane is sound by itself: it is cut if devices that its
    programs run on are in no file. An early end alone may be a profiler's habit."""
    early = [part for part in context.parts if part.ends_early]
    told = max((part.devices_told for part in early), default=0)
    there = sum(part.main_devices + len(part.empty_devices) for part in context.parts)
    if there >= told:
        return []
    hosts = f" of {', '.join(part.host for part in early)}" if len(context.parts) > 1 else ""
    return [
        f"The file{hosts} ends behind the planes of its devices: what the profiler writes after "
        f"them (the host, the Task Environment) is not there, and its programs run on {told} "
        f"devices, of which {there} {'is' if there == 1 else 'are'} there. It is cut, and devices "
        "are lost: totals are lower bounds."
    ]


def doubts_section(context: Context, facts: CaptureFacts) -> list[str]:
    """The warnings that may change the reading of any figure."""
    doubts = _cut_behind_a_plane(context)
    doubts += [doubt for part in context.parts for doubt in part.doubts]
    return list(dict.fromkeys((*doubts, *facts.notes)))


def warnings_section(
    context: Context,
    facts: CaptureFacts,
    coverage: schema.Coverage,
    profiling: schema.Profiling | None,
) -> list[str]:
    """Doubts first."""
    notes = doubts_section(context, facts)
    notes += _without_hlo(context)
    notes += _clock_conflicts(context)
    notes += profiling_notes(profiling)
    for file in facts.files:
        notes += file.notes
    for part in context.parts:
        notes += part.notes
    notes += context.steps.notes
    whole = sum(1 for step in context.steps.steps if not step.cut)
    if not context.steps.steps:
        notes.append("No steps were found: numbers cover the whole capture.")
    elif not context.kept_steps:
        notes.append("No step is kept: numbers cover the whole capture.")
    elif whole == 1:
        whole_step = "whole step" if len(context.steps.steps) > 1 else "step"
        notes.append(f"There is only one {whole_step}: it has a length, but no statistics.")
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
            f"{impossible[0]}): their costs, times or peaks are wrong, or a cache serves them; "
            "their costs count as unknown."
        )
    return list(dict.fromkeys(notes))


def parts_without_hlo(context: Context) -> list[HostPart]:
    """TPU ops carry opcode and scope themselves; those of other devices need the HLO protos."""
    return [
        part
        for part in context.parts
        if part.source_format == XPLANE
        and not part.has_hlo
        and any(device.kind in (CPU, GPU) for device in part.devices)
    ]


def _without_hlo(context: Context) -> list[str]:
    without = parts_without_hlo(context)
    if not without:
        return []
    hosts = ", ".join(part.host for part in without) if len(context.parts) > 1 else ""
    which = f"The xplane.pb of {hosts}" if hosts else "The xplane.pb"
    return [
        f"{which} holds no HLO protos: opcodes, scopes, passes, operands and memory are known only "
        "as far as op names show them, so collectives may count as compute. To get them, set "
        "enable_hlo_proto of jax.profiler.ProfileOptions to True (in Levanter: "
        "--trainer.profiler.profile_options.enable_hlo_proto true)."
    ]


def _clock_conflicts(context: Context) -> list[str]:
    return [
        f"Clock conflict{f' on {part.host}' if part.host else ''}: {part.clock.example}; "
        f"{part.clock.conflicts} of {part.clock.compared} launches and completions contradict the "
        "devices' times. Host and device times cannot be compared to better than "
        f"{part.clock.bound_ps / _PS_PER_MS:,.3f} ms."
        for part in context.parts
        if not part.clock.agrees
    ]
