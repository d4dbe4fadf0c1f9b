"""The rules, on summaries made for each."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from builders_summary import build_v1_summary, no_steps, step, step_time
from builders_verdict import capture, noisy
from marin_profile.base.errors import UsageError
from marin_profile.schema import ProfileSummary, TraceOverview
from marin_profile.verdict import Assessment, NoiseFloor, Thresholds, assess
from marin_profile.verdict.model import Check

SLOW = [1.0, 1.0, 1.0, 1.5, 1.0]  # a fifth of the steps


def check(assessment: Assessment, name: str) -> Check:
    return next(row for row in assessment.checks if row.check == name)


def times(values: list[float], factors: list[float]) -> list[float]:
    return [round(value * factors[at % len(factors)], 6) for at, value in enumerate(values)]


BEFORE = capture(noisy(1, 25))


def test_fail() -> None:
    found = assess([BEFORE], [capture(noisy(2, 25, typical=1100.0))])
    assert (found.status, found.confidence, found.basis) == ("fail", "likely", "period")
    assert found.change_pct == pytest.approx(10.0, abs=2.0)
    assert found.lower_bound_pct is not None
    assert found.interval_pct is not None
    assert 0 < found.lower_bound_pct < found.interval_pct[0] < found.change_pct
    assert found.sentence.startswith("Fail (likely): the step is ")
    assert "% slower (95 % interval +" in found.sentence
    assert "; 25 against 25 steps), beyond the threshold of 5 %" in found.sentence
    assert check(found, "step_time").result == "fail"
    assert any("one capture a side" in reason for reason in found.reasons)


def test_the_change_is_that_of_the_step_times_written() -> None:
    found = assess([BEFORE], [capture(noisy(2, 25, typical=1100.0))])
    row = check(found, "step_time")
    assert (row.before, row.after) == (found.before.step_time, found.after.step_time)
    assert found.before.step_time is not None
    assert found.after.step_time is not None
    ratio = found.after.step_time / found.before.step_time
    assert found.change_pct == pytest.approx(100 * (ratio - 1), abs=1e-5)
    assert found.before.median == pytest.approx(float(np.median(noisy(1, 25))), abs=1e-6)
    assert found.before.p90 == pytest.approx(float(np.quantile(noisy(1, 25), 0.9)), abs=1e-6)
    assert check(found, "step_p90").before == found.before.p90
    assert (found.before.steps, found.before.steps_per_capture) == (25, (25,))


def test_pass() -> None:
    found = assess([BEFORE], [capture(noisy(3, 25))])
    assert found.status == "pass"
    assert "changed by an estimated" in found.sentence
    assert found.sentence.endswith("no slowdown beyond the threshold of 5 %.")
    assert found.needed is None
    assert {row.result for row in found.checks} <= {"pass", "inconclusive"}


def test_an_improvement_passes_and_says_so() -> None:
    found = assess([BEFORE], [capture(noisy(4, 25, typical=900.0))])
    assert found.status == "pass"
    assert "% faster" in found.sentence
    assert found.change_pct is not None
    assert found.change_pct < -5


def test_a_certain_change_below_the_threshold_warns() -> None:
    sides = [capture(noisy(seed, 25, typical=typical, variation=0.005)) for seed, typical in
             ((5, 1000.0), (6, 1030.0))]  # fmt: skip
    found = assess(sides[:1], sides[1:])
    assert found.status == "warn"
    assert "slower" in found.sentence
    assert found.sentence.endswith("certain, but not beyond the threshold of 5 %.")
    assert assess(sides[:1], sides[1:], Thresholds(max_step_median_regression_pct=2)).status == (
        "fail"
    )


def test_a_longer_p90_warns() -> None:
    before = capture(noisy(7, 50, variation=0.01))
    after = capture(times(noisy(8, 50, variation=0.01), SLOW))
    found = assess([before], [after])
    assert found.status == "warn"
    row = check(found, "step_p90")
    assert row.result == "warn"
    assert row.change == pytest.approx(50, abs=5)
    assert check(found, "step_time").result == "inconclusive"
    assert "the p90 of the step time rose by" in found.sentence
    assert "%), beyond its threshold of 10 %; " in found.sentence


def test_a_p90_that_two_steps_make_does_not_warn() -> None:
    before = capture(noisy(7, 10, variation=0.01))
    after = capture(times(noisy(8, 10, variation=0.01), SLOW))
    found = assess([before], [after])
    row = check(found, "step_p90")
    assert row.change is not None
    assert row.lower_bound is not None
    assert row.change > 10
    assert row.lower_bound < 0
    assert (row.result, found.status) == ("inconclusive", "pass")


@pytest.mark.parametrize(
    ("share", "name", "words"),
    [
        ("communication", "communication_share", "the share of exposed communication rose by 10"),
        ("idle", "stall_share", "the share of idle time rose by 10"),
    ],
)
def test_a_larger_share_warns(share: str, name: str, words: str) -> None:
    shares = {"communication": 0.2, "idle": 0.2}
    before = capture(noisy(1, 25), **shares)
    more = capture(noisy(3, 25), **(shares | {share: 0.3}))
    found = assess([before], [more])
    row = check(found, name)
    assert (found.status, row.result, row.unit) == ("warn", "warn", "share")
    assert row.before == pytest.approx(0.2)
    assert row.after == pytest.approx(0.3)
    assert words in found.sentence
    # A noise floor of step times does not tell how a share varies from run to run.
    assert assess([before], [more], noise=NoiseFloor(5, 0.0001)).confidence == "likely"
    again = [capture(noisy(at + 10, 25), **(shares | {share: at / 10})) for at in (2, 3)]
    assert assess([before, again[0]], [more, again[1]]).confidence == "confirmed"
    slightly = capture(noisy(3, 25), **(shares | {share: 0.24}))
    assert assess([before], [slightly]).status == "pass"
    generous = Thresholds(
        max_communication_share_regression_abs=0.2, max_stall_share_regression_abs=0.2
    )
    assert assess([before], [more], generous).status == "pass"


def test_a_share_that_varies_does_not_warn() -> None:
    def loud(seed: int, share: float) -> ProfileSummary:
        shares = np.random.default_rng(seed).uniform(share - 0.2, share + 0.2, 10).tolist()
        return capture(noisy(seed, 10), communication=shares)

    found = assess([loud(1, 0.3)], [loud(2, 0.36)])
    row = check(found, "communication_share")
    assert row.result == "inconclusive"
    assert row.lower_bound is not None
    assert row.lower_bound < 0


def test_shares_are_not_judged_without_ledgers() -> None:
    found = assess([BEFORE], [capture(noisy(3, 25), with_ledger=False)])
    row = check(found, "stall_share")
    assert (row.result, row.change, row.interval) == ("not judged", None, None)
    assert row.reason == "a capture holds no device time per step"
    assert found.status == "pass"


def test_inconclusive_says_how_many_steps_would_settle_it() -> None:
    sides = [capture(noisy(seed, 10, typical=typical, variation=0.06)) for seed, typical in
             ((11, 1000.0), (12, 1020.0))]  # fmt: skip
    found = assess(sides[:1], sides[1:])
    assert found.status == "inconclusive"
    assert found.needed is not None
    assert found.needed.steps_per_side is not None
    assert found.needed.steps_per_side > 10
    assert found.needed.captures_per_side is None
    assert f"about {found.needed.steps_per_side:,} steps a side would settle it" in found.sentence
    assert "which neither shows nor rules out a slowdown beyond the threshold" in found.sentence


def test_one_step_a_side_cannot_be_judged() -> None:
    sides = [capture([None], name=name) for name in ("a", "b")]
    found = assess(sides[:1], sides[1:])
    assert (found.status, found.basis) == ("inconclusive", "duration")
    assert found.reasons == ("one step per side cannot be judged",)
    assert found.before.median == pytest.approx(900.0)
    assert found.change_pct == pytest.approx(0.0)
    assert found.interval_pct is None
    assert found.needed is not None
    assert found.sentence.startswith("Inconclusive: one step per side cannot be judged; ")


def test_too_few_steps() -> None:
    found = assess([capture(noisy(1, 4))], [capture(noisy(2, 25, typical=2000.0))])
    assert found.status == "inconclusive"
    assert found.reasons[0].startswith("4 against 25 steps are too few")
    # What one configuration varies from run to run was measured on whole captures.
    with_noise = assess(
        [capture(noisy(1, 4))],
        [capture(noisy(2, 25, typical=2000.0))],
        noise=NoiseFloor(5, 0.01),
    )
    assert with_noise.status == "inconclusive"


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
    assert (found.status, found.confidence) == ("inconclusive", "likely")
    assert found.reasons == (reason,)
    assert found.sentence == f"Inconclusive: {reason}."
    assert (found.change_pct, found.checks) == (None, ())


def test_what_is_not_comparable() -> None:
    after = capture(noisy(2, 25, typical=2000.0))
    found = assess([BEFORE], [after], not_comparable=["4 devices against 8"])
    assert (found.status, found.reasons) == ("inconclusive", ("4 devices against 8",))
    assert found.after.median == pytest.approx(2000, rel=0.05)


def test_without_any_length() -> None:
    unknown = [step(at, period=None).model_copy(update={"duration": None}) for at in range(9)]
    found = assess([BEFORE], [capture([], name="u", step_time=step_time(steps=unknown))])
    assert found.reasons == ("no step length is known on both sides",)


def test_only_kept_steps_with_a_period_count() -> None:
    found = assess([capture([*noisy(1, 25), None])], [capture(noisy(3, 25))])
    assert (found.before.steps, found.basis) == (25, "period")


def test_another_mix_of_classes_is_no_regression() -> None:
    def mixed(seed: int, heavy: set[int]) -> ProfileSummary:
        factors = [2.0 if at % 5 in heavy else 1.0 for at in range(5)]
        classes = ["heavy" if at % 5 in heavy else "light" for at in range(30)]
        return capture(times(noisy(seed, 30), factors), classes=classes)

    found = assess([mixed(1, {4})], [mixed(2, {2, 4})])
    assert found.status == "pass"
    assert found.change_pct == pytest.approx(0.0, abs=2.0)
    assert not any("classes" in reason for reason in found.reasons)
    slower = assess([mixed(1, {4})], [capture(times(noisy(2, 30, typical=1100.0),
                    [1.0, 1.0, 2.0, 1.0, 2.0]), classes=["light", "light", "heavy", "light",
                    "heavy"] * 6)])  # fmt: skip
    assert slower.status == "fail"


def test_classes_on_one_side_only() -> None:
    classed = capture(noisy(2, 20), classes=["light", "heavy"] * 10)
    assert any("same step classes" in reason for reason in assess([BEFORE], [classed]).reasons)


def several(seed: int, typical: list[float], steps: int = 25) -> list[ProfileSummary]:
    return [
        capture(noisy(seed + index, steps, typical=value)) for index, value in enumerate(typical)
    ]


def test_several_captures_confirm() -> None:
    before, after = several(20, [1000.0, 1010.0, 990.0]), several(30, [1300.0, 1310.0, 1290.0])
    found = assess(before, after)
    assert (found.status, found.confidence, found.error_from) == ("fail", "confirmed", "captures")
    assert "; 3 against 3 captures)" in found.sentence
    assert found.after.steps_per_capture == (25, 25, 25)
    assert found.degrees_of_freedom == 4
    assert found.reasons == tuple(
        f"{name} is beyond its threshold, and its one-sided 99.5 % bound beyond zero"
        for name in ("step_time", "step_p90")
    )


def test_what_differs_from_run_to_run_is_no_regression() -> None:
    before, after = several(20, [1000.0, 1100.0, 950.0]), several(30, [1060.0, 1150.0, 990.0])
    assert assess(before[:1], after[:1]).status == "fail"
    found = assess(before, after)
    assert (found.status, found.error_from) == ("inconclusive", "captures")
    assert found.needed is not None
    assert found.needed.captures_per_side is not None
    assert found.needed.captures_per_side > 3


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


def test_a_noise_floor_confirms_and_widens() -> None:
    after = capture(noisy(2, 25, typical=1100.0))
    quiet = assess([BEFORE], [after], noise=NoiseFloor(6, 0.001))
    assert (quiet.status, quiet.confidence, quiet.error_from) == ("fail", "confirmed", "steps")
    loud = assess([BEFORE], [after], noise=NoiseFloor(5, 0.05))
    assert (loud.status, loud.error_from) == ("inconclusive", "captures")
    assert loud.noise_floor is not None
    assert loud.noise_floor.num_repeats == 5
    assert loud.interval_pct is not None
    half = 2.776445105 * 0.05 * math.sqrt(2)
    assert loud.change_pct is not None
    log_change = math.log1p(loud.change_pct / 100)
    assert loud.interval_pct[1] == pytest.approx(100 * math.expm1(log_change + half), rel=1e-6)


def test_strong_autocorrelation_is_a_reason() -> None:
    sides = [capture(noisy(seed, 100, phi=0.9)) for seed in (51, 52)]
    found = assess(sides[:1], sides[1:])
    assert found.autocorrelation is not None
    assert found.autocorrelation > 0.6
    assert any("are correlated" in reason for reason in found.reasons)
    again = [capture(noisy(seed, 100, phi=0.9)) for seed in (53, 54)]
    several_a_side = assess([sides[0], again[0]], [sides[1], again[1]])
    assert several_a_side.autocorrelation is not None
    assert several_a_side.autocorrelation > 0.6
    assert not any("are correlated" in reason for reason in several_a_side.reasons)
    calm = assess([BEFORE], [capture(noisy(3, 25))])
    assert not any("are correlated" in reason for reason in calm.reasons)


def test_each_side_needs_a_summary() -> None:
    with pytest.raises(UsageError):
        assess([], [BEFORE])


def test_same_inputs_same_bytes() -> None:
    def once() -> str:
        return assess([BEFORE], [capture(noisy(2, 25, typical=1100.0))]).to_json()

    assert once() == once()
    read = Assessment.model_validate_json(once())
    assert read.to_json() == once()
    assert json.loads(once())["schema_version"] == "profile_verdict.v1"


NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    steps=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    change=st.sampled_from([0.5, 0.95, 0.99, 1.0, 1.01, 1.02, 1.05, 1.1, 2.0]),
    variation=st.sampled_from([0.0, 0.001, 0.01, 0.03, 0.2]),
    phi=st.sampled_from([0.0, 0.7]),
    captures=st.integers(1, 3),
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
                times(values, SLOW) if slow and share != 0.2 else values,
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
    assert said.lower().startswith(found.status)
    # What is inconclusive is not confirmed to be so.
    is_said = found.confidence == "confirmed" and found.status != "inconclusive"
    assert ("(confirmed)" in said) == is_said
    lower, upper = found.lower_bound_pct, found.upper_bound_pct
    assert ("slower" in said) == (lower is not None and lower > 0)
    assert ("faster" in said) == (upper is not None and upper < 0)
    if "slower" in said:
        assert found.change_pct is not None
        assert found.change_pct > 0
    if found.status == "fail":
        assert found.change_pct is not None
        assert found.change_pct > threshold
        assert lower is not None
        assert lower > 0
    if found.status == "pass":
        assert found.interval_pct is not None
        assert found.interval_pct[1] < threshold
        assert all(row.result != "warn" for row in found.checks)
    assert (found.needed is not None) == ("a side" in said)
    known = [95, threshold, 6, 25, 10_000, 100, captures, found.before.steps, found.after.steps]
    known += [*found.before.steps_per_capture, *found.after.steps_per_capture]
    for row in found.checks:
        scale = 100 if row.unit == "share" else 1
        known += [scale * row.threshold]
        known += [scale * value for value in (row.change, *(row.interval or ())) if value]
    known += [0.0]
    if found.needed:
        known += [found.needed.steps_per_side or 0, found.needed.captures_per_side or 0]
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
