"""Hypothesis strategies for XSpace messages: any planes, lines and events that the format can hold.

Most are of the forms that profilers write, with times that nest, overlap and tie; some hold what no
profiler writes: odd names, events of no metadata, two planes of one name, wild times.
"""

from __future__ import annotations

from hypothesis import strategies as st

from builders_xspace import (
    Gpu,
    Host,
    Space,
    Tpu,
    allocation,
    buffer_assignment,
    computation,
    heap_trace,
    hlo_proto,
    instruction,
    logical_buffer,
)

START_NS = 1_700_000_000 * 10**9
# Microseconds. Few values, so that events touch, nest and tie.
BEGINS = st.integers(0, 60)
LENGTHS = st.integers(0, 40)
WILD = st.sampled_from([-(10**6), 10**7, 10**12, 9 * 10**12])
NAMES = st.sampled_from(
    (
        *("fusion.1", "dot.2", "all-reduce.3", "copy-start.4", "copy-done.4", "while.5", "psum.6"),
        *("iota.7", "MemcpyH2D", "ncclDevKernel_AllGather_RING_LL"),
        *("", "\0", "ü|`\n<b>", "a" * 300),
    )
)
CATEGORIES = st.sampled_from(["", "loop fusion", "all-reduce", "while", "copy-done", "no such one"])
SCOPES = st.sampled_from(["", "jit(f)/mlp/dot", "jit(f)/transpose(jvp(attention))/add", "//", "x"])
GROUPS = st.sampled_from(
    (
        "",
        "%all-reduce.3 = f32[8] all-reduce(%dot.2), replica_groups={{0,1},{2,3}}",
        "%x = bf16[4,2] all-gather(%y), replica_groups=[2,4]<=[8]",
        "%q = f32[] q(%",
    )
)
COSTS = st.sampled_from([None, 0, 1, 10**9, 2**62])


@st.composite
def tpus(draw: st.DrawFn, tpu: Tpu, wild: bool) -> None:
    begins = BEGINS | WILD if wild else BEGINS
    for run in range(draw(st.integers(0, 4))):
        tpu.module(draw(st.sampled_from(["jit_f(7)", "jit_g(8)", "odd"])), 20 * run, 18, run_id=run)
    for step in range(draw(st.integers(0, 4))):
        tpu.step(draw(st.just(step) | st.integers(-1, 3)), 20 * step, 19)
    for _ in range(draw(st.integers(0, 12))):
        tpu.op(
            draw(NAMES),
            draw(begins),
            draw(LENGTHS),
            category=draw(CATEGORIES),
            scope=draw(SCOPES),
            long_name=draw(GROUPS),
            flops=draw(COSTS),
            bytes_accessed=draw(COSTS),
            line=draw(st.sampled_from(["XLA Ops", "XLA Ops", "XLA Ops#1", "Overlay"])),
        )
    for _ in range(draw(st.integers(0, 2))):
        tpu.async_op("copy-done.4", draw(begins), draw(LENGTHS))


@st.composite
def gpus(draw: st.DrawFn, gpu: Gpu) -> None:
    for number in range(draw(st.integers(0, 10))):
        gpu.kernel(
            draw(NAMES),
            draw(BEGINS),
            draw(LENGTHS),
            stream=draw(
                st.sampled_from(["Stream #1", "Stream #16(Kernel)", "Stream #8(MemcpyD2H)"])
            ),
            correlation=draw(st.none() | st.just(number)),
            hlo_op=draw(st.sampled_from(["", "fusion.1", "all-reduce.3"])),
            module="jit_f",
            program_id=draw(st.sampled_from([None, 7])),
        )


@st.composite
def hosts(draw: st.DrawFn, host: Host) -> None:
    for step in range(draw(st.integers(0, 4))):
        host.marker(step, 20 * step, draw(LENGTHS))
    for number in range(draw(st.integers(0, 4))):
        host.call("Execute", draw(BEGINS), 2, run_id=number, device_ordinal=number % 2)
    for _ in range(draw(st.integers(0, 10))):
        host.cpu_op(
            draw(NAMES.filter(bool)),
            draw(BEGINS),
            draw(LENGTHS),
            ordinal=draw(st.sampled_from([0, 0, 1, 2**31, -1])),
            run_id=draw(st.none() | st.integers(-1, 3)),
            thread=draw(st.integers(0, 2)),
            program_id=7,
        )


@st.composite
def plans(draw: st.DrawFn) -> bytes:
    """Of buffers that are not all there."""
    ids, space = st.integers(1, 4), st.sampled_from([0, 0, 1, 5])
    kinds = st.sampled_from(["alloc", "free", "share"])
    parts = [
        logical_buffer(draw(ids), draw(st.integers(0, 1 << 20)), instruction=1, space=draw(space))
        for _ in range(draw(st.integers(0, 3)))
    ]
    for _ in range(draw(st.integers(0, 3))):
        flag = draw(st.sampled_from(["thread_local", "parameter", "output", "constant"]))
        size = draw(st.integers(0, 1 << 20))
        parts.append(allocation(size, draw(ids), space=draw(space), **{flag: draw(st.booleans())}))
    parts.append(heap_trace(*draw(st.lists(st.tuples(kinds, ids, ids), max_size=6))))
    return buffer_assignment(*parts)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    space = Space(draw(st.sampled_from(["", "host-0"])))
    wild = draw(st.integers(0, 3)) == 0
    for ordinal in range(draw(st.integers(0, 3))):
        shift = draw(st.none() | st.integers(0, 50))
        space_tpu = space.tpu(ordinal, device_clock_shift=shift, peak_teraflops_per_second=1.0)
        draw(tpus(space_tpu, wild))
    for ordinal in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        draw(gpus(space.gpu(ordinal)))
    if draw(st.booleans()):
        draw(hosts(space.host()))
    if draw(st.booleans()):
        module = hlo_proto(computation(1, 1, instruction("fusion.1", "fusion", id=1)))
        space.hlo(7, module + draw(st.just(b"") | plans()))
    if draw(st.booleans()):
        length = draw(st.sampled_from([100_000, 10**9, -5]))
        space.environment(START_NS, START_NS + length)
    for plane in space.planes:
        if draw(st.integers(0, 9)) == 0:
            plane.name = draw(st.sampled_from(["", "/device:TPU:0", "/device:TPU:9", "odd"]))
        if plane._metadata and draw(st.integers(0, 9)) == 0:
            del plane._metadata[draw(st.sampled_from(sorted(plane._metadata)))]
    return space
