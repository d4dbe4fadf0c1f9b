"""What allocators had in use: reserved and allocated, at the end and at most."""

from __future__ import annotations

import pytest

from builders_xspace import Ref, Space
from marin_profile import summarize
from marin_profile.analysis.allocators import AllocatorUse, allocators
from marin_profile.base.jit import COMPILED, PLAIN, forced
from marin_profile.queries import answer

V6E = "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00/host0.xplane.pb"


def told(
    space: Space,
    at: int,
    reserved: int,
    allocated: int,
    available: int,
    peak: int,
    **who: int | Ref,
) -> None:
    sizes = {
        "bytes_reserved": reserved,
        "bytes_allocated": allocated,
        "bytes_available": available,
        "peak_bytes_in_use": peak,
    }
    host = next((p for p in space.planes if p.name == "/host:CPU"), None) or space.host()
    host.event("main/1", "MemoryAllocation", at, 0, **sizes, **who)


@pytest.mark.parametrize("form", [PLAIN, COMPILED])
def test_a_device_by_its_number(form):
    space = Space()
    space.tpu(0).op("dot.1", 0, 10)
    told(space, 1, 0, 60, 40, 60, index_on_host=0)
    space.planes[-1].event("main/1", "another", 1, 0, bytes_allocated=99, index_on_host=0)
    told(space, 2, 30, 50, 20, 70, index_on_host=0)
    told(space, 3, 30, 10, 60, 70, index_on_host=0)
    with forced(form):
        (use,) = allocators(space.timeline())
    assert use == AllocatorUse("", "/device:TPU:0", 40, 80, 70, 100)
    assert use.headroom == 20


def test_the_last_event_is_the_latest_on_any_line():
    space = Space()
    space.tpu(0).op("dot.1", 0, 10)
    host = space.host()
    for line, at, allocated in (("a", 9, 5), ("b", 4, 7)):
        host.event(
            line,
            "MemoryDeallocation",
            at,
            0,
            bytes_reserved=0,
            bytes_allocated=allocated,
            bytes_available=10 - allocated,
            peak_bytes_in_use=9,
            index_on_host=0,
        )
    assert allocators(space.timeline()) == (AllocatorUse("", "/device:TPU:0", 5, 7, 9, 10),)


def test_devices_and_host_memory_by_the_allocators_name():
    space = Space()
    for ordinal in range(2):
        space.gpu(ordinal).kernel("gemm", 0, 5)
    for at, name in enumerate(("xla_gpu_host_bfc", "GPU_1_bfc", "GPU_0_bfc")):
        told(space, at, 0, 1 + at, 9 - at, 3, allocator_name=Ref(name))
    assert allocators(space.timeline()) == (
        AllocatorUse("GPU_0_bfc", "/device:GPU:0", 3, 3, 3, 10),
        AllocatorUse("GPU_1_bfc", "/device:GPU:1", 2, 2, 3, 10),
        AllocatorUse("xla_gpu_host_bfc", "", 1, 1, 3, 10),
    )


@pytest.mark.parametrize(
    "odd", [{"bytes_available": -1}, {"peak_bytes_in_use": 1 << 62}, {"bytes_reserved": 0.5}]
)
def test_sizes_that_cannot_be_and_allocators_without_a_name_tell_nothing(odd):
    space = Space()
    space.tpu(0).op("dot.1", 0, 10)
    sizes = {
        "bytes_reserved": 0,
        "bytes_allocated": 1,
        "bytes_available": 2,
        "peak_bytes_in_use": 1,
    }
    host = space.host()
    host.event("main/1", "MemoryAllocation", 1, 0, **(sizes | odd), index_on_host=0)
    host.event("main/1", "MemoryAllocation", 2, 0, **sizes)
    host.event("main/1", "MemoryAllocation", 3, 0, index_on_host=0)
    assert allocators(space.timeline()) == ()


def test_a_real_tpu(traces):
    """Device 0: 21,491,712,000 B reserved, and 857,216 allocated beside them at most."""
    summary = summarize(traces / V6E)
    first, *others = summary.allocators
    assert (first.device, first.in_use_size) == ("/device:TPU:0", 21_491_712_000)
    assert first.most_in_use_size == 21_491_712_000 + 857_216
    assert (first.allocated_peak_size, first.capacity_size) == (16_106_341_504, 33_550_237_696)
    assert first.headroom_size == 33_550_237_696 - 21_492_569_216
    assert [one.allocated_peak_size for one in others] == [10_737_555_584] * 3
    found = answer(summary, "how much HBM memory is free?")
    assert found["query_type"] == "memory"
    assert found["results"][0]["headroom_size"] == first.headroom_size
