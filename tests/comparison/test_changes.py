"""What a comparison says about known changes, one by one and all at once; every row by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from builders_pairs import Work, capture
from marin_profile.comparison import compare
from marin_profile.comparison.model import Comparison, Split
from marin_profile.reports.comparison import render_comparison
from marin_profile.schema import ProfileSummary

# Per step of 300 us and device: 190 us of work, 110 idle.
STEP = 300
EMBED = Work("fusion", 1, 2, 10, scope="jit(train_step)/embed/gather")
ATTENTION_0 = Work("fusion", 2, 20, 40, scope="jit(train_step)/jvp(block_0)/attn/dot_general")
MLP_0 = Work("fusion", 3, 70, 30, scope="jit(train_step)/jvp(block_0)/mlp/dot_general")
SUM_0 = Work(
    "all-reduce", 1, 110, 20, "all-reduce", "jit(train_step)/transpose(jvp(block_0))/mlp/psum"
)
ATTENTION_1 = Work(
    "fusion", 4, 140, 40, scope="jit(train_step)/jvp(block_1)/attn/dot_general", shape="f32[9]"
)
MLP_1 = Work("fusion", 5, 190, 30, scope="jit(train_step)/jvp(block_1)/mlp/dot_general", shape="a")
LOSS = Work("copy_fusion", 6, 230, 20, scope="jit(train_step)/loss/reduce_sum")
PROGRAM = (EMBED, ATTENTION_0, MLP_0, SUM_0, ATTENTION_1, MLP_1, LOSS)
BEFORE = capture(PROGRAM, period=STEP)

# The changes.
GREW = replace(ATTENTION_0, length=48)  # + 20 %
GATHER = Work("all-gather", 1, 260, 15, "all-gather", "jit(train_step)/block_1/mlp/all_gather")
PARTS = (
    replace(MLP_0, length=22, name="dot"),
    Work("tanh", 8, 93, 12, scope="jit(train_step)/jvp(block_0)/mlp/tanh"),
)
SLOW = replace(ATTENTION_1, length=48)  # on one device of two: 4 us of mean


def changed(
    *new: Work, gone: Iterable[Work] = (), to: dict[Work, Work] | None = None
) -> list[Work]:
    kept = [(to or {}).get(work, work) for work in PROGRAM if work not in gone]
    return [*kept, *new]


def renamed(works: Iterable[Work]) -> list[Work]:
    return [
        replace(
            work,
            scope=work.scope.replace("train_step", "train_step_v2").replace("block_", "layer_"),
        )
        for work in works
    ]


def other_bytes(summary: ProfileSummary) -> ProfileSummary:
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    return summary.model_copy(update={"trace_provenance": provenance})


def moved(split: Split) -> list[tuple[str, float]]:
    """The rows that changed, in their order."""
    return [(row.name, row.delta) for row in split.rows if row.delta]


def ops(found: Comparison) -> list[tuple[str, str, float | None, float | None]]:
    return [
        (row.name, row.match, row.before, row.after)
        for row in found.attribution.ops.rows
        if row.delta
    ]


def deltas(found: Comparison) -> tuple[float, dict[str, float]]:
    """Of the target and the ledger."""
    return found.target.delta, dict(moved(found.attribution.ledger))


def gross(found: Comparison) -> dict[str, float]:
    return {name: part for name, part in found.attribution.ops.gross if part}


def test_one_op_took_a_fifth_longer():
    found = compare(BEFORE, capture(changed(to={ATTENTION_0: GREW}), period=308))
    assert deltas(found) == (8.0, {"compute": 8.0})
    assert ops(found) == [("fusion", "exact", 40.0, 48.0)]
    assert gross(found) == {"grown": 8.0}
    assert moved(found.attribution.headline) == [("jit(train_step)=>block_0=>attn", 8.0)]
    assert found.attribution.headline.rows[0].delta_by_pass == {"forward": 8.0}


def test_one_op_was_removed():
    found = compare(BEFORE, capture(changed(gone=[LOSS]), period=280))
    assert deltas(found) == (-20.0, {"compute": -20.0})
    assert ops(found) == [("copy_fusion", "only_before", 20.0, None)]
    assert gross(found) == {"removed": -20.0}
    assert moved(found.attribution.headline) == [("jit(train_step)=>loss", -20.0)]


def test_one_op_grew_and_another_was_removed():
    """In one region: +8 and -30 are two rows."""
    grew = replace(MLP_0, length=38)
    more = Work("exp", 7, 260, 30, scope="jit(train_step)/jvp(block_0)/mlp/exp")
    found = compare(
        capture([*PROGRAM, more], period=STEP),
        capture(changed(to={MLP_0: grew}), period=STEP - 22),
    )
    assert deltas(found) == (-22.0, {"compute": -22.0})
    assert ops(found) == [("exp", "only_before", 30.0, None), ("fusion", "exact", 30.0, 38.0)]
    (region,) = [row for row in found.attribution.headline.rows if row.delta]
    assert (region.name, region.delta) == ("jit(train_step)=>block_0=>mlp", -22.0)
    assert dict(region.gross) == {"added": 0.0, "removed": -30.0, "grown": 8.0, "shrunk": 0.0}


def test_a_new_collective():
    found = compare(BEFORE, capture(changed(GATHER), period=315))
    assert deltas(found) == (15.0, {"exposed_communication": 15.0})
    assert ops(found) == [("all-gather", "only_after", None, 15.0)]
    assert moved(found.attribution.headline) == [("jit(train_step)=>block_1=>mlp", 15.0)]


def test_two_collectives_in_place_of_one_are_three_rows():
    scope = "jit(train_step)/transpose(jvp(block_0))/mlp/psum"
    parts = [
        Work("reduce-scatter", 1, 110, 8, "reduce-scatter", scope),
        Work("all-gather", 1, 118, 9, "all-gather", scope),
    ]
    found = compare(BEFORE, capture(changed(*parts, gone=[SUM_0]), period=297))
    assert deltas(found) == (-3.0, {"exposed_communication": -3.0})
    assert ops(found) == [
        ("all-reduce", "only_before", 20.0, None),
        ("all-gather", "only_after", None, 9.0),
        ("reduce-scatter", "only_after", None, 8.0),
    ]
    assert gross(found) == {"added": 17.0, "removed": -20.0}


def test_one_device_is_slower():
    """8 us on one of two devices are 4 us of the mean; the other waits, here idle."""
    slow = changed(to={ATTENTION_1: SLOW})
    found = compare(BEFORE, capture(PROGRAM, period=308, on_device={1: slow}))
    assert deltas(found) == (8.0, {"compute": 4.0, "idle": 4.0})
    assert ops(found) == [("fusion", "exact", 40.0, 44.0), ("(idle)", "idle", 110.0, 114.0)]
    assert moved(found.attribution.headline) == [
        ("jit(train_step)=>block_1=>attn", 4.0),
        ("(idle)", 4.0),
    ]


def test_more_idle_time():
    found = compare(BEFORE, capture(PROGRAM, period=310))
    assert deltas(found) == (10.0, {"idle": 10.0})
    for split in ("ops", "headline", "regions", "families"):
        assert moved(getattr(found.attribution, split)) == [("(idle)", 10.0)]


def test_renamed_scopes_change_nothing():
    found = compare(BEFORE, capture(renamed(PROGRAM), period=STEP))
    assert deltas(found) == (0.0, {})
    assert found.attribution.ops.matches == {"idle": 1, "renamed": 7}
    assert not [row for row in found.regions if row.delta or row.before is None]
    assert [(one.before, one.after) for one in found.attribution.renames] == [
        ("jit(train_step)", "jit(train_step_v2)"),
        ("jit(train_step)=>block_0", "jit(train_step_v2)=>layer_0"),
        ("jit(train_step)=>block_1", "jit(train_step_v2)=>layer_1"),
    ]
    assert "Renamed: `jit(train_step)` → `jit(train_step_v2)`, " in render_comparison(found)


def test_a_renamed_region_has_its_true_change():
    after = changed(to={ATTENTION_1: SLOW})
    found = compare(BEFORE, capture(renamed(after), period=308))
    assert ops(found) == [("fusion", "renamed", 40.0, 48.0)]
    rows = {row.path: row for row in found.regions}
    layer = rows["jit(train_step_v2)=>block_1 -> layer_1"]
    assert (layer.before, layer.after, layer.delta) == (70.0, 78.0, 8.0)
    assert layer.renamed_from == "jit(train_step)=>block_1"
    (region,) = [row for row in found.attribution.headline.rows if row.delta]
    assert (region.name, region.before, region.delta) == (
        "jit(train_step_v2)=>layer_1=>attn", 40.0, 8.0
    )  # fmt: skip
    assert region.renamed_from == "jit(train_step)=>block_1=>attn"


def test_a_fusion_that_falls_apart():
    """30 us become 22 and 12: three rows, and 4 us of its region."""
    found = compare(BEFORE, capture(changed(*PARTS, gone=[MLP_0]), period=304))
    assert deltas(found) == (4.0, {"compute": 4.0})
    assert ops(found) == [
        ("fusion", "only_before", 30.0, None),
        ("dot", "only_after", None, 22.0),
        ("tanh", "only_after", None, 12.0),
    ]
    (region,) = [row for row in found.attribution.headline.rows if row.delta]
    assert (region.name, region.delta) == ("jit(train_step)=>block_0=>mlp", 4.0)
    assert dict(region.gross) == {"added": 34.0, "removed": -30.0, "grown": 0.0, "shrunk": 0.0}


def test_all_at_once():
    """An op + 20 % (8 us), one gone (20), a fusion in parts (30 for 22 and 12), a new collective
    (15), a device slower (4 of mean), 9 us more idle, and all scopes renamed: 20 us."""
    after = changed(GATHER, *PARTS, gone=[LOSS, MLP_0], to={ATTENTION_0: replace(GREW, start=14)})
    slow = [SLOW if work is ATTENTION_1 else work for work in after]
    found = compare(BEFORE, capture(renamed(after), period=320, on_device={1: renamed(slow)}))
    assert deltas(found) == (
        20.0,
        {"compute": -4.0, "exposed_communication": 15.0, "idle": 9.0},
    )
    assert ops(found) == [
        ("fusion", "only_before", 30.0, None),
        ("dot", "only_after", None, 22.0),
        ("copy_fusion", "only_before", 20.0, None),
        ("all-gather", "only_after", None, 15.0),
        ("tanh", "only_after", None, 12.0),
        ("(idle)", "idle", 110.0, 119.0),
        ("fusion", "renamed", 40.0, 48.0),
        ("fusion", "renamed", 40.0, 44.0),
    ]
    assert gross(found) == {"added": 49.0, "removed": -50.0, "grown": 12.0}
    # 20, 19 (15 + 4) and 12 (8 + 4) of 51 us moved; below layer_1 15 is less than four fifths of
    # 19, so both its parts are named, and below layer_0 both as well.
    assert moved(found.attribution.headline) == [
        ("jit(train_step)=>loss", -20.0),
        ("jit(train_step_v2)=>layer_1=>mlp", 15.0),
        ("(idle)", 9.0),
        ("jit(train_step_v2)=>layer_0=>attn", 8.0),
        ("jit(train_step_v2)=>layer_0=>mlp", 4.0),
        ("jit(train_step_v2)=>layer_1=>attn", 4.0),
    ]
    rows = {row.path: (row.before, row.after) for row in found.regions}
    assert rows["jit(train_step_v2)=>block_0 -> layer_0"] == (90.0, 102.0)
    assert rows["jit(train_step) -> jit(train_step_v2)"] == (190.0, 201.0)


def test_a_tower_whose_layers_moved_both_ways():
    """t12 takes 1350 us more, the other even ones 100, the odd ones 487.5 less: 3.4 ms in all."""

    def tower(lengths: list[float]) -> ProfileSummary:
        works, start = [], 2.0
        for at, length in enumerate([*lengths, 50]):
            name = f"tower/t{at:02}" if at < 24 else "head"
            works.append(Work("fusion", at, start, length, scope=f"jit(step)/{name}/dot"))
            start += length + 1
        return capture(works, period=30_000)

    after = [1000 + (-487.5 if at % 2 else 1350 if at == 12 else 100) for at in range(24)]
    found = compare(tower([1000.0] * 24), other_bytes(tower(after)))
    headline = found.attribution.headline
    assert moved(headline) == [("jit(step)=>tower", -3400.0), ("(idle)", 3400.0)]
    assert dict(headline.rows[0].gross) == {
        "added": 0.0, "removed": 0.0, "grown": 2450.0, "shrunk": -5850.0
    }  # fmt: skip
    assert "Regions: `jit(step)=>tower` -3.40 ms, (idle) +3.40 ms." in render_comparison(found)


# --- several captures with noise ---------------------------------------------------------------


def noisy(works: Iterable[Work], seed: int, *, period: float = STEP + 40) -> ProfileSummary:
    """A capture of a run that is up to 1 % slower or faster, with ops that vary twice as much, each
    by itself; so do the 150 us between them."""
    random = Random(seed)
    factor = random.gauss(1, 0.005)
    made, shift = [], 0.0
    for work in sorted(works, key=lambda one: one.start):
        length = round(work.length * factor * random.gauss(1, 0.01), 3)
        made.append(replace(work, start=round(work.start + shift, 3), length=length))
        shift += length - work.length
    idle = 150 * random.gauss(1, 0.01) - 150
    return capture(made, period=round(period + shift + idle, 3), shuffle=seed)


def told(split: Split) -> list[str]:
    return [row.name for row in split.rows if not row.noise]


REMAT = Work(
    "fusion", 9, 255, 36, shape="f32[7]",
    scope="jit(train_step)/transpose(jvp(block_0))/rematted_computation/attn/dot_general",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_of_a_refactor_only_the_remat_is_told_from_noise(seed):
    """Scopes renamed, the attention of one block recomputed (36 us), all else as it was."""
    before = [noisy(PROGRAM, seed + at) for at in range(3)]
    with_remat = renamed([*PROGRAM, REMAT])
    after = [noisy(with_remat, seed + 3 + at, period=STEP + 76) for at in range(3)]
    found = compare(before, after)
    split = found.attribution
    assert split.intervals_from == "captures"
    assert told(split.ops) == ["fusion"]
    remat = split.ops.rows[0]
    assert (remat.match, remat.after_op.pass_) == ("only_after", "recompute")
    assert remat.delta == pytest.approx(36, abs=1)
    assert remat.interval[0] < remat.delta < remat.interval[1]
    assert told(split.headline) == ["jit(train_step_v2)=>layer_0=>attn"]
    assert told(split.ledger) == ["compute"]
    # All else is one line, with its sum.
    assert split.ops.noise_rows == split.ops.total_rows - 1 == 8
    assert split.ops.noise.delta == pytest.approx(found.target.delta - remat.delta, abs=1e-6)
    assert "| (not told from noise: 8 rows) |" in render_comparison(found)


def test_false_names_are_rare():
    """No change at all: of 20 comparisons of 3 against 3 with 4 lists each, 5 % or 4 lists name a
    row by mistake."""
    lists = 0
    for seed in range(0, 120, 6):
        sides = [[noisy(PROGRAM, seed + at) for at in range(side, side + 3)] for side in (0, 3)]
        split = compare(*sides).attribution
        lists += sum(
            bool(told(one)) for one in (split.ledger, split.families, split.regions, split.ops)
        )
    assert 0 < lists <= 4


def test_an_op_of_some_captures_only_is_one_row():
    """One of two captures after has the collective of 15 us: 7.5 us on average, not told from
    noise; the ops of all are one row each."""
    after = [capture(PROGRAM, period=STEP), capture(changed(GATHER), period=STEP + 15)]
    found = compare([BEFORE, BEFORE], after)
    assert found.target.delta == 7.5
    (row,) = [row for row in found.attribution.ops.rows if row.delta]
    assert (row.match, row.before, row.after, row.noise) == ("only_after", None, 7.5, True)
    assert row.after_op.count == 0.5
    assert found.attribution.ops.total_rows == len(PROGRAM) + 2
    # t is 12.706 at one degree of freedom, the error 7.5.
    assert row.interval == pytest.approx((7.5 - 12.7062 * 7.5, 7.5 + 12.7062 * 7.5), rel=1e-5)
    assert row.interval == found.target.interval


def test_captures_count_alike_however_long():
    """3 and 39 steps: 300 and 310 us a step are 305 us."""
    before = [capture(PROGRAM, period=STEP), capture(PROGRAM, period=STEP + 10, steps=41)]
    found = compare(before, capture(PROGRAM, period=STEP + 5))
    assert (found.target.before, found.target.delta) == (305.0, 0.0)
    assert (found.target.before_captures, found.target.before_steps) == (2, 42)
    assert found.target.median.before == 305.0
    assert found.attribution.intervals_from is None
    assert {row.interval for row in found.attribution.ledger.rows} == {None}


def test_one_capture_a_side_has_intervals_of_the_ledger_from_its_steps():
    found = compare(BEFORE, capture(PROGRAM, period=310, steps=9))
    assert found.attribution.intervals_from == "steps"
    ledger = {row.name: (row.interval, row.noise) for row in found.attribution.ledger.rows}
    assert ledger["idle"] == ((10.0, 10.0), False)
    assert ledger["compute"] == ((0.0, 0.0), True)
    assert found.target.interval == (10.0, 10.0)
    for split in (found.attribution.ops, found.attribution.regions, found.attribution.families):
        assert {(row.interval, row.noise) for row in split.rows} == {(None, None)}


def test_steps_that_swing_leave_the_ledger_in_doubt():
    """Idle times of 110 and 130 us by turns, before and after: 1 us more is not told from that."""
    summary = capture(PROGRAM, period=STEP, steps=9)

    def swinging(more: float) -> ProfileSummary:
        steps = [
            step.model_copy(update={"period": step.period + more + (step.index % 2) * 20})
            if step.period
            else step
            for step in summary.step_time.steps
        ]
        time = summary.step_time.model_copy(update={"steps": steps})
        return summary.model_copy(update={"step_time": time})

    ledger = {row.name: row for row in compare(swinging(0), swinging(1)).attribution.ledger.rows}
    # 7 periods a side: 4 and 3 of each, variance 800 / 7; 12 degrees of freedom.
    half = 2.178813 * (2 * 800 / 7 / 7) ** 0.5
    assert ledger["idle"].interval == pytest.approx((-half, half), rel=1e-6)
    assert ledger["idle"].noise is True
