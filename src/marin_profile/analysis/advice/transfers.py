"""Rules about copies, and about waits for sparse cores."""

from __future__ import annotations

from collections.abc import Iterator

from marin_profile.analysis.advice.model import TRANSFER, Findings, Found, Rule, percent
from marin_profile.events.classify import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    ON_CHIP,
    SPARSECORE,
)

WITH_HOST = 0.05
FEEDS = 0.05
WAITS = 0.05


def _exposed(
    f: Findings, kinds: tuple[str, ...], least: float
) -> tuple[float, tuple[str, ...]] | None:
    rows = [row for row in f.transfers if row[0] in kinds]
    total = sum(share for _, _, share in rows)
    if total < least or not rows:
        return None
    kind, op, share = rows[0]
    most = f"{kind}: {percent(share)} exposed, most of it in {op}"
    return total, (f"exposed transfers: {percent(total)} of {f.basis}", most)


def with_host(f: Findings) -> Iterator[Found]:
    found = _exposed(f, (HOST_TO_DEVICE, DEVICE_TO_HOST), WITH_HOST)
    if found is not None:
        yield Found(
            "Move less between host and device, or earlier",
            "Devices wait for copies between host and device memory that nothing covers.",
            found[1],
            found[0],
        )


def feeds(f: Findings) -> Iterator[Found]:
    found = _exposed(f, ("infeed", "outfeed"), FEEDS)
    if found is not None:
        yield Found(
            "Feed the devices ahead",
            "Devices wait in infeed or outfeed: the host is late with data, or takes none.",
            found[1],
            found[0],
        )


def sparse_core(f: Findings) -> Iterator[Found]:
    found = _exposed(f, (SPARSECORE,), WAITS)
    if found is not None:
        yield Found(
            "Wait less for the sparse core",
            "The TensorCore waits for what the sparse core does, and no compute covers the wait.",
            found[1],
            found[0],
        )


def copies(f: Findings) -> Iterator[Found]:
    found = _exposed(f, (ON_CHIP, DEVICE_TO_DEVICE), WAITS)
    if found is not None:
        yield Found(
            "Hide copies within and between devices",
            "Devices wait for asynchronous copies that no compute covers.",
            found[1],
            found[0],
        )


_BASIS = "exposed transfer of these kinds, by the device ledger"
_FIELDS = ("device_ledger[].exposed_transfer_by_kind", "transfers[]")
_QUERY = "query transfers: waited_duration of the kind falls; the ledger's exposed transfer with it"

RULES = (
    Rule(
        "exposed-host-transfer",
        with_host,
        f"exposed copies between host and device >= {WITH_HOST:.0%} of device time",
        _FIELDS,
        (
            "Offload fewer or smaller tensors: name them in "
            "jax.checkpoint_policies.save_and_offload_only_these_names.",
            "Start the copy earlier, so that compute covers it (jax.device_put of the next batch "
            "while the step runs).",
        ),
        _QUERY,
        TRANSFER,
        _BASIS,
    ),
    Rule(
        "exposed-feed",
        feeds,
        f"exposed infeed and outfeed >= {FEEDS:.0%} of device time",
        _FIELDS,
        ("Prepare more batches ahead on the host, and read what comes out in another thread.",),
        _QUERY,
        TRANSFER,
        _BASIS,
    ),
    Rule(
        "sparse-core-wait",
        sparse_core,
        f"exposed waits for sparse cores >= {WAITS:.0%} of device time",
        _FIELDS,
        (
            "Keep the op on the TensorCore and compare: it may take longer offloaded.",
            "Schedule it earlier, beside compute that does not need its result.",
        ),
        "query transfers: waited_duration of sparsecore falls, and the step by as much",
        TRANSFER,
        _BASIS,
    ),
    Rule(
        "exposed-device-wait",
        copies,
        f"exposed asynchronous copies within and between devices >= {WAITS:.0%} of device time",
        _FIELDS,
        (
            "Start the copies earlier, beside compute: "
            "--xla_gpu_enable_latency_hiding_scheduler=true on GPU, where it is off.",
            "Avoid them: fuse producer and consumer, or keep one layout.",
        ),
        _QUERY,
        TRANSFER,
        _BASIS,
    ),
)
