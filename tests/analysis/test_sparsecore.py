"""What a sparse core does for a TensorCore: the wait of the one, and no idle time of the other.

Per step a TensorCore multiplies 6 ms, gathers, and multiplies 6 ms again. The gather takes 2 ms on
the TensorCore itself; given to the sparse core it takes that 0.7 ms, and the TensorCore waits 7.
"""

import pytest

from builders_xspace import US, Space, computation, hlo_proto, instruction, summary_of
from marin_profile.analysis.async_spans import find_spans
from marin_profile.analysis.ledger import DeviceIntervals
from marin_profile.comparison import compare
from marin_profile.schema import CAPTURE, STEADY, ProfileSummary

MS = 1000
THREAD = 'async_execution_thread="sparsecore"'
START = (
    "%gather_offload-start = ((bf16[64,8], s32[4]), bf16[4,8], u32[]) async-start(%p0, %p1), "
    f"{THREAD}, calls=%gather"
)
DONE = "%gather_offload-done = bf16[4,8] async-done(%gather_offload-start)"


def decode(*, offloaded: bool, lines: str = "XLA") -> ProfileSummary:
    """`lines`: what the sparse core's lines are called after."""
    space = Space("h0")
    tpu = space.tpu(0)
    core = space.tpu(0, core="SparseCore 0") if offloaded else None
    period = 19 * MS if offloaded else 14 * MS
    for step in range(10):
        at = step * period
        tpu.module("jit_decode(9)", at, period, run_id=step).step(step, at, period)
        tpu.op("fusion.1", at, 6 * MS, category="convolution fusion")
        if core is None:
            tpu.op("gather.1", at + 6 * MS, 2 * MS, category="gather")
        else:
            tpu.op("gather_offload-start", at + 6 * MS, 10, category="async-start", long_name=START)
            tpu.op("gather_offload-done", at + 6010, 6990, category="async-done", long_name=DONE)
            tpu.async_op("gather_offload-start", at + 6 * MS, 7 * MS)
            core.event(f"{lines} Modules", "jit_decode(9)", at + 6100, 700, run_id=step)
            core.op("gather_offload", at + 6100, 700, category="custom-call", line=f"{lines} Ops")
        tpu.op("fusion.2", at + period - 6 * MS, 6 * MS, category="convolution fusion")
    return summary_of(space.analyse())


def test_before_all_is_compute():
    summary = decode(offloaded=False)
    (row,) = [row for row in summary.device_ledger if row.window == STEADY]
    assert (row.window_duration, row.compute_duration) == (9 * 14 * MS, 9 * 14 * MS)


@pytest.mark.parametrize("lines", ["XLA", "Sparse Core"])
def test_after_the_tensor_core_waits_for_the_sparse_core(lines):
    summary = decode(offloaded=True, lines=lines)
    assert summary.step_time.period.median == 19 * MS
    rows = {row.kind: row for row in summary.device_ledger if row.window == STEADY}
    core = rows["tpu"]
    assert core.compute_duration == 9 * 12 * MS
    assert core.exposed_transfer_by_kind == {"sparsecore": 9 * 7 * MS}
    assert core.idle_duration == 0
    assert rows["sparsecore"].compute_duration == 9 * 700
    assert summary.time_breakdown.stall.total_duration == 9 * 7 * MS
    assert summary.time_breakdown.host.total_duration == 0
    waits = {op.name: op.exposed_duration for op in summary.hot_ops if op.category == "sparsecore"}
    assert waits == {"gather_offload-done": 69_900, "gather_offload-start": 100}


def test_idle_sparse_cores_are_in_no_gap_advice_or_average():
    summary = decode(offloaded=True)
    assert summary.gap_before_ops == []
    assert summary.run_metadata.num_devices == 1
    assert summary.step_account.idle_duration == 0
    told = " ".join(
        " ".join((one.title, one.rationale, *one.evidence))
        for one in summary.optimization_candidates
    )
    assert "idle" not in told
    assert "delays" not in told
    # Of 171 ms on the TensorCore.
    assert "fusion.1: 31.6 % of device time" in told


def test_the_wait_for_the_sparse_core_comes_first():
    advice = decode(offloaded=True).optimization_candidates
    assert [one.candidate_id for one in advice] == [
        "sparse-core-wait",
        "dominant-region",
        "missing-scopes",
    ]
    assert advice[0].title == "Wait less for the sparse core"
    assert advice[0].evidence == [
        "exposed transfers: 36.8 % of device time",
        "sparsecore: 36.8 % exposed, most of it in gather_offload-done",
    ]
    before = decode(offloaded=False).optimization_candidates
    assert [one.candidate_id for one in before] == ["dominant-region", "missing-scopes"]


def test_transfers_of_a_sparse_core_are_its_own():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 10, category="loop fusion")
    space.tpu(0, core="SparseCore 0").op("infeed.1", 0, 10, category="infeed")
    summary = summary_of(space.analyse())
    assert summary.transfers == []
    assert summary.time_breakdown.host.total_duration == 0


def test_the_change_is_the_gathers():
    found = compare(decode(offloaded=False), decode(offloaded=True))
    assert found.target.delta == 5 * MS
    ledger = {row.name: row.delta for row in found.attribution.ledger.rows}
    assert ledger["exposed_transfer"] == 7 * MS
    assert ledger["compute"] == -2 * MS
    ops = {row.name: row.delta for row in found.attribution.ops.rows if row.delta}
    assert ops == {
        "gather_offload-done": 6990,
        "gather_offload-start": 10,
        "gather": -2 * MS,
    }


def test_a_collective_of_the_sparse_core_counts_once():
    """The TensorCore starts it and waits 9 for it; the sparse core's own op is no second one."""
    space = Space()
    tpu, core = space.tpu(0), space.tpu(0, core="SparseCore 0")
    for at in (0, 100, 200):
        start = f"%all-gather-start.1 = ((f32[8]), f32[16], u32[]) async-start(%p), {THREAD}"
        tpu.op("all-gather-start.1", at, 1, category="async-start", long_name=start)
        tpu.op("fusion.1", at + 1, 40, category="loop fusion")
        tpu.op("all-gather-done.1", at + 41, 9, category="async-done")
        core.op("all-gather.1", at + 3, 30, category="all-gather")
    summary = summary_of(space.analyse())
    (row,) = summary.communication_ops
    assert (row.collective, row.count, row.total_duration) == ("all-gather", 3, 150)
    assert (row.exposed_duration, row.overlapped_duration) == (30, 120)
    (row,) = summary.collectives
    assert (row.count, row.exposed_duration, row.overlapped_duration) == (3, 30, 120)
    assert summary.time_breakdown.communication.total_duration == 30


@pytest.mark.parametrize(
    ("on_start", "on_computation"), [("sparsecore", ""), ("", "sparsecore"), ("sparsecore",) * 2]
)
@pytest.mark.parametrize(
    ("wrapped", "kind"), [("gather", "sparsecore"), ("all-gather", "all-gather")]
)
def test_the_hlo_proto_tells_the_thread(on_start, on_computation, wrapped, kind):
    """The text is not there; the done knows its operand only."""
    proto = hlo_proto(
        computation(1, 10, instruction("inner", wrapped, id=10), thread=on_computation),
        computation(
            2,
            21,
            instruction("x-start", "async-start", id=20, calls=[1], thread=on_start),
            instruction("x-done", "async-done", id=21, operands=[20]),
        ),
    )
    space = Space().hlo(7, proto)
    tpu = space.tpu(0)
    tpu.op("x-start", 0, 1, category="async-start", program_id=7)
    tpu.op("fusion.1", 1, 4, category="loop fusion", program_id=7)
    tpu.op("x-done", 5, 13, category="async-done", program_id=7)
    found = space.devices()
    (device,) = found.devices
    ledger = DeviceIntervals(found, device, find_spans(found, device)).ledger(0, 18 * US)
    blocked = ledger.transfer_by_kind | ledger.exposed_by_kind
    assert {name: value // US for name, value in blocked.items()} == {kind: 14}
    assert ledger.compute // US == 4


def test_a_wait_for_another_thread_is_unknown():
    space = Space()
    tpu = space.tpu(0)
    start = START.replace("sparsecore", "host")
    tpu.op("gather_offload-start", 0, 1, category="async-start", long_name=start)
    tpu.op("gather_offload-done", 1, 8, category="async-done", long_name=DONE)
    (row,) = summary_of(space.analyse()).device_ledger
    assert row.window == CAPTURE
    assert (row.unattributed_duration, row.compute_duration) == (9, 0)
