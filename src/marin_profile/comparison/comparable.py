"""Can the two be compared? Asked before they are.

Contract: every caveat is one sentence, with both values where the two differ. It is "blocking"
where a difference in step time might not be a change of the program's speed, else a "note". A
different run, commit or configuration is what a comparison is for, and no caveat.
"""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.comparison.model import Caveat, Comparability
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import ProfileSummary

# Two shares of coverage further apart than this see different parts of the program.
COVERAGE_TOLERANCE = 0.05
# A window this many times longer than the other averages over other things.
LONGEST_RATIO = 2


def comparability(before: ProfileSummary, after: ProfileSummary) -> Comparability:
    digest = before.trace_provenance.trace_sha256
    same = digest is not None and digest == after.trace_provenance.trace_sha256
    caveats = [
        *_device_work(before, after),
        *_machines(before, after),
        *_steps(before, after),
        *_bases(before, after),
        *_windows(before, after),
        *_provenance(before, after),
        *_coverage(before, after),
    ]
    blocked = any(caveat.severity == "blocking" for caveat in caveats)
    return Comparability(same_capture=same, comparable=not same and not blocked, caveats=caveats)


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


def _machines(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    one, two = before.run_metadata, after.run_metadata
    for about, noun, b, a in (
        ("hardware", "Hardware", one.hardware_type, two.hardware_type),
        ("devices", "Number of devices", one.num_devices, two.num_devices),
    ):
        if b is None or a is None:
            yield _note(about, f"{noun} is not known on both sides: {_pair(b, a)}.")
        elif b != a:
            yield _blocking(about, f"{noun} differs: {_pair(b, a)}.")
    if before.step_account and after.step_account:
        kinds = before.step_account.device_kind, after.step_account.device_kind
        if kinds[0] != kinds[1]:
            yield _blocking("devices", f"Kind of device differs: {_pair(*kinds)}.")
    for about, noun, b, a in (
        ("hosts", "Number of hosts", one.num_hosts, two.num_hosts),
        ("topology", "Mesh or topology", one.mesh_or_topology, two.mesh_or_topology),
    ):
        if b != a and b is not None and a is not None:
            yield _note(about, f"{noun} differs: {_pair(b, a)}.")


def _steps(before: ProfileSummary, after: ProfileSummary) -> Iterator[Caveat]:
    one, two = before.step_time, after.step_time
    for side, summary in (("before", before), ("after", after)):
        if not kept_steps(summary):
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


def _pair(before: object, after: object) -> str:
    return f"{_shown(before)} before, {_shown(after)} after"


def _shown(value: object) -> str:
    return "not known" if value is None else str(value)
