"""A capture's files -> one summary."""

import datetime
import json
import shutil
from pathlib import Path

import pytest

from builders_json import event, gz, process, thread, trace
from builders_xspace import STAMP, Space, summarize_spaces
from marin_profile.base.errors import BrokenInputError, CannotAnswerError, UsageError
from marin_profile.capture.sources import resolve
from marin_profile.pipeline import SummarizeOptions, summarize_capture
from marin_profile.schema import EPOCH_UTC, ProfileSummary


def folder_of(root: Path) -> Path:
    below = root / "plugins" / "profile" / STAMP
    below.mkdir(parents=True, exist_ok=True)
    return below


def summarize(root: Path, **options) -> ProfileSummary:
    capture, _ = resolve(profile_dir=str(root))
    return summarize_capture(capture, SummarizeOptions(**options))


def training(origin: int = 0, devices: int = 1, steps: int = 4) -> Space:
    """Steps at 0, 100, 200, 300 us, each 80 us long: 50 compute, 10 idle, 20 exposed all-reduce."""
    space = Space("h")
    for ordinal in range(devices):
        tpu = space.tpu(
            ordinal,
            device_type_string="TPU v6 Lite",
            peak_teraflops_per_second=1.0,
            peak_hbm_bw_gigabytes_per_second=1_000.0,
        )
        for step in range(steps):
            at = origin + 100 * step
            tpu.step(step, at, 99).module("jit_step(7)", at, 80, run_id=step)
            tpu.op(
                "dot.1",
                at,
                50,
                category="convolution fusion",
                scope="jit(step)/jvp(mlp)/dot_general",
                flops=20_000_000,
                bytes_accessed=10_000_000,
            )
            tpu.op("all-reduce.1", at + 60, 20, category="all-reduce", shape="f32[8]{0}")
    return space


JSON_STEP = trace(
    process(3, "/device:TPU:0"),
    thread(3, 3, "XLA Ops"),
    thread(3, 2, "XLA Modules"),
    *(
        part
        for at in (0, 100)
        for part in (
            event("jit_f(1)", str(at), "80", tid="2", run_id=str(at)),
            event("dot.1", str(at), "80", tid="3", hlo_category="loop fusion"),
        )
    ),
    named=False,
)


# --- numbers -----------------------------------------------------------------------------------


def test_steps_by_hand(tmp_path):
    summary = summarize_spaces(tmp_path, training())
    steps = summary.step_time
    assert (steps.source, steps.warmup_steps_ignored) == ("device_steps", 1)
    assert (steps.all_steps.count, steps.steady_state_steps.count) == (4, 3)
    assert (steps.all_steps.median, steps.all_steps.max) == (80.0, 80.0)
    assert steps.period is not None
    assert steps.period.median == 100.0
    assert [step.period for step in steps.steps] == [100.0, 100.0, 100.0, None]
    assert [step.start for step in steps.steps] == [0.0, 100.0, 200.0, 300.0]
    assert [step.kept for step in steps.steps] == [False, True, True, True]
    assert steps.steps[1].ledger is not None
    assert steps.steps[1].ledger.model_dump() == {
        "window_duration": 80.0,
        "compute_duration": 50.0,
        "exposed_communication_duration": 20.0,
        "exposed_transfer_duration": 0.0,
        "unattributed_duration": 0.0,
        "idle_duration": 10.0,
    }


def test_ledgers_and_buckets_by_hand(tmp_path):
    summary = summarize_spaces(tmp_path, training(devices=2))
    rows = {(row.device, row.window): row for row in summary.device_ledger}
    assert len(rows) == 4
    steady, capture = (rows["/device:TPU:1", window] for window in ("steady", "capture"))
    assert (steady.window_start, steady.window_duration) == (100.0, 280.0)
    assert (capture.window_start, capture.window_duration) == (0.0, 380.0)
    assert steady.compute_duration == 150.0
    assert steady.exposed_communication_duration == 60.0
    assert steady.idle_duration == 70.0
    assert steady.exposed_communication_by_kind == {"all-reduce": 60.0}
    breakdown = summary.time_breakdown
    assert (breakdown.duration_basis, breakdown.basis) == ("device_ledger", "steady")
    assert breakdown.total_duration == 560.0
    assert breakdown.compute.total_duration == 300.0
    assert breakdown.communication.share_of_total == pytest.approx(120 / 560)
    assert breakdown.stall.total_duration == 140.0
    shares = [
        getattr(breakdown, name).share_of_total
        for name in ("compute", "communication", "host", "stall", "other")
    ]
    assert sum(shares) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in shares)


def test_ops_by_hand(tmp_path):
    summary = summarize_spaces(tmp_path, training(devices=2))
    dot, reduce = summary.hot_ops
    assert (dot.name, dot.canonical_name, dot.category) == ("dot.1", "dot", "compute")
    assert (dot.count, dot.total_duration, dot.avg_duration) == (8, 400.0, 50.0)
    # Two devices, three kept steps, 300 us in the steady window.
    assert dot.per_step_duration == 50.0
    assert (dot.pass_, dot.tf_op_path) == ("forward", "jit(step)/mlp/dot_general")
    assert (dot.module, dot.program_id) == ("jit_step", "7")
    # 2e7 flops in 50 us = 0.4 TFLOP/s; 1e7 bytes = 200 GB/s.
    assert dot.achieved_tflops == pytest.approx(0.4)
    assert dot.achieved_gbps == pytest.approx(200.0)
    assert dot.bound_by == "compute"
    assert (reduce.category, reduce.exposed_duration) == ("all-reduce", 160.0)
    assert [group.canonical_name for group in summary.op_groups] == ["dot", "all-reduce"]
    assert summary.semantic_families[0].family == "matmul"
    assert summary.semantic_families[0].share_of_total == pytest.approx(400 / 560)
    (communication,) = summary.communication_ops
    assert (communication.collective, communication.count) == ("all-reduce", 8)
    assert (communication.exposed_duration, communication.overlapped_duration) == (160.0, 0.0)
    regions = {row.path: row.inclusive_duration for row in summary.hierarchical_regions}
    assert regions["jit(step)=>mlp=>dot_general"] == 400.0


def test_roofline_by_hand(tmp_path):
    """Per step and device 2e7 flops; period 100 us; peak 1 TFLOP/s: MFU 0.2."""
    roofline = summarize_spaces(tmp_path, training(devices=2)).roofline
    assert roofline is not None
    assert roofline.mfu == pytest.approx(0.2)
    assert roofline.achieved["teraflops_per_second"] == pytest.approx(0.4)
    assert roofline.achieved["operational_intensity"] == pytest.approx(2.0)
    assert roofline.utilization["teraflops_per_second"] == pytest.approx(0.4)
    assert roofline.utilization["hbm_gigabytes_per_second"] == pytest.approx(0.2)
    assert roofline.bound_by == "compute"
    assert roofline.coverage == 1.0


def test_a_container_does_not_count_its_flops_twice(tmp_path):
    space = training()
    tpu = space.planes[0]
    for step in range(4):
        at = 100 * step
        tpu.op("while.1", at, 50, category="while", flops=20_000_000)
    roofline = summarize_spaces(tmp_path, space).roofline
    assert roofline is not None
    assert roofline.mfu == pytest.approx(0.2)


def test_one_step_uses_its_duration(tmp_path):
    summary = summarize_spaces(tmp_path, training(steps=1))
    assert summary.step_time.warmup_steps_ignored == 0
    assert summary.step_time.steady_state_steps.count == 1
    assert summary.roofline is not None
    assert summary.roofline.mfu == pytest.approx(2e7 / (80e-6 * 1e12))
    warnings = " ".join(summary.trace_overview.quality_warnings)
    assert "only one step" in warnings


def test_no_steps_is_no_error(tmp_path):
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    summary = summarize_spaces(tmp_path, space)
    assert (summary.step_time.source, summary.step_time.all_steps.count) == ("none", 0)
    assert summary.step_time.all_steps.median is None
    assert summary.time_breakdown.basis == "capture"
    assert {row.window for row in summary.device_ledger} == {"capture"}
    assert any("No steps" in note for note in summary.trace_overview.quality_warnings)


def test_empty_planes_are_named_and_not_averaged(tmp_path):
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    for ordinal in range(1, 8):
        space.gpu(ordinal)
    summary = summarize_spaces(tmp_path, space)
    assert len(summary.coverage.empty_devices) == 7
    assert summary.run_metadata.num_devices == 1
    assert any("7 of 8" in note for note in summary.trace_overview.quality_warnings)
    assert summary.time_breakdown.compute.share_of_total == 1.0


def test_command_buffers_keep_their_time_and_are_named(tmp_path):
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("gemm", 0, 60, hlo_op="gemm.1")
    gpu.kernel("graph_kernel", 60, 30, hlo_op="command_buffer_3")
    gpu.kernel("no_op", 90, 10)
    summary = summarize_spaces(tmp_path, space)
    assert summary.coverage.hlo_attributed_share == pytest.approx(0.6)
    assert [op.name for op in summary.hot_ops] == ["gemm", "graph_kernel", "no_op"]
    listed = {op.name: op.reason for op in summary.coverage.unattributed_ops}
    assert "command_buffer_3" in listed["graph_kernel"]
    assert set(listed) == {"graph_kernel", "no_op"}
    notes = " ".join(summary.trace_overview.quality_warnings)
    assert "40.0 %" in notes
    assert "command buffer" in notes


def test_light_and_heavy_steps(tmp_path):
    """Steps of 100 us, every 4th of 200; all but the heavy ones' ops take 80 us, those 180."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for step in range(26):
        length = 200 if step % 4 == 0 else 100
        tpu.step(step, at, length - 1).op("fusion.1", at, length - 20)
        at += length
    step_time = summarize_spaces(tmp_path, space).step_time
    classes = {row.name: row for row in step_time.classes}
    # Steps 1 to 24 are kept and have a period; heavy are 4, 8, ... 24.
    assert (classes["light"].count, classes["heavy"].count) == (18, 6)
    assert (classes["light"].periodicity, classes["heavy"].periodicity) == (None, 4)
    assert classes["heavy"].fraction_of_steady == pytest.approx(0.25)
    assert classes["heavy"].duration_stats.median == 180.0
    assert classes["heavy"].period_stats.median == 200.0
    assert [step.step_num for step in step_time.steps if step.step_class == "heavy"] == [
        4, 8, 12, 16, 20, 24,
    ]  # fmt: skip
    # The last step's period is not known, nor is its class.
    assert step_time.steps[25].step_class is None


def test_classes_are_found_by_the_period(tmp_path):
    """The work of every other step takes twice as long, but all steps take 200 us."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(26):
        tpu.step(step, 200 * step, 199).op("fusion.1", 200 * step, 160 if step % 2 else 80)
    assert summarize_spaces(tmp_path, space).step_time.classes == []


def test_sparse_cores_stay_out_of_the_headline(tmp_path):
    space = training()
    space.tpu(0, core="SparseCore 0").op("sc.1", 0, 380)
    summary = summarize_spaces(tmp_path, space)
    assert summary.run_metadata.num_devices == 1
    assert summary.time_breakdown.total_duration == 280.0
    assert {row.kind for row in summary.device_ledger} == {"tpu", "sparsecore"}


def test_more_than_the_peak_is_named_not_printed(tmp_path):
    space = Space()
    space.tpu(0, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=1.0).op(
        "dot.1", 0, 1, flops=10**9, bytes_accessed=1
    )
    summary = summarize_spaces(tmp_path, space)
    assert summary.hot_ops[0].achieved_tflops is None
    assert summary.roofline.utilization == {}
    assert any("exceed" in note for note in summary.trace_overview.quality_warnings)


@pytest.mark.parametrize("mode", ["exclusive_per_track", "exclusive_global"])
def test_older_bases(tmp_path, mode):
    breakdown = summarize_spaces(tmp_path, training(), breakdown_mode=mode).time_breakdown
    assert breakdown.duration_basis.startswith("exclusive_duration_")
    assert breakdown.basis == "capture"
    assert breakdown.communication.total_duration == 80.0
    assert (breakdown.host.total_duration, breakdown.other.total_duration) == (0.0, 0.0)


# --- hosts and files ---------------------------------------------------------------------------


def test_several_hosts_are_one_summary(tmp_path):
    summary = summarize_spaces(tmp_path, training(), training(origin=5_000))
    assert summary.run_metadata.num_hosts == 2
    assert summary.run_metadata.num_devices == 2
    assert [host.host for host in summary.hosts] == ["host-0", "host-1"]
    assert summary.hot_ops[0].count == 8
    assert summary.step_time.all_steps.median == 80.0
    assert {(row.host, row.device) for row in summary.device_ledger} == {
        ("host-0", "/device:TPU:0"),
        ("host-1", "/device:TPU:0"),
    }
    assert summary.time_breakdown.total_duration == 560.0


def test_a_host_with_a_damaged_file_is_named(tmp_path):
    training().write(folder_of(tmp_path) / "a.xplane.pb")
    (folder_of(tmp_path) / "b.xplane.pb").write_bytes(b"")
    summary = summarize(tmp_path)
    assert [host.host for host in summary.hosts] == ["a"]
    assert any("Host b is missing" in note for note in summary.trace_overview.quality_warnings)


def test_twins_count_once(tmp_path):
    training().write(folder_of(tmp_path) / "a.xplane.pb")
    alone = summarize(tmp_path)
    shutil.copy(folder_of(tmp_path) / "a.xplane.pb", folder_of(tmp_path) / "b.xplane.pb")
    both = summarize(tmp_path)
    assert both.run_metadata.num_hosts == 1
    assert both.hot_ops[0].count == alone.hot_ops[0].count
    assert both.trace_provenance.trace_sha256 == alone.trace_provenance.trace_sha256
    notes = " ".join(both.trace_overview.quality_warnings)
    assert "a.xplane.pb" in notes
    assert "b.xplane.pb" in notes
    assert "once" in notes


def test_a_file_name_that_disagrees_with_the_hostname_is_reported(tmp_path):
    space = training()
    space.hostname = "worker-7"
    space.write(folder_of(tmp_path) / "other.xplane.pb")
    notes = " ".join(summarize(tmp_path).trace_overview.quality_warnings)
    assert "worker-7" in notes
    assert "other" in notes


def test_json_serves_where_the_xplane_is_empty(tmp_path):
    (folder_of(tmp_path) / "a.xplane.pb").write_bytes(b"")
    (folder_of(tmp_path) / "a.trace.json.gz").write_bytes(gz(JSON_STEP))
    summary = summarize(tmp_path)
    assert summary.source_format == "perfetto_trace_json"
    assert summary.hot_ops[0].name == "dot.1"
    assert summary.step_time.all_steps.count == 2
    notes = " ".join(summary.trace_overview.quality_warnings)
    assert "a.trace.json.gz" in notes
    assert "0 bytes" in notes
    assert summary.coverage.format_lacks


def test_the_xplane_comes_before_json(tmp_path):
    training().write(folder_of(tmp_path) / "a.xplane.pb")
    (folder_of(tmp_path) / "a.trace.json.gz").write_bytes(gz(JSON_STEP))
    (folder_of(tmp_path) / "perfetto_trace.json.gz").write_bytes(gz(JSON_STEP))
    summary = summarize(tmp_path)
    assert summary.source_format == "xplane_pb"
    assert summary.run_metadata.num_hosts == 1
    assert summary.hot_ops[0].count == 4


def test_nothing_readable_is_an_error(tmp_path):
    (folder_of(tmp_path) / "a.xplane.pb").write_bytes(b"")
    with pytest.raises(BrokenInputError, match="0 bytes"):
        summarize(tmp_path)


def test_a_host_only_profile_cannot_answer(tmp_path):
    space = Space()
    space.host().call("PjitFunction(f)", 0, 5).marker(0, 0, 50)
    space.write(folder_of(tmp_path) / "a.xplane.pb")
    with pytest.raises(CannotAnswerError, match="host-only"):
        summarize(tmp_path)


def test_a_host_without_work_beside_one_with_work_is_left_out(tmp_path):
    idle = Space()
    idle.host().call("f", 0, 5)
    summary = summarize_spaces(tmp_path, training(), idle)
    assert [host.host for host in summary.hosts] == ["host-0"]
    notes = " ".join(summary.trace_overview.quality_warnings)
    assert "host-1" in notes


def test_a_cut_file_is_marked(tmp_path):
    path = training(devices=2).write(folder_of(tmp_path) / "a.xplane.pb")
    path.write_bytes(path.read_bytes()[:-5])
    summary = summarize(tmp_path)
    assert summary.trace_overview.suspected_truncation
    assert any("byte" in note for note in summary.trace_overview.quality_warnings)


# --- the same input gives the same bytes -------------------------------------------------------


def test_the_same_input_gives_the_same_bytes(tmp_path):
    one = summarize_spaces(tmp_path / "x", training(devices=2), training(origin=7)).to_json()
    again = summarize_spaces(tmp_path / "x", training(devices=2), training(origin=7)).to_json()
    elsewhere = summarize_spaces(
        tmp_path / "y" / "z", training(devices=2), training(origin=7)
    ).to_json()
    assert one == again == elsewhere
    assert str(tmp_path) not in one


@pytest.mark.parametrize("damage", ["empty beside json", "cut"])
def test_notes_do_not_depend_on_where_the_folder_lies(tmp_path, damage):
    texts = []
    for place in ("x", "y/z"):
        folder = folder_of(tmp_path / place)
        path = training(devices=2).write(folder / "a.xplane.pb")
        path.write_bytes(path.read_bytes()[:-5] if damage == "cut" else b"")
        if damage != "cut":
            (folder / "a.trace.json.gz").write_bytes(gz(JSON_STEP))
        texts.append(summarize(tmp_path / place).to_json())
    assert texts[0] == texts[1]


def test_the_clock_is_the_captures_or_the_epoch(tmp_path):
    space = training()
    assert summarize_spaces(tmp_path / "a", space).generated_at_utc == EPOCH_UTC
    space.environment(1_778_266_702_889_805_563, 1_778_266_703_889_805_563)
    summary = summarize_spaces(tmp_path / "b", space)
    assert summary.generated_at_utc == "2026-05-08T18:58:22.889805Z"
    assert summary.capture is not None
    assert summary.capture.start == summary.generated_at_utc
    assert summary.capture.stop == "2026-05-08T18:58:23.889805Z"


def test_stamp_writes_the_clock(tmp_path):
    before = datetime.datetime.now(datetime.UTC)
    stamped = summarize_spaces(tmp_path, training(), stamp=True).generated_at_utc
    moment = datetime.datetime.strptime(stamped, "%Y-%m-%dT%H:%M:%S.%fZ")
    assert before <= moment.replace(tzinfo=datetime.UTC) <= datetime.datetime.now(datetime.UTC)


def test_the_source_path_starts_at_plugins(tmp_path):
    summary = summarize_spaces(tmp_path, training())
    assert summary.source_path == f"plugins/profile/{STAMP}"


def test_the_json_is_plain(tmp_path):
    data = json.loads(summarize_spaces(tmp_path, training()).to_json())
    assert data["schema_version"] == "profile_summary.v1"
    assert data["hot_ops"][0]["program_id"] == "7"
    assert data["list_basis"]["hot_ops"] == "capture"


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"warmup_steps": -1}, {"hot_op_limit": 0}, {"breakdown_mode": "other"}]
)
def test_senseless_options(options):
    with pytest.raises(UsageError):
        SummarizeOptions(**options)


def test_limits_and_warmup(tmp_path):
    summary = summarize_spaces(tmp_path, training(), hot_op_limit=1, warmup_steps=2)
    assert [op.name for op in summary.hot_ops] == ["dot.1"]
    assert summary.step_time.warmup_steps_ignored == 2
    assert summary.step_time.steady_state_steps.count == 2
    assert len(summary.op_groups) == 2


def test_more_warmup_than_steps_drops_none(tmp_path):
    summary = summarize_spaces(tmp_path, training(), warmup_steps=4)
    assert summary.step_time.warmup_steps_ignored == 0
    assert any("none was dropped" in note for note in summary.trace_overview.quality_warnings)


# --- cut files ---------------------------------------------------------------------------------


def two_device_space() -> Space:
    space = Space()
    for ordinal in range(2):
        space.tpu(ordinal).op("fusion.1", 0, 10, category="loop fusion")
    return space


def test_a_whole_sibling_serves_for_a_cut_file(tmp_path):
    below = tmp_path / "plugins" / "profile" / STAMP
    path = two_device_space().write(below / "a.xplane.pb")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    events = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 3, "args": {"name": "XLA Ops"}},
        {"ph": "X", "pid": 3, "tid": 3, "ts": 0, "dur": 10, "name": "fusion.1"},
    ]
    (below / "a.trace.json").write_text(json.dumps({"traceEvents": events}))
    summary = summarize(tmp_path)
    assert summary.source_format == "perfetto_trace_json"
    assert any("is cut or damaged at byte" in w for w in summary.trace_overview.quality_warnings)
    assert not summary.trace_overview.suspected_truncation


def test_a_cut_file_without_device_work_is_broken_not_host_only(tmp_path):
    space = Space()
    space.host().call("work", 0, 5)
    space.tpu(0).op("fusion.1", 0, 10, category="loop fusion")
    path = space.write(tmp_path / "plugins" / "profile" / STAMP / "a.xplane.pb")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"XLA Ops") + 10])  # inside the line: none of it is whole
    with pytest.raises(BrokenInputError, match="is cut, and what is left of it"):
        summarize(tmp_path)


# --- per-step figures --------------------------------------------------------------------------


def numbered(numbers: range, period: int = 100, optimizer: int = 0) -> Space:
    """Steps on the device's own line: 60 us of compute each, then perhaps an optimizer module."""
    space = Space()
    tpu = space.tpu(0, peak_teraflops_per_second=1.0)
    for number in numbers:
        at = period * number
        tpu.step(number, at, 70).module("jit_step(1)", at, 60)
        costs = {"model_flops": 6_000_000, "bytes_accessed": 1}
        tpu.op("fusion.1", at, 60, category="loop fusion", program_id=1, **costs)
        if optimizer:
            tpu.module("jit_opt(2)", at + 65, optimizer)
            tpu.op("fusion.2", at + 65, optimizer, category="loop fusion", program_id=2)
    return space


def per_step(summary: ProfileSummary) -> dict[str, float]:
    return {op.name: op.per_step_duration for op in summary.hot_ops}


@pytest.mark.parametrize("other", [range(5), range(2, 14), range(4, 9)])
def test_hosts_with_different_steps_agree_on_the_shared_ones(tmp_path, other):
    summary = summarize_spaces(tmp_path, numbered(range(12)), numbered(other))
    shared = sorted(set(range(12)) & set(other))
    assert [step.step_num for step in summary.step_time.steps] == shared
    assert per_step(summary) == {"fusion.1": 60.0}
    assert summary.roofline.mfu == pytest.approx(6 / 100)
    windows = {row.window_duration for row in summary.device_ledger if row.window == "steady"}
    assert len(windows) == 1
    assert any("that all hosts have are used" in w for w in summary.trace_overview.quality_warnings)


def test_work_behind_each_step_counts_once_per_step(tmp_path):
    summary = summarize_spaces(tmp_path, numbered(range(4), optimizer=30))
    assert per_step(summary) == {"fusion.1": 60.0, "fusion.2": 30.0}


def test_a_host_without_steps_takes_the_steady_window_from_all(tmp_path):
    idle = Space()
    idle.gpu(0).kernel("gemm", 0, 50, hlo_op="dot.1")
    summary = summarize_spaces(tmp_path, numbered(range(4)), idle)
    assert {row.window for row in summary.device_ledger} == {"capture"}
    assert summary.time_breakdown.basis == "capture"
    assert any("host-1 has no steps" in w for w in summary.trace_overview.quality_warnings)


def test_sparse_cores_share_per_step_time_among_themselves(tmp_path):
    space = numbered(range(4))
    for core in range(4):
        sparse = space.tpu(0, core=f"SparseCore {core}")
        for number in range(4):
            sparse.op("sc.1", 100 * number + 5, 20, category="custom-call")
    summary = summarize_spaces(tmp_path, space)
    assert per_step(summary) == {"fusion.1": 60.0, "sc.1": 20.0}
