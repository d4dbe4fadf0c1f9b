"""Rules about collectives: what the wire takes, and who is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import AT_MOST, KNOWN, Candidate, Findings, percent

EXPOSED = 0.10
STRAGGLER = 0.02
UNEVEN = 0.10
UNEVEN_ARRIVAL = "uneven-arrival"
VARYING = "varying-collectives"


def exposed(f: Findings) -> Iterator[Candidate]:
    if f.exposed_communication < EXPOSED or f.worst_collective is None:
        return
    kind, share, overlapped = f.worst_collective
    evidence = [
        f"exposed communication: {percent(f.exposed_communication)} of {f.basis}",
        f"{kind}: {percent(share)} exposed, {percent(overlapped)} overlapped",
    ]
    if f.worst_collective_scope:
        evidence.append(f"most of it in scope {f.worst_collective_scope}")
    if f.exposed_wait:
        evidence.append(f"not included: waiting for the last to arrive, {percent(f.exposed_wait)}")
    if f.exposed_varying:
        evidence.append(
            f"not included: beyond the fastest of the same op, {percent(f.exposed_varying)}"
        )
    yield Candidate(
        "exposed-communication",
        f"Hide or shrink {kind}"
        + (f" in {f.worst_collective_scope}" if f.worst_collective_scope else ""),
        "Devices wait for collectives that no compute covers.",
        tuple(evidence),
        (
            "Let XLA overlap collectives with compute (latency-hiding scheduler, async pairs).",
            "Check the sharding: fewer or larger collectives, a mesh axis that fits the network.",
        ),
        f.exposed_communication,
        AT_MOST,
    )


def straggler(f: Findings) -> Iterator[Candidate]:
    if f.straggler is None or f.straggler[1] < STRAGGLER:
        return
    name, share = f.straggler
    yield Candidate(
        "straggler",
        f"Find out why {name} arrives late",
        "The other devices wait for it in collectives; the network is not to blame for that time.",
        (
            f"wait for {name}: {percent(share)} of {f.basis}",
            f"all waits for the last to arrive: {percent(f.exposed_wait)}",
        ),
        (
            "Compare its compute time, idle time and host work with the others'.",
            "Look at what runs beside it on that machine, at its clocks and temperature, its data.",
            "If the next capture shows another straggler, look for uneven work instead.",
        ),
        share,
        KNOWN,
    )


def uneven_arrival(f: Findings) -> Iterator[Candidate]:
    share = f.exposed_wait - (f.straggler[1] if f.straggler else 0.0)
    if share < UNEVEN:
        return
    yield Candidate(
        UNEVEN_ARRIVAL,
        "Devices arrive at collectives at different times, none always last",
        "Whoever is early waits for the last. Uneven work may cause it, or devices that share "
        "processors, as CPU devices do; nothing in the network does.",
        (f"waits for the last to arrive, without stragglers: {percent(share)} of {f.basis}",),
        (
            "Compare the devices' compute time from step to step (device ledger, stragglers).",
            "Of CPU devices on one machine think nothing of it.",
        ),
        share,
        AT_MOST,
    )


def varying(f: Findings) -> Iterator[Candidate]:
    if f.exposed_varying < UNEVEN:
        return
    yield Candidate(
        VARYING,
        "The same collectives take longer at some times than at others",
        "All had arrived, and the bytes are the same. A network that others use causes it, or "
        "devices that share processors, as CPU devices do.",
        (
            f"beyond the fastest collective of the same op: {percent(f.exposed_varying)} of "
            f"{f.basis}",
        ),
        (
            "Look for other traffic on the network, and for links that run below their rate.",
            "Of CPU devices on one machine think nothing of it.",
        ),
        f.exposed_varying,
        AT_MOST,
    )
