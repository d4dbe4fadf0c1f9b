"""The rules, on summaries made for each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from builders_summary import build_v1_summary, no_steps, step, step_time
from builders_verdict import capture, noisy
from marin_profile.base.errors import UsageError
from marin_profile.schema import ProfileSummary, TraceOverview
from marin_profile.verdict import Assessment, Floors, NoiseFloor, Thresholds, assess
from marin_profile.verdict.model import Check


def check(assessment: Assessment, name: str) -> Check:
    return next(row for row in assessment.checks if row.check == name)


def with_slow(values: Sequence[float], every: int, phase: int, factor: float) -> list[float]:
    return [round(one * factor, 6) if at % every == phase else one for at, one in enumerate(values)]


def both(noise: NoiseFloor) -> Floors:
    return Floors(typical=noise, mean=noise)


BEFORE = capture(noisy(1, 25))
SLOWER = capture(noisy(2, 25, typical=1100.0))
ONE_CAPTURE = (
    "one capture a side: the interval leaves out what runs differ by; several captures a side, "
    "taken in turn, or a history of repeats, bring it in"
)
RARER_THAN_SIXTH = "windows of 25 steps may miss what comes less often than every 6 steps"


# --- one capture a side ---


def test_a_slowdown_that_one_capture_a_side_cannot_confirm() -> None:
    found = assess([BEFORE], [SLOWER])
    assert (found.status, found.confidence, found.helped) == ("likely_fail", "likely", "no")
    assert (found.basis, found.decided_by, found.error_from) == (
        "period", "mean_step_time", "steps",
    )  # fmt: skip
    means = [np.mean(noisy(1, 25)), np.mean(noisy(2, 25, typical=1100.0))]
    assert found.change_pct == pytest.approx(100 * (means[1] / means[0] - 1), abs=1e-5)
    assert (found.before.mean_step_time, found.after.mean_step_time) == pytest.approx(means)
    assert found.lower_bound_pct is not None
    assert found.interval_pct is not None
    assert 0 < found.lower_bound_pct < found.interval_pct[0] < found.change_pct
    assert found.sentence.startswith(
        "Helped: no (likely). Likely fail: the mean step is 10.0 % slower (95 % interval +"
    )
    assert "; 25 against 25 steps), beyond the threshold of 5 %" in found.sentence
    assert found.sentence.endswith(
        "; 3 captures a side, taken in turn, would tell it from what runs differ by."
    )
    assert found.needed is not None
    assert (found.needed.captures_per_side, found.needed.steps_per_capture) == (3, 25)
    assert [check(found, name).result for name in ("mean_step_time", "step_time")] == [
        "likely_fail", "likely_fail",
    ]  # fmt: skip
    assert found.reasons == (
        "mean_step_time is beyond its threshold, and its one-sided 99.5 % bound beyond zero",
        "step_time is beyond its threshold, and its one-sided 99.5 % bound beyond zero",
        "step_p90 is beyond its threshold, and its one-sided 99.5 % bound beyond zero",
        ONE_CAPTURE,
        RARER_THAN_SIXTH,
    )


def test_the_change_is_that_of_the_step_times_written() -> None:
    found = assess([BEFORE], [SLOWER])
    for name in ("mean_step_time", "step_time"):
        row = check(found, name)
        sides = [getattr(side, name) for side in (found.before, found.after)]
        assert [row.before, row.after] == sides
        assert row.change == pytest.approx(100 * (sides[1] / sides[0] - 1), abs=1e-5)
    assert found.before.median == pytest.approx(float(np.median(noisy(1, 25))), abs=1e-6)
    assert found.before.p90 == pytest.approx(float(np.quantile(noisy(1, 25), 0.9)), abs=1e-6)
    assert check(found, "step_p90").before == found.before.p90
    assert (found.before.steps, found.before.steps_per_capture) == (25, (25,))
    mean = check(found, "mean_step_time")
    assert (found.change_pct, found.interval_pct) == (mean.change, mean.interval)
    assert (found.lower_bound_pct, found.upper_bound_pct, found.degrees_of_freedom) == (
        mean.lower_bound, mean.upper_bound, mean.degrees_of_freedom,
    )  # fmt: skip


def test_pass() -> None:
    found = assess([BEFORE], [capture(noisy(3, 25))])
    assert (found.status, found.helped, found.needed) == ("pass", "cannot tell", None)
    assert "changed by an estimated" in found.sentence
    assert found.sentence.endswith(f"no slowdown beyond the threshold of 5 %; {RARER_THAN_SIXTH}.")
    assert {row.result for row in found.checks} <= {"pass", "inconclusive"}
    assert len(found.deciles) == 9


def test_an_improvement_passes_and_says_so() -> None:
    found = assess([BEFORE], [capture(noisy(4, 25, typical=900.0))])
    assert (found.status, found.helped) == ("pass", "yes")
    assert found.sentence.startswith("Helped: yes (likely). Pass (likely): the mean step is ")
    assert "% faster" in found.sentence
    assert found.change_pct is not None
    assert found.change_pct < -5


def test_a_certain_change_below_the_threshold_warns() -> None:
    sides = [capture(noisy(seed, 25, typical=typical, variation=0.005)) for seed, typical in
             ((5, 1000.0), (6, 1030.0))]  # fmt: skip
    found = assess(sides[:1], sides[1:])
    assert (found.status, found.helped) == ("warn", "no")
    assert "% slower" in found.sentence
    assert found.sentence.endswith("certain, but not beyond the threshold of 5 %.")
    assert "the mean step is certainly longer, but not beyond its threshold" in found.reasons
    strict = Thresholds(max_step_median_regression_pct=2)
    assert assess(sides[:1], sides[1:], strict).status == "likely_fail"


# --- patterns ---


def test_every_fifth_step_slower_on_both_sides_is_no_change() -> None:
    """Whatever phase the windows begin with."""
    for phase in range(5):
        sides = [with_slow(noisy(1, 25), 5, 0, 1.4), with_slow(noisy(3, 25), 5, phase, 1.4)]
        found = assess([capture(sides[0])], [capture(sides[1])])
        assert found.status == "pass"
        assert 5 in found.before.slow_steps_every
        assert 5 in found.after.slow_steps_every


def doubled(seed: int, every: int) -> ProfileSummary:
    return capture(with_slow(noisy(seed, 50), every, 1, 2.0))


def test_a_fifth_less_throughput_by_more_double_steps_fails() -> None:
    """1.2 steps' time to 1.5; the typical step stays."""
    found = assess([doubled(1, 5)], [doubled(3, 2)])
    assert (found.status, found.decided_by) == ("likely_fail", "mean_step_time")
    assert found.change_pct == pytest.approx(25, abs=2)
    assert check(found, "step_time").result == "pass"
    assert check(found, "step_time").change == pytest.approx(0, abs=2)
    assert "the mean step is 25" in found.sentence
    typical = check(found, "step_time").change
    assert f"; the typical step changed by {typical:+.1f} % (" in found.sentence
    assert (
        "): before the change every 5th step differs from the others, after the change every 2nd "
        "step differs from the others;"
    ) in found.sentence
    assert (found.before.slow_steps_every, found.after.slow_steps_every) == ((5,), (2,))
    slow = check(found, "slow_steps")
    assert (slow.before, slow.after) == pytest.approx((20, 50), abs=1.5)
    assert any("changed differently" in reason for reason in found.reasons)

    several = [[doubled(seed + at, every) for at in range(3)] for seed, every in ((1, 5), (11, 2))]
    found = assess(*several)
    assert (found.status, found.confidence) == ("fail", "confirmed")
    assert found.sentence.startswith("Helped: no. Fail (confirmed): the mean step is 25")
    assert "; the typical step changed by " in found.sentence
    # Back again, it helped.
    back = assess(*several[::-1])
    assert (back.status, back.helped) == ("pass", "yes")
    assert back.change_pct == pytest.approx(-20, abs=2)
    assert "before the change every 2nd step differs" in back.sentence
    assert "after the change every 5th step differs" in back.sentence


def test_a_stall_of_two_steps_in_every_twelfth() -> None:
    """8 ms more in every 12th of 48 steps of 4 ms: 16.7 %, of four steps."""
    before, after = noisy(1, 48, typical=4000.0), noisy(3, 48, typical=4000.0)
    after = [one + 8000 if at % 12 == 5 else one for at, one in enumerate(after)]
    found = assess([capture(before)], [capture(after)])
    assert (found.status, found.decided_by) == ("likely_fail", "mean_step_time")
    assert found.change_pct == pytest.approx(100 / 6, abs=1.5)
    assert check(found, "step_time").result == "pass"
    assert "after the change every 12th step differs from the others" in found.sentence
    assert found.after.slow_steps_every == (12,)
    # Once only, it is a stray: how often such come is not known.
    once = [one + 8000 if at == 5 else one for at, one in enumerate(before)]
    found = assess([capture(before)], [capture(once)])
    assert (found.after.slow_steps_every, found.after.stray_steps) == ((), 1)
    assert (found.status, check(found, "step_time").result) == ("inconclusive", "pass")


def test_too_few_steps_beside_the_other_sides_comb() -> None:
    """Of 12 steps 6 are where no comb would be, of which one is a stray."""
    before = noisy(1, 12, variation=0.001)
    before[4] *= 0.88
    after = with_slow(noisy(2, 48, variation=0.001), 2, 1, 1.02)
    wide = Thresholds(max_step_median_regression_pct=50)
    found = assess([capture(before)], [capture(after)], wide)
    assert [check(found, one).result for one in ("mean_step_time", "step_time")] == [
        "pass", "not judged",
    ]  # fmt: skip
    assert check(found, "step_time").reason == "too few steps for an interval"
    assert (found.status, found.decided_by) == ("inconclusive", "mean_step_time")
    assert "; the typical step changed by an estimated " in found.sentence
    assert found.sentence.endswith("at least 6 steps each, better 25.")


def mixed(seed: int, heavy: set[int], factor: float = 2.0, typical: float = 1000.0) -> (
    ProfileSummary
):  # fmt: skip
    """Heavy steps without a pattern."""
    order = np.random.default_rng(5).permutation(30).tolist()
    is_heavy = [order[at] % 5 in heavy for at in range(30)]
    values = [
        round(one * (factor if slow else 1.0), 6)
        for one, slow in zip(noisy(seed, 30, typical=typical), is_heavy, strict=True)
    ]
    return capture(values, classes=["heavy" if slow else "light" for slow in is_heavy])


def test_another_mix_of_classes_is_no_change_of_the_typical_step() -> None:
    found = assess([mixed(1, {4})], [mixed(2, {2, 4})])
    assert check(found, "step_time").result == "pass"
    assert check(found, "step_time").change == pytest.approx(0.0, abs=2.5)
    # The mean is what training pays: 1.2 to 1.4 steps' time.
    assert check(found, "mean_step_time").change == pytest.approx(100 / 6, abs=3)
    slower = assess([mixed(1, {4})], [mixed(2, {2, 4}, typical=1100.0)])
    assert check(slower, "step_time").result == "likely_fail"
    assert check(slower, "step_time").change == pytest.approx(10.0, abs=2.5)


# --- what cannot be told ---


def drifting(seed: int) -> ProfileSummary:
    return capture([one * (1 + 0.1 * at / 60) for at, one in enumerate(noisy(seed, 60))])


def test_steps_that_are_not_independent_settle_nothing() -> None:
    found = assess([drifting(1)], [capture(noisy(2, 60, typical=1060.0))])
    assert (found.status, found.helped, found.drifts) == ("inconclusive", "cannot tell", True)
    words = (
        "the steps of a capture are not independent (slow changes, or strongly alike neighbours): "
        "one capture a side cannot tell them from a change"
    )
    assert f", {words}; the typical step changed by " in found.sentence
    assert found.sentence.endswith("at least 6 steps each, better 25.")
    assert f"{words} (autocorrelation {found.autocorrelation:.2f})" in found.reasons
    assert [check(found, one).result for one in ("mean_step_time", "step_time")] == [
        "inconclusive", "inconclusive",
    ]  # fmt: skip
    # Several captures a side show how far it moves them, and so does a noise floor.
    captures = [
        [drifting(1), drifting(3), drifting(5)],
        [capture(noisy(seed, 60, typical=1150.0)) for seed in (2, 4, 6)],
    ]
    several = assess(*captures)
    assert (several.status, several.drifts) == ("fail", False)
    assert not any("not independent" in reason for reason in several.reasons)
    floor = assess(captures[0][:1], captures[1][:1], floors=both(NoiseFloor(6, 0.01)))
    assert (floor.status, floor.helped, floor.drifts) == ("fail", "no", True)
    assert not assess([BEFORE], [SLOWER]).drifts


def test_inconclusive_says_what_would_settle_it() -> None:
    sides = [capture(noisy(seed, 10, typical=typical, variation=0.06)) for seed, typical in
             ((11, 1000.0), (12, 1020.0))]  # fmt: skip
    found = assess(sides[:1], sides[1:])
    assert (found.status, found.helped) == ("inconclusive", "cannot tell")
    assert found.needed is not None
    assert found.needed.captures_per_side == 3
    assert found.needed.steps_per_capture is not None
    assert found.needed.steps_per_capture >= 25
    assert "which neither shows nor rules out a slowdown beyond the threshold" in found.sentence
    assert found.sentence.endswith(f"; {found.needed.sentence}.")


def test_one_step_a_side_cannot_be_judged() -> None:
    sides = [capture([None], name=name) for name in ("a", "b")]
    found = assess(sides[:1], sides[1:])
    assert (found.status, found.basis) == ("inconclusive", "duration")
    assert found.reasons == ("one step per side cannot be judged",)
    assert found.before.median == pytest.approx(900.0)
    assert found.change_pct == pytest.approx(0.0)
    assert (found.interval_pct, found.decided_by, found.checks) == (None, None, ())
    assert found.needed is not None
    assert found.sentence == (
        "Helped: cannot tell. Inconclusive: one step per side cannot be judged; take 3 captures a "
        "side, in turn, with the periods of at least 6 steps each, better 25."
    )


def test_too_few_steps() -> None:
    sides = [capture(noisy(1, 4))], [capture(noisy(2, 25, typical=2000.0))]
    found = assess(*sides)
    assert found.status == "inconclusive"
    assert found.reasons == (
        "4 against 25 steps are too few to judge (of one capture a side, at least 6)",
    )
    assert found.change_pct == pytest.approx(
        100 * (np.mean(noisy(2, 25, typical=2000.0)) / np.mean(noisy(1, 4)) - 1), abs=1e-5
    )
    # What one configuration varies from run to run was measured on whole captures.
    assert assess(*sides, floors=both(NoiseFloor(5, 0.01))).status == "inconclusive"
    counts = assess([capture(noisy(1, 3)), capture(noisy(9, 25))], sides[1]).reasons[0]
    assert not counts.startswith("3 + 25")  # the captures before tell their own spread


def truncated() -> ProfileSummary:
    overview = TraceOverview(
        num_events_total=1,
        num_complete_events=1,
        num_processes=1,
        num_threads=1,
        duration_basis="device_ledger",
        suspected_truncation=True,
    )
    return capture(noisy(2, 25, typical=2000.0), trace_overview=overview)


OLDER = build_v1_summary()


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (truncated(), "after may be truncated"),
        (capture(noisy(2, 25), device_ledger=[]), "after holds no device time (host only)"),
        (capture([], step_time=no_steps()), "after holds no steps"),
        (BEFORE, "after is the same capture as before"),
        (OLDER, "after was written without its step vector (summarize the profile again)"),
    ],
)
def test_what_cannot_be_judged(after: ProfileSummary, reason: str) -> None:
    found = assess([BEFORE], [after])
    assert (found.status, found.confidence, found.helped) == (
        "inconclusive", "likely", "cannot tell",
    )  # fmt: skip
    assert found.reasons == (reason,)
    assert found.sentence == f"Helped: cannot tell. Inconclusive: {reason}."
    assert (found.change_pct, found.checks, found.deciles) == (None, (), ())


def test_what_is_not_comparable() -> None:
    after = capture(noisy(2, 25, typical=2000.0))
    found = assess([BEFORE], [after], not_comparable=["4 devices against 8"])
    assert (found.status, found.reasons) == ("inconclusive", ("4 devices against 8",))
    assert found.after.median == pytest.approx(2000, rel=0.05)
    assert found.after.mean_step_time is None


def test_without_any_length() -> None:
    unknown = [step(at, period=None).model_copy(update={"duration": None}) for at in range(9)]
    found = assess([BEFORE], [capture([], name="u", step_time=step_time(steps=unknown))])
    assert found.reasons == ("no step length is known on both sides",)


def test_only_kept_steps_with_a_period_count() -> None:
    found = assess([capture([*noisy(1, 25), None])], [capture(noisy(3, 25))])
    assert (found.before.steps, found.basis) == (25, "period")


# --- several captures a side ---


def several(seed: int, typical: list[float], steps: int = 25) -> list[ProfileSummary]:
    return [
        capture(noisy(seed + index, steps, typical=value)) for index, value in enumerate(typical)
    ]


def welch(sides: Sequence[Sequence[ProfileSummary]]) -> tuple[float, float, float]:
    """Change of the log mean, its standard error and degrees of freedom, from the periods."""
    logs = [
        np.log(
            [np.mean([step.period for step in one.step_time.steps if step.kept]) for one in side]
        )
        for side in sides
    ]
    parts = [one.var(ddof=1) / len(one) for one in logs]
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(one) - 1) for part, one in zip(parts, logs, strict=True)
    )
    return logs[1].mean() - logs[0].mean(), math.sqrt(sum(parts)), freedom


def test_several_captures_confirm() -> None:
    before, after = several(20, [1000.0, 1010.0, 990.0]), several(30, [1200.0, 1210.0, 1190.0])
    found = assess(before, after)
    assert (found.status, found.confidence, found.error_from) == ("fail", "confirmed", "captures")
    assert found.helped == "no"
    assert "; 3 against 3 captures)" in found.sentence
    assert found.after.steps_per_capture == (25, 25, 25)
    change, _, freedom = welch([before, after])
    assert found.change_pct == pytest.approx(100 * math.expm1(change), abs=1e-5)
    assert found.degrees_of_freedom == pytest.approx(min(freedom, 4.0), abs=1e-5)
    assert found.needed is None
    assert found.reasons == (
        *(
            f"{name} is beyond its threshold, and its one-sided 99.5 % bound beyond zero"
            for name in ("mean_step_time", "step_time", "step_p90")
        ),
        RARER_THAN_SIXTH,
    )
    assert assess(before[:1], after).confidence == "likely"


def test_what_differs_from_run_to_run_is_no_regression() -> None:
    before, after = several(20, [1000.0, 1100.0, 950.0]), several(30, [1060.0, 1150.0, 990.0])
    assert assess(before[:1], after[:1]).status == "likely_fail"
    found = assess(before, after)
    assert (found.status, found.error_from) == ("inconclusive", "captures")
    assert found.needed is not None
    assert found.needed.captures_per_side is not None
    assert found.needed.captures_per_side > 3
    assert "captures a side would settle it" in found.sentence


def test_six_captures_against_two_that_spread_more() -> None:
    """Spreads of 0.2 and 3 %: pooled they would fail; apart, the two tell too little."""
    before = several(40, [1000.0, 1002.0, 998.0, 1001.0, 999.0, 1000.0])
    after = several(50, [1030.0, 1090.0])
    found = assess(before, after)
    assert found.change_pct == pytest.approx(6, abs=1.5)
    assert (found.status, found.degrees_of_freedom) == ("inconclusive", 1.0)


def test_captures_taken_in_turn_are_pairs() -> None:
    """A drift from pair to pair of 20 % cancels."""
    before, after = (
        several(seed, [typical, 1.2 * typical, 1.4 * typical])
        for seed, typical in ((20, 1000.0), (30, 1100.0))
    )
    assert assess(before, after).status == "inconclusive"
    found = assess(before, after, design="pairs")
    assert (found.status, found.confidence, found.error_from) == ("fail", "confirmed", "pairs")
    assert "; 3 pairs of captures)" in found.sentence
    logs = [
        np.log([np.mean(noisy(seed + at, 25, typical=typical * (1 + 0.2 * at))) for at in range(3)])
        for seed, typical in ((20, 1000.0), (30, 1100.0))
    ]
    assert found.change_pct == pytest.approx(
        100 * math.expm1(float(np.mean(logs[1] - logs[0]))), abs=1e-5
    )
    assert found.degrees_of_freedom == 2.0
    with pytest.raises(UsageError, match="there are 3 and 2"):
        assess(before, after[:2], design="pairs")


def test_captures_of_one_step_can_be_judged_together() -> None:
    sides = [
        [capture([None, None], name=f"{side}{index}").model_copy() for index in range(3)]
        for side in "ab"
    ]
    # The durations of both steps are equal, so that there is no spread and no change.
    assert assess(sides[0], sides[1]).status == "pass"


def test_the_same_capture_twice_is_no_second_one() -> None:
    found = assess([BEFORE, BEFORE], [capture(noisy(3, 25))])
    assert found.reasons == ("before 2 is the same capture as before 1",)


# --- noise floors ---


def test_a_noise_floor_confirms_and_widens() -> None:
    quiet = assess([BEFORE], [SLOWER], floors=both(NoiseFloor(6, 0.001)))
    assert (quiet.status, quiet.confidence, quiet.error_from) == ("fail", "confirmed", "steps")
    after = capture(noisy(2, 25, typical=1090.0))
    loud = assess([BEFORE], [after], floors=both(NoiseFloor(5, 0.05)))
    assert (loud.status, loud.error_from) == ("inconclusive", "captures")
    assert loud.noise_floor is not None
    assert (loud.noise_floor.num_repeats, loud.noise_floor.log_sd) == (5, 0.05)
    assert loud.interval_pct is not None
    half = 2.776445105 * 0.05 * math.sqrt(2)
    assert loud.change_pct is not None
    log_change = math.log1p(loud.change_pct / 100)
    assert loud.interval_pct[1] == pytest.approx(100 * math.expm1(log_change + half), rel=1e-6)


def test_a_floor_of_one_estimand_confirms_that_one() -> None:
    found = assess([BEFORE], [SLOWER], floors=Floors(typical=NoiseFloor(6, 0.001)))
    assert (found.status, found.decided_by) == ("fail", "step_time")
    assert check(found, "mean_step_time").result == "likely_fail"
    assert found.noise_floor is not None
    found = assess([BEFORE], [SLOWER], floors=Floors(mean=NoiseFloor(6, 0.001)))
    assert (found.status, found.decided_by) == ("fail", "mean_step_time")
    assert check(found, "step_time").result == "likely_fail"


def test_a_floor_of_step_times_tells_nothing_of_device_time() -> None:
    shares = {"communication": 0.2, "idle": 0.2}
    before = capture(noisy(1, 25), **shares)
    more = capture(noisy(3, 25), **(shares | {"idle": 0.3}))
    found = assess([before], [more], floors=both(NoiseFloor(5, 0.0001)))
    assert (found.status, found.confidence) == ("warn", "likely")
    assert "idle time rose by 99.7 us (95 % interval +" in found.sentence
    again = [capture(noisy(at + 10, 25), **(shares | {"idle": at / 10})) for at in (2, 3)]
    found = assess([before, again[0]], [more, again[1]])
    assert (found.status, found.confidence) == ("warn", "confirmed")


def test_a_faster_step_with_less_exposed_communication_does_not_warn() -> None:
    """26 % faster, and 20 us less: a larger share all the same."""
    after = capture(noisy(2, 25, typical=740.0), communication=0.18 / 0.74)
    found = assess([BEFORE], [after])
    assert (found.status, found.helped) == ("pass", "yes")
    assert check(found, "exposed_communication").change == pytest.approx(-20.0, abs=1.0)


# --- the record ---


def test_each_side_needs_a_summary() -> None:
    with pytest.raises(UsageError):
        assess([], [BEFORE])
    with pytest.raises(UsageError):
        assess([BEFORE], [])


def test_same_inputs_same_bytes() -> None:
    def once() -> str:
        return assess([BEFORE], [capture(noisy(2, 25, typical=1100.0))]).to_json()

    assert once() == once()
    read = Assessment.model_validate_json(once())
    assert read.to_json() == once()
    assert json.loads(once())["schema_version"] == "profile_verdict.v1"


NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    steps=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    change=st.sampled_from([0.5, 0.95, 0.99, 1.0, 1.01, 1.02, 1.05, 1.1, 2.0]),
    variation=st.sampled_from([0.0, 0.001, 0.01, 0.03, 0.2]),
    phi=st.sampled_from([0.0, 0.7]),
    captures=st.integers(1, 2),
    communication=st.sampled_from([0.2, 0.26, 0.5]),
    slow=st.booleans(),
    threshold=st.sampled_from([0.0, 2.0, 5.0]),
)
def test_the_sentence_says_what_the_record_says(
    seed: int,
    steps: tuple[int, int],
    change: float,
    variation: float,
    phi: float,
    captures: int,
    communication: float,
    slow: bool,
    threshold: float,
) -> None:
    def side(first: int, count: int, typical: float, share: float) -> list[ProfileSummary]:
        drawn = (
            noisy(first + index, count, typical=typical, variation=variation, phi=phi)
            for index in range(captures)
        )
        return [
            capture(
                with_slow(values, 5, 3, 1.5) if slow and share != 0.2 else values,
                communication=share,
                name=f"{first} {index}",
            )
            for index, values in enumerate(drawn)
        ]

    found = assess(
        side(seed, steps[0], 1000.0, 0.2),
        side(seed + 20_000, steps[1], 1000.0 * change, communication),
        Thresholds(max_step_median_regression_pct=threshold),
    )
    said = found.sentence
    assert said.startswith(f"Helped: {found.helped}")
    titles = {"likely_fail": "Likely fail"}
    assert f". {titles.get(found.status, found.status.capitalize())}" in said
    # What is inconclusive or likely is not confirmed to be so.
    is_said = found.confidence == "confirmed" and found.status in ("fail", "warn", "pass")
    assert ("(confirmed)" in said) == is_said
    lower, upper = found.lower_bound_pct, found.upper_bound_pct
    assert ("% slower" in said) == (lower is not None and lower > 0)
    assert ("% faster" in said) == (upper is not None and upper < 0)
    steps_checks = [row for row in found.checks if row.check in ("mean_step_time", "step_time")]
    if found.status in ("fail", "likely_fail"):
        assert found.change_pct is not None
        assert found.change_pct > threshold
        assert lower is not None
        assert lower > 0
        assert (found.status == "fail") == (captures > 1)
    if found.status == "pass":
        assert [row.interval[1] < threshold for row in steps_checks if row.interval] == [True] * 2
        assert all(row.result != "warn" for row in found.checks)
    leading = {row.check: row.result for row in found.checks}.get(found.decided_by or "idle")
    open_ = found.status in ("likely_fail", "inconclusive") or leading == "inconclusive"
    assert (found.needed is not None) == open_
    assert found.needed is None or found.needed.sentence in said
    known = [95, threshold, 6, 25, 10_000, 100, captures, found.before.steps, found.after.steps]
    known += [*found.before.steps_per_capture, *found.after.steps_per_capture]
    known += [*found.before.slow_steps_every, *found.after.slow_steps_every]
    fewest = min(steps)
    known += [fewest, max(1, fewest // 4), 0.0]
    for row in found.checks:
        known += [row.threshold]
        known += [value for value in (row.change, *(row.interval or ())) if value]
    if found.needed:
        known += [found.needed.steps_per_capture or 0, found.needed.captures_per_side or 0]
    for text in NUMBER.findall(said.replace("p90", "")):
        number = float(text.replace(",", ""))
        decimals = len(text.partition(".")[2])
        assert any(
            math.isclose(abs(number), abs(value), abs_tol=0.5000001 * 10**-decimals)
            for value in known
        ), (text, said, known)


def test_a_misspelt_threshold_is_refused_wherever_it_comes_from():
    misspelt = {"max_step_medain_regression_pct": 1.0}
    with pytest.raises(TypeError, match="Thresholds has no max_step_medain_regression_pct"):
        Thresholds(**misspelt)
    with pytest.raises(TypeError, match="max_step_medain"):
        Thresholds().model_copy(update=misspelt)
    written = json.loads(assess([BEFORE], [BEFORE]).to_json())
    written["thresholds"] |= misspelt
    with pytest.raises(ValidationError, match="max_step_medain"):
        Assessment.model_validate(written)
