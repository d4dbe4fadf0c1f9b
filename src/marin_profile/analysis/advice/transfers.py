"""Rules about copies, and about waits for sparse cores."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import AT_MOST, Candidate, Findings, percent
from marin_profile.events.classify import SPARSECORE

WITH_HOST = 0.10
WAITS = 0.10


def with_host(f: Findings) -> Iterator[Candidate]:
    if f.host_transfer < WITH_HOST or f.worst_transfer is None:
        return
    kind, share = f.worst_transfer
    yield Candidate(
        "exposed-host-transfer",
        "Move less between host and device, or earlier",
        "Devices wait for copies between host and device memory that nothing covers.",
        (
            f"exposed host transfer: {percent(f.host_transfer)} of {f.basis}",
            f"{kind}: {percent(share)} exposed",
        ),
        (
            "Offload fewer or smaller tensors, or choose other activations to offload.",
            "Start the copy earlier, so that compute covers it (prefetch, double buffering).",
        ),
        f.host_transfer,
        AT_MOST,
    )


def waits(f: Findings) -> Iterator[Candidate]:
    if f.device_wait < WAITS or f.worst_wait is None:
        return
    kind, op, share = f.worst_wait
    if kind == SPARSECORE:
        title = "Wait less for the sparse core"
        suggestions = (
            "Keep the op on the TensorCore and compare: it may take longer offloaded.",
            "Schedule it earlier, beside compute that does not need its result.",
        )
    else:
        title = "Hide copies within and between devices"
        suggestions = (
            "Start the copies earlier, beside compute (latency-hiding scheduler, prefetch).",
            "Avoid them: fuse producer and consumer, or keep one layout.",
        )
    yield Candidate(
        "exposed-device-wait",
        title,
        "Devices wait for copies or for sparse cores, and no compute covers the wait.",
        (
            f"exposed waits: {percent(f.device_wait)} of {f.basis}",
            f"{kind}: {percent(share)} exposed, most of it in {op}",
        ),
        suggestions,
        f.device_wait,
        AT_MOST,
    )
