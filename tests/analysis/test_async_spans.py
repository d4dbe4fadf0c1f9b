"""Async operations from the start of a start to the end of its done."""

import pytest

from builders_xspace import US, Space, computation, hlo_proto, instruction
from marin_profile.analysis.async_spans import find_spans


def spans(space: Space, device: int = 0) -> list[tuple[str, int, int]]:
    """(kind, start, end) in us of every span."""
    found = space.devices()
    columns = find_spans(found, found.devices[device])
    return [
        (found.facts[op].kind, start // US, end // US)
        for op, start, end in zip(
            columns.op.tolist(), columns.start.tolist(), columns.end.tolist(), strict=True
        )
    ]


def test_a_pair_is_one_span():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("all-gather-start.3", 0, 1, category="all-gather-start")
    tpu.op("fusion.1", 1, 80, category="loop fusion")
    tpu.op("all-gather-done.3", 81, 19, category="all-gather-done")
    assert spans(space) == [("all-gather", 0, 100)]
    part = space.analyse()
    (row,) = part.collectives.totals
    assert (row.kind, row.count, row.duration // US) == ("all-gather", 1, 100)
    # The fusion hides 80 of the 100.
    assert (row.overlapped // US, row.exposed // US) == (80, 20)
    ledger = part.devices[0].capture
    assert ledger.compute // US == 80
    assert ledger.overlapped_communication // US == 80
    assert ledger.exposed_communication // US == 20
    assert ledger.idle == 0


def test_repeated_and_interleaved_pairs():
    space = Space()
    tpu = space.tpu(0)
    for base in (0, 100):
        tpu.op("copy-start.1", base, 1).op("copy-start.2", base + 1, 1)
        tpu.op("copy-done.1", base + 20, 5).op("copy-done.2", base + 40, 5)
    assert [row[1:] for row in spans(space)] == [(0, 25), (1, 45), (100, 125), (101, 145)]


def test_halves_that_the_capture_cut_make_no_span():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("copy-done.1", 0, 5)
    tpu.op("copy-start.1", 10, 1).op("copy-done.1", 20, 5)
    tpu.op("copy-start.1", 30, 1)
    assert [row[1:] for row in spans(space)] == [(10, 25)]


def test_the_device_clock_counts():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("copy-start.1", 0, 0, device_start=1000, device_duration=2)
    tpu.op("copy-done.1", 50, 0, device_start=1060, device_duration=7)
    assert [row[1:] for row in spans(space)] == [(0, 67)]


def test_a_pair_by_operand_whatever_the_numbers():
    space = Space()
    tpu = space.tpu(0)
    start = "%copy-start.9 = (f32[2]{0:S(5)}, f32[2]{0}, u32[]) copy-start(f32[2]{0} %x)"
    done = (
        "%copy-done.4 = f32[2]{0:S(5)} copy-done((f32[2]{0:S(5)}, f32[2]{0}, u32[]) %copy-start.9)"
    )
    tpu.op("copy-start.9", 0, 1, long_name=start).op("copy-done.4", 10, 5, long_name=done)
    assert spans(space) == [("device_to_host", 0, 15)]


def test_a_pair_by_operands_of_the_hlo_proto():
    space = Space()
    space.hlo(
        7,
        hlo_proto(
            computation(2, 21, instruction("inner", "all-gather", id=21)),
            computation(
                1,
                12,
                instruction("ag-begin", "async-start", id=11, calls=[2]),
                instruction("ag-end", "async-done", id=12, operands=[11], calls=[2]),
            ),
        ),
    )
    tpu = space.tpu(0)
    tpu.op("ag-begin", 0, 1, program_id=7).op("ag-end", 10, 5, program_id=7)
    assert spans(space) == [("all-gather", 0, 15)]


def test_pairs_of_two_programs_do_not_mix():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("copy-start.1", 0, 1, program_id=1).op("copy-start.1", 5, 1, program_id=2)
    tpu.op("copy-done.1", 20, 5, program_id=1).op("copy-done.1", 30, 5, program_id=2)
    assert [row[1:] for row in spans(space)] == [(0, 25), (5, 35)]


@pytest.mark.parametrize(
    ("hlo_op", "facts", "expected"),
    [
        ("slice-start.3", {"hlo_category": "async-start"}, "unknown_transfer"),
        ("copy-done.2", {}, "unknown_transfer"),
        ("all-gather-start.1", {}, "all-gather"),
    ],
)
def test_the_async_line_serves_where_the_op_line_has_no_pair(hlo_op, facts, expected):
    """Its events are all named alike: the HLO op tells the kind."""
    space = Space()
    tpu = space.tpu(0, device_clock_shift=500)
    tpu.op("fusion.1", 0, 10, category="loop fusion")
    tpu.op("fusion.2", 40, 10, category="loop fusion")
    tpu.async_op(hlo_op, 5, 30, **facts)
    assert spans(space) == [(expected, 5, 35)]


def test_the_async_line_does_not_repeat_a_pair():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("copy-start.2", 0, 1).op("copy-done.2", 10, 5)
    tpu.async_op("copy-done.2", 0, 14)
    assert [row[1:] for row in spans(space)] == [(0, 15)]


def test_an_async_copy_is_exposed_where_nothing_covers_it():
    space = Space()
    tpu = space.tpu(0)
    text = "(f32[2]{0:S(5)}, f32[2]{0}, u32[])"
    tpu.op("copy-start.1", 0, 1, long_name=f"%copy-start.1 = {text} copy-start(f32[2]{{0}} %x)")
    tpu.op("fusion.1", 1, 60, category="loop fusion")
    tpu.op(
        "copy-done.1",
        61,
        39,
        long_name=f"%copy-done.1 = f32[2]{{0:S(5)}} copy-done({text} %copy-start.1)",
    )
    ledger = space.analyse().devices[0].capture
    assert ledger.exposed_transfer // US == 40
    assert ledger.transfer_by_kind == {"device_to_host": 40 * US}
    assert (ledger.compute // US, ledger.idle) == (60, 0)


def test_several_of_one_name_in_flight():
    """First in, first out: s0 s1 d0 d1."""
    space = Space()
    tpu = space.tpu(0)
    for at in (0, 50):
        tpu.op("all-gather-start.1", at, 1, category="all-gather-start")
    for at in (100, 150):
        tpu.op("all-gather-done.1", at, 1, category="all-gather-done")
    assert spans(space) == [("all-gather", 0, 101), ("all-gather", 50, 151)]


def test_a_start_carried_through_a_loop_is_found_by_name():
    space = Space()
    tpu = space.tpu(0)
    for at in (0, 100, 200):
        tpu.op("collective-permute-start.3", at, 1, category="collective-permute-start")
        tpu.op(
            "collective-permute-done.3",
            at + 90,
            1,
            category="collective-permute-done",
            long_name="%collective-permute-done.3 = f32[8] collective-permute-done("
            "(f32[8], f32[8], u32[], u32[]) %get-tuple-element.5)",
        )
    assert [row[1:] for row in spans(space)] == [(0, 91), (100, 191), (200, 291)]
