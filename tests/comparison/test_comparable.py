"""Caveats about a comparison: each with both values."""

from __future__ import annotations

from typing import Any

import pytest

from builders_pairs import PROGRAM, Work, capture
from builders_summary import (
    STEPS,
    build_summary,
    build_v1_summary,
    group,
    ledger,
    no_steps,
    step,
    step_time,
)
from marin_profile.comparison import comparability
from marin_profile.schema import Collective, OpGroup, ProfileSummary


def other(**changes: Any) -> ProfileSummary:
    """The summary of another capture."""
    summary = build_summary()
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ef" * 32})
    return summary.model_copy(update={"trace_provenance": provenance, **changes})


def updated(field: str, **changes: Any) -> ProfileSummary:
    return other(**{field: getattr(build_summary(), field).model_copy(update=changes)})


def test_two_captures_of_one_set_up():
    found = comparability(build_summary(), other())
    assert (found.same_capture, found.caveats, found.comparable) == (False, [], True)


def test_the_same_capture():
    found = comparability(build_summary(), build_summary())
    assert (found.same_capture, found.comparable) == (True, False)


def test_another_run_commit_and_config_are_no_caveat():
    before = updated("run_metadata", git_sha="a", config_hash="b")
    after = updated("run_metadata", run_id="run8", git_sha="b", config_hash="c")
    assert comparability(before, after).caveats == []
    assert comparability(build_summary(), updated("run_metadata", run_id="run8")).caveats == []


def test_what_one_side_does_not_know_is_one_sentence():
    before = updated("run_metadata", git_sha="a1b2", hardware_type=None)
    after = updated("run_metadata", config_hash="c3", num_devices=None, hardware_type=None)
    (caveat,) = comparability(before, after).caveats
    assert (caveat.about, caveat.severity) == ("facts", "note")
    assert caveat.sentence == (
        "Not known on both sides: hardware, number of devices (2 before, not known after), "
        "configuration (not known before, c3 after), commit (a1b2 before, not known after)."
    )


@pytest.mark.parametrize(
    ("after", "about", "values"),
    [
        (updated("run_metadata", hardware_type="TPU v5"), "hardware", ("TPU v6 Lite", "TPU v5")),
        (updated("run_metadata", num_devices=4), "devices", ("2 before", "4 after")),
        (updated("step_time", source="module"), "step_source", ("annotation", "module")),
        (
            updated("time_breakdown", duration_basis="exclusive_per_track"),
            "duration_basis",
            ("device_ledger", "exclusive_per_track"),
        ),
        (updated("trace_overview", suspected_truncation=True), "truncation", ("after trace",)),
        (other(step_time=no_steps()), "steps", ("after capture shows no steps",)),
    ],
)
def test_what_blocks(after, about, values):
    found = comparability(build_summary(), after)
    (caveat,) = [one for one in found.blocking if one.about == about]
    assert all(value in caveat.sentence for value in values)
    assert not found.comparable
    # Seen from the other side as well.
    assert about in {one.about for one in comparability(after, build_summary()).blocking}


@pytest.mark.parametrize(
    ("after", "about", "values"),
    [
        (updated("run_metadata", hardware_type=None), "facts", ("TPU v6 Lite", "not known")),
        (updated("run_metadata", num_hosts=2), "hosts", ("1 before", "2 after")),
        (updated("step_time", annotation="step"), "step_source", ("train", "step")),
        (updated("step_time", warmup_steps_ignored=3), "window", ("1 before", "3 after")),
        (
            other(step_time=step_time(steps=[step(0), *map(step, range(1, 3 * STEPS))])),
            "window",
            ("4 before", "12 after"),
        ),
        (other(step_time=step_time(steps=[step(0)])), "window", ("4 before", "1 after")),
        (updated("capture", tool_version="0.2.0"), "tool", ("0.1.0", "0.2.0")),
        (
            other(source_format="perfetto_trace_json"),
            "format",
            ("xplane_pb", "perfetto_trace_json"),
        ),
        (updated("coverage", scope_attributed_share=0.5), "coverage", ("80.0%", "50.0%")),
        (updated("coverage", empty_devices=["/device:TPU:3"]), "coverage", ("0 before", "1 after")),
    ],
)
def test_what_is_noted(after, about, values):
    found = comparability(build_summary(), after)
    assert found.blocking == []
    assert found.comparable
    sentences = [one.sentence for one in found.caveats if one.about == about]
    assert any(all(value in sentence for value in values) for sentence in sentences)


def test_one_more_step_is_no_caveat():
    after = other(step_time=step_time(steps=[step(0), *map(step, range(1, STEPS + 1))]))
    assert comparability(build_summary(), after).caveats == []


def test_older_summaries_say_what_they_lack():
    found = comparability(build_v1_summary(), build_v1_summary())
    assert not found.same_capture
    assert "capture" in {caveat.about for caveat in found.caveats}


def test_a_profile_without_device_work():
    summary = build_summary()
    empty = summary.time_breakdown.model_copy(update={"total_duration": 0.0})
    after = other(device_ledger=[], time_breakdown=empty)
    assert "host_only" in {caveat.about for caveat in comparability(summary, after).blocking}


# --- another program, other shapes -------------------------------------------------------------


def sized(batch: int, *, only: int = len(PROGRAM), length: float = 1) -> list[Work]:
    """The program with `batch` rows in the shapes of its first `only` ops, each of which takes
    `length` times as long."""
    return [
        Work(**{**vars(work), "length": work.length * length, "shape": f"f32[{batch},128]{{1,0}}"})
        if at < only
        else work
        for at, work in enumerate(PROGRAM)
    ]


def test_a_doubled_batch_by_hand():
    """100 us for 8 rows are 12.5 us each, 194 us for 16 are 12.125: 3 % less."""
    found = comparability(capture(sized(8)), capture(sized(16), period=194))
    (caveat,) = found.blocking
    assert caveat.about == "shapes"
    assert caveat.sentence == (
        "The 1st dimension, as a rule the batch, of most shapes differs: 8 before, 16 after (100% "
        "of op time); for each one in it a step takes 12.50 us before, 12.12 us after (-3.0%)."
    )
    assert found.shapes is not None
    assert (found.shapes.dimension, found.shapes.before, found.shapes.after) == (1, 8, 16)
    assert found.shapes.per_element is not None
    assert found.shapes.per_element.before == 12.5
    assert found.shapes.per_element.after == 12.125
    assert found.shapes.per_element.relative == -0.03
    back = comparability(capture(sized(16), period=194), capture(sized(8)))
    assert back.shapes is not None
    assert (back.shapes.before, back.shapes.after, back.shapes.share) == (16, 8, 1.0)


def shaped(*shapes: str) -> ProfileSummary:
    """One op per shape, in regions of their own, of 60, 30 and 10 us a step."""
    lengths = (60.0, 30.0, 10.0)
    groups = [
        group(
            "fusion", "compute", 80 * length, scope=f"jit(step)/part{at}/dot", shape_signature=one
        )
        for at, (one, length) in enumerate(zip(shapes, lengths, strict=True))
    ]
    return other(op_groups=groups)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # One dimension by 3/2: the place and sizes of what takes longest.
        (
            ("f32[4,256]", "bf16[256,8]|f32[4,256]", "f32[7]"),
            ("f32[4,384]", "bf16[384,8]|f32[4,384]", "f32[7]"),
            (2, 256, 384, 0.9),
        ),
        # Unlike factors: the larger part counts.
        (("f32[4]", "f32[4]", "f32[4]"), ("f32[8]", "f32[12]", "f32[12]"), (1, 4, 8, 0.6)),
        # Down as well as up, all arrays of an op together.
        (
            ("f32[6]", "f32[6]|f32[6,2]", "f32[6]"),
            ("f32[6]", "f32[3]|f32[3,2]", "f32[6]"),
            (1, 6, 3, 0.3),
        ),
        # Too little of the time, though all that changed.
        (("f32[4]", "f32[4]", "f32[4]"), ("f32[4]", "f32[4]", "f32[8]"), None),
        # Two dimensions, another rank, other dtypes, a dimension of 0, no shape known.
        (("f32[4,4]", "f32[4]", "f32[4]"), ("f32[8,8]", "f32[4]", "f32[4]"), None),
        (("f32[4]", "f32[4]", "f32[4]"), ("f32[8,1]", "f32[4]", "f32[4]"), None),
        (("f32[4]", "f32[4]", "f32[4]"), ("bf16[4]", "bf16[4]", "bf16[4]"), None),
        (("f32[0]", "f32[4]", "f32[4]"), ("f32[8]", "f32[4]", "f32[4]"), None),
        (("f32[4]|f32[4]", "f32[4]", "f32[4]"), ("f32[8]", "f32[4]", "f32[4]"), None),
        (("f32[4]|f32[4]", "f32[4]", "f32[4]"), ("f32[8]|f32[12]", "f32[4]", "f32[4]"), None),
    ],
)
def test_which_shapes_are_scaled(before, after, expected):
    found = comparability(shaped(*before), shaped(*after)).shapes
    assert (found and (found.dimension, found.before, found.after, found.share)) == expected


def test_three_factors_are_none():
    """Of 100 us, 40, 35 and 25 by factors of their own: none has half of what changed."""

    def sides(*sizes: int) -> ProfileSummary:
        return other(
            op_groups=[
                group("fusion", "compute", time, scope=f"a/b{at}", shape_signature=f"f32[{size}]")
                for at, (size, time) in enumerate(zip(sizes, (40.0, 35.0, 25.0), strict=True))
            ]
        )

    assert comparability(sides(4, 4, 4), sides(8, 12, 16)).shapes is None
    found = comparability(sides(4, 4, 4), sides(8, 8, 16)).shapes
    assert found is not None
    assert found.share == 0.75


def test_of_two_factors_with_as_much_time_the_smaller():
    def sides(*sizes: int) -> ProfileSummary:
        return other(
            op_groups=[
                group("fusion", "compute", 50.0, scope=f"a/b{at}", shape_signature=f"f32[{size}]")
                for at, size in enumerate(sizes)
            ]
        )

    found = comparability(sides(6, 6), sides(18, 3)).shapes
    assert found is not None
    assert (found.before, found.after, found.share) == (6, 3, 0.5)


def test_half_of_what_changed_and_a_quarter_of_all_is_enough():
    """30 of 100 us have one factor; beside them 30 or 10 us changed by another."""
    one = shaped("f32[4]", "f32[4]", "f32[4]")
    assert comparability(one, shaped("f32[4]", "f32[8]", "f32[12]")).shapes is not None
    assert comparability(one, shaped("f32[4]", "f32[8]", "f32[4]")).shapes is not None


def test_ops_without_scope_are_paired_by_the_factor():
    """Two fusions on each side, alike in all but their shapes."""

    def sides(rows: int) -> ProfileSummary:
        shapes = f"f32[{rows},64]", f"f32[{rows},32]"
        return other(op_groups=[group("fusion", "compute", 8.0, shape_signature=s) for s in shapes])

    found = comparability(sides(8), sides(32)).shapes
    assert found is not None
    assert (found.dimension, found.before, found.after, found.share) == (1, 8, 32, 1.0)


def renamed(name: str, region: str, shape: str, time: float = 100.0) -> OpGroup:
    scope = f"jit(step)/{region}/dot_general"
    return group(name, "compute", time, scope=scope, shape_signature=shape)


@pytest.mark.parametrize(
    "after",
    [
        # Alike in name without digits and shape, or in region whatever the program is called.
        renamed("gemm_128", "tower", "f32[8]"),
        renamed("kernel", "mlp/up", "f32[9]"),
        group("k", "compute", 1.0, scope="jit(new)/mlp/mul", shape_signature="f32[9]"),
    ],
)
def test_one_program(after):
    before = other(op_groups=[renamed("gemm_64", "mlp", "f32[8]")])
    assert comparability(before, other(op_groups=[after])).caveats == []


def test_another_program():
    """9 of 100 us before and 5 after are in common; with 10 of 100 it is one program."""

    def sides(common: float) -> tuple[ProfileSummary, ProfileSummary]:
        shared = group("copy", "compute", common, shape_signature="f32[1]")
        rest = renamed("fusion", "mlp", "f32[8]", 100 - common)
        less = group("copy", "compute", 5.0, shape_signature="f32[1]")
        after = renamed("conv", "stem", "f32[3,3]", 95.0)
        return other(op_groups=[shared, rest]), other(op_groups=[less, after])

    (caveat,) = comparability(*sides(9.0)).blocking
    assert caveat.about == "program"
    assert caveat.sentence == (
        "The two are of different programs; the share of op time whose ops the other side has too: "
        "9% before, 5% after."
    )
    assert comparability(*sides(10.0)).caveats == []


# --- another sharding, fewer devices -----------------------------------------------------------


def collective(kind: str, size: int | None, groups: int | None) -> Collective:
    return Collective(
        collective=kind,
        group_size=size,
        groups=groups,
        count=1,
        duration=1.0,
        exposed_duration=1.0,
        overlapped_duration=0.0,
    )


def test_another_mesh():
    """A kind that one side does not have, or whose groups are not known, says nothing."""
    before = build_summary(
        collectives=[
            collective("all-reduce", 8, 1),
            collective("all-gather", 2, None),
            collective("all-to-all", 4, 2),
            collective("broadcast", None, None),
        ]
    )
    after = other(
        collectives=[
            collective("all-reduce", 4, 2),
            collective("all-reduce", 2, 4),
            collective("all-gather", 4, None),
            collective("all-to-all", 4, 2),
            collective("reduce-scatter", 4, 2),
        ]
    )
    found = comparability(before, after)
    (caveat,) = found.caveats
    assert (caveat.about, caveat.severity, found.comparable) == ("sharding", "note", True)
    assert caveat.sentence == (
        "Who meets in collectives differs: all-gather groups of 2 before, groups of 4 after; "
        "all-reduce 1 group of 8 before, 4 groups of 2 and 2 groups of 4 after."
    )


def test_a_device_that_was_not_captured():
    """The run has as many devices as before, but one host's are missing from the capture."""
    devices = [(host, f"/device:TPU:{at}") for host in ("h0", "h1") for at in range(3)]

    def seen(*rows: tuple[str, str]) -> ProfileSummary:
        return other(device_ledger=[ledger(device, host=host) for host, device in rows])

    all_of_them = build_summary(device_ledger=seen(*devices).device_ledger)
    found = comparability(all_of_them, seen(*devices[:2]))
    (caveat,) = found.caveats
    assert (caveat.about, caveat.severity, found.comparable) == ("devices", "note", True)
    assert caveat.sentence == (
        "The after capture lacks h0 /device:TPU:2, h1 /device:TPU:0, h1 /device:TPU:1 and 1 more; "
        "devices captured: 6 before, 2 after."
    )
    (back,) = comparability(seen(*devices[:5]), seen(*devices)).caveats
    assert back.sentence == (
        "The before capture lacks h1 /device:TPU:2; devices captured: 5 before, 6 after."
    )
