"""Rules about collectives: what the wire takes, and who is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_profile.analysis.advice.model import (
    COMMUNICATION,
    COMPUTE,
    KNOWN,
    SMALL_BYTES,
    UNCAUSED,
    VARYING,
    WAIT,
    Exposed,
    Findings,
    Found,
    Late,
    Rule,
    beyond_the_others,
    percent,
)
from marin_profile.analysis.planes import CPU

EXPOSED = 0.10
LEAST_PART = 0.02
MOST_PARTS = 3
SMALL_SHARE = 0.02
MANY_SMALL = 8  # a step
BLOCKING = 0.05
STRAGGLER = 0.02
IMBALANCE = 0.05
UNEVEN = 0.10


# --- what the wire takes: each row belongs to the first rule that has something to say of it ---


def _small(f: Findings) -> list[Exposed]:
    rows = [row for row in f.collectives if row.is_small]
    per_step = sum(row.per_step or 0.0 for row in rows)
    return rows if _share(rows) >= SMALL_SHARE and per_step >= MANY_SMALL else []


def _blocking(f: Findings) -> list[Exposed]:
    small = _small(f)
    rows = [row for row in f.collectives if row.blocks and row not in small]
    return rows if _share(rows) >= BLOCKING else []


def _others(f: Findings) -> list[Exposed]:
    taken = [*_small(f), *_blocking(f)]
    rows = [row for row in f.collectives if row not in taken]
    return rows if _share(rows) >= EXPOSED else []


def _share(rows: Sequence[Exposed]) -> float:
    return sum(row.share for row in rows)


def _name(row: Exposed) -> str:
    return f"{row.kind} in {row.scope}" if row.scope else row.kind


def _found(
    rows: Sequence[Exposed],
    title: str,
    cause: str,
    evidence: Sequence[str],
    *,
    hides_nothing: bool = False,
) -> Found:
    """What varies goes with them, but is no reason to begin with them; nor is what only a smaller
    collective saves."""
    varying = sum(row.varying for row in rows)
    share = _share(rows)
    return Found(
        title,
        cause,
        tuple(evidence),
        share + varying,
        also={VARYING: varying} if varying else {},
        weight=share / 4 if hides_nothing else share / 2,
    )


def small(f: Findings) -> Iterator[Found]:
    rows = _small(f)
    if not rows:
        return
    per_step = sum(row.per_step or 0.0 for row in rows)
    yield _found(
        rows,
        f"Combine small collectives, most of all {_name(rows[0])}",
        "Each of many small collectives pays the latency of the network for a few bytes.",
        (
            f"small collectives: {percent(_share(rows))} of {f.basis}, {per_step:.1f} a step on "
            "each device",
            *_varying_in_words(rows),
            *_in_words(rows),
        ),
    )


def blocking(f: Findings) -> Iterator[Found]:
    rows = _blocking(f)
    if not rows:
        return
    yield _found(
        rows,
        f"Let {_name(rows[0])} run beside compute",
        "These collectives are plain ops on the line of compute, beside which nothing runs.",
        (
            f"collectives that block compute: {percent(_share(rows))} of {f.basis}",
            *_varying_in_words(rows),
            *_in_words(rows),
        ),
    )


def exposed(f: Findings) -> Iterator[Found]:
    """One finding for each kind and scope, without waits for the last."""
    rows = _others(f)
    wait = f.terms[WAIT]
    for row in [row for row in rows if row.share >= LEAST_PART][:MOST_PARTS]:
        evidence = [f"{_name(row)}: {percent(row.share)} of {f.basis} exposed"]
        evidence.append(f"{row.kind} beside compute: {percent(row.overlapped)} of {f.basis}")
        if wait:
            evidence.append(f"not included: waiting for the last to arrive, {percent(wait)}")
        evidence += _varying_in_words([row])
        yield _found(
            [row],
            f"Hide or shrink {_name(row)}",
            "Devices wait for collectives that no compute covers.",
            evidence,
            # While one device communicates the others use the processors that they share.
            hides_nothing=f.shares_processors,
        )


def _varying_in_words(rows: Sequence[Exposed]) -> list[str]:
    varying = sum(row.varying for row in rows)
    return [f"and beyond the fastest of the same op: {percent(varying)}"] if varying else []


def _in_words(rows: Sequence[Exposed]) -> list[str]:
    return [f"{_name(row)}: {percent(row.share)} exposed" for row in rows[:MOST_PARTS]]


# --- who is waited for ---


def late_hosts(f: Findings) -> Iterator[Found]:
    yield from _late(f, f.late_hosts)


def late_devices(f: Findings) -> Iterator[Found]:
    yield from _late(f, f.late_devices)


def _late(f: Findings, late: Late | None) -> Iterator[Found]:
    if late is None or late.share < STRAGGLER:
        return
    names = ", ".join(late.names)
    caused = f"wait for {names}: {percent(late.share)} of {f.basis}"
    # Of the time of all devices.
    compute = min(late.each - late.share, beyond_the_others(f, late) * _part_of(f, late))
    yield Found(
        f"Find out why {names} arrives late",
        "The other devices wait for it in collectives; the network is not to blame for that time.",
        (
            caused,
            f"all waits for the last to arrive: {percent(f.terms[WAIT])}",
        ),
        late.share + compute,
        KNOWN,
        line=caused,
        also={COMPUTE: compute} if compute > 0 else {},
    )


def _part_of(f: Findings, late: Late) -> float:
    own = [late.has(name) for name, _ in f.compute_by_device]
    return sum(own) / len(own) if own else 0.0


def imbalance(f: Findings) -> Iterator[Found]:
    """Where no straggler takes the wait. CPU devices share processors: whose work takes longer
    there says nothing."""
    if f.device_kind == CPU or len(f.compute_by_device) < 2:
        return
    shares = [share for _, share in f.compute_by_device]
    name, most = max(f.compute_by_device, key=lambda one: one[1])
    beyond = most - sum(shares) / len(shares)
    taken = sum(late.share for late in (f.late_hosts, f.late_devices) if late is not None)
    share = min(beyond, f.terms[WAIT] - taken)
    if share < IMBALANCE:
        return
    mean = percent(sum(shares) / len(shares))
    uneven = f"compute of {name}: {percent(most)} of its time, of all on average {mean}"
    yield Found(
        "Give the devices equal work",
        "One device computes longer than the others, which wait for it in collectives.",
        (uneven, f"of a device with least: {percent(min(shares))}"),
        share,
        line=uneven,
    )


def uneven_arrival(f: Findings) -> Iterator[Found]:
    taken = sum(
        found.share or 0.0 for rule in (late_hosts, late_devices, imbalance) for found in rule(f)
    )
    share = f.terms[WAIT] - taken
    if share < UNEVEN:
        return
    yield Found(
        "Devices arrive at collectives at different times, none always last",
        "Whoever is early waits for the last. Uneven work may cause it, or devices that share "
        "processors, as CPU devices do; nothing in the network does.",
        (f"waits for the last to arrive that nobody causes: {percent(share)} of {f.basis}",),
        share,
    )


def varying(f: Findings) -> Iterator[Found]:
    share = f.terms[VARYING]
    if share < UNEVEN:
        return
    yield Found(
        "The same collectives take longer at some times than at others",
        "All had arrived, and the bytes are the same. A network that others use causes it, or "
        "devices that share processors, as CPU devices do.",
        (f"beyond the fastest collective of the same op: {percent(share)} of {f.basis}",),
        share,
    )


_BY_KIND = "device_ledger[].exposed_communication_by_kind"
_LESS_WAIT = "exposed time of the kind, less waits for the last, split by the self time of its ops"
_ASYNC = (
    "On TPU (LIBTPU_INIT_ARGS): --xla_tpu_enable_async_collective_fusion=true, "
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true.",
    "On GPU (XLA_FLAGS): --xla_gpu_enable_latency_hiding_scheduler=true; take collectives out of "
    "--xla_gpu_disable_async_collectives.",
)
_CAUSED = (
    "exposed waits in collectives that it entered last, and as much of what it computes beyond the "
    "others as each of them waits"
)
_STRAGGLERS = "query stragglers: exposed_wait_caused falls, and it is no straggler any more"

WAITED_FOR = (
    Rule(
        "straggler",
        late_devices,
        f"devices that stand out are waited for >= {STRAGGLER:.0%} of device time",
        ("stragglers[is_straggler].exposed_wait_caused",),
        (
            "Compare its compute time, idle time and host work with the others'.",
            "Look at what runs beside it on that machine, at its clocks and temperature, its data.",
            "If the next capture shows another straggler, look for uneven work instead.",
        ),
        _STRAGGLERS,
        WAIT,
        _CAUSED,
    ),
    Rule(
        "straggler-host",
        late_hosts,
        f"all devices of one host are waited for >= {STRAGGLER:.0%} of device time",
        ("straggler_hosts[is_straggler].wait_caused", "stragglers[with_its_host]"),
        (
            "Compare its host_activity with another host's: data, checkpoints, other processes.",
            "Take the machine out of the job once, and see whether another one is late then.",
        ),
        _STRAGGLERS,
        WAIT,
        _CAUSED,
    ),
)

ON_THE_WIRE = (
    Rule(
        "small-collectives",
        small,
        f">= {MANY_SMALL} collectives a step of <= {SMALL_BYTES // 1024} KiB, exposed >= "
        f"{SMALL_SHARE:.0%} of device time",
        (_BY_KIND, "collectives[].bytes", "collectives[].count"),
        (
            "Reduce a tree of values in one call (jax.lax.psum takes a pytree), or concatenate "
            "them.",
            "On GPU raise --xla_gpu_all_reduce_combine_threshold_bytes (and that of all_gather, "
            "reduce_scatter).",
        ),
        "query collective_breakdown: count falls, bytes of each rise, exposed_duration falls",
        COMMUNICATION,
        _LESS_WAIT,
    ),
    Rule(
        "blocking-collectives",
        blocking,
        f"plain collectives on the line of compute, of kinds that can be asynchronous, exposed >= "
        f"{BLOCKING:.0%} of device time (TPU, GPU)",
        (_BY_KIND, "hot_ops[].hlo_op"),
        _ASYNC,
        "query top_ops: start and done ops take its place; query collective_breakdown: "
        "overlapped_duration rises",
        COMMUNICATION,
        _LESS_WAIT,
    ),
    Rule(
        "exposed-communication",
        exposed,
        f"other collectives are exposed >= {EXPOSED:.0%} of device time; by kind and scope from "
        f"{LEAST_PART:.0%} on",
        (_BY_KIND, "collectives[].exposed_duration", "op_groups[].scope"),
        (
            "Let XLA overlap it with compute (latency-hiding scheduler, asynchronous pairs).",
            "Check the sharding: fewer or larger collectives, a mesh axis that fits the network.",
        ),
        "query collective_breakdown: exposed_duration of the kind falls",
        COMMUNICATION,
        _LESS_WAIT,
    ),
)

UNEVEN_WORK = (
    Rule(
        "compute-imbalance",
        imbalance,
        f"one device computes longer than the mean by >= {IMBALANCE:.0%} of its time, and others "
        "wait that long (TPU, GPU)",
        ("device_ledger[].compute_duration", "stragglers[].exposed_wait"),
        (
            "Balance what differs: experts' tokens, sequence lengths, pipeline stages, padding.",
            "Compare the devices' ops of the largest family.",
        ),
        "query device_ledger: compute_duration of the devices draws together",
        WAIT,
        "compute of the device with most, beyond the mean; at most the waits that nobody causes",
    ),
    Rule(
        "uneven-arrival",
        uneven_arrival,
        f"waits for the last that nobody causes >= {UNEVEN:.0%} of device time",
        ("collectives[].wait_duration", "stragglers[].exposed_wait"),
        (
            "Compare the devices' compute time from step to step (device ledger, stragglers).",
            "Of CPU devices on one machine think nothing of it.",
        ),
        "query collective_breakdown: wait_duration falls",
        WAIT,
        "exposed waits, less those that a device or host causes",
        UNCAUSED,
    ),
    Rule(
        "varying-collectives",
        varying,
        f"collectives take beyond the fastest of the same op >= {UNEVEN:.0%} of device time",
        ("collectives[].duration", _BY_KIND),
        (
            "Look for other traffic on the network, and for links that run below their rate.",
            "Of CPU devices on one machine think nothing of it.",
        ),
        "query collective_breakdown: exposed_duration falls",
        VARYING,
        "exposed time beyond the fastest whole collective of the same op, waits apart",
        UNCAUSED,
    ),
)
