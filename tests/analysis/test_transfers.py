"""Transfers: bytes, time in flight, time waited for, rates."""

import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.transfers import TransferTotals, merge_transfers, moved_bytes
from marin_profile.events.shapes import array_bytes
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown
from marin_profile.schema import Transfer

HOST, CHIP, MAIN = "f32[64,1024]{1,0:S(5)}", "f32[64,1024]{1,0:S(1)}", "f32[64,1024]{1,0}"
SIZE = 64 * 1024 * 4


def copy(number: int, to: str, source: str) -> tuple[str, str]:
    shapes = f"{to}, {source}, u32[]{{:S(2)}}"
    return (
        f"%copy-start.{number} = ({shapes}) copy-start({source} %p)",
        f"%copy-done.{number} = {to} copy-done(({shapes}) %copy-start.{number})",
    )


def transfers(space: Space) -> dict[str, Transfer]:
    return {row.kind: row for row in summary_of(space.analyse()).transfers}


def test_pairs_by_hand():
    """Two copies from the host in flight 0-61 and 1-75, one to the host 20-80; the device waits 20
    + 14 for the former and 5 for the latter, starts take 1 each."""
    space = Space()
    tpu = space.tpu(0)
    for number, at, done, waits, shapes in (
        (1, 0, 41, 20, (MAIN, HOST)),
        (2, 1, 61, 14, (MAIN, HOST)),
        (3, 20, 75, 5, (HOST, MAIN)),
    ):
        start_text, done_text = copy(number, *shapes)
        tpu.op(f"copy-start.{number}", at, 1, category="copy-start", long_name=start_text)
        tpu.op(f"copy-done.{number}", done, waits, category="copy-done", long_name=done_text)
    tpu.op("fusion.1", 2, 18, category="loop fusion")
    rows = transfers(space)
    assert list(rows) == ["host_to_device", "device_to_host"]
    row = rows["host_to_device"]
    assert (row.count, row.bytes) == (2, 2 * SIZE)
    assert (row.span_duration, row.in_flight_duration) == (61 + 74, 75)
    assert row.waited_duration == 20 + 14 + 2
    assert row.gbps == pytest.approx(2 * SIZE / 135e-6 / 1e9)
    assert row.throughput_gbps == pytest.approx(2 * SIZE / 75e-6 / 1e9)
    row = rows["device_to_host"]
    assert (row.count, row.bytes, row.span_duration) == (1, SIZE, 60)
    assert (row.in_flight_duration, row.waited_duration) == (60, 6)
    assert row.gbps == row.throughput_gbps == pytest.approx(SIZE / 60e-6 / 1e9)


def test_a_copy_that_runs_in_each_iteration_moves_its_bytes_each_time():
    """The start tells the size: 64 x 1024 floats into a slice of 8, three times."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 10, category="loop fusion")
    done = f"%slice-done.1 = {HOST} async-done(%slice-start.1)"
    start = f"%slice-start.1 = (({HOST}), f32[8]{{0:S(1)}}, u32[]) async-start({HOST} %p), calls=%c"
    for at in (10, 40, 70):
        tpu.op("slice-start.1", at, 1, category="async-start", long_name=start)
        tpu.op("slice-done.1", at + 9, 4, category="async-done", long_name=done)
    (row,) = transfers(space).values()
    assert (row.count, row.bytes) == (3, 3 * 32)
    assert (row.span_duration, row.waited_duration) == (3 * 13, 3 * 5)


def test_waits_are_the_ledgers_and_devices_add_up():
    space = Space()
    for ordinal, waits in ((0, 30), (1, 7)):
        tpu = space.tpu(ordinal)
        start_text, done_text = copy(1, CHIP, MAIN)
        tpu.op("copy-start.1", 0, 2, category="copy-start", long_name=start_text)
        tpu.op("copy-done.1", 11, waits, category="copy-done", long_name=done_text)
    summary = summary_of(space.analyse())
    (row,) = summary.transfers
    assert (row.kind, row.count, row.bytes) == ("on_chip", 2, 2 * SIZE)
    assert row.span_duration == row.in_flight_duration == 41 + 18
    assert row.waited_duration == 32 + 9
    assert row.waited_duration == sum(
        ledger.exposed_transfer_by_kind["on_chip"] for ledger in summary.device_ledger
    )


def test_a_copy_that_the_capture_cuts_has_a_wait_and_no_span():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("copy-done.1", 0, 9, category="copy-done", long_name=copy(1, MAIN, HOST)[1])
    tpu.op("copy-start.2", 9, 1, category="copy-start", long_name=copy(2, MAIN, HOST)[0])
    row = transfers(space)["host_to_device"]
    assert (row.count, row.bytes, row.span_duration, row.waited_duration) == (0, 0, 0, 10)
    assert (row.gbps, row.throughput_gbps) == (None, None)


def test_an_operation_of_the_async_line_alone_has_a_span_and_no_wait():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 10, category="loop fusion").op("fusion.2", 40, 10)
    shape = f"({MAIN}, {HOST}, u32[])"
    text = copy(4, MAIN, HOST)[1]
    tpu.async_op(
        "copy-done.4", 5, 25, hlo_category="copy-done", long_name=text, shape_with_layout=shape
    )
    row = transfers(space)["host_to_device"]
    assert (row.count, row.bytes, row.span_duration, row.waited_duration) == (1, SIZE, 25, 0)


def test_copies_of_a_gpu_last_as_long_as_their_event():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("fusion", 0, 10)
    for at, size in ((5, 4096), (20, 12288)):
        details = f"kind:HostToDevice size:{size} dest:0 async:1"
        gpu.kernel("MemcpyH2D", at, 8, stream="Stream #8(MemcpyH2D)", memcpy_details=details)
    gpu.kernel("MemcpyD2D", 30, 4, stream="Stream #9(MemcpyD2D)")
    rows = transfers(space)
    row = rows["host_to_device"]
    assert (row.count, row.bytes) == (2, 16384)
    assert (row.span_duration, row.in_flight_duration, row.waited_duration) == (16, 16, 11)
    assert row.gbps == pytest.approx(16384 / 16e-6 / 1e9)
    row = rows["device_to_device"]
    assert (row.count, row.bytes, row.gbps, row.waited_duration) == (1, None, None, 4)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("slice", f"(({HOST}), f32[8]{{0}}, u32[]) async-start({HOST} %p), calls=%c", 32),
        (
            "dynamic-slice",
            f"(({HOST}, s32[], s32[]), f32[8]{{0}}, u32[]) async-start({HOST} %p), calls=%c",
            32,
        ),
        (
            "dynamic-update-slice",
            f"(({HOST}, bf16[8]{{0}}, s32[]), {HOST}, u32[]) async-start({HOST} %p), calls=%c",
            16,
        ),
        (
            "dynamic-update-slice",
            f"(({HOST}, bf16[8]{{0}}), {HOST}, u32[]) async-start({HOST} %p), calls=%c",
            16,
        ),
        # Without a buffer the second of three is the destination.
        ("dynamic-update-slice", f"((bf16[8]{{0}}), {HOST}, u32[]) async-start(%p)", None),
        ("dynamic-slice", f"(({HOST}), bf16[8]{{0}}, u32[]) async-start(%p)", 16),
        ("slice", f"({HOST}, bf16[8]{{0}}) async-start(%p)", None),
        ("slice", "((opaque[]), token[]) async-start(%p), calls=%c", None),
    ],
)
def test_what_moves_in_a_slice(name, text, expected):
    space = Space()
    tpu = space.tpu(0)
    tpu.op(f"{name}-start.1", 0, 1, category="async-start", long_name=f"%{name}-start.1 = {text}")
    tpu.op(
        f"{name}-done.1",
        4,
        1,
        category="async-done",
        long_name=f"%{name}-done.1 = {HOST} async-done(%{name}-start.1)",
    )
    (row,) = transfers(space).values()
    assert (row.count, row.bytes) == (1, expected)


def test_a_done_alone_tells_what_a_slice_moved():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 40)
    for name, expected in (("slice", 2048), ("dynamic-update-slice", None)):
        tpu.async_op(
            f"{name}-done.1", 5, 9, name="async-slice", hlo_category="async-done",
            long_name=f"%{name}-done.1 = f32[512]{{0}} async-done(%{name}-start.1)",
        )  # fmt: skip
        found = space.devices()
        op, fact = next(
            (op, fact)
            for op, fact in zip(found.timeline.ops, found.facts, strict=True)
            if fact.hlo_op == f"{name}-done.1"
        )
        assert fact.op_class.base == name
        assert moved_bytes(op, fact) == expected


def test_hosts_add_up_and_a_size_that_one_does_not_know_is_unknown():
    known = TransferTotals("on_chip", 2, 10, 7, 3, 100)
    other = TransferTotals("on_chip", 1, 5, 5, 4, 50)
    blind = TransferTotals("on_chip", 1, 5, 5, 4, None)
    assert merge_transfers([known, other]) == [TransferTotals("on_chip", 3, 15, 12, 7, 150)]
    assert merge_transfers([known, blind])[0].payload is None
    assert merge_transfers([blind, known])[0].payload is None
    infeed = TransferTotals("infeed", 1, 5, 5, 9, None)
    assert [row.kind for row in merge_transfers([known, infeed])] == ["infeed", "on_chip"]
    # Of waits as long the longer spans stand first, then names.
    longer = TransferTotals("outfeed", 1, 11, 7, 3, None)
    same = TransferTotals("infeed", 1, 10, 7, 3, None)
    assert [row.kind for row in merge_transfers([same, known, longer])] == [
        "outfeed", "infeed", "on_chip",
    ]  # fmt: skip


def test_infeeds_have_the_bytes_of_their_result():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("infeed.1", 0, 10, category="infeed", shape="((f32[8]{0}, s32[2]{0}), token[])")
    tpu.op("outfeed.1", 10, 10, category="outfeed", shape="token[]")
    rows = transfers(space)
    assert (rows["infeed"].bytes, rows["infeed"].waited_duration) == (40, 10)
    assert rows["outfeed"].bytes is None


def test_waits_for_sparse_cores_have_no_bytes():
    space = Space()
    tpu = space.tpu(0)
    thread = 'async_execution_thread="sparsecore"'
    text = f"%x-start.1 = (({MAIN}), f32[8]{{0}}, u32[]) async-start(%p), {thread}, calls=%c"
    tpu.op("x-start.1", 0, 1, category="async-start", long_name=text)
    tpu.op("x-done.1", 5, 12, category="async-done", long_name="%x-done.1 = f32[8]{0} "
           "async-done(%x-start.1)")  # fmt: skip
    row = transfers(space)["sparsecore"]
    assert (row.count, row.bytes, row.span_duration, row.waited_duration) == (1, None, 17, 13)


def test_no_transfers():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 10, category="loop fusion")
    summary = summary_of(space.analyse())
    assert summary.transfers == []
    assert answer(summary, "How fast are host transfers?")["total_matched"] == 0
    assert "## Transfers" not in render_markdown(summary)


def test_the_query_and_the_report():
    space = Space()
    tpu = space.tpu(0)
    for number, at, shapes in ((1, 0, (MAIN, HOST)), (2, 30, (CHIP, MAIN))):
        start_text, done_text = copy(number, *shapes)
        tpu.op(f"copy-start.{number}", at, 1, category="copy-start", long_name=start_text)
        tpu.op(f"copy-done.{number}", at + 1, 19, category="copy-done", long_name=done_text)
    tpu.op("fusion.1", 50, 50, category="loop fusion")
    summary = summary_of(space.analyse())
    found = answer(summary, "How fast are host to device transfers?")
    assert (found["query_type"], found["basis"], found["total_matched"]) == (
        "transfers",
        "capture",
        1,
    )
    (row,) = found["results"]
    assert (row["kind"], row["bytes"], row["waited_share"]) == ("host_to_device", SIZE, 0.2)
    assert row["gbps"] == pytest.approx(13.1072)
    assert found["units"]["gbps"] == "GB/s"
    assert len(answer(summary, "How fast are transfers?")["results"]) == 2
    assert "| `host_to_device` | 1 | 262.1 kB | 20.00 us | 20.00 us | 20.0 % | 13.11 GB/s" in (
        render_markdown(summary)
    )
    older = summary.model_copy(update={"transfers": [], "list_basis": {}})
    assert "cannot_answer" in answer(older, "How fast are transfers?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[8,128]|bf16[]|token[]", [4096, 2, 0]),
        ("(s4[3]{0:T(8)}, pred[5])", [2, 5]),
        ("opaque[]", [None]),
        ("", []),
    ],
)
def test_bytes_of_arrays(text, expected):
    assert array_bytes(text) == expected
