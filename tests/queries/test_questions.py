"""Kinds of questions, each in several wordings: what is asked is answered, or refused with the
reason; the numbers are worked out from the builders' docstrings."""

from __future__ import annotations

from typing import Any

import pytest

from builders_summary import (
    OP_GROUPS,
    build_summary,
    build_v1_summary,
    group,
    late_host,
    ledger,
    region,
)
from marin_profile.queries import answer
from marin_profile.schema import (
    Collective,
    Compilation,
    HostActivity,
    HostCause,
    Launched,
    ProfileSummary,
    Program,
    StepLedger,
)

SUMMARY = build_summary()


def refusal(question: str, summary: ProfileSummary = SUMMARY) -> str:
    answered = answer(summary, question)
    assert set(answered) == {"query_type", "cannot_answer"}, answered.get("query_type")
    reason: str = answered["cannot_answer"]["reason"]
    return reason


def rows(question: str, summary: ProfileSummary = SUMMARY) -> list[dict[str, Any]]:
    answered = answer(summary, question)
    assert "results" in answered, answered
    found: list[dict[str, Any]] = answered["results"]
    return found


def trained() -> ProfileSummary:
    """Two programs, two layers that differ in time, and a host that saves checkpoints. In each of
    the four whole periods a device runs `layer_1` for 20 us, `layer_2` for 30 and the all-reduce
    once, of 1,000 bytes; two devices."""

    def op(name: str, kind: str, per_step: float, scope: str):
        return group(
            name,
            kind,
            per_step * 8,
            scope=scope,
            account_count=8,
            per_step_duration=per_step,
            **{"pass": "other"},
        )

    whole = SUMMARY.step_time.model_copy(update={"whole_periods": 4, "mean_period": 1000.0})
    steps = [
        one.model_copy(
            update={
                "ledger": StepLedger(
                    window_duration=2000.0,
                    compute_duration=1500.0,
                    exposed_communication_duration=100.0,
                    exposed_transfer_duration=0.0,
                    unattributed_duration=0.0,
                    idle_duration=400.0,
                )
            }
        )
        for one in whole.steps
    ]
    return build_summary(
        step_time=whole.model_copy(update={"steps": steps}),
        op_groups=[
            op("fusion", "compute", 20.0, "jit(train_step)/layer_1/dot"),
            op("fusion", "compute", 30.0, "jit(train_step)/layer_2/dot"),
            op("all-reduce", "all-reduce", 10.0, "jit(train_step)/grads/psum"),
        ],
        hierarchical_regions=[
            region("jit(train_step)", 480.0, 0.0, other=480.0),
            region("jit(train_step)=>layer_1", 160.0, 0.0, other=160.0),
            region("jit(train_step)=>layer_2", 240.0, 0.0, other=240.0),
        ],
        semantic_families=[],
        hot_ops=[],
        gap_before_ops=[],
        gap_region_contexts=[],
        coverage=None,
        collectives=[
            Collective(
                collective="all-reduce",
                group_size=2,
                count=8,
                instances=4,
                bytes=8000,
                duration=80.0,
                exposed_duration=80.0,
                overlapped_duration=0.0,
            )
        ],
        programs=[
            Program(
                name="jit_train_step",
                executions=8,
                devices=2,
                exposed_duration=480.0,
                calls_per_step=1.0,
            ),
            Program(
                name="jit_eval_step",
                executions=2,
                devices=2,
                exposed_duration=20.0,
                calls_per_step=0.25,
            ),
        ],
        host_activity=[
            HostActivity(
                host="host0",
                window_duration=4000.0,
                whole_periods=4,
                idle_duration=100.0,
                causes=[
                    HostCause(
                        cause="host_event",
                        name="save_checkpoint",
                        idle_duration=60.0,
                        share_of_window=0.015,
                        count=1,
                    )
                ],
                compilations=[Compilation(function="eval_step", duration=50.0, step=7)],
                device_reads=0,
                launches=[
                    Launched(function="train_step", count=4, per_step=1.0),
                    Launched(function="eval_step", count=1, per_step=0.25),
                ],
            )
        ],
    )


TRAINED = trained()


# A name that is not there.


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("how much time in layer_99?", "layer_99"),
        ("how much does layer 3 cost?", "layer 3"),
        ("how much memory does layer_10 use?", "layer_10"),
        ("what if layer_12 were twice as fast?", "layer_12"),
        ("top ops in decoder_block", "decoder_block"),
        ("how long does `jit_predict` take?", "jit_predict"),
        ("what is the gap before fusion.4711?", "fusion.4711"),
        ("is lm_head memory bound?", "lm_head"),
        ("how many launches of serve_step per step?", "serve_step"),
        ("time in the RowParallelLinear", "RowParallelLinear"),
    ],
)
def test_a_name_that_is_not_there_is_said(question: str, name: str) -> None:
    assert f"called '{name}'" in refusal(question, TRAINED)


def test_what_is_nearest_is_named() -> None:
    assert "The nearest: layer_1, layer_2." in refusal("time in layer_9?", TRAINED)
    near = refusal("time in nothing_like_it?", TRAINED)
    assert "There are jit_train_step, jit_eval_step, layer_2, layer_1." in near


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("how idle is device 7?", "No device 7 is in this capture; there are devices 0, 1."),
        ("what did GPU 2 do?", "No device 2"),
        ("what if device 5 were average?", "No device 5"),
        ("how long did step 77 take?", "there are steps 5, 6, 7, 8, 9."),
        ("why was step 4 slow?", "No step 4"),
    ],
)
def test_a_device_or_step_that_is_not_there_is_said(question: str, reason: str) -> None:
    assert reason in refusal(question, TRAINED)


def test_a_step_by_its_number() -> None:
    (row,) = rows("how long did step 7 take?", TRAINED)
    assert (row["step_num"], row["period_of_step"]) == (7, 1000.0)
    assert rows("how idle was step 7?", TRAINED)[0]["ledger"]["idle_duration"] == 400.0


# One lookup over all that has a name.


def test_a_scope_is_looked_up_and_added_up() -> None:
    for question in (
        "how much time in layer_1?",
        "how long does layer 1 take",
        "what does `Layer_1` cost per step?",
        "time in train_step/layer_1",
        "how expensive is the layer_1 block",
    ):
        first = rows(question, TRAINED)[0]
        assert (first["record"], first["paths"]) == ("scope", ["jit(train_step)=>layer_1"])
        assert (first["inclusive_duration"], first["per_step_duration"]) == (160.0, 20.0)
        assert first["share_of_op_time"] == pytest.approx(160 / 480)


def test_a_program_is_looked_up_by_its_function() -> None:
    for question in (
        "how much time does eval_step take?",
        "how often does jit_eval_step run?",
        "eval_step",
        "how long is the program eval step",
    ):
        answered = answer(TRAINED, question)
        assert answered["query_type"] == "programs", question
        assert [row["name"] for row in answered["results"]] == ["jit_eval_step"]


def test_a_span_of_the_host_is_looked_up() -> None:
    answered = answer(TRAINED, "how much time does save_checkpoint take?")
    assert answered["query_type"] == "host_activity"
    (row,) = answered["results"]
    assert (row["name"], row["idle_duration"]) == ("save_checkpoint", 60.0)
    assert "not all that it takes" in answered["note"]


def test_several_names_are_all_answered() -> None:
    found = rows("how much time in layer_1 and layer_2?", TRAINED)
    assert [row["scope"] for row in found if row["record"] == "scope"] == ["layer_1", "layer_2"]
    assert "called 'layer_5'" in refusal("compare layer_1 with layer_5, please", TRAINED)


def test_a_name_of_two_things_is_not_guessed() -> None:
    paths = ("jit(f)=>mlp_up", "jit(f)=>mlp_down")
    two = build_summary(
        hierarchical_regions=[region(path, 8.0, 8.0) for path in paths], op_groups=[], hot_ops=[]
    )
    refused = answer(two, "how much time in the mlp?")["cannot_answer"]
    assert refused["candidates"] == ["mlp_down", "mlp_up"]


def test_numbers_in_names_are_whole() -> None:
    """layer_1 is no part of layer_10."""
    only = build_summary(hierarchical_regions=[region("jit(f)=>layer_10", 8.0, 8.0)], op_groups=[])
    assert "The nearest: layer_10." in refusal("time in layer_1?", only)


# Negation and inversion.


@pytest.mark.parametrize(
    "question",
    [
        "how much time is NOT communication?",
        "what share of the time isn't communication",
        "how much time do we spend excluding communication?",
        "time other than communication",
        "how much of the time is non-communication",
    ],
)
def test_the_rest_of_the_ledger(question: str) -> None:
    """Of 8,000 us 1,600 are exposed communication."""
    answered = answer(SUMMARY, question)
    assert answered["query_type"] == "time_of"
    (row,) = answered["results"]
    assert (row["what"], row["duration"]) == ("all but exposed_communication", 6400.0)
    assert row["share_of_device_time"] == pytest.approx(0.8)
    assert sum(part["duration"] for part in row["parts"]) == 6400.0


@pytest.mark.parametrize(
    ("question", "duration"),
    [
        ("how much time is not all-reduce?", 7440.0 - 2560.0),
        ("how much time is spent outside the mlp?", 7440.0 - 2400.0),
        ("how much time is not in the backward pass?", 7440.0 - 4160.0),
        ("how much time is not in attention?", 2400.0),
    ],
)
def test_the_rest_of_the_ops(question: str, duration: float) -> None:
    """All ops take 7,440 us; all families of the builder 4,000."""
    assert rows(question)[0]["exclusive_duration"] == duration


def test_what_is_not_hidden_is_exposed_and_what_is_not_idle_busy() -> None:
    assert answer(SUMMARY, "how much communication is not hidden?") == answer(
        SUMMARY, "how much communication is exposed?"
    )
    assert answer(SUMMARY, "which devices are not idle?")["note"] == "Devices: most busy first."
    assert answer(SUMMARY, "is it not memory bound?")["query_type"] == "bound_by"


@pytest.mark.parametrize(
    "question",
    [
        "which steps are not slow?",
        "what is neither compute nor communication?",
        "how many devices are not waiting?",
    ],
)
def test_other_negations_are_refused(question: str) -> None:
    assert "what is not" in refusal(question)


def test_the_least_comes_first_where_it_is_asked_for() -> None:
    assert rows("which op takes the least time?")[0]["name"] == "custom-call.2"
    assert rows("which collective is the cheapest?")[0]["collective"] == "all-gather"
    assert rows("what is the shortest step?")[0]["index"] == 4
    assert "cannot" not in answer(SUMMARY, "which family takes the least time?")
    assert rows("which family takes the least time?")[0]["family"] == "attention"


# Passes.


@pytest.mark.parametrize(
    "question",
    [
        "how long does the forward pass take?",
        "time in the backward pass",
        "how much time does recompute cost?",
        "top ops of the optimizer",
        "which regions of the backward pass take the most time?",
        "how much communication is in the backward pass?",
    ],
)
def test_a_pass_without_rows_is_said(question: str) -> None:
    assert "their passes: other." in refusal(question, TRAINED)


# Units.


def test_per_step_is_per_step() -> None:
    """A device all-reduces 1,000 bytes once in a step."""
    for question in (
        "how many bytes are all-reduced per step?",
        "bytes of all-reduce in each step",
        "how many bytes does an iteration all-reduce, per iteration?",
    ):
        answered = answer(TRAINED, question)
        assert answered["per"]["unit"] == "step"
        (row,) = answered["results"]
        assert (row["bytes_per_step"], row["count_per_step"]) == (1000.0, 1.0)
        assert row["per_step_duration"] == 10.0
        assert set(answered["per"]["fields"]) <= set(row)
        assert answered["units"]["bytes_per_step"] == "byte/step"


def test_a_unit_that_is_not_known_is_refused() -> None:
    assert "not known per step" in refusal("how many bytes are all-reduced per step?")
    assert "not known per second" in refusal("how idle is the device per second?")


def test_steps_per_second() -> None:
    answered = answer(TRAINED, "how many steps per second?")
    assert (answered["per"], answered["results"][0]["steps_per_second"]) == (
        {"unit": "second", "fields": ["steps_per_second"]},
        1000.0,
    )


def test_the_gap_between_steps_is_the_period_less_the_duration() -> None:
    assert rows("how long is the gap between steps?")[0]["gap_median"] == 100.0


def test_what_is_asked_per_step_is_no_question_about_steps() -> None:
    """250 of 1,000 us are idle in a step; a share is a share."""
    steps = SUMMARY.step_time.model_copy(update={"mean_period": 1000.0})
    summary = build_summary(step_time=steps)
    for question in ("how much idle time is there per step?", "idle time in each step"):
        answered = answer(summary, question)
        assert answered["query_type"] == "time_of"
        assert answered["results"][0]["per_step_duration"] == 250.0
    answered = answer(summary, "what share of the time is communication?")
    assert answered["per"]["unit"] == "share"
    assert answered["results"][0]["communication_share"] == pytest.approx(0.2)
    assert answer(TRAINED, "how many bytes per all-reduce call?")["results"][0][
        "bytes_per_call"
    ] == pytest.approx(1000.0)
    assert "'p99'" in refusal("what is the p99 of the step time?")


# Launches and compilations.


def test_launches_are_counted() -> None:
    answered = answer(TRAINED, "how many launches per step?")
    whole, *others = answered["results"]
    assert (whole["launches"], whole["launches_per_step"]) == (5, 1.25)
    assert (whole["executions"], whole["executions_per_step"]) == (10, 1.25)
    assert {row.get("function", row.get("program")) for row in others} == {
        "train_step",
        "eval_step",
        "jit_train_step",
        "jit_eval_step",
    }
    (whole, launched, executed) = rows("how often is eval_step launched?", TRAINED)
    assert (whole["launches"], launched["count"], executed["executions"]) == (1, 1, 2)


def test_launches_of_a_host_that_is_not_known_are_executions() -> None:
    silent = TRAINED.model_copy(
        update={"host_activity": [HostActivity(host="host0", reason="no shared clock")]}
    )
    answered = answer(silent, "how many launches are there?")
    assert answered["results"][0]["launches"] is None
    assert answered["results"][0]["executions"] == 10
    assert "not known: no shared clock." in answered["note"]
    nothing = silent.model_copy(update={"programs": []})
    assert "no shared clock" in refusal("how many launches are there?", nothing)


def test_compilations_are_counted_or_said_to_be_unknown() -> None:
    for question in (
        "did anything recompile?",
        "how many compilations?",
        "was eval_step compiled?",
    ):
        host, compiled = rows(question, TRAINED)
        assert (host["compilations"], host["duration"]) == (1, 50.0)
        assert (compiled["function"], compiled["step"]) == ("eval_step", 7)
    answered = answer(TRAINED, "was train_step recompiled?")
    assert answered["results"][0]["compilations"] == 0
    assert "Nothing was compiled" in answered["note"]
    silent = TRAINED.model_copy(
        update={"host_activity": [HostActivity(host="host0", reason="no shared clock")]}
    )
    assert "no shared clock" in refusal("did anything recompile?", silent)


# Devices.


def late_tpu() -> ProfileSummary:
    late = ledger("/device:TPU:1").model_copy(
        update={"compute_duration": 2400.0, "idle_duration": 600.0}
    )
    return build_summary(device_ledger=[ledger("/device:TPU:0"), late])


def test_without_known_waits_the_ledger_tells_who_is_slow() -> None:
    summary = late_tpu()
    answered = answer(summary, "which device is the slowest?")
    assert [row["device"] for row in answered["results"]] == ["/device:TPU:1", "/device:TPU:0"]
    assert "By the ledger" in answered["note"]
    assert rows("which device is the fastest?", summary)[0]["device"] == "/device:TPU:0"
    busiest = rows("which device is the busiest?", summary)
    assert busiest[1]["device"] == "/device:TPU:1"
    idle = rows("which device is the most idle?", summary)
    assert idle[1]["device"] == "/device:TPU:0"
    (one,) = rows("how idle is device 1?", summary)
    assert (one["device"], one["idle_share"]) == ("/device:TPU:1", 0.15)


def test_who_is_late_in_collectives_comes_before_the_ledger() -> None:
    assert rows("which host is the slowest?", late_host())[0]["record"] == "whole"


# Words.


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("wich ops are slowst?", "which ops are slowest?"),
        ("how much tme does comunication take?", "how much time does communication take?"),
        ("is it memroy bound?", "is it memory bound?"),
        ("how idel is each devcie?", "how idle is each device?"),
        ("top 3 colectives", "top 3 collectives"),
    ],
)
def test_mistyped_words_are_read_and_said(typed: str, meant: str) -> None:
    answered = answer(SUMMARY, typed)
    assert answered.pop("read_as")
    assert answered == answer(SUMMARY, meant)


def test_mistyped_names_are_read_and_said() -> None:
    answered = answer(TRAINED, "how long does evl_step take?")
    assert answered["read_as"] == {"evl_step": "jit_eval_step"}
    assert [row["name"] for row in answered["results"]] == ["jit_eval_step"]


@pytest.mark.parametrize(
    "question",
    [
        "what is the weather on device 1?",
        "how much does the training cost in dollars?",
        "is the loss going down?",
        "what is the accuracy of each step?",
        "how many tokens per second?",
        "which ops did Alice write?",
        "how hot is the GPU, what temperature?",
        "how much time do giraffes take?",
    ],
)
def test_a_word_that_is_not_known_is_not_passed_over(question: str) -> None:
    assert refusal(question).startswith("No query fits ")


# What narrows a question is never left out.


@pytest.mark.parametrize(
    "question",
    [
        "top ops of step 7",
        "which collectives are exposed on device 1?",
        "how much memory does device 1 use?",
        "which regions take the most time in step 7?",
        "how fast are transfers in the backward pass?",
    ],
)
def test_what_a_query_cannot_be_narrowed_to_is_said(question: str) -> None:
    assert "alone" in refusal(question)


def test_kind_and_pass_and_scope_together() -> None:
    """Of the backward pass 2,560 us are all-reduces."""
    (row,) = rows("how much of the backward pass is all-reduce?")
    assert row["exclusive_duration"] == 2560.0
    assert [row["name"] for row in rows("top ops of the mlp")] == ["fusion.7"]


@pytest.mark.parametrize(
    "question",
    [
        "how much of the compute is in layer_1 on device 0?",
        "how long does train_step take on device 0?",
        "how much time in layer_1 in step 7?",
    ],
)
def test_device_0_is_a_device(question: str) -> None:
    assert "alone" in refusal(question, TRAINED)


def test_of_several_passes_each_must_be_there() -> None:
    assert "recompute" in refusal("does recompute take longer than the backward pass?")
    assert len(rows("is the backward pass longer than the forward pass?")) == 2


@pytest.mark.parametrize(
    "question",
    [
        "which ops take longer than 10 ms?",
        "where does the time go in the first 3 seconds?",
        "how much time in layer7?",
        "what did host9 do while the devices were idle?",
        "which regions communicate the most?",
        "which op moves the most bytes?",
    ],
)
def test_what_nothing_is_made_of_is_said(question: str) -> None:
    assert refusal(question, TRAINED)


def test_several_devices_and_steps() -> None:
    for question in ("how idle are devices 0 and 1?", "how much slower is gpu0 than TPU:1?"):
        found = [row for row in rows(question, late_tpu()) if row["record"] in ("device", "ledger")]
        assert {row["device"] for row in found} == {"/device:TPU:0", "/device:TPU:1"}
    assert [row["step_num"] for row in rows("how long did steps 6 to 8 take?")] == [6, 7, 8]
    assert [row["step_num"] for row in rows("how long was the last step?")] == [9]
    assert [row["step_num"] for row in rows("how long was the first step?")] == [5]
    assert "No step 10" in refusal("how long did steps 8 to 10 take?")


def test_what_rows_are_ordered_by() -> None:
    steps = [
        one.model_copy(
            update={"ledger": one.ledger.model_copy(update={"idle_duration": 10.0 * one.index})}
        )
        for one in TRAINED.step_time.steps
        if one.ledger
    ]
    summary = TRAINED.model_copy(
        update={"step_time": TRAINED.step_time.model_copy(update={"steps": steps})}
    )
    assert rows("which step has the most idle time?", summary)[0]["index"] == 4
    assert rows("which step has the least idle time?", summary)[0]["index"] == 1
    assert "idle" in refusal("which step has the most idle time?")
    assert rows("which op runs most often?", SUMMARY)[0]["count"] == 8


def test_how_often_per_step_is_a_count() -> None:
    question = "how many times does the op fusion.7 run per step?"
    assert "not known per step" in refusal(question)
    assert rows("how many times do all-reduces run per step?", TRAINED)[0]["count_per_step"] == 1.0
    assert answer(TRAINED, "does it recompile in every step?")["query_type"] == "compilations"
    assert answer(SUMMARY, "how much host time per step?")["query_type"] == "host_activity"
    assert "No query fits" in refusal("how much time between programs?", TRAINED)


# What if.


@pytest.mark.parametrize(
    "question",
    [
        "how much faster would it be with 16 devices?",
        "what would the step take on another machine?",
        "what if we had more memory?",
    ],
)
def test_what_cannot_be_replayed_is_said(question: str) -> None:
    assert "none of what can be replayed" in refusal(question, TRAINED)


def test_the_ceiling_where_nothing_was_replayed() -> None:
    """Of the mean step of 1,000 us 20 % are exposed communication, 25 % idle."""
    steps = SUMMARY.step_time.model_copy(update={"mean_period": 1000.0})
    summary = build_summary(step_time=steps)
    for question in ("what if communication were free?", "how long without communication?"):
        answered = answer(summary, question)
        (row,) = answered["results"]
        assert (row["saving_at_most"], row["certainty"]) == (pytest.approx(200.0), "at_most")
        assert answered["note"].startswith("At most this is saved")
    assert rows("what if there were no gaps?", summary)[0]["saving_at_most"] == pytest.approx(250.0)
    assert "cannot_answer" in answer(summary, "what if fusion.7 were twice as fast?")
    assert "cannot_answer" in answer(build_v1_summary(), "what if communication were free?")


def test_the_groups_of_the_builder_are_what_the_tests_say() -> None:
    assert sum(one.exclusive_duration for one in OP_GROUPS) == 7440.0


@pytest.mark.parametrize("odd", ["²", "⑤", "½", "9" * 5000, "1" * 30, "\x1f3"])
def test_odd_digits_are_a_word_like_another(odd: str) -> None:
    for words in (f"top {odd} ops", f"step {odd}", f"device {odd}", f"top 5{odd} ops"):
        answered = answer(build_summary(), words)
        assert "results" in answered or "cannot_answer" in answered
