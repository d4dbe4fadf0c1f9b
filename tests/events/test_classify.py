"""What an op is, by tables of names and facts."""

import pytest

from marin_profile.events.classify import (
    canonical_name,
    classify_op,
    family,
    is_bookkeeping,
    is_sync_entry,
    kind_group,
    memcpy_bytes,
    only_moves,
    opcode_of,
)

HOST, ON_CHIP, MAIN = "f32[8,128]{1,0:S(5)}", "f32[8,128]{1,0:S(1)}", "f32[8,128]{1,0}"


def kind(name: str, **facts) -> str:
    return classify_op(name, **facts).kind


# --- kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-gather"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", "all-reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE", "reduce-scatter"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send-recv"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("ncclDevKernel_AllToAll_RING", "all-to-all"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all-reduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half", "reduce-scatter"),
        ("ncclDevKernel_Generic(ncclDevComm*)", "other-collective"),
        ("rcclAllReduceKernel_Sum", "all-reduce"),
        ("rcclGenericKernel<true>", "other-collective"),
    ],
)
def test_nccl_kernels(symbol, expected):
    assert kind(symbol, is_kernel=True) == expected


def test_a_collective_that_is_booked_on_a_custom_call_stays_one():
    found = classify_op("ncclDevKernel_AllGather_RING_LL", opcode="custom-call", is_kernel=True)
    assert found.kind == "all-gather"


@pytest.mark.parametrize(
    ("symbol", "details", "line", "expected"),
    [
        ("MemcpyH2D", "", "", "host_to_device"),
        ("MemcpyD2H", "", "", "device_to_host"),
        ("MemcpyD2D", "", "", "device_to_device"),
        ("MemcpyP2P", "", "", "device_to_device"),
        ("Memset", "", "", "device_to_device"),
        ("CopyHostToDevice", "", "", "host_to_device"),
        ("CopyDeviceToHost", "", "", "device_to_host"),
        ("CopyDeviceToDevice", "kind:Unknown size:655360 dest:2 async:1", "", "device_to_device"),
        ("__amd_rocclr_copyBuffer", "", "", "unknown_transfer"),
        ("__amd_rocclr_copyBufferAligned.kd", "", "", "unknown_transfer"),
        ("__amd_rocclr_fillBufferAligned.kd", "", "", "device_to_device"),
        ("anything", "kind:H2D size:8 dest:0 async:1", "", "host_to_device"),
        ("anything", "kind:HostToDevice size:8", "", "host_to_device"),
        ("anything", "kind:DeviceToHost size:8", "", "device_to_host"),
        ("anything", "kind:Unknown size:0", "", "unknown_transfer"),
        ("CopyDeviceToHost", "", "Stream #8(MemcpyOther)", "device_to_host"),
        ("anything", "", "Stream #8(MemcpyOther)", "unknown_transfer"),
        ("anything", "", "Stream #14(MemcpyH2D)", "host_to_device"),
        ("anything", "", "Stream #15(MemcpyD2H)", "device_to_host"),
        ("anything", "", "Stream #16(Kernel)", "compute"),
        ("anything", "", "Stream #22(Compute)", "compute"),
        # Some streams run both.
        ("fusion_2", "", "Stream #25(MemcpyD2D,Compute)", "compute"),
        ("MemcpyD2D", "", "Stream #25(MemcpyD2D,Compute)", "device_to_device"),
    ],
)
def test_copies_on_gpus(symbol, details, line, expected):
    found = kind(symbol, memcpy_details=details, line_name=line, is_kernel=True)
    assert found == expected


@pytest.mark.parametrize(
    "symbol",
    [
        "loop_permute_fusion",
        "loop_all_reduce_fusion_kernel",
        "input_reduce_fusion",
        "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32",
        "void cutlass::Kernel<cutlass_80_tensorop>(Params)",
        "memcpyish_kernel",
        "send_it",
        "broadcast_add_fusion",
        "reduce",
    ],
)
def test_a_kernel_with_an_unknown_symbol_is_compute(symbol):
    assert kind(symbol, is_kernel=True) == "compute"


@pytest.mark.parametrize(
    "name", ["CudaGraphExec:12", "CudaGraphExec", "command_buffer", "command_buffer_3"]
)
def test_a_graph_is_a_container_of_unknown_ops(name):
    found = classify_op(name, hlo_op="command_buffer.2", is_kernel=True)
    assert (found.kind, found.is_container) == ("unknown", True)


def test_a_kernel_of_a_graph_is_what_its_symbol_says():
    assert kind("fusion_kernel", hlo_op="command_buffer.2", is_kernel=True) == "compute"
    assert kind("command_buffers_copy", is_kernel=True) == "compute"
    found = kind("ncclDevKernel_AllGather_RING", hlo_op="command_buffer.2", is_kernel=True)
    assert found == "all-gather"


GENERIC = [
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
    "rccl_main_kernel",
    "void stream_executor::gpu::AllReduceKernelImpl<float, (xla::ReductionKind)0>",
    "_ZN15stream_executor3gpu19AllReduceKernelImplIfLN3xla13ReductionKindE0EEEv",
    "nvshmemi_transfer_rma_put",
    "void nvshmem_kernel<4>",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
]


@pytest.mark.parametrize("symbol", GENERIC)
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"hlo_op": "x.3", "opcode": "all-gather-start"}, "all-gather"),
        ({"hlo_op": "x.3", "opcode": "all-to-all"}, "all-to-all"),
        ({"hlo_op": "x.3", "opcode": "reduce-scatter"}, "reduce-scatter"),
        ({"hlo_op": "x.3", "opcode": "collective-permute-start"}, "collective-permute"),
        (
            {"hlo_op": "x.3", "opcode": "async-start", "wrapped_opcode": "reduce-scatter"},
            "reduce-scatter",
        ),
        ({"hlo_op": "reduce-scatter-start.3", "opcode": "async-start"}, "reduce-scatter"),
        # Without protos the name of the HLO op is all there is.
        ({"hlo_op": "all-gather-start.3"}, "all-gather"),
        ({"hlo_op": "reduce-scatter.1"}, "reduce-scatter"),
        ({"hlo_op": "psum_invariant.7"}, "all-reduce"),
    ],
)
def test_a_kernel_is_what_its_hlo_op_says_before_its_symbol(symbol, facts, expected):
    found = classify_op(symbol, **facts, is_kernel=True)
    assert (found.kind, found.role, found.is_container) == (expected, "", False)


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "other-collective"),
        ("rccl_main_kernel", "other-collective"),
        ("nvshmemi_transfer_rma_put", "other-collective"),
        ("void stream_executor::gpu::AllReduceKernelImpl<float>", "all-reduce"),
        ("_ZN15stream_executor3gpu19AllReduceKernelImplIfE", "all-reduce"),
        ("void stream_executor::gpu::RaggedAllToAllKernelImpl<long>", "ragged-all-to-all"),
        ("MyAllReduceKernelImpl", "compute"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all-reduce"),
    ],
)
@pytest.mark.parametrize("facts", [{}, {"hlo_op": "custom-call.2", "opcode": "custom-call"}])
def test_a_kernel_whose_hlo_op_says_nothing_is_what_its_symbol_says(symbol, facts, expected):
    assert kind(symbol, **facts, is_kernel=True) == expected


@pytest.mark.parametrize(
    ("symbol", "facts", "expected"),
    [
        # A copy engine that moves a collective's data.
        ("MemcpyP2P", {"hlo_op": "collective-permute-start.1"}, "collective-permute"),
        ("MemcpyP2P", {"hlo_op": "x", "opcode": "ragged-all-to-all"}, "ragged-all-to-all"),
        ("MemcpyD2H", {"hlo_op": "copy-start.4", "opcode": "copy-start"}, "device_to_host"),
        ("MemcpyD2D", {"hlo_op": "copy.4", "opcode": "copy"}, "device_to_device"),
        ("MemcpyH2D", {"hlo_op": "infeed.1", "opcode": "infeed"}, "infeed"),
        ("MemcpyD2H", {"hlo_op": "while.3", "opcode": "while"}, "device_to_host"),
        ("all_reduce_like", {"hlo_op": "all_reduce_fusion.2"}, "compute"),
        ("fusion", {"hlo_op": "all-reduce.2", "opcode": "fusion"}, "compute"),
    ],
)
def test_kernels_of_other_hlo_ops(symbol, facts, expected):
    assert kind(symbol, **facts, is_kernel=True) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Stream Sync", True),
        ("Stream Synchronize", True),
        ("Event Sync", True),
        ("Context Sync", True),
        ("Stream Wait Event", True),
        ("stream_sync_fusion", False),
        ("fusion", False),
    ],
)
def test_sync_entries(name, expected):
    assert is_sync_entry(name) is expected


# --- ops of XLA --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        # The category decides, whatever the name.
        ("psum.7", {"category": "all-reduce"}, "all-reduce"),
        ("fusion.3", {"category": "all-reduce fusion"}, "all-reduce"),
        ("fusion.4", {"category": "all-reduce-scatter fusion"}, "reduce-scatter"),
        ("all-reduce.1", {"category": "loop fusion"}, "compute"),
        ("x", {"category": "all-reduce even"}, "compute"),
        ("x", {"category": "all-reduce helper"}, "compute"),
        ("x", {"category": "collective-permute"}, "collective-permute"),
        ("x", {"category": "all-to-all"}, "all-to-all"),
        ("x", {"category": "ragged-all-to-all"}, "ragged-all-to-all"),
        ("x", {"category": "collective-broadcast"}, "broadcast"),
        ("x", {"category": "send"}, "send-recv"),
        ("x", {"category": "recv-done"}, "send-recv"),
        ("x", {"category": "infeed"}, "infeed"),
        ("x", {"category": "outfeed"}, "outfeed"),
        # Then the opcode of the HLO text.
        ("psum.7", {"long_name": "%psum.7 = bf16[8]{0} all-reduce(bf16[8]{0} %x)"}, "all-reduce"),
        (
            "psum.8",
            {"long_name": "%psum.8 = (f32[2]{0}, f32[4]{0:T(128)}) all-to-all(f32[2] %a)"},
            "all-to-all",
        ),
        # Then the HLO proto's.
        ("psum_invariant.7", {"opcode": "all-reduce"}, "all-reduce"),
        ("psum_invariant.7", {"opcode": "fusion"}, "compute"),
        # Then the whole name.
        ("psum_invariant.7", {}, "all-reduce"),
        ("psum.7", {}, "all-reduce"),
        ("psum_invariant_7", {}, "all-reduce"),
        ("psum.clone.3", {}, "all-reduce"),
        ("all-gather.1", {}, "all-gather"),
        ("reduce-scatter.12", {}, "reduce-scatter"),
        ("reduce-scatter-start", {}, "reduce-scatter"),
        ("all-gather-done.3", {}, "all-gather"),
        ("ppermute.2", {}, "collective-permute"),
        ("psum_scatter.2", {}, "reduce-scatter"),
        ("send.1", {}, "send-recv"),
        ("recv-done.1", {}, "send-recv"),
    ],
)
def test_collectives_of_xla(name, facts, expected):
    assert kind(name, **facts) == expected


@pytest.mark.parametrize(
    "name",
    [
        "loop_permute_fusion",
        "sender_embedding",
        "wait_gate",
        "await_fusion",
        "nonblocked_matmul",
        "all_reduce_fusion.2",
        "reduce.5",
        "broadcast.3",
        "broadcast_add_fusion.1",
        "gather.1",
        "scatter.1",
        "transpose_copy_fusion",
        "copy.3",
        "slice.3",
        "pad.3",
        "ynn_fusion.1",
        "recvendor",
    ],
)
def test_names_that_only_sound_like_communication_are_compute(name):
    assert kind(name) == "compute"


@pytest.mark.parametrize("category", ["data formatting", "copy", "slice", "pad", "loop fusion"])
def test_synchronous_moves_are_compute(category):
    assert kind("x.1", category=category) == "compute"


def copy_start(destination: str, source: str) -> str:
    return f"%copy-start.1 = ({destination}, {source}, u32[]{{:S(2)}}) copy-start({source} %p)"


def copy_done(destination: str, source: str) -> str:
    operand = f"({destination}, {source}, u32[]{{:S(2)}}) %copy-start.1"
    return f"%copy-done.1 = {destination} copy-done({operand})"


def slice_start(destination: str, source: str) -> str:
    return (
        f"%slice-start.1 = (({source}), {destination}, s32[]{{:S(2)}}) "
        f"async-start({source} %p), calls=%slice_computation"
    )


def slice_done(destination: str, source: str) -> str:
    operand = f"(({source}), {destination}, s32[]{{:S(2)}}) %slice-start.1"
    return f"%slice-done.1 = {destination} async-done({operand})"


@pytest.mark.parametrize(
    ("destination", "source", "expected"),
    [
        (HOST, MAIN, "device_to_host"),
        (MAIN, HOST, "host_to_device"),
        (ON_CHIP, MAIN, "on_chip"),
        (MAIN, ON_CHIP, "on_chip"),
        (MAIN, MAIN, "device_to_device"),
        (ON_CHIP, ON_CHIP, "on_chip"),
        (HOST, HOST, "unknown_transfer"),
        (ON_CHIP, HOST, "host_to_device"),
        (HOST, ON_CHIP, "device_to_host"),
        ("f32[8,128]{1,0:S(6)}", HOST, "host_to_device"),
        (HOST, "f32[8,128]{1,0:S(6)}", "device_to_host"),
        ("f32[8,128]{1,0:S(6)}", MAIN, "on_chip"),
        (MAIN, "f32[8,128]{1,0:S(6)}", "on_chip"),
    ],
)
def test_the_direction_of_async_copies_and_slices(destination, source, expected):
    for name, text, category, role in (
        ("copy-start.1", copy_start(destination, source), "copy-start", "start"),
        ("copy-done.1", copy_done(destination, source), "copy-done", "done"),
        ("slice-start.1", slice_start(destination, source), "async-start", "start"),
        ("slice-done.1", slice_done(destination, source), "async-done", "done"),
    ):
        for facts in ({"long_name": text}, {"long_name": text, "category": category}):
            found = classify_op(name, **facts)
            assert (found.kind, found.role) == (expected, role), (name, facts)


def test_an_async_update_of_a_host_buffer_goes_to_the_host():
    """The update, not the buffer that it goes into, is what moves."""
    text = (
        f"%dynamic-update-slice-start.1 = (({HOST}, {MAIN}, s32[]), {HOST}, s32[]{{:S(2)}}) "
        f"async-start({HOST} %buffer, {MAIN} %update, s32[] %at), calls=%c"
    )
    assert kind("dynamic-update-slice-start.1", long_name=text) == "device_to_host"


def test_an_async_update_that_names_no_update_goes_where_its_result_is():
    text = (
        f"%dynamic-update-slice-start.1 = (({MAIN}), {HOST}, s32[]{{:S(2)}}) "
        f"async-start({MAIN} %p), calls=%c"
    )
    assert kind("dynamic-update-slice-start.1", long_name=text) == "device_to_host"


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        # A slice moves its first operand, an update its second; a context is not needed.
        ("slice-start.1", f"(({HOST}, {MAIN}), {MAIN}, u32[])", "host_to_device"),
        ("dynamic-slice-start.1", f"(({HOST}, s32[]), {MAIN})", "host_to_device"),
        ("dynamic-update-slice-start.1", f"(({MAIN}, {ON_CHIP}), {MAIN})", "on_chip"),
        ("dynamic-update-slice-start.1", f"(({ON_CHIP}, {MAIN}), {MAIN})", "device_to_device"),
        ("dynamic-update-slice-start.1", f"({MAIN}, {HOST}, u32[])", "device_to_host"),
        ("copy-start.1", f"({HOST}, {MAIN})", "device_to_host"),
        ("copy-start.1", f"({HOST})", "unknown_transfer"),
        ("copy-start.1", HOST, "unknown_transfer"),
    ],
)
def test_the_direction_of_moves_with_fewer_or_more_parts(name, shapes, expected):
    assert kind(name, long_name=f"%{name} = {shapes} async-start(%p)") == expected


def test_an_async_update_from_on_chip_memory_moves_on_the_chip():
    text = (
        f"%dynamic-update-slice-start.1 = (({MAIN}, {ON_CHIP}, s32[]), {MAIN}, s32[]{{:S(2)}}) "
        f"async-start({MAIN} %buffer, {ON_CHIP} %update, s32[] %at), calls=%c"
    )
    assert kind("dynamic-update-slice-start.1", long_name=text) == "on_chip"


def test_slices_and_copies_in_flight_are_no_collectives():
    for name in ("slice-start.3", "slice-done.3", "copy-start.3", "copy-done.3"):
        assert kind(name) == "unknown_transfer"
    assert kind("slice-start.3", category="async-start") == "unknown_transfer"
    assert kind("copy-done.3", category="copy-done") == "unknown_transfer"


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        # The HLO proto says what is wrapped.
        ("async-start.3", {"opcode": "async-start", "wrapped_opcode": "all-gather"}, "all-gather"),
        ("async-done.3", {"opcode": "async-done", "wrapped_opcode": "all-gather"}, "all-gather"),
        ("async-start", {"category": "async-start", "wrapped_opcode": "all-to-all"}, "all-to-all"),
        ("x-start.1", {"opcode": "async-start", "wrapped_opcode": "slice"}, "unknown_transfer"),
        # Else the base name does.
        ("all-gather-start.3", {"category": "async-start"}, "all-gather"),
        ("reduce-scatter-done.3", {"category": "async-done"}, "reduce-scatter"),
        ("all-gather-start.3", {"category": "all-gather-start"}, "all-gather"),
    ],
)
def test_async_wrappers_take_the_kind_of_what_they_wrap(name, facts, expected):
    assert kind(name, **facts) == expected


def test_a_wait_for_an_unknown_async_operation_is_not_compute():
    assert kind("async-done.4", category="async-done") == "unknown"


@pytest.mark.parametrize("role", ["start", "done"])
@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        ("gather_offload", {"thread": "sparsecore"}, "sparsecore"),
        ("gather_offload", {"thread": "sparsecore", "wrapped_opcode": "gather"}, "sparsecore"),
        ("slice", {"thread": "sparsecore", "wrapped_opcode": "slice"}, "sparsecore"),
        ("x", {"thread": "sparsecore", "wrapped_opcode": "all-gather"}, "all-gather"),
        ("all-to-all", {"thread": "sparsecore"}, "all-to-all"),
        ("gather_offload", {"thread": "main"}, "compute"),
        ("gather_offload", {}, "compute"),
        ("gather_offload", {"thread": "host"}, "unknown"),
        ("gather_offload", {"thread": "tensorcore"}, "unknown"),
    ],
)
def test_an_operation_of_another_thread_is_a_wait(role, name, facts, expected):
    full = f"{name}-{role}.3"
    found = classify_op(full, category=f"async-{role}", **facts)
    assert (found.kind, found.role) == (expected, role)
    thread = facts.get("thread")
    if thread and "wrapped_opcode" not in facts:
        text = (
            f"%{full} = ((f32[8]{{0}}), f32[4]{{0}}, u32[]) async-{role}(f32[8]{{0}} %p), "
            f'async_execution_thread="{thread}", calls=%c'
        )
        assert kind(full, long_name=text) == expected


def test_the_base_of_an_operation_of_another_thread_is_its_categorys():
    found = classify_op(
        "x-start.1",
        category="copy-start",
        opcode="async-start",
        wrapped_opcode="slice",
        thread="sparsecore",
    )
    assert (found.kind, found.base, found.is_container) == ("sparsecore", "copy", False)
    found = classify_op("done.3", category="async-done", thread="sparsecore")
    assert (found.kind, found.base) == ("sparsecore", "done")


def test_a_thread_says_nothing_of_an_op_that_is_not_asynchronous():
    assert kind("fusion.1", category="loop fusion", thread="sparsecore") == "compute"


def test_roles_and_bases():
    start = classify_op("all-gather-start.3", category="all-gather-start")
    done = classify_op("all-gather-done.3", opcode="all-gather-done")
    assert (start.role, start.base) == ("start", "all-gather")
    assert (done.role, done.base) == ("done", "all-gather")
    fusion = classify_op("fusion.1", category="loop fusion", opcode="custom-call")
    assert (fusion.role, fusion.base) == ("", "custom-call")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("while.3", {}),
        ("conditional.1", {}),
        ("call.2", {}),
        ("while.3", {"category": "while"}),
        ("x", {"opcode": "conditional"}),
        ("x", {"long_name": "%x = (f32[2]{0}) while((f32[2]{0}) %t), body=%b"}),
        ("custom_name", {"opcode": "call"}),
    ],
)
def test_containers_are_compute(name, facts):
    found = classify_op(name, **facts)
    assert (found.kind, found.is_container) == ("compute", True)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("send.1", "host send"),
        ("all-reduce.1", "all-reduce"),
        ("copy-start.1", "copy-start"),
        ("async-done.1", "async-done"),
        ("fusion.1", "loop fusion"),
    ],
)
def test_no_class_but_control_flow_is_a_container(name, category):
    assert not classify_op(name, category=category).is_container


def test_a_done_without_an_operand_has_no_direction():
    text = f"%copy-done.1 = ({HOST}, {MAIN}, u32[]) copy-done"
    assert kind("copy-done.1", category="copy-done", long_name=text) == "unknown_transfer"


def test_other_ops_are_no_containers():
    for name in ("while_fusion", "custom-call.3", "callback", "fusion.1"):
        assert not classify_op(name).is_container


# --- names and shapes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("%fusion.12", "fusion"),
        ("fusion", "fusion"),
        ("all-gather-start.3", "all-gather-start"),
        ("a.1.2", "a.1"),
        ("", ""),
    ],
)
def test_canonical_names(name, expected):
    assert canonical_name(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%psum.7 = bf16[8]{0} all-reduce(bf16[8]{0} %x), channel_id=1", "all-reduce"),
        ("%t = (f32[2]{0:T(8,128)}, (s32[], u32[])) while(...)", "while"),
        ("%copy-done = f32[5,1024]{1,0:T(8,128)S(5)} copy-done(f32[] %a)", "copy-done"),
        ("fusion.7", ""),
        ("%broken = f32[", ""),
        ("%broken = f32[8]} add(f32[8] %x)", ""),
        ("", ""),
    ],
)
def test_opcodes_of_hlo_text(text, expected):
    assert opcode_of(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("iota.3", True),
        ("constant", True),
        ("bitcast.9", True),
        ("get-tuple-element.1", True),
        ("parameter.0", True),
        ("tuple.1", True),
        ("after-all", True),
        ("copy-start.3", True),
        ("copy-done", True),
        ("copy.3", False),
        ("iota_fusion", False),
        ("slice-start.3", False),
    ],
)
def test_bookkeeping(name, expected):
    assert is_bookkeeping(name) is expected


def test_groups():
    assert kind_group("compute") != kind_group("all-reduce") != kind_group("on_chip")
    assert kind_group("all-reduce") == kind_group("send-recv") == kind_group("broadcast")
    assert kind_group("infeed") == kind_group("unknown_transfer") == kind_group("on_chip")
    assert len({kind_group(k) for k in ("compute", "all-reduce", "infeed", "unknown")}) == 4


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"category": "host send"}, "device_to_host"),
        ({"category": "host recv-done"}, "host_to_device"),
        (
            {"long_name": "%send.1 = (f32[8], u32[], token[]) send(f32[8] %x), "
             "channel_id=1, is_host_transfer=true"},
            "device_to_host",
        ),
        ({"category": "send"}, "send-recv"),
    ],
)  # fmt: skip
def test_a_send_to_the_host_is_a_transfer(facts, expected):
    assert kind("send.1", **facts) == expected


@pytest.mark.parametrize(
    "name", ["ncclSymkDevKernel_AllReduce_x", "void ncclDevKernel_AllReduce_y"]
)
def test_more_nccl_symbols(name):
    assert kind(name, is_kernel=True) == "all-reduce"


def test_a_collective_kernel_contains_no_other_op():
    found = classify_op("ncclDevKernel_AllReduce_Sum_f32_RING_LL", is_kernel=True)
    assert (found.kind, found.is_container) == ("all-reduce", False)


def test_a_start_of_something_else_is_compute():
    assert classify_op("x.1", opcode="batch-done").kind == "compute"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ("kind:HostToDevice size:4096 dest:0 async:1", 4096),
        ("num_bytes:24 kind:H2D", 24),
        ("kind:H2D", None),
        ("oversize:8", None),
        ("", None),
    ],
)
def test_the_bytes_of_a_memcpy(details, expected):
    assert memcpy_bytes(details) == expected


# --- families ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scope", "kind", "category", "expected"),
    [
        ("all-reduce.1", "jit(f)/mlp/psum", "all-reduce", "all-reduce", "collective"),
        ("copy-start.1", "", "device_to_host", "copy-start", "transfer"),
        ("custom-call.1", "jit(f)/splash_mha/x", "compute", "", "attention_splash"),
        ("fusion.1", "jit(f)/te_fused_attn_forward_ffi", "compute", "", "attention_flash"),
        ("fusion.1", "jit(f)/attention/add", "compute", "loop fusion", "attention"),
        ("fusion.1", "jit(f)/mlp/dot_general", "compute", "loop fusion", "matmul"),
        ("fusion.2", "jit(f)/x/y", "compute", "convolution fusion", "matmul"),
        ("Cijk_Ailk_Bljk", "", "compute", "", "matmul"),
        ("fusion.1", "jit(f)/softmax_cross_entropy/exp", "compute", "", "loss_xent"),
        ("fusion.1", "jit(f)/optimizer/mul", "compute", "loop fusion", "optimizer"),
        ("fusion.1", "jit(f)/embedding/gather", "compute", "loop fusion", "embedding"),
        ("fusion.1", "jit(f)/rms_norm/mul", "compute", "loop fusion", "normalization"),
        ("copy.3", "", "compute", "data formatting", "copy"),
        ("convert.3", "", "compute", "", "convert"),
        ("fusion.9", "", "compute", "loop fusion", "fusion"),
        ("iota.9", "", "compute", "", "other"),
        # A scope alone tells, or a name alone.
        ("custom-call.1", "jit(f)/splash_mha/dot_general", "compute", "", "attention_splash"),
        ("flash_attention_fwd.2", "jit(f)/x", "compute", "", "attention_flash"),
        ("rms_norm_fusion.2", "jit(f)/x", "compute", "", "normalization"),
        # The last part of the scope is what the op does; the parts before it say where.
        ("fusion.1", "jit(f)/attention/dot_general", "compute", "", "matmul"),
        ("fusion.1", "jit(f)/dot_general/add", "compute", "", "fusion"),
        # Unknown work is no transfer.
        ("async-done.1", "", "unknown", "async-done", "other"),
        ("fusion.4", "", "compute", "data formatting", "copy"),
        ("bitcast.4", "", "compute", "non-fusion elementwise", "copy"),
        ("convert_fusion.3", "", "compute", "", "fusion"),
        ("op.9", "", "compute", "custom fusion", "fusion"),
        # Whole tokens only.
        ("embeddingless", "", "compute", "", "other"),
        ("normalizer", "", "compute", "", "other"),
        ("dotted", "", "compute", "", "other"),
    ],
)
def test_families_by_table(name, scope, kind, category, expected):
    assert family(name, scope, kind, category) == expected


@pytest.mark.parametrize(
    ("name", "category", "moves"),
    [
        ("copy.4", "", True),
        ("transpose.2.clone", "", True),
        ("transpose_copy_fusion.2", "loop fusion", False),
        ("input_transpose_fusion", "", False),
        ("fusion.3", "data formatting", True),
        ("broadcast_add_fusion", "loop fusion", False),
        ("copy_add_fusion", "loop fusion", False),
        ("bitcast_fusion", "", False),
        ("fusion.3", "loop fusion", False),
    ],
)
def test_ops_that_only_move_data(name: str, category: str, moves: bool) -> None:
    assert only_moves(name, category) == moves
