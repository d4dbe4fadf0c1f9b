"""TPU v6e, 4 devices, host offload: XProf's own tables are the oracle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marin_profile.analysis.costs import derived_costs
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.flows import Spans, steps_of_events
from marin_profile.base.times import PS_PER_US
from marin_profile.queries import answer
from marin_profile.schema import ProfileSummary
from real.captures import V6E, ledgers, read, summarize, terms


@pytest.fixture(scope="module")
def summary(traces: Path) -> ProfileSummary:
    return summarize(traces / V6E / "host0.xplane.pb", hot_op_limit=1000)


@pytest.fixture(scope="module")
def hlo_stats(reference: Path) -> dict[tuple[str, str], dict[str, float]]:
    """XProf's hlo_stats by (program id, op name)."""
    path = reference / "tpu_v6e_4dev_xprof_2.24.2" / "hlo_stats.json"
    table = json.loads(path.read_text())
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, [c.get("v") for c in row["c"]], strict=True)) for row in table["rows"]]
    return {(row["program_id"], row["hlo_op_name"]): row for row in rows}


def test_every_op_has_xprofs_self_time_and_count(summary, hlo_stats):
    ours = {(op.program_id, op.name): op for op in summary.hot_ops}
    assert set(hlo_stats) <= set(ours)
    for key, row in hlo_stats.items():
        assert ours[key].exclusive_duration == pytest.approx(row["total_self_time"], abs=1.0)
        assert ours[key].total_duration == pytest.approx(row["total_time"], abs=1.0)
        assert ours[key].count == row["occurrences"]
    beyond = set(ours) - set(hlo_stats)
    assert sum(ours[key].exclusive_duration for key in beyond) < 1.0


def test_rank_is_xprofs(summary, hlo_stats):
    ranked = [op.name for op in summary.hot_ops[:9]]
    expected = sorted(hlo_stats.values(), key=lambda row: row["rank"])[:9]
    assert ranked == [row["hlo_op_name"] for row in expected]
    assert ranked[:4] == ["copy-done.4", "copy-done.2", "copy-done", "copy-done.5"]
    assert [op.count for op in summary.hot_ops[:4]] == [400] * 4


def test_one_all_reduce_kind(summary):
    (row,) = summary.communication_ops
    assert (row.collective, row.count) == ("all-reduce", 12)
    assert row.total_duration == 1_460_345.25875
    assert row.exposed_duration == 1_460_345.25875
    assert row.overlapped_duration == 0


def test_the_module_jit_psum_is_no_communication(summary):
    names = {op.name for op in summary.hot_ops if op.category in ("all-reduce", "other-collective")}
    assert names == {"all-reduce"}
    assert not any("psum" in op.name for op in summary.hot_ops)


@pytest.mark.parametrize("window", ["steady", "capture"])
def test_ledgers_sum_to_their_windows(summary, window):
    rows = ledgers(summary, window)
    assert sorted(rows) == [f"/device:TPU:{i}" for i in range(4)]
    for row in rows.values():
        assert terms(row) == pytest.approx(row.window_duration, rel=1e-12)


def test_capture_windows_and_idle_are_xprofs(summary):
    rows = ledgers(summary, "capture")
    window = {name[-1]: row.window_duration for name, row in rows.items()}
    assert window["0"] == 92_475_685.46
    assert sum(window.values()) == pytest.approx(363_729_698.76875, abs=1e-6)
    idle = {name: 100 * row.idle_duration / row.window_duration for name, row in rows.items()}
    assert [round(idle[f"/device:TPU:{i}"], 2) for i in range(4)] == [14.81, 12.87, 12.87, 12.88]
    pooled = sum(row.idle_duration for row in rows.values()) / sum(window.values())
    assert round(100 * pooled, 2) == 13.36


def test_busy_time_is_the_union_of_the_op_line(summary):
    """From XProf's op_profile and per-device sums of the op line."""
    expected = {0: 78_783_723.90375, 1: 78_788_304.60625, 2: 78_780_797.3275, 3: 78_765_077.86875}
    rows = ledgers(summary, "capture")
    for device, busy in expected.items():
        row = rows[f"/device:TPU:{device}"]
        assert row.window_duration - row.idle_duration == pytest.approx(busy, abs=1e-6)


def test_every_op_lies_in_its_own_module_execution(traces):
    timeline = read(traces / V6E / "host0.xplane.pb")
    host = find_devices(timeline, "")
    for device in host.devices:
        assert device.executions is not None
        assert (device.execution >= 0).all()
        key = device.executions.key[device.execution]
        programs = np.array([module[1] for module in device.executions.modules], np.uint64)[key]
        own = np.array([host.facts[op].program_id for op in device.op.tolist()], np.uint64)
        assert (programs == own).all()
        end = device.executions.end[device.execution]
        assert (device.event_end <= end).all()


def test_steps_are_the_executions_of_the_dominant_module(summary):
    steps = summary.step_time
    assert (steps.source, steps.annotation) == ("module", "jit_f")
    assert steps.all_steps.count == 100
    assert steps.steady_state_steps.count == 99
    assert steps.warmup_steps_ignored == 1
    assert steps.period.count == 98 or steps.period.count == 99


def test_host_offload_is_kept_apart_from_on_chip_and_bounded_by_wall_time(summary):
    for row in ledgers(summary, "capture").values():
        kinds = row.exposed_transfer_by_kind
        assert set(kinds) == {"host_to_device", "device_to_host"}
        for duration in kinds.values():
            assert 0 < duration <= row.window_duration
        assert row.exposed_transfer_duration <= row.window_duration


def test_exposed_transfers_are_the_waits_for_them(summary, hlo_stats):
    """In flight are copies to the host for 72.8 % of the steady window, but one done waits."""
    steady = ledgers(summary, "steady").values()
    window = sum(row.window_duration for row in steady)
    share = {
        kind: 100 * sum(row.exposed_transfer_by_kind[kind] for row in steady) / window
        for kind in ("host_to_device", "device_to_host")
    }
    assert {kind: round(value, 2) for kind, value in share.items()} == {
        "host_to_device": 73.67,
        "device_to_host": 23.25,
    }
    # Over the capture: XProf's self times of the copies.
    capture = ledgers(summary, "capture").values()
    for kind, names in (
        ("host_to_device", ("copy-start", "copy-start.2", "copy-start.4")),
        ("device_to_host", ("copy-start.1", "copy-start.3", "copy-start.5")),
    ):
        ops = [*names, *(name.replace("start", "done") for name in names)]
        expected = sum(row["total_self_time"] for (_, op), row in hlo_stats.items() if op in ops)
        found = sum(row.exposed_transfer_by_kind[kind] for row in capture)
        assert found == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize("window", ["steady", "capture"])
def test_exposed_by_kind_sums_to_its_term(summary, window):
    for row in ledgers(summary, window).values():
        for term in ("exposed_communication", "exposed_transfer"):
            total = sum(getattr(row, f"{term}_by_kind").values())
            assert total == pytest.approx(getattr(row, f"{term}_duration"), rel=1e-12)


def test_exposed_times_of_ops_sum_to_the_ledgers_terms(summary):
    rows = ledgers(summary, "capture").values()
    for term, kinds in (
        ("compute", {"compute"}),
        ("exposed_communication", {"all-reduce"}),
        ("exposed_transfer", {"host_to_device", "device_to_host"}),
    ):
        owned = sum(op.exposed_duration for op in summary.hot_ops if op.category in kinds)
        ledger = sum(getattr(row, f"{term}_duration") for row in rows)
        assert owned == pytest.approx(ledger, rel=1e-12)


def test_transfers_and_their_rates(summary):
    """Three copies a step, device and direction, of 5 GiB each."""
    rows = {row.kind: row for row in summary.transfers}
    assert set(rows) == {"host_to_device", "device_to_host"}
    for row in rows.values():
        assert (row.count, row.bytes) == (3 * 100 * 4, 3 * 100 * 4 * 5 << 30)
        assert row.waited_duration < row.in_flight_duration < row.span_duration
        assert row.gbps == pytest.approx(row.bytes / row.span_duration / 1e3, rel=1e-9)
    assert rows["host_to_device"].throughput_gbps == pytest.approx(27.12, abs=0.01)
    assert rows["device_to_host"].throughput_gbps == pytest.approx(27.44, abs=0.01)


def test_ticks_of_the_clock_are_one_row_of_gaps(summary):
    noise = summary.gap_before_ops[-1]
    assert (noise.count, noise.max_gap_duration) == (2434, 0.00125)
    idle = sum(row.idle_duration for row in ledgers(summary, "capture").values())
    assert sum(gap.total_gap_duration for gap in summary.gap_before_ops) == pytest.approx(idle)


def test_peaks_come_from_the_plane(summary):
    assert summary.roofline.peaks == {
        "teraflops_per_second": 918.0,
        "hbm_gigabytes_per_second": 1637.993152512,
    }
    assert summary.run_metadata.hardware_type == "TPU v6 Lite"
    assert summary.run_metadata.num_devices == 4
    assert all(0 <= value <= 1 for value in summary.roofline.utilization.values())


def test_identity(summary):
    assert summary.generated_at_utc == "2025-03-11T19:41:39.081044Z"
    assert summary.source_format == "xplane_pb"
    assert summary.trace_overview.num_complete_events == 26_723
    assert PS_PER_US == 1_000_000


def test_costs_are_xlas_and_the_hlo_protos_give_the_same(traces, summary):
    """What the rules for GPU and CPU make of the protos is what the profiler states here."""
    timeline = read(traces / V6E / "host0.xplane.pb")
    compared = 0
    for op in summary.hot_ops:
        module = timeline.hlo.get(int(op.program_id or 0), {})
        if op.category == "compute" and "fusion" in op.name and op.name in module:
            derived = derived_costs(module[op.name], module)
            assert op.cost_source == "profile"
            assert (derived.flops, derived.bytes_accessed) == (op.flops, op.bytes_accessed)
            compared += 1
    assert compared == 3


def test_compute_is_bound_by_memory_and_is_a_small_part_of_the_time(summary):
    """3 fusions of 1.34 GFLOP and 10.74 GB; 98 whole periods of four devices."""
    roofline = summary.roofline
    assert (roofline.bound_by, roofline.coverage, roofline.mfu_is_lower_bound) == (
        "memory",
        1.0,
        False,
    )
    (row,) = [row for row in roofline.by if row.by == "program"]
    assert row.flops == 4 * 98 * 3 * 1_342_177_280
    rows = ledgers(summary, "steady").values()
    period_time = row.flops / (roofline.mfu * 918e12)
    windows = sum(row.window_duration for row in rows) / 1e6
    assert 0.98 * windows < period_time < windows
    program, *_ = answer(summary, "is it memory-bound?")["results"]
    assert (program["bound_by"], program["compute_bound_by"]) == ("exposed_transfer", "memory")
    shares = {part["name"]: part["share_of_device_time"] for part in program["device_time"]}
    assert 0.02 < shares["compute, bound by memory"] < 0.04
    assert sum(shares.values()) == pytest.approx(1.0)


def test_partners_on_the_host_that_was_not_captured_are_unknown(summary):
    """Groups {0,4}, {1,5}, ... of eight devices, four of which are here: no wait, no bandwidth."""
    (row,) = summary.collectives
    assert (row.count, row.duration, row.group_size) == (12, 1_460_345.25875, 2)
    assert (row.instances, row.members_seen, row.wait_duration) == (None, None, None)
    assert (row.algorithm_gbps, row.bus_gbps) == (None, None)
    assert summary.stragglers == []


def test_flows_lead_from_the_kth_call_to_the_kth_execution_on_every_device(traces):
    """Programs are enqueued by threads of the runtime; only flows lead there from `main`."""
    timeline = read(traces / V6E / "host0.xplane.pb")
    names = np.array([op.name for op in timeline.ops])[timeline.op]
    calls = np.flatnonzero(names == "PjitFunction(f)")
    calls = calls[np.argsort(timeline.start[calls], kind="stable")]
    # Two events a call, one inside the other.
    outer = calls[::2]
    markers = Spans(
        timeline.start[outer],
        timeline.start[outer] + timeline.duration[outer],
        timeline.line[outer].astype(np.int64),
        np.arange(len(outer)),
    )
    launches = np.flatnonzero(names == "DoEnqueueProgram")
    found = steps_of_events(timeline, markers, launches)
    _, run_ids = timeline.run_id.find(launches)
    _, ordinals = timeline.device_ordinal.find(launches)
    call_of = dict(
        zip(zip(ordinals.tolist(), run_ids.tolist(), strict=True), found.tolist(), strict=True)
    )
    for device in find_devices(timeline, "").devices:
        executions = device.executions
        assert executions is not None
        own = [
            call_of[device.ordinal, run_id]
            for run_id, key in zip(executions.run_id.tolist(), executions.key.tolist(), strict=True)
            if executions.modules[key][0] == "jit_f"
        ]
        assert own == list(range(100))
