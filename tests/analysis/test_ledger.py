"""The ledger: five terms that sum to the window exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Space
from marin_profile.analysis.async_spans import find_spans
from marin_profile.analysis.ledger import DeviceTime

CATEGORY = {
    "compute": "loop fusion",
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "infeed": "infeed",
}


def device_time(space: Space) -> DeviceTime:
    found = space.devices()
    (device,) = found.devices
    return DeviceTime(device, found.facts, find_spans(found, device))


def test_a_container_with_children_by_hand():
    """while 0-100 holding fusion 10-40 and all-reduce 40-90."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("while.1", 0, 100, category="while")
    tpu.op("fusion.1", 10, 30, category="loop fusion")
    tpu.op("all-reduce.1", 40, 50, category="all-reduce")
    ledger = device_time(space).ledger(0, 100 * US)
    assert ledger.compute == 50 * US
    assert ledger.exposed_communication == 50 * US
    assert ledger.idle == 0
    ops = {op.facts.name: op.exclusive // US for op in space.analyse().ops}
    assert ops == {"while.1": 20, "fusion.1": 30, "all-reduce.1": 50}


def test_partial_overlap_by_hand():
    space = Space()
    space.gpu(0).kernel("a", 0, 10).kernel("b", 5, 10)
    ledger = device_time(space).ledger(0, 20 * US)
    assert (ledger.compute // US, ledger.idle // US) == (15, 5)


def test_precedence_of_the_terms_by_hand():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("fusion", 0, 40, stream="Stream #1")
    gpu.kernel("ncclDevKernel_AllReduce_x", 20, 40, stream="Stream #2")
    gpu.kernel("ncclDevKernel_AllGather_x", 50, 20, stream="Stream #3")
    gpu.kernel("MemcpyH2D", 30, 60, stream="Stream #4")
    gpu.kernel("MemcpyD2D", 80, 20, stream="Stream #5")
    ledger = device_time(space).ledger(0, 120 * US)
    assert ledger.compute // US == 40
    assert ledger.overlapped_communication // US == 20
    assert ledger.exposed_communication // US == 30  # 40-70
    assert ledger.exposed_transfer // US == 30  # 70-100
    assert (ledger.unattributed, ledger.idle // US) == (0, 20)
    in_us = {kind: value // US for kind, value in ledger.exposed_by_kind.items()}
    assert in_us == {"all-reduce": 20, "all-gather": 20}
    in_us = {kind: value // US for kind, value in ledger.overlapped_by_kind.items()}
    assert in_us == {"all-reduce": 20, "all-gather": 0}
    in_us = {kind: value // US for kind, value in ledger.transfer_by_kind.items()}
    assert in_us == {"host_to_device": 20, "device_to_device": 20}
    # Without overlap: the host's copy 70-90, the rest is a wait.
    assert (ledger.host // US, ledger.waits // US, ledger.unknown_transfer) == (20, 10, 0)


def test_a_done_on_the_op_line_is_a_wait_of_its_kind():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-done.1", 0, 30, category="all-gather-done")
    tpu.op("fusion.1", 30, 10, category="loop fusion")
    ledger = device_time(space).ledger(0, 40 * US)
    assert (ledger.exposed_communication // US, ledger.compute // US) == (30, 10)


def test_a_window_cuts_what_it_crosses():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 10, category="loop fusion")
    tpu.op("all-reduce.1", 10, 10, category="all-reduce")
    time = device_time(space)
    ledger = time.ledger(5 * US, 15 * US)
    assert (ledger.compute // US, ledger.exposed_communication // US, ledger.idle) == (5, 5, 0)
    assert time.ledger(50 * US, 60 * US).idle == 10 * US
    empty = time.ledger(7 * US, 7 * US)
    assert (empty.compute, empty.idle) == (0, 0)


OPS = st.lists(
    st.tuples(
        st.sampled_from(list(CATEGORY)), st.integers(0, 60), st.integers(0, 30), st.integers(0, 2)
    ),
    min_size=1,
    max_size=14,
)


@settings(deadline=None, max_examples=60)
@given(OPS, st.integers(-10, 80), st.integers(0, 90))
def test_the_identity_on_random_devices(ops, start, length):
    space = Space()
    tpu = space.tpu(0)
    for index, (kind, at, duration, lane) in enumerate(ops):
        tpu.op(
            f"op.{index}",
            at,
            duration,
            category=CATEGORY[kind],
            line="XLA Ops" if lane == 0 else f"XLA Ops {lane}",
        )
    found = space.devices()
    (device,) = found.devices
    first = min(at for _, at, _, _ in ops)
    # Self intervals as sets of microseconds, from the pieces.
    owned: dict[str, set[int]] = {kind: set() for kind in CATEGORY}
    for a, b, owner in zip(
        device.piece_start.tolist(),
        device.piece_end.tolist(),
        device.piece_owner.tolist(),
        strict=True,
    ):
        kind = found.facts[device.op[owner]].kind
        owned[kind] |= set(range(a // US, b // US))
    busy = {point - first for _, at, duration, _ in ops for point in range(at, at + duration)}
    assert set().union(*owned.values()) == busy
    window = set(range(start, start + length))
    compute = owned["compute"] & window
    communication = (owned["all-reduce"] | owned["all-gather"]) & window
    transfer = owned["infeed"] & window
    time = device_time(space)
    ledger = time.ledger(start * US, (start + length) * US)
    assert ledger.compute == len(compute) * US
    assert ledger.overlapped_communication == len(communication & compute) * US
    assert ledger.exposed_communication == len(communication - compute) * US
    assert ledger.exposed_transfer == len(transfer - compute - communication) * US
    assert ledger.idle == (length - len(busy & window)) * US
    assert (
        ledger.compute
        + ledger.exposed_communication
        + ledger.exposed_transfer
        + ledger.unattributed
        + ledger.idle
        == length * US
    )
    assert ledger.exposed_communication + ledger.overlapped_communication == len(communication) * US
    terms = time.step_terms(np.array([start * US]), np.array([(start + length) * US]))
    assert {name: int(values[0]) for name, values in terms.items()} == {
        "compute": ledger.compute,
        "exposed_communication": ledger.exposed_communication,
        "exposed_transfer": ledger.exposed_transfer,
        "unattributed": ledger.unattributed,
        "idle": ledger.idle,
        "window": length * US,
    }


@pytest.mark.parametrize("kind", ["infeed", "outfeed"])
def test_feeds_are_transfers_of_the_host(kind):
    space = Space()
    space.tpu(0).op("x", 0, 10, category=kind)
    ledger = device_time(space).ledger(0, 10 * US)
    assert (ledger.exposed_transfer // US, ledger.host // US) == (10, 10)
