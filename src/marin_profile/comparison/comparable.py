"""Can the two be compared? Asked before they are.

Contract: every caveat is one sentence, with both values where the two differ. It is "blocking"
where a difference in step time might not be a change of the program's speed, else a "note". A
different run, commit or configuration is what a comparison is for, and no caveat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_profile.base.text import duration, plural
from marin_profile.comparison.exact import plain_change
from marin_profile.comparison.executions import common_program
from marin_profile.comparison.model import Caveat, Comparability, ScaledShapes
from marin_profile.comparison.same_program import LEAST_COMMON, common_shares, scaled_shapes
from marin_profile.facts.device_time import left_out_of
from marin_profile.facts.memory import rematerialised
from marin_profile.facts.step_time import kept_steps, ordinal, step_length
from marin_profile.schema import ProfileSummary

# Two shares of coverage further apart than this see different parts of the program.
COVERAGE_TOLERANCE = 0.05
# A window this many times longer than the other averages over other things.
LONGEST_RATIO = 2
DEVICES_NAMED = 3


def comparability(before: ProfileSummary, after: ProfileSummary) -> Comparability:
    digest = before.trace_provenance.trace_sha256
    same = digest is not None and digest == after.trace_provenance.trace_sha256
    shapes = _scaled_shapes(before, after)
    caveats = [
        *_device_work(before, after),
        *_program(before, after),
        *_shapes(shapes),
        *_machines(before, after),
        *_groups(before, after),
        *_not_known(before, after),
        *_steps(before, after),
        *_bases(before, after),
        *_windows(before, after),
        *_provenance(before, after),
        *_coverage(before, after),
        *_rematerialisation(before, after),
    ]
    blocked = any(caveat.severity == "blocking" for caveat in caveats)
    return Comparability(
        same_capture=same,
        comparable=not same and not blocked,
        caveats=caveats,
        shapes=shapes,
    )


def _blocking(about: str, sentence: str) -> Caveat:
    return Caveat(about=about, severity="blocking", sentence=sentence)


def _note(about: str, sentence: str) -> Caveat:
    return Caveat(about=about, severity="note", sentence=sentence)


def _device_work(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    for side, summary in (("before", before), ("after", after)):
        if summary.trace_overview.suspected_truncation:
            yield _blocking(
                "truncation", f"The {side} trace is truncated: its figures are lower bounds."
            )
        if not summary.device_ledger and not summary.time_breakdown.total_duration:
            yield _blocking("host_only", f"The {side} profile shows no device work.")


def _program(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    shares = common_shares(before, after)
    if shares is not None and max(shares) < LEAST_COMMON:
        yield _blocking(
            "program",
            "The two are of different programs; the share of op time whose ops the other side has "
            f"too: {_pair(*(f'{share:.0%}' for share in shares))}.",
        )


def _scaled_shapes(before: ProfileSummary, after: ProfileSummary) -> ScaledShapes | None:
    found = scaled_shapes(before, after)
    steps = [_step_cost(summary) for summary in (before, after)]
    if found is None or None in steps:
        return found
    each = [
        step and round(step / size, 6)
        for step, size in zip(steps, (found.before, found.after), strict=True)
    ]
    return found.model_copy(update={"per_element": plain_change(*each)})


def _step_cost(summary: ProfileSummary) -> float | None:
    """Microseconds: the target's step where there is one, else the mean."""
    account, length = summary.step_account, step_length(summary)
    if account is not None:
        return account.total_duration / (account.steps * account.devices)
    return length[1].mean if length else None


def _shapes(found: ScaledShapes | None) -> Iterator[Caveat]:
    """Blocking: the steps hold different amounts of work."""
    if found is None:
        return
    which = f"{ordinal(found.dimension)} dimension"
    noun = f"{which}, as a rule the batch," if found.dimension == 1 else which
    sentence = (
        f"The {noun} of most shapes differs: {_pair(found.before, found.after)} "
        f"({found.share:.0%} of op time)"
    )
    each = found.per_element
    if each is not None and each.relative is not None:
        lengths = _pair(duration(each.before), duration(each.after))
        sentence += f"; for each one in it a step takes {lengths} ({each.relative:+.1%})"
    yield _blocking("shapes", f"{sentence}.")


def _machines(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    one, two = before.run_metadata, after.run_metadata
    if _both_known_and_differ(one.hardware_type, two.hardware_type):
        values = _pair(one.hardware_type, two.hardware_type)
        yield _blocking("hardware", f"Hardware differs: {values}.")
    yield from _devices(before, after)
    yield from _single_devices(before, after)
    if before.step_account and after.step_account:
        kinds = before.step_account.device_kind, after.step_account.device_kind
        if kinds[0] != kinds[1]:
            yield _blocking("devices", f"Kind of device differs: {_pair(*kinds)}.")
    for about, noun, b, a in (
        ("hosts", "Number of hosts", one.num_hosts, two.num_hosts),
        ("topology", "Mesh or topology", one.mesh_or_topology, two.mesh_or_topology),
    ):
        if _both_known_and_differ(b, a):
            yield _note(about, f"{noun} differs: {_pair(b, a)}.")


def _devices(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    """Another number of them does another share of the work; if some were not captured, the
    figures are means over the others."""
    numbers = before.run_metadata.num_devices, after.run_metadata.num_devices
    if _both_known_and_differ(*numbers):
        yield _blocking("devices", f"Number of devices differs: {_pair(*numbers)}.")
        return
    captured = [_captured(one) for one in (before, after)]
    if not all(captured) or len(captured[0]) == len(captured[1]):
        return
    fewer, more = sorted(captured, key=len)
    side = "before" if fewer is captured[0] else "after"
    lacking = [" ".join(filter(None, device)) for device in sorted(more - fewer)]
    numbers_captured = _pair(*map(len, captured))
    yield _note(
        "devices",
        f"The {side} capture lacks {_some(lacking)}; devices captured: {numbers_captured}.",
    )


def _captured(summary: ProfileSummary) -> set[tuple[str, str]]:
    if left_out_of(summary, "device_ledger"):
        return {(host.host, device) for host in summary.hosts for device in host.devices}
    return {(row.host, row.device) for row in summary.device_ledger}


def _single_devices(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    for side, one in (("before", before), ("after", after)):
        if left_out := left_out_of(one, "device_ledger"):
            yield _note(
                "devices",
                f"Devices are not compared one by one: {left_out:,} of the {side} capture have no "
                "row of their own.",
            )


def _groups(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    """A note: another sharding of the same work may be the change that is judged."""
    sides = [_group_sizes(summary) for summary in (before, after)]
    differing = [
        f"{kind} {_pair(*(_listed(side[kind]) for side in sides))}"
        for kind in sorted(sides[0].keys() & sides[1].keys())
        if sides[0][kind] != sides[1][kind]
    ]
    if differing:
        yield _note("sharding", f"Who meets in collectives differs: {'; '.join(differing)}.")


def _group_sizes(summary: ProfileSummary) -> dict[str, list[tuple[int, int | None]]]:
    """Per kind of collective the sizes of its groups, and how many groups where that is known."""
    found: dict[str, list[tuple[int, int | None]]] = {}
    for row in summary.collectives:
        if row.group_size is not None:
            found.setdefault(row.collective, []).append((row.group_size, row.groups))
    return {kind: sorted(rows, key=lambda row: row[0]) for kind, rows in found.items()}


def _listed(groups: Sequence[tuple[int, int | None]]) -> str:
    return " and ".join(
        f"groups of {size}" if number is None else f"{plural(number, 'group')} of {size}"
        for size, number in groups
    )


def _not_known(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    """Facts that one side lacks; of the machine also those that both lack."""
    one, two = before.run_metadata, after.run_metadata
    found = [
        f"{noun} ({_pair(b, a)})" if (b, a) != (None, None) else noun
        for noun, b, a, is_needed in (
            ("hardware", one.hardware_type, two.hardware_type, True),
            ("number of devices", one.num_devices, two.num_devices, True),
            ("configuration", one.config_hash, two.config_hash, False),
            ("commit", one.git_sha, two.git_sha, False),
        )
        if (b is None) != (a is None) or (is_needed and b is None)
    ]
    if found:
        yield _note("facts", f"Not known on both sides: {', '.join(found)}.")


def _steps(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    one, two = before.step_time, after.step_time
    without = [not kept_steps(summary) for summary in (before, after)]
    if all(without) and common_program([before, after]) is not None:
        yield _note("steps", "Neither capture shows steps.")
    else:
        for side, is_without in zip(("before", "after"), without, strict=True):
            if is_without:
                yield _blocking("steps", f"The {side} capture shows no steps.")
    if one.source != two.source:
        yield _blocking(
            "step_source", f"The source of the steps differs: {_pair(one.source, two.source)}."
        )
    elif one.annotation != two.annotation:
        names = _pair(one.annotation, two.annotation)
        yield _note("step_source", f"The names of the steps differ: {names}.")
    if one.linked != two.linked:
        yield _note(
            "step_source",
            f"Whether device work is tied to the steps differs: {_pair(one.linked, two.linked)}.",
        )


def _bases(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    for noun, b, a in (
        (
            "Duration basis",
            before.time_breakdown.duration_basis,
            after.time_breakdown.duration_basis,
        ),
        ("Breakdown window", before.time_breakdown.basis, after.time_breakdown.basis),
    ):
        if b != a:
            yield _blocking("duration_basis", f"{noun} differs: {_pair(b, a)}.")
    one, two = before.step_account, after.step_account
    if one and two and one.basis != two.basis:
        yield _blocking(
            "duration_basis",
            f"One side averages over periods, the other has one step only: "
            f"{_pair(one.basis, two.basis)}.",
        )


def _windows(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    b, a = kept_steps(before), kept_steps(after)
    if b == 1 or a == 1:
        yield _note("window", f"One step has no statistics; kept steps: {_pair(b, a)}.")
    if b and a and max(b, a) > LONGEST_RATIO * min(b, a):
        yield _note("window", f"The windows differ in length; kept steps: {_pair(b, a)}.")
    b, a = before.step_time.warmup_steps_ignored, after.step_time.warmup_steps_ignored
    if b != a:
        yield _note("window", f"Number of warm-up steps left out differs: {_pair(b, a)}.")


def _provenance(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    digests = [s.trace_provenance.trace_sha256 for s in (before, after)]
    if None in digests:
        yield _note(
            "capture",
            "Whether both are of the same capture is not known; sha256: "
            f"{_pair(*(digest and digest[:12] for digest in digests))}.",
        )
    tools = [s.capture.tool_version if s.capture else None for s in (before, after)]
    if tools[0] != tools[1]:
        yield _note(
            "tool",
            "The summaries were made by different versions, which may define figures differently "
            f"(see the changelog): {_pair(*tools)}.",
        )
    if before.source_format != after.source_format:
        formats = _pair(before.source_format, after.source_format)
        yield _note("format", f"The summaries were read from different formats: {formats}.")


def _coverage(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    one, two = before.coverage, after.coverage
    if one is None or two is None:
        if one is not two:
            yield _note("coverage", "Only one side states how much of the device time it covers.")
        return
    for noun, b, a in (
        ("with an HLO op", one.hlo_attributed_share, two.hlo_attributed_share),
        ("with a scope", one.scope_attributed_share, two.scope_attributed_share),
    ):
        if b is not None and a is not None and abs(b - a) > COVERAGE_TOLERANCE:
            yield _note(
                "coverage", f"Device op time {noun} differs: {_pair(f'{b:.1%}', f'{a:.1%}')}."
            )
    if len(one.empty_devices) != len(two.empty_devices):
        empty = _pair(len(one.empty_devices), len(two.empty_devices))
        yield _note("coverage", f"Number of devices without events differs: {empty}.")


def _rematerialisation(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    """XLA rematerialises what else would not fit: a little more memory may cost much time."""
    counts = [rematerialised(summary) for summary in (before, after)]
    if bool(counts[0]) == bool(counts[1]):
        return
    how = "went on: the program crossed" if counts[1] else "went off: the program no longer crosses"
    yield _note(
        "rematerialisation",
        f"XLA's rematerialisation {how} the memory limit; ops computed again: "
        f"{_pair(*counts)}. Part of the change is these.",
    )


def _both_known_and_differ(before: object, after: object) -> bool:
    return before is not None and after is not None and before != after


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:DEVICES_NAMED])
    more = len(names) - DEVICES_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _pair(before: object, after: object) -> str:
    return f"{_shown(before)} before, {_shown(after)} after"


def _shown(value: object) -> str:
    return "not known" if value is None else str(value)
