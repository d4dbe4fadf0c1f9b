"""A ProfileSummary built by hand: two devices, four kept steps of 1,000 us, all terms by hand.

Per device and kept step: 500 compute, 200 exposed all-reduce, 40 exposed copy to the host,
10 unattributed, 250 idle; 100 of the all-reduce and 60 of the all-gather are hidden. The window of
both devices is 4,000 us, so two devices hold 8,000 us.
"""

from __future__ import annotations

from typing import Any

from marin_profile.schema import (
    BreakdownPart,
    CaptureDetails,
    Collective,
    CommunicationOp,
    Coverage,
    DeviceLedger,
    DurationStats,
    GapBeforeOp,
    GapRegionContext,
    Host,
    HotOp,
    OpGroup,
    OptimizationCandidate,
    OutlierCause,
    ProfileSummary,
    Region,
    Roofline,
    RooflineRow,
    RunMetadata,
    SemanticFamily,
    Step,
    StepClass,
    StepOutlier,
    StepTime,
    Straggler,
    StragglerHost,
    TimeBreakdown,
    TraceOverview,
    TraceProvenance,
    UnattributedOp,
)

STEPS = 4
DEVICES = 2


def stats(value: float, count: int = STEPS) -> DurationStats:
    return DurationStats(count=count, mean=value, median=value, p90=value, min=value, max=value)


NO_STATS = DurationStats(count=0)


def ledger(
    device: str = "/device:TPU:0",
    *,
    host: str = "host0",
    kind: str = "tpu",
    window: str = "steady",
    scale: float = STEPS,
) -> DeviceLedger:
    return DeviceLedger(
        device=device,
        host=host,
        kind=kind,
        window=window,
        window_start=1000.0,
        window_duration=1000.0 * scale,
        compute_duration=500.0 * scale,
        overlapped_communication_duration=160.0 * scale,
        exposed_communication_duration=200.0 * scale,
        exposed_transfer_duration=40.0 * scale,
        unattributed_duration=10.0 * scale,
        idle_duration=250.0 * scale,
        exposed_communication_by_kind={"all-reduce": 200.0 * scale},
        overlapped_communication_by_kind={"all-reduce": 100.0 * scale, "all-gather": 60.0 * scale},
        exposed_transfer_by_kind={"device_to_host": 40.0 * scale},
    )


def step(index: int, *, kept: bool = True, period: float | None = 1000.0) -> Step:
    return Step(
        index=index,
        step_num=index + 5,
        start=1000.0 * index,
        duration=900.0,
        critical_path=910.0,
        period=period,
        kept=kept,
        step_class="light",
    )


def step_time(**changes: Any) -> StepTime:
    values: dict[str, Any] = {
        "warmup_steps_ignored": 1,
        "all_steps": stats(900.0, STEPS + 1),
        "steady_state_steps": stats(900.0),
        "classes": [
            StepClass(
                name="light", count=STEPS, fraction_of_steady=1.0, duration_stats=stats(900.0)
            )
        ],
        "source": "annotation",
        "annotation": "train",
        "linked": True,
        "period": stats(1000.0),
        "critical_path": stats(910.0),
        "steps": [step(0, kept=False), *(step(index) for index in range(1, STEPS + 1))],
    }
    return StepTime(**(values | changes))


def uneven_steps() -> StepTime:
    """Periods of 1,000 us, but one of 3,000: its checkpoint adds 500 us to the mean of the four
    kept ones, 1,500."""
    lengths = (1000.0, 1000.0, 3000.0, 1000.0, 1000.0)
    return step_time(
        period=stats(1000.0).model_copy(update={"mean": 1500.0, "p90": 2400.0, "max": 3000.0}),
        typical_period=1000.0,
        mean_period=1500.0,
        whole_periods=4,
        outliers=[
            StepOutlier(
                index=2,
                step_num=7,
                period=3000.0,
                excess=2000.0,
                cause="host_event",
                cause_name="save_checkpoint",
                before_op="fusion.7",
                cause_duration=1990.0,
            )
        ],
        outlier_causes=[
            OutlierCause(
                cause="host_event",
                cause_name="save_checkpoint",
                before_op="fusion.7",
                count=1,
                total_excess=2000.0,
                excess_per_period=500.0,
                steps=[7],
            )
        ],
        steps=[step(index, kept=index > 0, period=length) for index, length in enumerate(lengths)],
    )


def no_steps() -> StepTime:
    return StepTime(
        warmup_steps_ignored=0, all_steps=NO_STATS, steady_state_steps=NO_STATS, source="none"
    )


def breakdown(basis: str = "steady") -> TimeBreakdown:
    def part(duration: float) -> BreakdownPart:
        return BreakdownPart(total_duration=duration, share_of_total=duration / 8000.0)

    return TimeBreakdown(
        duration_basis="device_ledger",
        total_duration=8000.0,
        compute=part(4000.0),
        communication=part(1600.0),
        host=part(320.0),
        stall=part(2000.0),
        other=part(80.0),
        basis=basis,
    )


def hot_op(name: str, exclusive: float, *, category: str = "compute", **changes: Any) -> HotOp:
    values: dict[str, Any] = {
        "count": 8,
        "total_duration": exclusive,
        "exclusive_duration": exclusive,
        "avg_duration": exclusive / 8,
        "exposed_duration": exclusive,
        "per_step_duration": exclusive / 8,
    }
    return HotOp(name=name, category=category, **(values | changes))


HOT_OPS = [
    hot_op(
        "fusion.7",
        2400.0,
        shape_signature="f32[8,1024]",
        tf_op_path="jit(step)/mlp/dot_general",
        source_file="model.py:10",
        module="jit_step",
        hlo_category="convolution fusion",
        flops=2_000_000,
        bytes_accessed=4096,
        achieved_tflops=120.5,
        achieved_gbps=300.25,
        bound_by="compute",
        **{"pass": "forward"},
    ),
    hot_op("fusion.9", 1600.0, tf_op_path="jit(step)/attention/exp", **{"pass": "backward"}),
    hot_op("all-reduce.3", 2400.0, category="all-reduce", exposed_duration=1600.0),
    hot_op("all-gather.1", 480.0, category="all-gather", exposed_duration=0.0),
    hot_op("copy.1", 320.0, category="device_to_host"),
]


def group(name: str, category: str, exclusive: float, **changes: Any) -> OpGroup:
    values: dict[str, Any] = {
        "names": [name + ".1"],
        "num_names": 1,
        "count": 8,
        "exposed_duration": exclusive,
        "per_step_duration": exclusive / 8,
    }
    return OpGroup(
        canonical_name=name, category=category, exclusive_duration=exclusive, **(values | changes)
    )


OP_GROUPS = [
    group("fusion", "compute", 2400.0, names=["fusion.7"], scope="jit(step)/mlp/dot_general",
          **{"pass": "forward"}),
    group("fusion", "compute", 1600.0, names=["fusion.9"], scope="jit(step)/attention/exp",
          **{"pass": "backward"}),
    group("all-reduce", "all-reduce", 2400.0, names=["all-reduce.3"], **{"pass": "backward"}),
    group("all-reduce", "all-reduce", 160.0, names=["all-reduce.8", "all-reduce.9"], num_names=2,
          **{"pass": "backward"}),
    group("all-gather", "all-gather", 480.0, names=["all-gather.1"], **{"pass": "forward"}),
    group("copy", "device_to_host", 320.0, names=["copy.1"], **{"pass": "other"}),
    group("custom-call", "unknown", 80.0, names=["custom-call.2"], **{"pass": "other"}),
]  # fmt: skip


def family(name: str, exclusive: float) -> SemanticFamily:
    return SemanticFamily(
        family=name,
        count=8,
        total_duration=exclusive,
        exclusive_duration=exclusive,
        share_of_total=exclusive / 8000.0,
        avg_duration=exclusive / 8,
        avg_exclusive_duration=exclusive / 8,
        example_op="fusion.7",
    )


def gap(name: str, total: float, **changes: Any) -> GapBeforeOp:
    values: dict[str, Any] = {"count": 4, "max_gap_duration": total / 2, "payload_op": name}
    return GapBeforeOp(
        name=name, total_gap_duration=total, avg_gap_duration=total / 4, **(values | changes)
    )


def region(path: str, inclusive: float, exclusive: float, **by_pass: float) -> Region:
    return Region(
        path=path,
        depth=path.count("=>") + 1,
        count=8,
        inclusive_duration=inclusive,
        exclusive_duration=exclusive,
        inclusive_by_pass=by_pass or None,
    )


def straggler(device: str, host: str, *, late: bool, **changes: Any) -> Straggler:
    values: dict[str, Any] = {
        "instances": 8,
        "arrived_last": 8 if late else 0,
        "wait": 0.0 if late else 400.0,
        "exposed_wait": 0.0 if late else 300.0,
        "wait_caused": 400.0 if late else 0.0,
        "exposed_wait_caused": 300.0 if late else 0.0,
        "delay_per_step": 100.0 if late else 0.0,
        "is_straggler": late,
    }
    return Straggler(device=device, host=host, **(values | changes))


def late_host(**changes: Any) -> ProfileSummary:
    """Two hosts of one device each: in every kept step host1 arrives 100 us late, 75 us of which
    nothing hides. So 300 of 1600 us exposed communication, of 8000 us device time, are waiting."""
    devices = ("/device:TPU:0", "host0"), ("/device:TPU:0", "host1")
    values: dict[str, Any] = {
        "device_ledger": [ledger(device, host=host) for device, host in devices],
        "stragglers": [
            straggler(*devices[1], late=True, with_its_host=True),
            straggler(*devices[0], late=False),
        ],
        "straggler_hosts": [
            StragglerHost(
                host=host,
                devices=1,
                wait=0.0 if late else 400.0,
                wait_caused=400.0 if late else 0.0,
                delay_per_step=100.0 if late else 0.0,
                is_straggler=late,
            )
            for host, late in (("host1", True), ("host0", False))
        ],
    }
    values["list_basis"] = build_summary().list_basis | {
        "stragglers": "steady",
        "straggler_hosts": "steady",
    }
    return build_summary(**(values | changes))


def build_summary(**changes: Any) -> ProfileSummary:
    """The summary that the module docstring describes; `changes` replace whole fields."""
    lists = (
        "roofline hot_ops semantic_families communication_ops collectives gap_before_ops op_groups "
        "hierarchical_regions gap_region_contexts unattributed_ops"
    )
    values: dict[str, Any] = {
        "generated_at_utc": "2026-01-02T03:04:05.000000Z",
        "source_format": "xplane_pb",
        "source_path": "plugins/profile/2026_01_02_03_04_05",
        "run_metadata": RunMetadata(
            run_id="run7", hardware_type="TPU v6 Lite", num_devices=2, num_hosts=1
        ),
        "trace_overview": TraceOverview(
            num_events_total=120,
            num_complete_events=100,
            num_processes=3,
            num_threads=9,
            duration_basis="device_ledger",
            quality_warnings=["one line ends long before the others"],
        ),
        "trace_provenance": TraceProvenance(trace_sha256="ab" * 32),
        "step_time": step_time(),
        "time_breakdown": breakdown(),
        "hot_ops": HOT_OPS,
        "semantic_families": [family("matmul", 2400.0), family("attention", 1600.0)],
        "communication_ops": [
            CommunicationOp(
                collective="all-reduce",
                count=8,
                total_duration=2560.0,
                avg_duration=320.0,
                exposed_duration=1600.0,
                overlapped_duration=960.0,
            ),
        ],
        "gap_before_ops": [
            gap("copy.1", 800.0, marker_op="copy-start.1"),
            gap("fusion.7", 400.0),
            gap("all-reduce.3", 200.0),
        ],
        "hierarchical_regions": [
            region("jit(step)", 7440.0, 0.0, forward=2880.0, backward=4160.0, other=400.0),
            region("jit(step)=>mlp", 2400.0, 0.0, forward=2400.0),
            region("jit(step)=>mlp=>dot_general", 2400.0, 2400.0, forward=2400.0),
            region("jit(step)=>attention", 1600.0, 0.0, backward=1600.0),
        ],
        "gap_region_contexts": [
            GapRegionContext(
                op_name="copy.1",
                region_path="jit(step)=>mlp",
                count=4,
                total_gap_duration=800.0,
                avg_gap_duration=200.0,
            )
        ],
        "optimization_candidates": [
            OptimizationCandidate(
                candidate_id="exposed_communication",
                title="All-reduce is exposed",
                rationale="Nothing runs beside all-reduce.3.",
                evidence=["exposed communication is 20.0 % of device time"],
                suggestions=["overlap the all-reduce with the backward pass"],
            )
        ],
        "device_ledger": [
            ledger("/device:TPU:0"),
            ledger("/device:TPU:1"),
            ledger("/device:TPU:0", window="capture", scale=STEPS + 1),
            ledger("/device:TPU:1", window="capture", scale=STEPS + 1),
        ],
        "op_groups": OP_GROUPS,
        "collectives": [
            Collective(
                collective="all-reduce",
                group_size=2,
                count=8,
                bytes=1_000_000,
                duration=2560.0,
                exposed_duration=1600.0,
                overlapped_duration=960.0,
                wait_duration=100.0,
                algorithm_gbps=50.0,
                bus_gbps=50.0,
            ),
            Collective(
                collective="all-gather",
                group_size=2,
                count=8,
                duration=480.0,
                exposed_duration=0.0,
                overlapped_duration=480.0,
            ),
        ],
        "roofline": Roofline(
            peaks={"teraflops_per_second": 918.0, "hbm_gigabytes_per_second": 1638.0},
            achieved={"teraflops_per_second": 91.8, "hbm_gigabytes_per_second": 819.0},
            utilization={"compute": 0.1, "memory": 0.5},
            bound_by="memory",
            mfu=0.0809,
            hfu=0.0955,
            mfu_is_lower_bound=True,
            coverage=0.9,
            compute_duration=4080.0,
            compute_bound_duration=1200.0,
            memory_bound_duration=2400.0,
            by=[
                RooflineRow(
                    by="pass",
                    name="backward",
                    flops=3_000_000,
                    bytes_accessed=20_000,
                    duration=2400.0,
                    coverage=0.8,
                    achieved_tflops=95.5,
                    achieved_gbps=710.25,
                    bound_by="memory",
                    mfu=0.07,
                    hfu=0.1,
                ),
            ],
        ),
        "hosts": [
            Host(
                host="host0",
                file="plugins/profile/2026_01_02_03_04_05/host0.xplane.pb",
                sha256="cd" * 32,
                devices=["/device:TPU:0", "/device:TPU:1"],
                source_format="xplane_pb",
                chosen_because="xplane.pb chosen over trace.json.gz",
            )
        ],
        "coverage": Coverage(
            hlo_attributed_share=0.99,
            scope_attributed_share=0.8,
            lines_not_analysed=["/device:TPU:0 LLO"],
            events_dropped={"negative duration": 2},
            unattributed_ops=[
                UnattributedOp(
                    name="command_buffer_3",
                    count=4,
                    exclusive_duration=80.0,
                    reason="command buffer",
                )
            ],
        ),
        "capture": CaptureDetails(
            start="2026-01-02T03:04:05.000000Z",
            stop="2026-01-02T03:04:06.000000Z",
            tool_version="0.1.0",
        ),
        "list_basis": dict.fromkeys(lists.split(), "capture"),
    }
    return ProfileSummary(**(values | changes))


def build_v1_summary() -> ProfileSummary:
    """What an older writer gives: no ledger, no groups, no basis."""
    summary = build_summary()
    return ProfileSummary(
        source_format="perfetto_trace_json",
        source_path="trace.json.gz",
        run_metadata=RunMetadata(),
        trace_overview=summary.trace_overview,
        step_time=StepTime(
            warmup_steps_ignored=1, all_steps=stats(900.0, 5), steady_state_steps=stats(900.0)
        ),
        time_breakdown=breakdown().model_copy(
            update={"basis": None, "duration_basis": "exclusive_per_track"}
        ),
        hot_ops=[HotOp(**hot_op("fusion.7", 2400.0).model_dump(exclude_none=True))],
        communication_ops=summary.communication_ops,
        gap_before_ops=summary.gap_before_ops,
        hierarchical_regions=summary.hierarchical_regions,
        gap_region_contexts=summary.gap_region_contexts,
        optimization_candidates=[],
    )
