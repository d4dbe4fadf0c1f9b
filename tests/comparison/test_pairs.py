"""Pairs of synthetic captures: what is no change gives 0, what is one is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_pairs import PROGRAM, Work, capture, changed, with_work, without
from marin_profile.comparison import compare
from marin_profile.comparison.model import Comparison, OpChange
from marin_profile.schema import ProfileSummary

BEFORE = capture()


def deltas(value: Any) -> Iterator[float]:
    """Every delta anywhere in a comparison."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("delta_by_pass", "gross") and inner is not None:
                yield from inner.values()
            elif key == "delta" and inner is not None:
                yield inner
            else:
                yield from deltas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from deltas(inner)


def check_sums(found: Comparison) -> None:
    """Every split sums to the target, in whole picoseconds."""
    assert found.target is not None
    assert found.attribution is not None
    target = round((found.target.delta or 0.0) * 1e6)
    for name in ("ledger", "families", "headline", "regions", "ops"):
        split = getattr(found.attribution, name)
        rows = [*split.rows, *([split.others] if split.others else [])]
        assert sum(round((row.delta or 0.0) * 1e6) for row in rows) == target, name
    for row in (*found.attribution.headline.rows, *found.attribution.regions.rows, *found.regions):
        if row.gross is not None:
            parts = [round(part * 1e6) for part in row.gross.model_dump().values()]
            assert sum(parts) == round((row.delta or 0.0) * 1e6)


def row_of(found: Comparison, match: str) -> OpChange:
    assert found.attribution is not None
    (row,) = [row for row in found.attribution.ops.rows if row.match == match]
    return row


def by_name(rows: Any) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {row.name: (row.before, row.after, row.delta) for row in rows}


# --- no change ---------------------------------------------------------------------------------

SAME_SPEED: dict[str, dict[str, Any]] = {
    "renumbered": {"renumber": lambda number: 57 - 3 * number},
    "re-hashed": {"module": "jit_step(18446744073709551615)"},
    "one more step": {"steps": 6},
    "many more steps": {"steps": 40},
    "reordered": {"shuffle": 11},
    "later": {"first": 12_345},
    "other launches": {"launch": 1},
    "all of it": {
        "renumber": lambda number: number + 1000,
        "module": "jit_step(8)",
        "steps": 9,
        "shuffle": 5,
        "warmup_steps": 2,
        "first": 77,
    },
}


@pytest.mark.parametrize("options", SAME_SPEED.values(), ids=SAME_SPEED)
@pytest.mark.parametrize("top_k", [3, 100])
def test_no_false_regression(options, top_k):
    found = compare(BEFORE, capture(**options), top_k=top_k)
    assert set(deltas(found.model_dump(by_alias=True))) == {0.0}
    assert found.attribution is not None
    assert found.attribution.ops.rest.before == found.attribution.ops.rest.after == 0.0
    assert set(found.attribution.ops.matches) <= {"exact", "renumbered", "idle"}
    check_sums(found)


@pytest.mark.parametrize("devices", [3, 8])
def test_more_devices_that_do_the_same_are_no_regression(devices):
    found = compare(BEFORE, capture(devices=devices))
    assert set(deltas(found.model_dump(by_alias=True))) == {0.0}
    assert [caveat.about for caveat in found.comparability.blocking] == ["devices"]


def test_a_slow_warm_up_step_changes_nothing():
    slow = capture(steps=6, warmup_steps=2)
    found = compare(capture(steps=4, warmup_steps=1), slow)
    assert set(deltas(found.model_dump(by_alias=True))) == {0.0}


def test_one_step_on_each_side():
    one = capture(steps=1)
    found = compare(one, capture(steps=1, renumber=lambda number: number + 5, module="jit_step(9)"))
    assert found.target is not None
    assert (found.target.basis, found.target.launch_included) == ("execution", True)
    # The execution: 85 us from the first op to the last, 2 us launch before and 1 after.
    assert (found.target.before, found.target.delta) == (88.0, 0.0)
    assert set(deltas(found.model_dump(by_alias=True))) == {0.0}


def test_same_summaries_same_bytes():
    after = capture(changed("fusion", 2, length=25))
    assert compare(BEFORE, after).to_json() == compare(BEFORE, after).to_json()
    again = capture(changed("fusion", 2, length=25), shuffle=3)
    assert compare(BEFORE, after).to_json() == compare(BEFORE, again).to_json()


# --- changes by hand ---------------------------------------------------------------------------


def test_a_slower_op_by_hand():
    """The attention takes 5 us longer into the idle time behind it, and steps follow each other 4
    us later."""
    slower = [
        work if work.start < 30 else Work(**{**vars(work), "start": work.start + 5})
        for work in changed("fusion", 2, length=25)
    ]
    found = compare(BEFORE, capture(slower, period=104, steps=7))
    check_sums(found)
    assert found.target is not None
    assert found.attribution is not None
    assert (found.target.before, found.target.after, found.target.delta) == (100.0, 104.0, 4.0)
    assert found.target.median_measure == "period"
    assert found.target.median is not None
    assert found.target.median.delta == 4.0
    ledger = by_name(found.attribution.ledger.rows)
    assert ledger["compute"] == (51.0, 56.0, 5.0)
    assert ledger["idle"] == (32.0, 31.0, -1.0)
    assert ledger["exposed_communication"] == (10.0, 10.0, 0.0)
    assert found.attribution.regions.rows[0].name == "jit(step)=>layers=>attention"
    assert found.attribution.regions.rows[0].delta == 5.0
    assert found.attribution.regions.rows[0].delta_by_pass == {"forward": 5.0}
    assert by_name(found.attribution.families.rows)["matmul"] == (30.0, 35.0, 5.0)
    assert found.attribution.ops.rows[0].before_op is not None
    assert found.attribution.ops.rows[0].before_op.scope == "jit(step)/layers/attention/dot_general"
    assert found.attribution.ops.rows[0].share_of_target == 1.25
    regions = {row.path: row.delta for row in found.regions}
    assert regions["jit(step)=>layers"] == 5.0
    steps = {(row.measure, row.statistic): row.delta for row in found.step_time}
    assert steps["period", "median"] == 4.0
    assert steps["duration", "p90"] == 5.0


def test_hidden_time_costs_nothing():
    """The fusion that hides 5 us of the all-reduce starts 3 us earlier and ends as before."""
    found = compare(BEFORE, capture(changed("fusion", 4, start=57, length=8)))
    check_sums(found)
    assert found.attribution is not None
    assert found.target is not None
    assert found.target.delta == 0.0
    ledger = by_name(found.attribution.ledger.rows)
    assert ledger["compute"][2] == 3.0
    assert ledger["exposed_communication"][2] == -3.0
    (row,) = found.collectives
    assert (row.exposed.delta, row.overlapped.delta) == (-3.0, 3.0)
    # No target, so no shares of it.
    assert {row.share_of_target for row in found.attribution.ops.rows} == {None}


def test_a_new_collective_is_named_and_is_in_the_rest():
    extra = Work("all-reduce", 9, 90, 7, "all-reduce", "jit(step)/layers/extra/psum")
    found = compare(BEFORE, capture(with_work(extra), period=107))
    check_sums(found)
    assert found.attribution is not None
    row = row_of(found, "only_after")
    assert found.attribution.ops.rows[0] == row
    assert (row.before, row.after, row.delta, row.share_of_target) == (None, 7.0, 7.0, 1.0)
    assert row.before_op is None
    assert row.after_op is not None
    assert row.after_op.count == 1.0
    assert found.attribution.ops.rest.delta == 7.0
    assert found.attribution.regions.rows[0].name == "jit(step)=>layers=>extra"
    assert found.attribution.regions.rows[0].before is None
    assert found.collectives[0].exposed.delta == 7.0


def test_what_is_gone_is_only_before():
    found = compare(BEFORE, capture(without("fusion", 1)))
    check_sums(found)
    row = row_of(found, "only_before")
    assert (row.before, row.after, row.delta) == (10.0, None, -10.0)


def test_another_kernel_of_the_same_scope():
    after = capture(
        changed(
            "fusion",
            2,
            name="flash_kernel_128",
            category="custom-call",
            scope="jit(step)/jvp(layers)/attention/pallas_call",
            length=11,
            shape="f32[9]",
        )
    )
    found = compare(BEFORE, after)
    check_sums(found)
    row = row_of(found, "replaced")
    assert (row.before, row.after) == (20.0, 11.0)
    assert row.before_op is not None
    assert row.after_op is not None
    assert row.before_op.canonical_name == "fusion"
    assert row.after_op.canonical_name == "flash_kernel_128"
    assert found.attribution.ops.rest.delta == 0.0
    assert found.attribution.regions.rows[0].name == "jit(step)=>layers=>attention"


def test_gaps_by_hand():
    """From the loop on a step's work comes 3 us later, nearer to the next step."""
    later = [Work(**{**vars(work), "start": work.start + 3}) for work in PROGRAM[2:]]
    found = compare(BEFORE, capture([*PROGRAM[:2], *later]))
    rows = {row.name: (row.before, row.after, row.before_count) for row in found.gaps if row.delta}
    # Before the first op of a step ("fusion" as well) 15 us were idle.
    assert rows == {"while": (1.0, 4.0, 1.0), "fusion": (15.0, 12.0, 1.0)}


LENGTHS = st.lists(st.integers(1, 4), min_size=len(PROGRAM), max_size=len(PROGRAM))


@settings(deadline=None, max_examples=15)
@given(LENGTHS, LENGTHS, st.integers(100, 130), st.integers(2, 5))
def test_any_two_programs_sum_up_and_swap(one, two, period, steps):
    """Ops at least 5 us apart, of 1 to 4 quarters of their length."""

    def program(quarters: list[int]) -> list[Work]:
        return [
            Work(**{**vars(work), "length": work.length * quarter / 4})
            for work, quarter in zip(PROGRAM, quarters, strict=True)
        ]

    before = capture(program(one), devices=1)
    after = capture(program(two), devices=1, period=period, steps=steps)
    there, back = compare(before, after, top_k=4), compare(after, before, top_k=4)
    check_sums(there)
    check_sums(back)
    assert there.target is not None
    assert back.target is not None
    assert there.target.delta == -(back.target.delta or 0.0)
    assert there.attribution is not None
    assert back.attribution is not None
    terms = {row.name: row.delta for row in back.attribution.ledger.rows}
    for row in there.attribution.ledger.rows:
        assert row.delta == -(terms[row.name] or 0.0)


def test_top_k_cuts_and_sums_what_it_cut():
    after = capture(changed("fusion", 2, length=21))
    whole, cut = compare(BEFORE, after, top_k=100), compare(BEFORE, after, top_k=2)
    assert whole.attribution is not None
    assert cut.attribution is not None
    assert cut.attribution.ops.rows == whole.attribution.ops.rows[:2]
    assert cut.attribution.ops.total_rows == len(whole.attribution.ops.rows)
    assert cut.attribution.ops.others is not None
    left = whole.attribution.ops.rows[2:]
    assert cut.attribution.ops.others.before == sum(row.before or 0.0 for row in left)
    assert whole.attribution.ops.others is None
    assert len(cut.gaps) == len(cut.regions) == 2
    check_sums(cut)


def test_step_classes_are_compared_like_with_like():
    def mixed(heavy: float, every: int) -> ProfileSummary:
        summary = capture(steps=13)
        steps = [
            step.model_copy(
                update={
                    "step_class": "heavy" if step.index % every == 0 else "light",
                    "duration": heavy if step.index % every == 0 else 85.0,
                }
            )
            for step in summary.step_time.steps
        ]
        from marin_profile.schema import StepClass

        classes = [
            StepClass(
                name=name,
                count=1,
                fraction_of_steady=0.5,
                duration_stats=summary.step_time.steady_state_steps,
            )
            for name in ("light", "heavy")
        ]
        time = summary.step_time.model_copy(update={"steps": steps, "classes": classes})
        return summary.model_copy(update={"step_time": time})

    found = compare(mixed(200.0, 4), mixed(200.0, 3))
    rows = {
        (row.step_class, row.statistic): (row.before, row.after, row.before_count, row.after_count)
        for row in found.step_time
        if row.measure == "duration" and row.step_class
    }
    assert rows["light", "median"] == (85.0, 85.0, 9, 8)
    assert rows["heavy", "median"] == (200.0, 200.0, 3, 4)


# --- what cannot be split ----------------------------------------------------------------------


def test_without_an_account_nothing_is_attributed():
    old = BEFORE.model_copy(update={"step_account": None})
    found = compare(old, BEFORE)
    assert found.target is None
    assert found.attribution is None
    assert found.cannot_attribute is not None
    assert found.cannot_attribute.startswith("The before summary has no step account")
    assert found.step_time


def test_a_summary_that_contradicts_itself_is_refused():
    from marin_profile.base.errors import BrokenInputError

    groups = [
        group.model_copy(update={"owned_duration": (group.owned_duration or 0.0) + 1.0})
        for group in BEFORE.op_groups
    ]
    with pytest.raises(BrokenInputError, match="after summary's op_groups own"):
        compare(BEFORE, BEFORE.model_copy(update={"op_groups": groups}))


def test_the_launch_counts_only_where_both_sides_have_it():
    one = capture(steps=1)
    assert one.step_account is not None
    silent = one.step_account.model_copy(
        update={
            "launch_duration": None,
            "total_duration": one.step_account.total_duration
            - (one.step_account.launch_duration or 0.0),
        }
    )
    found = compare(one, one.model_copy(update={"step_account": silent}))
    assert found.target is not None
    assert (found.target.launch_included, found.target.delta) == (False, 0.0)
    assert found.attribution is not None
    assert "(launch)" not in by_name(found.attribution.ops.rows)
