"""The order of differences, by hand."""

from __future__ import annotations

from marin_profile.comparison.hlo.order import in_order
from marin_profile.comparison.hlo.rules import KINDS
from marin_profile.comparison.model import HloDifference


def row(
    kind: str, before: float, after: float, *, noise: bool | None = None, program: str = "jit_f"
) -> HloDifference:
    return HloDifference(
        name=kind,
        kind=kind,
        sentence="",
        program=program,
        before=before,
        after=after,
        delta=after - before,
        noise=noise,
        num_before_ops=1,
        num_after_ops=1,
        places=1,
    )


def order(*rows: HloDifference) -> list[tuple[str, str | None]]:
    return [(one.kind, one.may_follow_from) for one in in_order(rows)]


def test_the_largest_change_first():
    assert order(row("dtype", 5, 9), row("shape", 1, 50)) == [("shape", None), ("dtype", None)]


def test_what_is_told_from_noise_first_then_causes():
    assert order(
        row("fusion_split", 0, 50, noise=True),
        row("dtype", 5, 9, noise=True, program="jit_g"),
        row("shape", 1, 2, noise=False, program="jit_g"),
    ) == [("shape", None), ("dtype", None), ("fusion_split", None)]


def test_a_cause_stands_ahead_of_what_may_follow_from_it():
    """Less is recomputed: what is kept instead is copied, which takes longer."""
    assert order(row("loop_copy", 0, 76), row("remat_off", 9, 8), row("shape", 1, 2)) == [
        ("remat_off", None),
        ("loop_copy", "remat_off"),
        ("shape", None),
    ]


def test_what_takes_next_to_nothing_is_no_cause():
    assert order(row("op_added", 0, 50), row("dtype", 1, 2)) == [
        ("op_added", None),
        ("dtype", None),
    ]


def test_a_cause_is_of_the_same_program():
    assert order(row("op_added", 0, 50), row("dtype", 20, 21, program="jit_g")) == [
        ("op_added", None),
        ("dtype", None),
    ]


def test_a_cause_that_stands_first_stays_there():
    assert order(row("dtype", 20, 90), row("fusion_split", 0, 5), row("layout_copy", 0, 1)) == [
        ("dtype", None),
        ("fusion_split", "dtype"),
        ("layout_copy", "dtype"),
    ]


def test_every_kind_has_a_place():
    assert [
        kind
        for kind, _ in order(
            *(row(kind, 1, 2, noise=True, program=kind) for kind in reversed(KINDS))
        )
    ] == [*KINDS]
