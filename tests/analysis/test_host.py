"""One host's part of a summary, and its independence of the file's order."""

import pytest

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.host import analyse_host


def test_device_parts():
    space = Space()
    tpu = space.tpu(
        0,
        device_type_string="TPU v6 Lite",
        peak_teraflops_per_second=918.0,
        peak_hbm_bw_gigabytes_per_second=1637.99,
    )
    for index, at in enumerate((0, 100_000, 200_000)):
        tpu.step(index, at, 90_000).op("fusion.1", at, 80_000, category="loop fusion")
    (device,) = space.analyse().devices
    assert (device.name, device.kind) == ("/device:TPU:0", "tpu")
    assert device.type_name == "TPU v6 Lite"
    assert (device.peaks.teraflops, device.peaks.hbm_gigabytes) == (918.0, 1637.99)
    assert (device.capture.start, device.capture.end) == (0, 280_000 * US)
    assert (device.capture.compute, device.capture.idle) == (240_000 * US, 40_000 * US)
    # The window from the second step's start to the third one's end: 100-280 ms.
    assert device.steady is not None
    assert (device.steady.start, device.steady.end) == (100_000 * US, 280_000 * US)
    assert (device.steady.compute, device.steady.idle) == (160_000 * US, 20_000 * US)


def test_counts_of_the_file():
    space = Space()
    space.environment(5, 9)
    space.host().call("a", 0, 5, run_id=3).call("b", 10, 5, run_id=3).call("c", 20, 5, run_id=4)
    space.tpu(0).op("x", 2, 100, source="train.py:1").op("x", 110, 1, source="train.py:1")
    space.planes[-1].event("XLA Ops", "bad", 0, -1)
    part = space.analyse()
    assert (part.num_events, part.num_events_total) == (5, 6)
    assert (part.num_processes, part.num_threads) == (2, 2)
    assert part.span_ps == 111 * US
    assert part.run_ids == {"3": 2, "4": 1}
    assert part.sources == {"train.py:1": 2}
    assert part.profile_window_ns == (5, 9)
    assert dict(part.dropped) == {"negative_duration": 1}


def test_steady_is_none_without_steps():
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    part = space.analyse()
    assert part.steps.source == "none"
    assert [device.steady for device in part.devices] == [None]


def tpu_capture() -> Space:
    space = Space("host-a")
    space.environment(1_000, 2_000)
    space.plane("/device:CUSTOM:Megascale Trace")
    host = space.host()
    for ordinal in range(3):
        tpu = space.tpu(
            ordinal,
            device_clock_shift=ordinal * 7,
            peak_teraflops_per_second=918.0,
            peak_hbm_bw_gigabytes_per_second=1637.99,
        )
        for step in range(4):
            at = step * 1_000
            if ordinal == 0:
                host.marker(step, at, 20)
            host.call("Enqueue", at + 1, 2, run_id=100 * ordinal + step, device_ordinal=ordinal)
            tpu.module("jit_step(7)", at + 50, 800, run_id=100 * ordinal + step)
            tpu.op("while.1", at + 50, 300, category="while", scope="jit(step)/while:")
            tpu.op(
                "fusion.1",
                at + 60,
                100 + ordinal,
                category="loop fusion",
                scope="jit(step)/jvp(mlp)/dot_general:",
                flops=1_000,
                bytes_accessed=500,
                shape="f32[8]{0}",
            )
            tpu.op("fusion.2", at + 170, 0, category="loop fusion")
            tpu.op("fusion.3", at + 170, 0, category="loop fusion")
            tpu.op("all-gather-start.1", at + 350, 1, category="all-gather-start")
            tpu.op("fusion.4", at + 351, 200, category="loop fusion", scope="jit(step)/a/add")
            tpu.op(
                "all-gather-done.1", at + 600, 50, category="all-gather-done", shape="f32[64]{0}"
            )
            tpu.op("psum.7", at + 700, 100, category="all-reduce", shape="f32[8]{0}")
            tpu.async_op("all-gather-start.1", at + 350, 300)
    return space


def gpu_capture() -> Space:
    space = Space("host-b")
    host = space.host()
    for ordinal in range(2):
        gpu = space.gpu(ordinal, device_vendor="AMD", memory_bandwidth=2_662_400_000_000)
        for step in range(3):
            at = step * 1_000
            if ordinal == 0:
                host.marker(step, at, 100)
            for index in range(4):
                correlation = 1_000 * ordinal + 10 * step + index
                host.call("launch", at + 10 + index, 1, correlation_id=correlation)
                gpu.kernel(
                    ("gemm", "ncclDevKernel_AllReduce_x", "MemcpyD2H", "Stream Sync")[index],
                    at + 200 + 100 * index,
                    150,
                    stream=f"Stream #{index % 2}(Kernel)",
                    correlation=correlation,
                    hlo_op=f"op.{index}" if index < 2 else "",
                )
    space.gpu(2)
    return space


def cpu_capture() -> Space:
    space = Space("host-c")
    host = space.host()
    for step in range(3):
        at = step * 1_000
        host.marker(step, at, 100)
        host.call("Execute", at + 1, 5, run_id=-7 - step)
        for ordinal in range(3):
            for index, name in enumerate(("fusion.1", "psum_invariant.7", "fusion.2")):
                host.cpu_op(
                    name,
                    at + 100 + 200 * index,
                    190 + ordinal,
                    ordinal=ordinal,
                    run_id=-7 - step,
                    thread=(ordinal + index) % 3,
                    program_id=5,
                )
    return space


@pytest.mark.parametrize("make", [tpu_capture, gpu_capture, cpu_capture])
@pytest.mark.parametrize("seed", range(4))
def test_the_summary_does_not_depend_on_the_order_of_events_lines_and_planes(make, seed):
    expected = summary_of(analyse_host(make().timeline(), "h", warmup_steps=1)).to_json()
    found = summary_of(analyse_host(make().timeline(seed), "h", warmup_steps=1)).to_json()
    assert found == expected


def test_ties_of_ops_that_share_a_name():
    """Two programs, one op name, one place: whichever stands first in the file."""

    def make() -> Space:
        space = Space()
        tpu = space.tpu(0)
        tpu.op("fusion.1", 0, 10, program_id=1, category="loop fusion", source="a.py:1")
        tpu.op("fusion.1", 0, 10, program_id=2, category="all-reduce", source="b.py:2")
        tpu.op("fusion.1", 0, 10, program_id=2, category="loop fusion", source="c.py:2")
        return space

    expected = summary_of(make().analyse()).to_json()
    for seed in range(6):
        part = analyse_host(make().timeline(seed), "", warmup_steps=1)
        assert summary_of(part).to_json() == expected
