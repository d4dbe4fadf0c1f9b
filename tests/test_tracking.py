"""Captures and a history -> a verdict and its record: caveats, the noise floor, what is kept."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from builders_verdict import capture, noisy
from marin_profile.base.errors import UsageError
from marin_profile.history import HistoryRecord, append, read, record_of
from marin_profile.schema import CaptureDetails, ProfileSummary, TraceProvenance
from marin_profile.tracking import record, track
from marin_profile.verdict import Thresholds, assess

BEFORE = capture(noisy(1, 25))
SAME = capture(noisy(3, 25))
SLOWER = capture(noisy(2, 25, typical=1100.0))
REPEATS = [capture(noisy(seed, 25)) for seed in (31, 32, 33, 34)]
LABEL = "small model"


def altered(summary: ProfileSummary, part: str, **changes: Any) -> ProfileSummary:
    return summary.model_copy(
        update={part: getattr(summary, part).model_copy(update=changes)},
    )


def with_medians(target: Path, medians: list[float], **changes: Any) -> str:
    """A history of captures of BEFORE's configuration, with these median step times."""
    for day, median in enumerate(medians, 1):
        values = {
            "time": f"2026-02-{day:02}T00:00:00.000000Z",
            "time_source": "capture",
            "trace_sha256": f"{day:064}",
            "git_sha": "a" * 40,
            "median": median,
            "mean_period": median,
            "status": "pass",
        }
        made = record_of(BEFORE, label=LABEL).model_copy(update=values | changes)
        append(str(target), made)
    return str(target)


# What blocks


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (
            altered(SAME, "run_metadata", hardware_type="TPU v4"),
            "Hardware differs: TPU v6 Lite before, TPU v4 after",
        ),
        (
            altered(SAME, "run_metadata", num_devices=4),
            "Number of devices differs: 2 before, 4 after",
        ),
        (
            altered(SAME, "step_time", source="module"),
            "The source of the steps differs: annotation before, module after",
        ),
        (
            altered(SAME, "time_breakdown", duration_basis="exclusive_global"),
            "Duration basis differs: device_ledger before, exclusive_global after",
        ),
        (altered(SAME, "trace_overview", suspected_truncation=True), "after may be truncated"),
        (
            altered(SAME, "time_breakdown", total_duration=0.0).model_copy(
                update={"device_ledger": []}
            ),
            "after holds no device time (host only)",
        ),
        (BEFORE, "after is the same capture as before"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_compared_is_inconclusive_with_the_reason(
    after: ProfileSummary, reason: str
) -> None:
    tracked = track([BEFORE], [after])
    assert tracked.assessment.status == "inconclusive"
    assert tracked.assessment.sentence == f"Helped: cannot tell. Inconclusive: {reason}."
    assert tracked.assessment.reasons == (reason,)
    assert tracked.assessment.change_pct is None
    assert len(tracked.blocking) == 1


def test_a_note_does_not_block() -> None:
    tracked = track([BEFORE], [altered(SLOWER, "run_metadata", num_hosts=2)])
    assert tracked.assessment.status == "likely_fail"
    assert tracked.caveats == tracked.notes == ("Number of hosts differs: 1 before, 2 after.",)


def test_without_caveats_the_verdict_is_that_of_the_step_times() -> None:
    thresholds = Thresholds(max_step_median_regression_pct=20)
    tracked = track([BEFORE, REPEATS[0]], [SLOWER], thresholds, label=LABEL)
    expected = assess([BEFORE, REPEATS[0]], [SLOWER], thresholds)
    assert tracked.assessment == expected.model_copy(update={"label": LABEL})
    assert (tracked.caveats, tracked.history_notes) == ((), ())


def test_of_several_captures_a_caveat_names_the_ones_it_is_about() -> None:
    other = altered(REPEATS[1], "run_metadata", hardware_type="TPU v4")
    tracked = track([BEFORE, other], [SLOWER, SAME])
    sentence = "Hardware differs: TPU v4 before, TPU v6 Lite after"
    assert tracked.blocking == (f"Before 2, after 1: {sentence}.",)
    assert tracked.assessment.reasons == (f"Before 2, after 1: {sentence}",)

    tracked = track([BEFORE], [SLOWER, SAME, altered(other, "run_metadata", num_devices=4)])
    assert tracked.assessment.status == "inconclusive"
    assert all(text.startswith("Before 1, after 3: ") for text in tracked.blocking)
    assert len(tracked.blocking) == 2


def test_a_caveat_about_all_captures_appears_once() -> None:
    hosts = [altered(one, "run_metadata", num_hosts=2) for one in (SLOWER, SAME, REPEATS[0])]
    tracked = track([BEFORE, REPEATS[1]], hosts)
    assert tracked.notes == ("Number of hosts differs: 1 before, 2 after.",)


def test_a_capture_twice_on_one_side_is_no_repeat() -> None:
    tracked = track([BEFORE, BEFORE], [SLOWER])
    assert tracked.assessment.reasons == ("before 2 is the same capture as before 1",)
    assert tracked.blocking == ("One capture is named twice, as before 1 and as before 2.",)


def test_both_sides_need_a_capture(tmp_path: Path) -> None:
    for sides in (([], [SAME]), ([BEFORE], [])):
        with pytest.raises(UsageError, match="at least one summary before"):
            track(*sides, history=str(tmp_path / "h.jsonl"))


# The noise floor


def test_the_noise_floor_of_the_history_reaches_the_verdict(tmp_path: Path) -> None:
    medians = [1000.0, 1040.0, 960.0, 1010.0, 990.0]
    history = with_medians(tmp_path / "h.jsonl", medians)
    slower = capture(noisy(2, 25, typical=1090.0))
    tracked = track([BEFORE], [slower], label=LABEL, history=history)
    found = tracked.assessment
    spread = statistics.stdev(math.log(median) for median in medians)
    assert found.noise_floor is not None
    assert (found.noise_floor.num_repeats, found.noise_floor.log_sd) == (5, spread)
    assert (found.confidence, found.error_from) == ("confirmed", "captures")
    # One capture against one: t(0.975, 4) = 2.7764, and its 99.5 % bound with t(0.995, 4) = 4.6041.
    assert found.change_pct is not None
    assert found.interval_pct is not None
    change = math.log1p(found.change_pct / 100)
    wide = [100 * math.expm1(change + sign * 2.776445 * spread * 2**0.5) for sign in (-1, 1)]
    assert found.interval_pct == pytest.approx(wide, abs=1e-3)
    bound = 100 * math.expm1(change - 4.604095 * spread * 2**0.5)
    assert found.lower_bound_pct == pytest.approx(bound, abs=1e-3)
    # Without the history the same two captures are likely to fail.
    assert found.status == "inconclusive"
    assert track([BEFORE], [slower], label=LABEL).assessment.status == "likely_fail"
    percent = f"{100 * spread:.1f}"
    assert tracked.history_notes == (
        f"The noise floor is {percent} % from run to run, that of the mean {percent} %, by 5 "
        "repeats of 1 commit in the history.",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"label": "another"},
        {"status": "fail"},
        {"status": "likely_fail"},
        {"hardware_type": "TPU v4"},
        {"suspected_truncation": True},
        {"time_basis": "duration"},
    ],
    ids=str,
)
def test_what_is_no_repeat_makes_no_noise_floor(tmp_path: Path, changes: dict[str, Any]) -> None:
    history = with_medians(tmp_path / "h.jsonl", [1000.0, 1010.0, 990.0], **changes)
    tracked = track([BEFORE], [SLOWER], label=LABEL, history=history)
    assert (tracked.assessment.noise_floor, tracked.assessment.confidence) == (None, "likely")
    assert tracked.history_notes == (
        "The history gives no noise floor yet: it takes three repeats of one commit, or two of "
        "each of two, in the configuration before the change; besides the judged ones there are 0 "
        "captures.",
    )


def test_captures_of_unknown_commit_make_no_noise_floor(tmp_path: Path) -> None:
    medians = [1000.0, 1010.0, 990.0]
    history = with_medians(tmp_path / "h.jsonl", medians, git_sha=None)
    tracked = track([BEFORE], [SLOWER], label=LABEL, history=history)
    assert (tracked.assessment.noise_floor, tracked.assessment.confidence) == (None, "likely")
    assert tracked.history_notes[0].endswith(
        "besides the judged ones there are 3 captures; 3 captures of unknown commit cannot count "
        "as repeats (name the commit with --commit)."
    )


def test_a_record_of_another_commit_does_not_widen_the_interval(tmp_path: Path) -> None:
    """One 26 % faster capture among them used to turn +10 % confirmed into inconclusive."""
    history = with_medians(tmp_path / "h.jsonl", [1000.0, 1010.0, 990.0, 1005.0])
    first = track([BEFORE], [SLOWER], label=LABEL, history=history).assessment
    assert (first.status, first.confidence) == ("fail", "confirmed")
    faster = {"trace_sha256": "f" * 64, "git_sha": "b" * 40} | dict.fromkeys(
        ("median", "mean_period"), 740.0
    )
    append(history, record_of(BEFORE, label=LABEL).model_copy(update=faster))
    assert track([BEFORE], [SLOWER], label=LABEL, history=history).assessment == first
    # Even called the same commit it is an outlier.
    same = {"trace_sha256": "e" * 64, "git_sha": "a" * 40}
    append(history, record_of(BEFORE, label=LABEL).model_copy(update=faster | same))
    again = track([BEFORE], [SLOWER], label=LABEL, history=history)
    assert again.assessment.interval_pct == first.interval_pct
    assert "1 outlier left out" in again.history_notes[0]


def test_without_label_and_config_nothing_is_a_repeat(tmp_path: Path) -> None:
    history = with_medians(tmp_path / "h.jsonl", [1000.0, 1010.0, 990.0], label=None)
    tracked = track([BEFORE], [SLOWER], history=history)
    assert tracked.assessment.noise_floor is None
    assert "name one with --label" in tracked.history_notes[-1]


def test_judged_captures_are_no_repeats_of_themselves(tmp_path: Path) -> None:
    """So that a second look, with the first one's records in the history, gives the same."""
    history = with_medians(tmp_path / "h.jsonl", [1000.0, 1010.0, 990.0])
    sides = ([BEFORE, REPEATS[0]], [SAME, REPEATS[1]])
    first = track(*sides, label=LABEL, history=history)
    assert first.assessment.noise_floor is not None
    assert first.assessment.noise_floor.num_repeats == 3
    for judged in (sides[0], sides[1]):
        assert record(history, judged, first.assessment, git_sha="a" * 40) == 2
    assert track(*sides, label=LABEL, history=history) == first
    # For another change they are repeats like any.
    later = track([BEFORE], [SLOWER], label=LABEL, history=history).assessment
    assert later.noise_floor is not None
    assert later.noise_floor.num_repeats == 6


def test_a_history_that_is_not_there_yet_is_none_and_is_not_made(tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    tracked = track([BEFORE], [SLOWER], label=LABEL, history=str(history))
    assert tracked.assessment == track([BEFORE], [SLOWER], label=LABEL).assessment
    assert not history.exists()


def test_a_torn_line_is_reported(tmp_path: Path) -> None:
    history = with_medians(tmp_path / "h.jsonl", [1000.0, 1010.0, 990.0])
    with Path(history).open("ab") as stream:
        stream.write(b'{"schema_version": "profile_hist')
    tracked = track([BEFORE], [SLOWER], label=LABEL, history=history)
    assert tracked.assessment.noise_floor is not None
    torn, floor = tracked.history_notes
    assert "h.jsonl" in torn
    assert "torn" in torn
    assert floor.startswith("The noise floor is ")


# The record


@pytest.mark.parametrize("name", ["h.jsonl", "history/", "memory://tracking/history"])
def test_captures_after_are_recorded_once_with_their_verdict(tmp_path: Path, name: str) -> None:
    history = name if "://" in name else f"{tmp_path}/{name}"
    after = [SLOWER, capture(noisy(4, 25, typical=1100.0))]
    found = track([BEFORE, SAME], after, label=LABEL).assessment
    assert (found.status, found.confidence) == ("fail", "confirmed")
    assert record(history, after, found) == 2
    assert record(history, after, found, recorded_at_utc="2026-03-01T00:00:00.000000Z") == 0
    records = {one.trace_sha256: one for one in read(history).records}
    assert set(records) == {one.trace_provenance.trace_sha256 for one in after}
    for one in records.values():
        assert (one.label, one.status, one.confidence) == (LABEL, "fail", "confirmed")
        assert (one.num_steps, one.recorded_at_utc) == (25, None)


def test_the_clock_is_kept_where_it_is_given(tmp_path: Path) -> None:
    history = f"{tmp_path}/h.jsonl"
    found = track([BEFORE], [SAME]).assessment
    assert record(history, [SAME], found, recorded_at_utc="2026-03-01T00:00:00.000000Z") == 1
    [one] = read(history).records
    assert (one.recorded_at_utc, one.time) == (
        "2026-03-01T00:00:00.000000Z",
        "2026-01-02T03:04:05.000000Z",
    )


def test_another_label_is_another_record(tmp_path: Path) -> None:
    history = f"{tmp_path}/h.jsonl"
    for label in ("one", "two", "one"):
        record(history, [SAME], track([BEFORE], [SAME], label=label).assessment)
    assert sorted(str(one.label) for one in read(history).records) == ["one", "two"]


def test_a_line_of_the_older_tool_does_not_stand_for_the_capture(tmp_path: Path) -> None:
    history = f"{tmp_path}/h.jsonl"
    older = HistoryRecord(trace_sha256=SAME.trace_provenance.trace_sha256, median=1.0)
    append(history, older)
    assert record(history, [SAME], track([BEFORE], [SAME]).assessment) == 1


def test_without_a_digest_the_same_capture_is_still_recorded_once(tmp_path: Path) -> None:
    history = f"{tmp_path}/h.jsonl"
    bare = SAME.model_copy(update={"trace_provenance": TraceProvenance()})
    found = track([BEFORE], [bare]).assessment
    assert [record(history, [bare, bare], found), record(history, [bare], found)] == [1, 0]
    again = found.model_copy(update={"status": "warn"})
    assert record(history, [bare], again, recorded_at_utc="2026-03-01T00:00:00.000000Z") == 0


# Pairs


def taken_at(hours: list[float], typicals: list[float], seed: int) -> list[ProfileSummary]:
    """One capture at each hour of a day."""
    made = []
    for at, (hour, typical) in enumerate(zip(hours, typicals, strict=True)):
        summary = capture(noisy(seed + at, 25, typical=typical, variation=0.005))
        start = f"2026-02-01T{int(hour):02}:{round(hour % 1 * 60):02}:00.000000Z"
        kept = summary.capture or CaptureDetails()
        made.append(
            summary.model_copy(update={"capture": kept.model_copy(update={"start": start})})
        )
    return made


# Each hour 3 % slower than the one before; the change costs 8 %. Turned round in every second pair.
DRIFT = [1000.0 * 1.03**hour for hour in range(8)]
BASE_HOURS, HEAD_HOURS = [0.0, 3.0, 4.0, 7.0], [1.0, 2.0, 5.0, 6.0]
IN_TURN = (
    taken_at(BASE_HOURS, [DRIFT[int(hour)] for hour in BASE_HOURS], 50),
    taken_at(HEAD_HOURS, [1.08 * DRIFT[int(hour)] for hour in HEAD_HOURS], 60),
)


def test_captures_taken_in_turn_are_judged_as_pairs() -> None:
    before, after = IN_TURN
    shuffled = [before[at] for at in (2, 0, 3, 1)]
    tracked = track(shuffled, after)
    # Hours 0-1, 2-3, 4-5, 6-7: places in the order given.
    assert tracked.pairs == ((1, 0), (3, 1), (0, 2), (2, 3))
    found = tracked.assessment
    assert (found.error_from, found.confidence) == ("pairs", "confirmed")
    assert found.interval_pct is not None
    # +3 and -3 % turn and turn about: 8 % with a standard deviation of 3.4 % over four pairs.
    assert found.change_pct == pytest.approx(8.0, abs=0.6)
    assert found.interval_pct[1] - found.interval_pct[0] == pytest.approx(11.8, abs=1.5)
    assert "4 pairs of captures" in found.sentence


def test_pairs_follow_the_order_given_where_times_are_not_known() -> None:
    before, after = [[capture(noisy(seed, 25)) for seed in seeds] for seeds in ((1, 2), (3, 4))]
    assert track(before, after).pairs == ()
    assert track(before, after, pair=True).pairs == ((0, 0), (1, 1))
    with pytest.raises(UsageError, match="as many captures before as after"):
        track(before, after[:1], pair=True)


def test_after_each_pair_bounds_are_wider() -> None:
    before, after = IN_TURN
    fixed = track(before, after, pair=True).assessment
    looked = track(before, after, sequential=True).assessment
    assert fixed.interval_pct is not None
    assert looked.interval_pct is not None
    assert looked.interval_pct[1] > fixed.interval_pct[1]
    assert looked.sequential is not None
    assert (looked.sequential.pairs, looked.sequential.last_look) == (4, 20)
    assert track(before[:2], after[:2], sequential=True).assessment.status == "inconclusive"
