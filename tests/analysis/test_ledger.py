"""The ledger: five terms that sum to the window exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.async_spans import find_spans
from marin_profile.analysis.ledger import DeviceIntervals, Ledger
from marin_profile.base.errors import InternalError
from marin_profile.events.classify import ON_CHIP

CATEGORY = {
    "compute": "loop fusion",
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "infeed": "infeed",
}


def device_time(space: Space) -> DeviceIntervals:
    found = space.devices()
    (device,) = found.devices
    return DeviceIntervals(found, device, find_spans(found, device))


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
    # 50-60 is the later one's.
    assert in_us(ledger.exposed_by_kind) == {"all-reduce": 10, "all-gather": 20}
    assert in_us(ledger.overlapped_by_kind) == {"all-reduce": 20, "all-gather": 0}
    assert in_us(ledger.transfer_by_kind) == {"host_to_device": 10, "device_to_device": 20}
    assert (ledger.host // US, ledger.waits // US, ledger.unknown_transfer) == (10, 20, 0)


def test_a_done_on_the_op_line_is_a_wait_of_its_kind():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-done.1", 0, 30, category="all-gather-done")
    tpu.op("fusion.1", 30, 10, category="loop fusion")
    ledger = device_time(space).ledger(0, 40 * US)
    assert (ledger.exposed_communication // US, ledger.compute // US) == (30, 10)


def test_exposed_is_what_blocks_not_what_is_in_flight():
    """An all-gather and a copy from the host in flight 0-50 and 1-61; the device idles 31-38."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-start.1", 0, 1, category="all-gather-start")
    tpu.op("copy-start.1", 1, 1, category="copy-start", long_name=copy_text("start", "", "S(5)"))
    tpu.op("fusion.1", 2, 29, category="loop fusion")
    tpu.op("all-gather-done.1", 38, 12, category="all-gather-done")
    tpu.op("copy-done.1", 50, 11, category="copy-done", long_name=copy_text("done", "", "S(5)"))
    ledger = device_time(space).ledger(0, 61 * US)
    assert (ledger.compute // US, ledger.idle // US) == (29, 7)
    assert in_us(ledger.exposed_by_kind) == {"all-gather": 13}
    assert in_us(ledger.transfer_by_kind) == {"host_to_device": 12}
    assert ledger.overlapped_communication // US == 29
    assert in_us(ledger.overlapped_by_kind) == {"all-gather": 29}


def test_a_collective_in_flight_beside_a_wait_for_a_copy_is_not_what_blocks():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-start.1", 0, 2, category="all-gather-start")
    tpu.op("copy-done.1", 2, 30, category="copy-done", long_name=copy_text("done", "S(5)", ""))
    tpu.op("all-gather-done.1", 32, 5, category="all-gather-done")
    ledger = device_time(space).ledger(0, 37 * US)
    assert in_us(ledger.exposed_by_kind) == {"all-gather": 7}
    assert in_us(ledger.transfer_by_kind) == {"device_to_host": 30}


def test_two_kinds_in_flight_each_overlap_the_compute_beside_them():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-start.1", 0, 1, category="all-gather-start")
    tpu.op("reduce-scatter-start.1", 1, 1, category="reduce-scatter-start")
    tpu.op("fusion.1", 2, 20, category="loop fusion")
    tpu.op("all-gather-done.1", 22, 3, category="all-gather-done")
    tpu.op("fusion.2", 25, 7, category="loop fusion")
    tpu.op("reduce-scatter-done.1", 32, 4, category="reduce-scatter-done")
    ledger = device_time(space).ledger(0, 36 * US)
    assert in_us(ledger.exposed_by_kind) == {"all-gather": 4, "reduce-scatter": 5}
    assert in_us(ledger.overlapped_by_kind) == {"all-gather": 20, "reduce-scatter": 27}
    assert ledger.overlapped_communication // US == 27
    assert (ledger.compute // US, ledger.idle) == (27, 0)


def test_an_operation_that_only_the_async_line_shows_blocks_nothing():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 40, category="loop fusion").op("fusion.2", 57, 5, category="loop fusion")
    tpu.async_op("all-gather-start.4", 30, 20, name="all-gather-start.4")
    tpu.async_op("copy-start.4", 35, 20, name="copy-start.4")
    ledger = device_time(space).ledger(0, 62 * US)
    assert (ledger.compute // US, ledger.idle // US) == (45, 17)
    assert (ledger.exposed_communication, ledger.exposed_transfer) == (0, 0)
    assert ledger.overlapped_communication // US == 10
    assert in_us(ledger.overlapped_by_kind) == {"all-gather": 10}
    assert ledger.exposed_by_kind == {"all-gather": 0}


def test_asynchronous_compute_in_flight_is_no_compute():
    """A fusion on another unit, in flight 0-23: the device computes at 1-5 and waits at 20-23."""
    space = Space()
    tpu = space.tpu(0)
    start = "%async-start.1 = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(f32[8]{0} %p), calls=%c"
    tpu.op("fusion-start.1", 0, 1, category="async-start", long_name=start)
    tpu.op("fusion.2", 1, 4, category="loop fusion")
    tpu.op("fusion-done.1", 20, 3, category="async-done")
    ledger = device_time(space).ledger(0, 23 * US)
    assert (ledger.compute // US, ledger.idle // US) == (8, 15)
    assert (ledger.exposed_communication, ledger.exposed_transfer, ledger.unattributed) == (0, 0, 0)


def test_unknown_time_beside_a_transfer_is_the_transfers():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("async-done.4", 0, 13, category="async-done")
    tpu.op("infeed.1", 5, 11, category="infeed", line="XLA Ops #2")
    ledger = device_time(space).ledger(0, 17 * US)
    assert (ledger.unattributed // US, ledger.exposed_transfer // US) == (5, 11)
    assert (ledger.compute, ledger.idle // US) == (0, 1)


def test_all_four_terms_at_once_by_hand():
    """Uneven streams; each term takes what the ones before it leave."""
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("CudaGraphExec:7", 0, 50, stream="Stream #1")
    gpu.kernel("MemcpyD2H", 7, 21, stream="Stream #2")
    gpu.kernel("ncclDevKernel_AllReduce_x", 11, 13, stream="Stream #3")
    gpu.kernel("fusion", 19, 8, stream="Stream #4")
    ledger = device_time(space).ledger(0, 53 * US)
    assert ledger.compute // US == 8  # 19-27
    assert ledger.exposed_communication // US == 8  # 11-19
    assert ledger.overlapped_communication // US == 5  # 19-24
    assert ledger.exposed_transfer // US == 4 + 1  # 7-11, 27-28
    assert ledger.unattributed // US == 7 + 22  # 0-7, 28-50
    assert ledger.idle // US == 3


def test_the_buckets_of_v1_by_hand():
    """Uneven lengths: idle 2, waits 3 + 4 + 17, host 5 + 6, unknown 8 + 9, all-reduce 11."""
    space = Space()
    tpu = space.tpu(0)
    sparse = 'async_execution_thread="sparsecore"'
    lookup = f"%lookup-done.1 = f32[8]{{0}} async-done((f32[8]{{0}}) %lookup-start.1), {sparse}"
    at = 0
    for name, duration, facts in (
        ("fusion.1", 31, {"category": "loop fusion"}),
        ("copy-done.1", 3, {"long_name": copy_text("done", "S(1)", "S(1)")}),
        ("copy-done.2", 4, {"long_name": copy_text("done", "", "")}),
        ("lookup-done.1", 17, {"category": "async-done", "long_name": lookup}),
        ("copy-done.3", 5, {"long_name": copy_text("done", "S(5)", "")}),
        ("infeed.1", 6, {"category": "infeed"}),
        ("copy-done.4", 8, {"category": "copy-done"}),
        ("async-done.4", 9, {"category": "async-done"}),
        ("all-reduce.1", 11, {"category": "all-reduce"}),
    ):
        tpu.op(name, at, duration, **facts)
        at += duration
    tpu.op("fusion.2", at + 2, 1, category="loop fusion")
    buckets = summary_of(space.analyse()).time_breakdown
    assert buckets.compute.total_duration == 32
    assert buckets.communication.total_duration == 11
    assert buckets.host.total_duration == 5 + 6
    assert buckets.stall.total_duration == 2 + 3 + 4 + 17
    assert buckets.other.total_duration == 8 + 9
    assert buckets.total_duration == at + 3


def copy_text(role: str, to: str, source: str) -> str:
    """An async copy between memory spaces: "" is the device's main memory."""
    shapes = f"f32[8]{{0:{to}}}, f32[8]{{0:{source}}}, u32[]"
    if role == "start":
        return f"%copy-start.1 = ({shapes}) copy-start(f32[8]{{0:{source}}} %p)"
    return f"%copy-done.1 = f32[8]{{0:{to}}} copy-done(({shapes}) %copy-start.1)"


def in_us(values: dict[str, int]) -> dict[str, int]:
    return {kind: value // US for kind, value in values.items()}


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


SOUND = {
    "start": 5, "end": 105, "compute": 40, "overlapped_communication": 7,
    "exposed_communication": 11, "exposed_transfer": 13, "unattributed": 17, "idle": 19,
    "exposed_by_kind": {"all-reduce": 5, "all-gather": 6},
    "overlapped_by_kind": {"all-reduce": 7},
    "transfer_by_kind": {"infeed": 4, ON_CHIP: 9},
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"compute": 39},
        {"compute": 41},
        {"unattributed": 16},
        {"idle": 20},
        {"start": 4},
        {"end": 104},
        # No idle time is below zero, though the sum is right.
        {"compute": 60, "idle": -1},
        {"exposed_by_kind": {"all-reduce": 5, "all-gather": 5}},
        {"exposed_by_kind": {"all-reduce": 5, "all-gather": 7}},
        {"exposed_by_kind": {}},
        {"transfer_by_kind": {"infeed": 4, ON_CHIP: 8}},
        {"transfer_by_kind": {"infeed": 4, ON_CHIP: 10}},
        {"exposed_communication": 12, "exposed_transfer": 12},
        {"overlapped_communication": -1, "overlapped_by_kind": {}},
        {"overlapped_communication": 8},
        {"overlapped_communication": 41, "overlapped_by_kind": {"all-reduce": 41}},
        {"overlapped_by_kind": {"all-reduce": 8}},
    ],
)
def test_a_ledger_that_does_not_sum_is_refused(wrong):
    assert Ledger(**SOUND).waits == 9
    with pytest.raises(InternalError, match="does not hold"):
        Ledger(**(SOUND | wrong))


def test_a_full_window_may_leave_nothing_idle():
    assert Ledger(**(SOUND | {"compute": 59, "idle": 0})).idle == 0


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
    assert sum(ledger.exposed_by_kind.values()) == ledger.exposed_communication
    for kind, value in ledger.exposed_by_kind.items():
        assert value <= len((owned[kind] & window) - compute) * US
    terms = time.step_terms(np.array([start * US]), np.array([(start + length) * US]))
    assert {name: int(values[0]) for name, values in terms.items()} == {
        "compute": ledger.compute,
        "exposed_communication": ledger.exposed_communication,
        "exposed_transfer": ledger.exposed_transfer,
        "unattributed": ledger.unattributed,
        "idle": ledger.idle,
        "window": length * US,
    }


PAIRS = st.lists(
    st.tuples(
        st.sampled_from(["all-gather", "reduce-scatter", "copy", "fusion", "nothing"]),
        st.integers(1, 9),
        st.booleans(),
    ),
    min_size=1,
    max_size=16,
)


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_asynchronous_pairs_against_sets(moves):
    """One op after the other; an asynchronous operation starts where its kind comes up, and is
    waited for at once or where its kind comes up again."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    open_since: dict[str, tuple[int, int]] = {}
    blocked: dict[str, set[int]] = {
        kind: set() for kind in ("all-gather", "reduce-scatter", "copy")
    }
    flights: dict[str, set[int]] = {kind: set() for kind in blocked}
    compute: set[int] = set()

    def run(name: str, category: str, length: int) -> set[int]:
        nonlocal at
        text = copy_text(category.removeprefix("copy-"), "", "S(5)")
        text = text.replace(".1", f".{name.rpartition('.')[2]}")
        tpu.op(name, at, length, category=category, long_name=text if "copy" in name else "")
        at += length
        return set(range(at - length, at))

    def wait_for(kind: str, length: int) -> None:
        since, own = open_since.pop(kind)
        blocked[kind] |= run(f"{kind}-done.{own}", f"{kind}-done", length)
        flights[kind] |= set(range(since, at))

    tpu.op("fusion.0", 0, 0, category="loop fusion")
    for number, (kind, length, at_once) in enumerate(moves, 1):
        if kind == "nothing":
            at += length
        elif kind == "fusion":
            compute |= run(f"fusion.{number}", "loop fusion", length)
        elif kind in open_since:
            wait_for(kind, length)
        else:
            open_since[kind] = at, number
            blocked[kind] |= run(f"{kind}-start.{number}", f"{kind}-start", 1)
            if at_once:
                wait_for(kind, length)
    ledger = device_time(space).ledger(0, (at + 3) * US)
    assert ledger.compute // US == len(compute)
    assert ledger.idle // US == at + 3 - len(compute) - sum(map(len, blocked.values()))
    comms = ("all-gather", "reduce-scatter")
    for kind in comms:
        assert ledger.exposed_by_kind.get(kind, 0) // US == len(blocked[kind])
        assert ledger.overlapped_by_kind.get(kind, 0) // US == len(flights[kind] & compute)
    assert ledger.transfer_by_kind.get("host_to_device", 0) // US == len(blocked["copy"])
    in_flight = set().union(*(flights[kind] for kind in comms))
    assert ledger.overlapped_communication // US == len(in_flight & compute)


@pytest.mark.parametrize("kind", ["infeed", "outfeed"])
def test_feeds_are_transfers_of_the_host(kind):
    space = Space()
    space.tpu(0).op("x", 0, 10, category=kind)
    ledger = device_time(space).ledger(0, 10 * US)
    assert (ledger.exposed_transfer // US, ledger.host // US) == (10, 10)
