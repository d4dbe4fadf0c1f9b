"""What the queries answer; the expected numbers are worked out from the builder's docstring."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from builders_summary import (
    build_summary,
    build_v1_summary,
    gap,
    group,
    hot_op,
    late_host,
    ledger,
    no_steps,
    stats,
    step,
    step_time,
    uneven_steps,
)
from marin_profile.queries import QUERIES, answer
from marin_profile.schema import ProfileSummary, Roofline, canonical_json

SUMMARY = build_summary()
ANSWER_KEYS = {
    "query_type",
    "basis",
    "units",
    "results",
    "returned",
    "total_matched",
    "truncated",
}


def ask(question: str, summary: ProfileSummary = SUMMARY, **options: Any) -> dict[str, Any]:
    answered = answer(summary, question, **options)
    json.loads(canonical_json(answered))
    return answered


def rows(question: str, summary: ProfileSummary = SUMMARY, **options: Any) -> list[dict[str, Any]]:
    return ask(question, summary, **options)["results"]


def test_the_shape_is_one_for_all() -> None:
    for query in QUERIES:
        answered = ask(query.example)
        if "cannot_answer" in answered:
            assert set(answered) == {"query_type", "cannot_answer"}
            assert set(answered["cannot_answer"]) == {"reason", "what_would_help"}
            continue
        assert set(answered) - {"note", "per", "limit"} == ANSWER_KEYS
        assert answered["returned"] == len(answered["results"])
        assert answered["truncated"] is (answered["returned"] < answered["total_matched"])


def _quantities(value: Any, name: str = "") -> set[str]:
    if isinstance(value, dict):
        return {found for key, item in value.items() for found in _quantities(item, key)}
    if isinstance(value, list):
        return {found for item in value for found in _quantities(item, name)}
    return {name} if isinstance(value, float) else set()


def test_every_quantity_has_a_unit() -> None:
    for query in QUERIES:
        answered = ask(query.example)
        named_by_value = {"value"}  # roofline quantities carry their unit in their name
        assert _quantities(answered.get("results", [])) - named_by_value <= set(
            answered.get("units", {})
        ), query.name


# stragglers


def test_who_is_late_and_what_that_costs() -> None:
    answered = ask("which host is slow?", late_host())
    assert answered["basis"] == "stragglers: steady, collectives: capture"
    whole, reduced, late, punctual, device, other = answered["results"]
    assert whole == {
        "record": "whole",
        "exposed_communication_duration": 1600.0,
        "exposed_wait_duration": 300.0,
        "exposed_wait_share": 0.1875,
        "stragglers": ["host1"],
        "wait_for_stragglers": 300.0,
        "wait_for_stragglers_share": 0.0375,
        "is_lower_bound": False,
    }
    assert (reduced["collective"], reduced["wait_duration"]) == ("all-reduce", 100.0)
    assert reduced["wait_share"] == pytest.approx(100 / 2560)
    assert (late["host"], late["is_straggler"], late["wait_caused"]) == ("host1", True, 400.0)
    assert (punctual["host"], punctual["is_straggler"]) == ("host0", False)
    assert (device["host"], device["delay_per_step"], device["arrived_last"]) == ("host1", 100.0, 8)
    assert (other["wait"], other["wait_caused"]) == (400.0, 0.0)
    assert "note" not in answered


def test_of_one_kind_and_no_straggler() -> None:
    calm = late_host()
    calm = calm.model_copy(
        update={
            "stragglers": [
                one.model_copy(update={"is_straggler": False}) for one in calm.stragglers
            ],
            "straggler_hosts": [],
        }
    )
    answered = ask("how much of the all-gather is waiting?", calm)
    assert [row["record"] for row in answered["results"]] == ["whole", "device", "device"]
    assert answered["results"][0]["stragglers"] == []
    assert answered["note"] == "No host and no device stands out."


def test_without_known_partners_nobody_can_tell_who_is_late() -> None:
    assert (
        "which of the captured devices meet"
        in ask("are there stragglers?")["cannot_answer"]["reason"]
    )
    silent = build_summary(collectives=[], communication_ops=[])
    assert "No collective" in ask("are there stragglers?", silent)["cannot_answer"]["reason"]


def test_communication_says_how_much_of_it_is_waiting() -> None:
    (row,) = rows("is communication or compute dominating?", late_host())
    assert row["wait"]["exposed_wait_share"] == 0.1875
    assert row["wait"]["stragglers"] == ["host1"]
    assert rows("is communication or compute dominating?")[0]["wait"] is None


# top_ops


def test_top_ops_are_sorted_by_self_time_with_names_breaking_ties() -> None:
    answered = ask("top 3 ops")
    assert [(row["name"], row["exclusive_duration"]) for row in answered["results"]] == [
        ("all-reduce.3", 2400.0),
        ("fusion.7", 2400.0),
        ("fusion.9", 1600.0),
    ]
    assert answered["basis"] == "capture"
    assert (answered["returned"], answered["total_matched"]) == (3, 8)
    assert answered["truncated"] is True
    # Self time of all groups: 2400 + 1600 + 2400 + 160 + 480 + 320 + 80 = 7440.
    assert answered["results"][0]["share_of_op_time"] == pytest.approx(2400 / 7440)


def test_top_ops_of_a_kind_go_beyond_the_hot_ops() -> None:
    """Only one all-reduce is among the hot ops; the groups hold three names."""
    answered = ask("top 3 all-reduce ops")
    assert [(row["name"], row["num_names"]) for row in answered["results"]] == [
        ("all-reduce.3", 1),
        ("all-reduce", 2),
    ]
    assert {row["category"] for row in answered["results"]} == {"all-reduce"}
    assert [row["category"] for row in rows("top 1 all-gather op")] == ["all-gather"]


def test_top_ops_of_all_communication() -> None:
    assert [row["name"] for row in rows("top 2 communication ops")] == [
        "all-reduce.3",
        "all-gather.1",
    ]


def test_top_ops_of_a_pass() -> None:
    assert [row["name"] for row in rows("top 1 op of the backward pass")] == ["fusion.9"]


def test_top_ops_of_a_kind_that_is_not_there() -> None:
    answered = ask("top infeed ops")
    assert answered["results"] == []
    assert answered["note"] == "No op of the summary is of that kind."


def test_the_remainder_is_no_op() -> None:
    """Two groups are listed; the remainder's 70 names are matched but have no rows."""
    rest = group("(remainder)", "compute", 9000.0, names=[], num_names=70)
    fusions = [group("fusion", "compute", 5.0), group("dot", "compute", 4.0)]
    answered = ask("top 9 ops", build_summary(hot_ops=[], op_groups=[*fusions, rest]))
    assert [row["name"] for row in answered["results"]] == ["fusion.1", "dot.1"]
    assert (answered["total_matched"], answered["truncated"]) == (72, True)


def test_top_ops_share_needs_one_window() -> None:
    summary = build_summary(list_basis={"hot_ops": "steady", "op_groups": "capture"})
    assert rows("top 1 op", summary)[0]["share_of_op_time"] is None


def test_top_ops_of_an_older_summary() -> None:
    answered = ask("top ops", build_v1_summary())
    assert [row["name"] for row in answered["results"]] == ["fusion.7"]
    assert answered["basis"] == "not stated"


# compute_vs_communication


def test_compute_vs_communication() -> None:
    [row] = rows("is communication or compute dominating, and what is the worst collective?")
    assert row["dominant"] == row["largest"] == "compute"
    assert (row["compute_share"], row["communication_share"]) == (0.5, 0.2)
    assert row["idle_share"] == 0.25
    # Per step 160 of 360 us of communication are hidden.
    assert row["overlapped_share_of_communication"] == pytest.approx(160 / 360)
    assert row["worst_collective"]["collective"] == "all-reduce"
    assert row["worst_collective"]["exposed_duration"] == 1600.0
    assert row["communication"] == "present"


def test_compute_vs_communication_without_communication_says_not_applicable() -> None:
    quiet = ledger().model_copy(
        update={
            "overlapped_communication_duration": 0.0,
            "exposed_communication_duration": 0.0,
            "idle_duration": 1800.0,
            "exposed_communication_by_kind": {},
            "overlapped_communication_by_kind": {},
        }
    )
    summary = build_summary(device_ledger=[quiet], communication_ops=[], collectives=[])
    [row] = rows("compute vs communication", summary)
    assert row["communication"].startswith("n/a")
    assert row["communication_share"] is None
    assert row["overlapped_share_of_communication"] is None
    assert row["worst_collective"] is None
    assert row["dominant"] == "compute"


def test_compute_vs_communication_names_what_is_larger_than_both() -> None:
    idle = ledger().model_copy(update={"idle_duration": 3000.0, "window_duration": 6000.0})
    [row] = rows("compute vs communication", build_summary(device_ledger=[idle]))
    assert (row["dominant"], row["largest"]) == ("compute", "idle")


def test_compute_vs_communication_of_an_older_summary_uses_its_breakdown() -> None:
    answered = ask("compute vs communication", build_v1_summary())
    assert answered["basis"] == "not stated"
    assert answered["results"][0]["communication_share"] == 0.2


def test_compute_vs_communication_without_device_time() -> None:
    nothing = build_v1_summary().time_breakdown.model_copy(update={"total_duration": 0.0})
    summary = build_v1_summary().model_copy(update={"time_breakdown": nothing})
    assert "cannot_answer" in ask("compute vs communication", summary)


# collectives


def test_collectives_worst_first() -> None:
    found = rows("collective breakdown")
    assert [row["collective"] for row in found] == ["all-reduce", "all-gather"]
    assert found[0]["avg_duration"] == 320.0
    assert found[0]["bus_gbps"] == 50.0
    assert [row["collective"] for row in rows("how long do all-gathers take")] == ["all-gather"]


def test_collectives_of_a_summary_that_has_only_kinds() -> None:
    [row] = rows("collective breakdown", build_summary(collectives=[]))
    assert (row["collective"], row["group_size"], row["exposed_duration"]) == (
        "all-reduce",
        None,
        1600.0,
    )


def test_no_collectives() -> None:
    answered = ask("collectives", build_summary(collectives=[], communication_ops=[]))
    assert (answered["results"], answered["total_matched"]) == ([], 0)
    assert "No such collective" in answered["note"]


# gaps


def test_gap_before_an_exact_op() -> None:
    found = rows("what is the gap before copy.1?")
    assert [row["record"] for row in found] == ["gap", "gap_context"]
    assert found[0]["total_gap_duration"] == 800.0
    assert found[1]["region_path"] == "jit(step)=>mlp"


def test_gap_before_a_marker_finds_its_payload() -> None:
    assert rows("gap before `copy-start.1`")[0]["name"] == "copy.1"


def test_gap_before_an_unambiguous_part() -> None:
    assert rows("gap before all-reduce")[0]["name"] == "all-reduce.3"


def test_gap_before_an_ambiguous_part_gives_candidates() -> None:
    summary = build_summary(gap_before_ops=[gap("fusion.7", 4.0), gap("fusion.9", 2.0)])
    refusal = ask("gap before fusion", summary)["cannot_answer"]
    assert refusal["candidates"] == ["fusion.7", "fusion.9"]


def test_gap_before_an_exact_name_wins_over_longer_ones() -> None:
    summary = build_summary(gap_before_ops=[gap("fusion", 4.0), gap("fusion.9", 2.0)])
    assert rows("gap before fusion", summary)[0]["name"] == "fusion"


def test_gap_before_a_kind_means_its_one_op() -> None:
    summary = build_summary(
        hot_ops=[hot_op("psum_invariant.7", 9.0, category="all-reduce")],
        gap_before_ops=[gap("psum_invariant.7", 4.0), gap("fusion.9", 2.0)],
    )
    for question in ("gap before psum", "gap before all-reduce"):
        assert rows(question, summary)[0]["name"] == "psum_invariant.7"


def test_gap_before_a_kind_of_several_ops_gives_candidates() -> None:
    summary = build_summary(
        hot_ops=[hot_op(f"psum.{n}", 9.0, category="all-reduce") for n in (1, 2)],
        gap_before_ops=[gap("psum.1", 4.0), gap("psum.2", 2.0)],
    )
    refusal = ask("gap before all-reduce", summary)["cannot_answer"]
    assert refusal["candidates"] == ["psum.1", "psum.2"]


def test_gap_before_a_known_op_without_gaps_is_no_error() -> None:
    answered = ask("gap before all-gather.1")
    assert answered["results"] == []
    assert answered["note"] == "No gap ends at 'all-gather.1'."


def test_gap_before_an_unknown_op_names_the_close_ones() -> None:
    refusal = ask("gap before fusion.77")["cannot_answer"]
    assert refusal["reason"] == (
        "No op, region, program or span of this capture is called 'fusion.77'. "
        "The nearest: fusion.7, fusion.9."
    )
    assert "fusion.7" in refusal["candidates"]


def test_an_unknown_op_among_many_is_answered_at_once() -> None:
    summary = build_summary(gap_before_ops=[gap(f"fusion.{at}x{at}", 4.0) for at in range(9000)])
    started = time.process_time()
    refusal = ask("gap before `fusion.12345`", summary)["cannot_answer"]
    assert time.process_time() - started < 5
    assert refusal["candidates"]


def test_many_candidates_are_cut_and_said_so() -> None:
    summary = build_summary(gap_before_ops=[gap(f"fusion.{at}", 4.0) for at in range(30)])
    refusal = ask("gap before fusion", summary)["cannot_answer"]
    assert len(refusal["candidates"]) == 10
    assert "cut" in refusal["what_would_help"]


def test_gaps_without_an_op_are_the_largest() -> None:
    assert [row["name"] for row in rows("top 2 gaps")] == ["copy.1", "fusion.7"]


# context


def test_context_of_an_op() -> None:
    found = rows("show context for op copy.1")
    assert [row["record"] for row in found] == ["op", "gap_context", "gap", "region"]
    assert found[0]["exclusive_duration"] == 320.0
    assert found[3]["path"] == "jit(step)=>mlp"


def test_context_finds_the_region_of_the_scope() -> None:
    found = rows("context for `fusion.7`")
    assert [row["path"] for row in found if row["record"] == "region"] == [
        "jit(step)=>mlp=>dot_general"
    ]


def test_context_of_an_op_that_is_in_the_groups_only() -> None:
    found = rows("context for `custom-call.2`")
    assert [(row["record"], row["name"]) for row in found] == [("op", "custom-call.2")]


def test_context_of_an_unknown_op() -> None:
    assert "cannot_answer" in ask("context for `nothing.1`")


def test_contexts_without_an_op() -> None:
    [row] = rows("gap region context")
    assert (row["op_name"], row["region_path"]) == ("copy.1", "jit(step)=>mlp")


# regions, families, passes


def test_regions() -> None:
    found = rows("show hierarchical regions", top_k=2)
    assert [row["path"] for row in found] == ["jit(step)", "jit(step)=>mlp"]
    assert found[1]["inclusive_share_of_total"] == pytest.approx(2400 / 7440)
    assert found[0]["inclusive_by_pass"][0] == {"pass": "backward", "inclusive_duration": 4160.0}


def test_regions_of_a_pass() -> None:
    assert [row["path"] for row in rows("regions of the backward pass")] == [
        "jit(step)",
        "jit(step)=>attention",
    ]


def test_regions_of_an_older_summary_are_shares_of_its_breakdown() -> None:
    [row, *_] = rows("regions", build_v1_summary())
    assert row["inclusive_share_of_total"] == pytest.approx(7440 / 8000)


def test_families() -> None:
    assert [row["family"] for row in rows("time by family")] == ["matmul", "attention"]
    assert [row["share_of_total"] for row in rows("how much time is spent in attention")] == [0.2]


def test_passes() -> None:
    assert [row["pass"] for row in rows("how long is the backward pass?")] == ["backward"]
    found = {row["pass"]: row for row in rows("time by pass")}
    # backward: 1600 + 2400 + 160; forward: 2400 + 480; other: 320 + 80
    assert {name: row["exclusive_duration"] for name, row in found.items()} == {
        "backward": 4160.0,
        "forward": 2880.0,
        "other": 400.0,
    }
    assert sum(row["share_of_op_time"] for row in found.values()) == pytest.approx(1.0)
    two = rows("forward vs backward time")
    assert [row["pass"] for row in two] == ["backward", "forward"]


def test_passes_are_refused_where_no_op_carries_one() -> None:
    summary = build_summary(op_groups=[group("fusion", "compute", 1.0)])
    assert "cannot_answer" in ask("time by pass", summary)


# steps


def test_step_time() -> None:
    found = rows("how long does a step take?")
    assert [row["record"] for row in found[:2]] == ["steps", "step_class"]
    assert found[0]["period"]["median"] == 1000.0
    assert found[0]["duration"]["median"] == 900.0
    assert found[0]["critical_path"]["median"] == 910.0
    assert (found[0]["steps"], found[0]["kept_steps"]) == (5, 4)
    assert len(found) == 2 + 5


def test_step_time_gives_typical_and_mean_and_what_lies_between() -> None:
    answered = ask("how long does a step take?", build_summary(step_time=uneven_steps()))
    found = answered["results"]
    assert found[0]["length"] == {
        "measure": "period",
        "steps": 4,
        "typical": 1000.0,
        "mean": 1500.0,
        "p90": 2400.0,
        "periods": 4,
        "difference": 500.0,
        "difference_share": 0.5,
        "outlier_excess": 500.0,
        "rest": 0.0,
    }
    [cause] = [row for row in found if row["record"] == "outlier_cause"]
    assert (cause["cause_name"], cause["excess_per_period"]) == ("save_checkpoint", 500.0)
    [slow] = [row for row in found if row["record"] == "outlier"]
    assert (slow["step_num"], slow["period_of_step"], slow["excess"]) == (7, 3000.0, 2000.0)
    assert answered["note"] == (
        "The mean differs from the typical step: step 7 waited for host event save_checkpoint, "
        "which adds 500.00 us to the mean."
    )
    assert "note" not in ask("how long does a step take?")


def test_the_worst_outlier_comes_first() -> None:
    one = uneven_steps().outliers[0]
    both = [one.model_copy(update={"index": 1, "excess": 5.0}), one]
    made = uneven_steps().model_copy(update={"outliers": both})
    found = rows("step time", build_summary(step_time=made), top_k=1)
    assert [row["index"] for row in found if row["record"] == "outlier"] == [2]


def test_the_slowest_step_comes_first() -> None:
    slow = step_time(steps=[step(0), step(1, period=3000.0), step(2)])
    found = rows("which step was slowest?", build_summary(step_time=slow), top_k=1)
    assert [row["index"] for row in found if row["record"] == "step"] == [1]


def test_no_steps_cannot_be_answered() -> None:
    refusal = ask("step time", build_summary(step_time=no_steps()))["cannot_answer"]
    assert "No steps" in refusal["reason"]
    assert "StepTraceAnnotation" in refusal["what_would_help"]


def test_one_step_gives_no_statistics() -> None:
    one = step_time(
        all_steps=stats(900.0, 1), steady_state_steps=stats(900.0, 1), period=None, steps=[step(0)]
    )
    assert "no statistics" in ask("step time", build_summary(step_time=one))["note"]


# ledger and overview


def test_device_ledger_totals_and_devices() -> None:
    found = rows("how idle is each device?")
    assert [row["record"] for row in found] == ["total", "device", "device"]
    assert found[0]["window_duration"] == 8000.0
    assert found[0]["idle_share"] == 0.25
    assert found[1]["device"] == "/device:TPU:0"
    for row in found:
        terms = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle")
        assert sum(row[f"{term}_duration"] for term in terms) == row["window_duration"]


def test_device_ledger_of_the_whole_capture() -> None:
    answered = ask("device ledger of the whole capture")
    assert answered["basis"] == "capture"
    assert answered["results"][0]["window_duration"] == 10_000.0


def test_device_ledger_is_refused_without_one() -> None:
    assert "cannot_answer" in ask("device ledger", build_v1_summary())


def test_kinds_of_devices_are_never_mixed() -> None:
    assistants = [ledger(f"/device:SC:{at}", kind="sparsecore", scale=8) for at in range(3)]
    summary = build_summary(device_ledger=[*assistants, ledger()])
    totals = [row for row in rows("device ledger", summary) if row["record"] == "total"]
    assert [(row["kind"], row["devices"]) for row in totals] == [("tpu", 1), ("sparsecore", 3)]
    [row] = rows("where does the time go?", summary)
    assert row["device_time"]["kind"] == "tpu"
    assert [other["kind"] for other in row["other_devices"]] == ["sparsecore"]


def test_overview() -> None:
    [row] = rows("where does my step time go?")
    assert (row["step_measure"], row["step_median"], row["kept_steps"]) == ("period", 1000.0, 4)
    assert row["device_time"]["compute_share"] == 0.5
    assert row["device_time"]["exposed_communication_by_kind"] == [
        {"kind": "all-reduce", "duration": 1600.0, "share": 0.2}
    ]


def test_overview_gives_the_mean_where_it_differs() -> None:
    [row] = rows("where does my step time go?")
    assert (row["step_mean"], row["step_lengths_differ"], row["outlier_causes"]) == (
        1000.0, False, [],
    )  # fmt: skip
    answered = ask("where does my step time go?", build_summary(step_time=uneven_steps()))
    [row] = answered["results"]
    assert (row["step_median"], row["step_mean"], row["step_lengths_differ"]) == (
        1000.0, 1500.0, True,
    )  # fmt: skip
    assert [cause["cause"] for cause in row["outlier_causes"]] == ["host_event"]
    assert "waited for host event save_checkpoint" in answered["note"]


def test_overview_of_one_step_uses_its_duration() -> None:
    one = step_time(
        all_steps=stats(900.0, 1), steady_state_steps=stats(900.0, 1), period=None, steps=[step(0)]
    )
    [row] = rows("overview", build_summary(step_time=one))
    assert (row["step_measure"], row["step_median"], row["kept_steps"]) == ("duration", 900.0, 1)


# roofline, attribution, advice, comparison


def test_bound_by() -> None:
    found = rows("is it memory-bound or compute-bound?")
    assert found[0]["bound_by"] == "memory"
    assert found[0]["utilization"] == [
        {"name": "compute", "value": 0.1},
        {"name": "memory", "value": 0.5},
    ]
    assert [(row["record"], row["name"]) for row in found[1:]] == [
        ("part", "backward"),
        ("op", "fusion.7"),
    ]


def test_bound_by_speaks_of_all_device_time() -> None:
    """Compute is half of it: 30 % and 60 % of that are bound by one or the other."""
    [program, *_] = rows("is it memory-bound or compute-bound?")
    assert (program["bound_by"], program["compute_bound_by"]) == ("memory", "memory")
    assert [
        (part["name"], round(part["share_of_device_time"], 9)) for part in program["device_time"]
    ] == [
        ("compute, bound by memory", 0.3),
        ("idle", 0.25),
        ("exposed_communication", 0.2),
        ("compute, bound by compute", 0.15),
        ("compute, bound unknown", 0.05),
        ("exposed_transfer", 0.04),
        ("unattributed", 0.01),
    ]
    assert (program["coverage"], program["mfu_is_lower_bound"]) == (0.9, True)
    assert (program["mfu"], program["hfu"]) == (0.0809, 0.0955)


def test_an_older_roofline_does_not_say_what_bounds_compute() -> None:
    older = Roofline(bound_by="memory", achieved={"teraflops_per_second": 1.0}, coverage=0.03)
    [program, *_] = rows("is it memory-bound or compute-bound?", build_summary(roofline=older))
    names = {part["name"]: part["share_of_device_time"] for part in program["device_time"]}
    assert names["compute"] == 0.5
    assert not any(name.startswith("compute,") for name in names)


def test_bound_by_is_refused_where_half_of_the_time_has_no_costs() -> None:
    roofline = Roofline(
        peaks={"teraflops_per_second": 1.0, "hbm_gigabytes_per_second": 1.0},
        achieved={"teraflops_per_second": 1.0},
        coverage=0.4999,
        bound_by_unknown_because="Less than half.",
    )
    refusal = ask("is it memory bound?", build_summary(roofline=roofline))["cannot_answer"]
    assert "known costs" in refusal["reason"]
    assert "cost_estimate" in refusal["what_would_help"]


@pytest.mark.parametrize(
    "roofline",
    [
        None,
        Roofline(),
        Roofline(peaks={"teraflops_per_second": 1.0}),
        Roofline(achieved={"teraflops_per_second": 1.0}),
        Roofline(
            peaks={"teraflops_per_second": 1.0},
            achieved={"teraflops_per_second": 2.0},
            coverage=1.0,
        ),
    ],
)
def test_bound_by_is_refused_without_costs_peaks_or_sense(roofline: Roofline | None) -> None:
    refusal = ask("is it memory bound?", build_summary(roofline=roofline))["cannot_answer"]
    assert refusal["what_would_help"]


def test_attribution() -> None:
    found = rows("which ops lack attribution?")
    assert found[0]["hlo_attributed_share"] == 0.99
    assert found[0]["events_dropped"] == [{"reason": "negative duration", "events": 2}]
    assert (found[1]["name"], found[1]["reason"]) == ("command_buffer_3", "command buffer")


def test_attribution_is_refused_where_it_is_not_known() -> None:
    assert "cannot_answer" in ask("which ops lack attribution?", build_v1_summary())


def test_next_steps() -> None:
    [row] = rows("what should we try next?")
    assert row["candidate_id"] == "exposed_communication"
    assert row["evidence"] == ["exposed communication is 20.0 % of device time"]
    nothing = ask("what should we try next?", build_summary(optimization_candidates=[]))
    assert (nothing["results"], nothing["note"]) == ([], "No finding passed its threshold.")


def test_one_summary_cannot_tell_what_changed() -> None:
    refusal = ask("did it regress since the last run?")["cannot_answer"]
    assert "second" in refusal["reason"]
    for verb in ("bundle", "track", "compare"):
        assert f"marin-profile {verb} --before" in refusal["what_would_help"]


def test_prose_carries_no_number() -> None:
    """Reasons, helps and notes are words; numbers stand in the rows."""
    quiet = build_v1_summary()
    for query in QUERIES:
        answered = ask(query.example, quiet)
        prose = [answered.get("note", ""), *answered.get("cannot_answer", {}).values()]
        assert not any(character.isdigit() for text in prose for character in text), query.name


def test_names_pass_unharmed() -> None:
    odd = 'a|b`c"d\n<script>\u202e\x00' + "x" * 40_000
    summary = build_summary(hot_ops=[hot_op(odd, 9000.0)])
    assert rows("top 1 op", summary)[0]["name"] == odd
