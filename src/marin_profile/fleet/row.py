"""One capture of a fleet as a row: what its summary says that fleets are compared by."""

from __future__ import annotations

import msgspec

from marin_profile.base.units import Bytes, Count, Devices, Microseconds, Share, Steps
from marin_profile.facts.device_time import headline_time
from marin_profile.facts.memory import fullest
from marin_profile.facts.rows import Row
from marin_profile.facts.step_time import typical_and_mean
from marin_profile.history.record import record_of
from marin_profile.schema import EPOCH_UTC, REMAINDER, ProfileSummary

MOST_HOSTS = 64
MOST_DOUBTS = 3


class FleetRow(Row, frozen=True, kw_only=True):
    """`problem`: why it could not be summarised; then nothing else is known. `time`: when the
    profile was taken (UTC, "" if not known). Step times as in `step_time`; shares are of the
    headline window, `busy_share` is all but idle. `memory_peak_size`: of the fullest program by
    XLA's plan; `memory_free_size`: the least that any device had left, by its allocator. `advice`:
    what to try first, and the most that it saves. `stragglers` and `hosts` name up to MOST_HOSTS.
    """

    name: str
    problem: str = ""
    time: str = ""
    hardware: str | None = None
    devices: Devices | None = None
    num_hosts: Count | None = None
    hosts: list[str] = msgspec.field(default_factory=list)
    config_hash: str | None = None
    git_sha: str | None = None
    run: str | None = None
    program: str | None = None
    measure: str | None = None
    steps: Steps | None = None
    step_typical: Microseconds | None = None
    step_mean: Microseconds | None = None
    step_p90: Microseconds | None = None
    busy_share: Share | None = None
    compute_share: Share | None = None
    exposed_communication_share: Share | None = None
    exposed_transfer_share: Share | None = None
    idle_share: Share | None = None
    mfu: Share | None = None
    memory_peak_size: Bytes | None = None
    memory_free_size: Bytes | None = None
    advice: str | None = None
    advice_saves: Microseconds | None = None
    advice_saves_share: Share | None = None
    stragglers: list[str] = msgspec.field(default_factory=list)
    doubts: list[str] = msgspec.field(default_factory=list)
    num_doubts: Count = 0
    trace_sha256: str | None = None


def failed_row(name: str, problem: str) -> FleetRow:
    return FleetRow(name=name, problem=problem)


def row_of(name: str, summary: ProfileSummary) -> FleetRow:
    record = record_of(summary)
    length, time = typical_and_mean(summary), headline_time(summary)
    run, roofline = summary.run_metadata, summary.roofline
    first = next(iter(summary.optimization_candidates), None)
    free = [row.headroom_size for row in summary.allocators if row.device is not None]
    doubts = summary.trace_overview.doubts
    programs = [row.name for row in summary.programs if row.name != REMAINDER]
    return FleetRow(
        name=name,
        time="" if record.time == EPOCH_UTC else record.time,
        hardware=run.hardware_type,
        devices=run.num_devices,
        num_hosts=run.num_hosts,
        hosts=list(dict.fromkeys(host.machine or host.host for host in summary.hosts))[:MOST_HOSTS],
        config_hash=run.config_hash,
        git_sha=run.git_sha,
        run=run.run_path or run.run_id,
        program=programs[0] if programs else None,
        measure=length.measure if length else None,
        steps=length.steps if length else None,
        step_typical=length.typical if length else None,
        step_mean=length.mean if length else None,
        step_p90=length.p90 if length else None,
        busy_share=None if time is None or time.idle_share is None else 1 - time.idle_share,
        compute_share=time.compute_share if time else None,
        exposed_communication_share=time.exposed_communication_share if time else None,
        exposed_transfer_share=time.exposed_transfer_share if time else None,
        idle_share=time.idle_share if time else None,
        mfu=roofline.mfu if roofline and not roofline.mfu_is_lower_bound else None,
        memory_peak_size=fullest(summary.memory).peak_size if summary.memory else None,
        memory_free_size=min(free, default=None),
        advice=first.title if first else None,
        advice_saves=first.ceiling_per_step if first else None,
        advice_saves_share=first.ceiling_share if first else None,
        stragglers=_stragglers(summary),
        doubts=doubts[:MOST_DOUBTS],
        num_doubts=len(doubts),
        trace_sha256=summary.trace_provenance.trace_sha256,
    )


def _stragglers(summary: ProfileSummary) -> list[str]:
    """The hosts that stand out, or of which a device does."""
    named = [one.host for one in summary.straggler_hosts if one.is_straggler]
    named += [one.host for one in summary.stragglers if one.is_straggler]
    machine = {host.host: host.machine or host.host for host in summary.hosts}
    return list(dict.fromkeys(machine.get(name, name) for name in named))[:MOST_HOSTS]


def encode(row: FleetRow) -> bytes:
    return msgspec.json.encode(row)


def decode(data: bytes) -> FleetRow:
    """Raises ValueError for what is no row of this version."""
    try:
        return msgspec.json.decode(data, type=FleetRow)
    except msgspec.DecodeError as error:
        raise ValueError(f"no row of a fleet: {error}") from error
