"""Kinds of questions in people's own words, each in several wordings; the numbers are worked out
from the docstrings of the builders."""

from __future__ import annotations

from typing import Any

import pytest

from builders_summary import build_summary, gap, group, hot_op, late_host
from marin_profile.queries import answer, run_query
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.wording import counted, left_out, moved, other_hardware
from marin_profile.schema import Collective, ProfileSummary, Transfer, WhatIf, WhatIfChange

SUMMARY = build_summary()


def rows(question: str, summary: ProfileSummary = SUMMARY) -> list[dict[str, Any]]:
    answered = answer(summary, question)
    assert "results" in answered, answered
    found: list[dict[str, Any]] = answered["results"]
    return found


def refusal(question: str, summary: ProfileSummary = SUMMARY) -> str:
    answered = answer(summary, question)
    assert set(answered) == {"query_type", "cannot_answer"}, answered.get("query_type")
    reason: str = answered["cannot_answer"]["reason"]
    return reason


def moving() -> ProfileSummary:
    """Two devices in four whole periods: each copies 1,000 bytes to the host twice in a step and
    waits 5 us for each copy, and all-reduces once, 10 us of which 8 are exposed. Of the steady
    window of 4,000 us per device 32 us are exposed."""

    def op(name: str, kind: str, count: int, per_step: float, **other: Any):
        return group(
            name,
            kind,
            per_step * 8,
            count=count,
            account_count=count,
            per_step_duration=per_step,
            **other,
        )

    whole = SUMMARY.step_time.model_copy(update={"whole_periods": 4, "mean_period": 1000.0})
    return build_summary(
        step_time=whole,
        op_groups=[
            op("fusion", "compute", 24, 50.0),
            op("copy-done", "device_to_host", 16, 10.0),
            op("all-reduce", "all-reduce", 8, 10.0),
        ],
        hot_ops=[],
        transfers=[
            Transfer(
                kind="device_to_host",
                count=16,
                bytes=16000,
                span_duration=160.0,
                in_flight_duration=160.0,
                waited_duration=80.0,
            )
        ],
        list_basis={**SUMMARY.list_basis, "transfers": "capture"},
    )


MOVING = moving()


# Words without a meaning.


@pytest.mark.parametrize(
    "question",
    [
        "hey, top 3 ops pls",
        "top 3 ops plz thx",
        "could u kindly tell me teh top 3 ops",
        "um, actually: what are the top 3 ops, thanks",
    ],
)
def test_politeness_is_no_question(question: str) -> None:
    assert rows(question) == rows("top 3 ops")


def test_two_swapped_letters_of_a_short_word_are_said() -> None:
    assert answer(SUMMARY, "which ops are teh slowest")["read_as"] == {"teh": "the"}


# What is left out.


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("top ops, not counting collectives", "top ops, excluding collectives"),
        ("top ops; dont include collectives", "top ops; excluding collectives"),
        ("top ops if we ignore collectives", "top ops if we excluding collectives"),
        ("top ops, collectives not counted", "top ops, excluding collectives"),
        ("top ops with collectives left out", "top ops with excluding collectives"),
        ("top ops apart from collectives", "top ops excluding collectives"),
        ("everything but compute", "excluding compute"),
        ("leaving the all-reduce out, top ops", "excluding the all-reduce , top ops"),
        ("ignoring the first two steps", "excluding warmup"),
    ],
)
def test_what_is_left_out_is_said_in_one_way(said: str, meant: str) -> None:
    assert left_out(said).split() == meant.split()


@pytest.mark.parametrize(
    "question",
    [
        "top ops, collectives not counted",
        "top ops without counting communication",
        "slowest ops, ignoring collectives",
        "which ops take the most time, leaving out communication?",
        "most expensive ops except collectives",
        "top ops by time, no communication",
    ],
)
def test_ops_but_for_a_kind(question: str) -> None:
    answered = answer(SUMMARY, question)
    kinds = {row["category"] for row in answered["results"]}
    assert answered["query_type"] == "top_ops"
    assert "all-reduce" not in kinds
    assert "compute" in kinds


def test_which_ops_are_not_of_a_kind() -> None:
    assert "all-reduce" not in {row["category"] for row in rows("which ops are not all-reduces?")}


@pytest.mark.parametrize(
    "question",
    ["communication excluding all-reduce", "time excluding idle and communication"],
)
def test_one_part_without_another_is_refused(question: str) -> None:
    assert "cannot_answer" in answer(SUMMARY, question)


@pytest.mark.parametrize(
    "question",
    [
        "ignoring hiccups, how long is a step?",
        "step time, outliers excluded",
        "how long does a step take without counting the first step?",
    ],
)
def test_what_the_figures_leave_out_anyway(question: str) -> None:
    answered = answer(SUMMARY, question)
    assert answered["query_type"] == "step_time"
    assert answered["results"][0]["length"] == rows("step time")[0]["length"]


def test_what_the_figures_do_not_leave_out_is_refused() -> None:
    assert "what is not 'outlier'" in refusal("device ledger, ignoring outliers")


# Parts of the time.


@pytest.mark.parametrize(
    "question",
    ["how much of the time is compute?", "percent of time in compute", "compute share"],
)
def test_the_share_of_compute(question: str) -> None:
    """Of 8,000 us 4,000 are compute."""
    (row,) = rows(question)
    assert (row["what"], row["duration"], row["share_of_device_time"]) == ("compute", 4000.0, 0.5)


def test_device_time_lists_no_devices() -> None:
    (row,) = rows("how much of the device time is NOT compute?")
    assert (row["what"], row["share_of_device_time"]) == ("all but compute", 0.5)


# Copies.


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("bytes copied from device to host", "device_to_host"),
        ("bytes copied from the GPUs back to the CPU", "device_to_host"),
        ("data sent to the host", "device_to_host"),
        ("uploads from the host", "host_to_device"),
        ("bytes moved to the device", "host_to_device"),
        ("copies to or from the host", "transfer"),
        ("copies between host and device", "transfer"),
        ("memory copies", "copies"),
    ],
)
def test_copies_are_of_a_kind(said: str, kind: str) -> None:
    assert kind in moved(said)


@pytest.mark.parametrize(
    "question",
    [
        "how many bytes are copied from device to host in each step?",
        "d2h bytes per step",
        "how much data is sent to the host per step?",
        "how many bytes of memory copies per step?",
    ],
)
def test_transfers_per_step(question: str) -> None:
    answered = answer(MOVING, question)
    (row,) = answered["results"]
    assert (row["bytes_per_step"], row["count_per_step"]) == (2000.0, 2.0)
    assert row["waited_per_step_duration"] == 10.0
    assert answered["per"]["unit"] == "step"


def test_copies_take_what_is_waited_for_them() -> None:
    for question in ("how much time do memory copies take?", "memcpy time", "wait for host copies"):
        (row,) = rows(question, MOVING)
        assert (row["kind"], row["waited_duration"]) == ("device_to_host", 80.0)


def test_transfers_that_differ_between_steps_have_no_size_per_step() -> None:
    groups = [
        one.model_copy(update={"account_count": 8}) if one.count == 16 and at else one
        for at, one in enumerate([*MOVING.op_groups, MOVING.op_groups[1]])
    ]
    uneven = MOVING.model_copy(
        update={"op_groups": [MOVING.op_groups[1], *groups[1:]]},
    )
    assert "not known per step" in refusal("d2h bytes per step", uneven)


# Counts.


def test_ops_are_counted() -> None:
    """24 fusions, 16 copies and 8 all-reduces over two devices and four steps."""
    for question in ("how many kernels ran?", "number of ops", "how many ops per step?"):
        (row,) = rows(question, MOVING)
        assert (row["what"], row["count"], row["count_per_step"]) == ("all ops", 48, 6.0)


@pytest.mark.parametrize(
    "question",
    ["how many kernels ran on device 0?", "top 5 ops on gpu 1", "how many ops did device 1 run?"],
)
def test_ops_of_one_device_are_refused(question: str) -> None:
    assert "alone" in refusal(question)


def test_the_number_of_is_how_many() -> None:
    assert counted("the total number of launches") == "how many launches"
    assert counted("# of ops") == "how many ops"


# Gaps.


@pytest.mark.parametrize(
    "question",
    [
        "what is the longest gap on a device, and which op comes after it?",
        "biggest bubble?",
        "the largest single gap and the op behind it",
    ],
)
def test_the_longest_single_gap(question: str) -> None:
    summary = build_summary(
        gap_before_ops=[
            gap("often", 900.0, max_gap_duration=10.0),
            gap("once", 100.0, max_gap_duration=100.0),
        ]
    )
    answered = answer(summary, question)
    assert answered["query_type"] == "pre_op_gap"
    assert answered["results"][0]["name"] == "once"


# One op's roofline.


def test_what_binds_one_op() -> None:
    summary = build_summary(
        hot_ops=[
            hot_op("fusion.7", 10.0, flops=100, bytes_accessed=50, bound_by="memory"),
            hot_op("fusion.8", 10.0),
        ]
    )
    for question in (
        "is fusion.7 compute bound or memory bound?",
        "arithmetic intensity of fusion.7",
        "what is fusion.7 bound by",
    ):
        (row,) = rows(question, summary)
        assert (row["bound_by"], row["flops_per_byte"]) == ("memory", 2.0)
    assert "costs of fusion.8" in refusal("is fusion.8 memory bound?", summary)


def test_a_question_of_mfu_is_no_question_of_time() -> None:
    assert answer(SUMMARY, "what is the mfu of the backward pass?")["query_type"] == "bound_by"


# Other machines.


@pytest.mark.parametrize(
    "question",
    [
        "how long would a step take on an H100?",
        "step time on MI300X",
        "is it faster on TPU v5p?",
        "what would a step take on a Trillium",
        "how long is a step on 64 chips?",
    ],
)
def test_another_machine_is_refused(question: str) -> None:
    assert "none of what can be replayed" in refusal(question)


def test_the_own_machine_is_no_other() -> None:
    assert other_hardware("on a TPU v6e", "TPU v6e", 4)[1] == []
    assert other_hardware("on 4 chips", None, 4)[1] == []
    assert other_hardware("p90 of fusion.100", None, 4)[1] == []


def test_a_slow_device_need_not_be_named() -> None:
    changes = [("device", "/device:TPU:1", 30.0), ("communication", None, 10.0)]
    summary = build_summary(
        what_if=WhatIf(
            step_now=100.0,
            replayed_step=100.0,
            replay_error=0.0,
            whole_periods=4,
            changes=[
                WhatIfChange(
                    change=change,
                    target="median",
                    name=name,
                    host=None,
                    factor=0.0,
                    step_then=100.0 - saving,
                    saving=saving,
                    saving_at_least=saving,
                    saving_share=saving / 100,
                    certainty="exact",
                )
                for change, name, saving in changes
            ],
        )
    )
    found = rows("how much faster would it be if the slow device were like the rest?", summary)
    assert [row["change"] for row in found if row["record"] == "change"] == ["device"]
    asked = run_query(summary, "what_if", Parameters(straggler=True))
    assert asked["results"] == found


# Programs by what they do.


def test_a_program_by_what_it_does() -> None:
    assert "No program of this capture is called 'evaluation'" in refusal(
        "how much time does evaluation take?"
    )
    assert "'validation'" in refusal("how long is validation?")


def test_waits_per_step() -> None:
    """Of eight executions by two devices in four steps, 16 us are waiting."""
    summary = late_host().model_copy(
        update={
            "op_groups": MOVING.op_groups,
            "step_time": MOVING.step_time,
            "device_ledger": MOVING.device_ledger,
            "collectives": [
                Collective(
                    collective="all-reduce",
                    count=8,
                    duration=80.0,
                    exposed_duration=80.0,
                    overlapped_duration=0.0,
                    wait_duration=16.0,
                )
            ],
        }
    )
    for question in (
        "how much time per step is lost to waiting for the slowest device?",
        "time lost per step to waiting for the slowest device, not counting the wire time",
        "how long do the others wait for stragglers in each step?",
    ):
        (row,) = [one for one in rows(question, summary) if one["record"] == "collective"]
        assert row["wait_per_step_duration"] == 2.0


def test_exposed_communication_per_step_by_kind() -> None:
    """Of the builder's steady windows 20 % are exposed all-reduces, of a mean step of 1,000 us."""
    summary = MOVING.model_copy(
        update={
            "collectives": [
                Collective(
                    collective="all-reduce",
                    count=8,
                    duration=80.0,
                    exposed_duration=64.0,
                    overlapped_duration=1e-7,
                )
            ]
        }
    )
    for question in (
        "exposed communication per step by kind of collective",
        "exposed comm per step for each kind",
    ):
        answered = answer(summary, question)
        (row,) = answered["results"]
        assert answered["query_type"] == "collective_breakdown"
        assert row["exposed_per_step_duration"] == pytest.approx(200.0)
        assert row["overlapped_duration"] == 0.0  # 1e-7 us: less than the files can tell.


def test_a_kind_is_no_op_of_that_name() -> None:
    summary = build_summary(hot_ops=[hot_op("all-reduce", 10.0, category="all-reduce")])
    for question in ("how much of the all-reduce is exposed?", "time in all reduce"):
        assert answer(summary, question)["query_type"] == "collective_breakdown"
    assert answer(summary, "context for op all-reduce")["query_type"] == "gap_region_context"
