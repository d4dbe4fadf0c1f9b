"""What goes wrong with profiles in the field, end to end: files in, summary and answers out."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of
from marin_profile.queries import answer
from marin_profile.reports.headline import headline
from marin_profile.reports.report import render_markdown
from marin_profile.schema import ProfileSummary, parse_summary


def summarize(space: Space) -> ProfileSummary:
    return summary_of(space.analyse())


def test_a_collective_booked_on_an_ffi_call_stays_one_with_the_real_scope():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel(
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        0,
        10,
        hlo_op="custom-call.3",
        module="jit_loss_fn",
        tf_op="XlaModule:",
        scope="jit(loss_fn)/jvp()/te_fused_attn_forward_ffi",
    )
    (op,) = summarize(space).hot_ops
    assert op.category == "all-gather"
    assert op.tf_op_path == "jit(loss_fn)/te_fused_attn_forward_ffi"
    assert op.pass_ == "forward"


def test_copies_alone_are_no_compute_and_no_communication():
    space = Space()
    space.gpu(0).kernel("MemcpyH2D", 0, 10).kernel("MemcpyD2H", 20, 5)
    summary = summarize(space)
    (row,) = summary.device_ledger
    assert (row.compute_duration, row.exposed_communication_duration) == (0, 0)
    assert row.exposed_transfer_by_kind == {"host_to_device": 10.0, "device_to_host": 5.0}
    assert row.idle_duration == 10.0
    assert summary.time_breakdown.host.total_duration == 15.0
    assert summary.communication_ops == []
    found = answer(summary, "is communication or compute dominating?")
    (result,) = found["results"]
    assert result["communication"].startswith("n/a")


def test_kernels_of_a_command_buffer_keep_their_time():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("gemm_a", 0, 30, correlation=7, hlo_op="command_buffer_3")
    gpu.kernel("gemm_b", 30, 10, correlation=7, hlo_op="command_buffer_3")
    gpu.kernel("loop_fusion", 40, 60, correlation=8, hlo_op="loop_fusion.1")
    summary = summarize(space)
    assert [(op.name, op.exclusive_duration) for op in summary.hot_ops] == [
        ("loop_fusion", 60.0),
        ("gemm_a", 30.0),
        ("gemm_b", 10.0),
    ]
    assert summary.coverage.hlo_attributed_share == 0.6
    warning = "40.0 % of op time has no HLO attribution (command buffer)."
    assert warning in summary.trace_overview.quality_warnings


@pytest.mark.parametrize(
    "name",
    ["nul\0inside", 'quote " and \\ back', "a|b`c\n<script>", "ü" * 20_000, "\x80\xff"],
)
def test_odd_names_go_through_the_summary_and_the_report(name):
    space = Space()
    space.tpu(0).op(name, 0, 10, category="loop fusion")
    summary = summarize(space)
    assert parse_summary(summary.to_json()) == summary
    assert summary.hot_ops[0].name == name
    report = render_markdown(summary)
    assert "<script>" not in report
    assert "\0" not in report
    assert max(map(len, report.splitlines())) < 2_100


def test_an_op_that_is_not_there_is_no_zero():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 10, category="loop fusion")
    found = answer(summarize(space), "show the context for op `fusion.99`")
    assert "results" not in found
    assert "fusion.99" in found["cannot_answer"]["reason"]


def test_idle_gpus_do_not_dilute_the_busy_one():
    space = Space()
    for ordinal in range(8):
        space.gpu(ordinal)
    space.planes[3].kernel("gemm", 0, 10, hlo_op="dot.1").kernel("gemm", 30, 10, hlo_op="dot.1")
    summary = summarize(space)
    assert len(summary.device_ledger) == 1
    assert summary.time_breakdown.compute.share_of_total == 0.5
    assert len(summary.coverage.empty_devices) == 7


def cpu_training(steps: int, longer: dict[int, int], event: str, *, first: bool) -> Space:
    """A JAX loop on a CPU, in us: each marker lasts its step of 10,000, with work from 1,000 to
    9,000. The `longer` steps run `event` for so long, before their work (`first`) or after it."""
    space = Space()
    host = space.host()
    at = 1_000
    for step in range(steps):
        extra = longer.get(step, 0)
        work = at + 1_000 + (extra if first else 0)
        host.marker(step, at, 9_950 + extra)
        host.call("Execute", work - 50, 20, run_id=step)
        host.cpu_op("dot.1", work, 8_000, run_id=step)
        if extra:
            begin = at + (900 if first else 9_500)
            host.call(event, begin, extra)
            host.call("$nested", begin + 10, extra - 20)
        at += 10_000 + extra
    return space


def test_steps_that_compile_are_named_and_the_typical_step_is_not_theirs():
    """New shapes in the steps 3, 7 and 11: 800 ms before their work, 200 ms of the mean of twelve
    periods."""
    longer = dict.fromkeys((3, 7, 11), 800_000)
    summary = summarize(cpu_training(14, longer, "backend_compile_and_load", first=True))
    step_time = summary.step_time
    assert (step_time.typical_period, step_time.mean_period) == (10_000.0, 210_000.0)
    assert headline(summary).startswith(
        "Step: typical 10.00 ms, mean 210.00 ms (median and mean period, 13 kept steps): 3 steps "
        "(3, 7, 11) compiled in backend_compile_and_load, which adds 200.00 ms to the mean; "
    )


def test_a_checkpoint_in_every_fifth_step_is_named_with_its_period():
    """150 ms in the steps 4, 9, ... 24: five of 24 periods, 31.25 ms of their mean."""
    longer = dict.fromkeys(range(4, 26, 5), 150_000)
    summary = summarize(cpu_training(26, longer, "save_checkpoint", first=False))
    step_time = summary.step_time
    assert (step_time.typical_period, step_time.mean_period) == (10_000.0, 41_250.0)
    assert [one.periodicity for one in step_time.classes] == [None, 5]
    assert answer(summary, "why are some steps slow?")["note"] == (
        "The mean differs from the typical step: 5 steps (4, 9, 14, 19, 24; every 5th) waited for "
        "host event save_checkpoint, which adds 31.25 ms to the mean."
    )
