"""Which events are device work."""

import numpy as np
import pytest

from builders_xspace import US, Space, computation, hlo_proto, instruction, summary_of
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.planes import plane_kind
from marin_profile.events.timeline import Plane


def names(space: Space) -> list[str]:
    return sorted(device.name for device in space.devices().devices)


@pytest.mark.parametrize(
    ("plane", "expected"),
    [
        ("/device:TPU:0", "tpu"),
        ("/device:TPU:15", "tpu"),
        ("/device:TPU:0 SparseCore 0", "sparsecore"),
        ("/device:TPU:1 SparseCore 1", "sparsecore"),
        ("/device:GPU:7", "gpu"),
        ("/host:CPU", "cpu"),
        ("/host:metadata", ""),
        ("Task Environment", ""),
        ("/device:CUSTOM:Megascale Trace", ""),
        ("#Chip0 TPU Non-Core HBM", ""),
    ],
)
def test_plane_kinds(plane, expected):
    assert plane_kind(Plane(plane, 1)) == expected


def test_only_op_lines_are_work():
    space = Space()
    tpu = space.tpu(0)
    tpu.module("jit_f(1)", 0, 100).step(0, 0, 100)
    tpu.op("fusion.1", 10, 5)
    tpu.op("fusion.2", 20, 5, line="XLA Ops 1")
    for line in ("Framework Name Scope", "Framework Ops", "Source code", "XLA TraceMe", "Overlay"):
        tpu.op("derived", 0, 100, line=line)
    tpu.op("thing", 0, 100, line="LLO")
    tpu.line("Empty LLO")
    space.host().call("PjitFunction(f)", 0, 50)
    found = space.devices()
    (device,) = found.devices
    assert [found.facts[op].name for op in device.op.tolist()] == ["fusion.1", "fusion.2"]
    listed = " ".join(found.lines_not_analysed)
    assert "LLO" in listed
    assert "Empty LLO" in listed
    assert "XLA Modules" not in listed
    assert "Overlay" not in listed


def test_custom_planes_are_no_devices():
    space = Space()
    space.plane("/device:CUSTOM:Megascale Trace")
    space.plane("/device:CUSTOM:Other").event("things", "x", 0, 9)
    space.tpu(0).op("a", 0, 1)
    found = space.devices()
    assert [device.name for device in found.devices] == ["/device:TPU:0"]
    assert found.empty_devices == ()
    assert any("/device:CUSTOM:Other" in line for line in found.lines_not_analysed)


def test_empty_device_planes_are_named():
    space = Space()
    for ordinal in range(8):
        gpu = space.gpu(ordinal)
        if ordinal == 3:
            gpu.kernel("k", 0, 5)
    found = space.devices()
    assert [device.name for device in found.devices] == ["/device:GPU:3"]
    assert sorted(found.empty_devices) == [f"/device:GPU:{n}" for n in range(8) if n != 3]


def test_sparse_cores_are_devices_of_their_own_kind():
    space = Space()
    space.tpu(0).op("a", 0, 1)
    space.tpu(0, core="SparseCore 0").op("b", 0, 1)
    kinds = {device.name: device.kind for device in space.devices().devices}
    assert kinds == {"/device:TPU:0": "tpu", "/device:TPU:0 SparseCore 0": "sparsecore"}


def test_cpu_ops_are_grouped_by_ordinal_not_by_thread():
    space = Space()
    host = space.host()
    host.cpu_op("a", 0, 5, ordinal=0, thread=1, run_id=1)
    host.cpu_op("b", 5, 5, ordinal=1, thread=1, run_id=1)
    host.cpu_op("c", 10, 5, ordinal=0, thread=2, run_id=1)
    host.call("end: a", 5, 0, line="tf_XLAPjRtCpuClient/1")
    host.call("Rendezvous", 0, 50, line="tf_XLAPjRtCpuClient/1")
    host.call("$file.py:1 f", 0, 50)
    found = space.devices()
    by_name = {
        device.name: [found.facts[op].name for op in device.op.tolist()] for device in found.devices
    }
    assert by_name == {"/device:CPU:0": ["a", "c"], "/device:CPU:1": ["b"]}


def test_host_events_with_an_hlo_op_beside_a_gpu_are_launches():
    space = Space()
    space.host().cpu_op("fusion.1", 0, 5)
    space.gpu(0).kernel("k", 5, 5, hlo_op="fusion.1")
    assert names(space) == ["/device:GPU:0"]


def test_a_host_only_profile_has_no_device():
    space = Space()
    space.host().call("f", 0, 1)
    assert names(space) == []


def test_launches_of_a_gpu_that_was_not_traced_are_no_cpu_work():
    """Only the host's side of a GPU program: a host-only profile."""
    space = Space()
    host = space.host()
    for index in range(3):
        host.call("cuLaunchKernel", index * 10, 5, hlo_op=f"fusion.{index}", correlation_id=index)
    assert names(space) == []


def test_sync_entries_of_gpus_are_left_out():
    """Communication 0-100, compute 0-40, "Stream Sync" 40-100: 60 are exposed."""
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 100, stream="Stream #9")
    gpu.kernel("fusion", 0, 40)
    gpu.kernel("Stream Sync", 40, 60)
    found = space.devices()
    assert found.sync_entries == 1
    ledger = space.analyse().devices[0].capture
    assert ledger.exposed_communication == 60 * US
    assert ledger.overlapped_communication == 40 * US
    assert ledger.compute == 40 * US


def test_columns_are_on_the_device_clock_and_sorted():
    """Order and lengths differ between the clocks; membership stays on the event clock."""
    space = Space()
    tpu = space.tpu(0)
    tpu.module("jit_f(1)", 0, 10).module("jit_g(2)", 10, 10)
    tpu.op("a", 0, 5, device_start=107, device_duration=5)
    tpu.op("b", 6, 0, device_start=100, device_duration=7)
    tpu.op("c", 11, 5, device_start=120, device_duration=6)
    found = space.devices()
    (device,) = found.devices
    assert [found.facts[op].name for op in device.op.tolist()] == ["b", "a", "c"]
    assert (device.start // US).tolist() == [0, 7, 20]
    assert (device.end // US).tolist() == [7, 12, 26]
    assert device.execution.tolist() == [0, 0, 1]
    assert device.executions is not None
    assert [device.executions.modules[key] for key in device.executions.key.tolist()] == [
        ("jit_f", 1),
        ("jit_g", 2),
    ]


def test_lanes_do_not_nest_in_each_other():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("long", 0, 100, stream="Stream #1")
    gpu.kernel("short", 10, 20, stream="Stream #2")
    (device,) = space.devices().devices
    assert sorted((device.self_time // US).tolist()) == [20, 100]


def test_partial_overlap_on_one_stream_is_counted():
    space = Space()
    space.gpu(0).kernel("a", 0, 10).kernel("b", 5, 10)
    (device,) = space.devices().devices
    assert (device.self_time // US).tolist() == [10, 10]
    assert device.overlapping == 1


def test_concurrent_cpu_ops_do_not_nest():
    """Threads of one device run at the same time; only a container holds others."""
    space = Space()
    host = space.host()
    host.cpu_op("fusion.1", 0, 100, thread=1).cpu_op("fusion.2", 10, 20, thread=2)
    host.cpu_op("while.1", 200, 100, thread=1).cpu_op("fusion.3", 210, 20, thread=2)
    found = space.devices()
    (device,) = found.devices
    self_time = {
        found.facts[op].name: time // US
        for op, time in zip(device.op.tolist(), device.self_time.tolist(), strict=True)
    }
    assert self_time == {"fusion.1": 100, "fusion.2": 20, "while.1": 80, "fusion.3": 20}


def test_facts_from_the_hlo_proto_by_program_id():
    space = Space()
    for program, opcode in ((1, "all-reduce"), (2, "add")):
        proto = hlo_proto(
            computation(
                1,
                1,
                instruction(
                    "psum_invariant.7",
                    opcode,
                    id=1,
                    op_name=f"jit(f)/m{program}/x",
                    groups=[[0, 1]],
                ),
            )
        )
        space.hlo(program, proto)
    host = space.host()
    host.cpu_op("psum_invariant.7", 0, 5, program_id=1, run_id=1)
    host.cpu_op("psum_invariant.7", 5, 5, program_id=2, run_id=2)
    found = space.devices()
    (device,) = found.devices
    facts = [found.facts[op] for op in device.op.tolist()]
    assert [fact.kind for fact in facts] == ["all-reduce", "compute"]
    assert [fact.scope_path for fact in facts] == ["jit(f)/m1/x", "jit(f)/m2/x"]
    assert [len(group) for group in facts[0].replica_groups] == [2]


def test_kernels_are_what_the_hlo_op_of_their_program_is():
    """One kernel symbol, launched by ops that two programs name alike, and by one without proto."""
    space = Space()
    for program, opcode in ((1, "reduce-scatter"), (2, "all-gather-start")):
        space.hlo(program, hlo_proto(computation(1, 1, instruction("comm.7", opcode, id=1))))
    gpu = space.gpu(0)
    symbol = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
    gpu.kernel(symbol, 0, 3, hlo_op="comm.7", program_id=1)
    gpu.kernel(symbol, 3, 5, hlo_op="comm.7", program_id=2)
    gpu.kernel(symbol, 8, 7, hlo_op="all-to-all.1", program_id=3)
    gpu.kernel(symbol, 15, 11)
    gpu.kernel("fusion", 26, 13, hlo_op="comm.7", program_id=4)
    (row,) = summary_of(space.analyse()).device_ledger
    assert row.exposed_communication_by_kind == {
        "reduce-scatter": 3,
        "all-gather": 5,
        "all-to-all": 7,
        "other-collective": 11,
    }
    assert row.compute_duration == 13


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("replica_groups={{0,1,2,3},{4,5,6,7}}", 4),
        ("replica_groups=[2,4]<=[8]", 4),
        ("replica_groups=[1,8]<=[8]", 8),
        ("channel_id=1", None),
    ],
)
def test_group_sizes_from_hlo_text(groups, expected):
    space = Space()
    text = f"%psum.1 = f32[8]{{0}} all-reduce(f32[8] %x), {groups}"
    space.tpu(0).op("psum.1", 0, 5, long_name=text)
    found = space.devices()
    groups = found.facts[found.devices[0].op[0]].replica_groups
    assert (len(groups[0]) if groups else None) == expected


def test_the_scope_is_the_first_hint_that_is_a_path():
    space = Space()
    space.gpu(0).kernel("k", 0, 5, tf_op="XlaModule:", scope="jit(f)/jvp()/ffi", hlo_op="cc.1")
    found = space.devices()
    fact = found.facts[found.devices[0].op[0]]
    assert (fact.scope_path, fact.pass_name) == ("jit(f)/ffi", "forward")


def test_update_arithmetic_belongs_to_the_optimizer_where_there_is_a_backward_pass():
    space = Space()
    tpu = space.tpu(0)
    for name, scope, program in (
        ("dot", "jit(step)/transpose(jvp(mlp))/dot_general", 1),
        ("update", "jit(step)/sub", 1),
        ("elsewhere", "jit(eval)/sub", 2),
    ):
        tpu.op(name, 10 * len(name), 5, scope=scope, program_id=program)
    found = space.devices()
    passes = {fact.name: fact.pass_name for fact in found.facts}
    assert passes == {"dot": "backward", "update": "optimizer", "elsewhere": "other"}


def test_the_order_in_the_file_does_not_matter():
    space = Space()
    tpu = space.tpu(0)
    # Ties in every combination: same start, same length, a container and its child.
    for name, start, length in (
        ("while.1", 0, 50),
        ("b", 0, 50),
        ("a", 0, 10),
        ("c", 10, 10),
        ("d", 10, 10),
        ("e", 20, 0),
    ):
        tpu.op(name, start, length)

    def described(seed):
        found = find_devices(space.timeline(seed), "")
        (device,) = found.devices
        return [
            (found.facts[op].name, start, time)
            for op, start, time in zip(
                device.op.tolist(), device.start.tolist(), device.self_time.tolist(), strict=True
            )
        ]

    expected = described(None)
    assert expected[0][0] == "while.1"
    assert all(described(seed) == expected for seed in range(6))
    assert sum(time for _, _, time in expected) == 50 * US


def test_columns_are_read_only():
    space = Space()
    space.tpu(0).op("a", 0, 1)
    timeline = space.timeline()
    with pytest.raises(ValueError, match="read-only"):
        timeline.start[0] = np.int64(5)
