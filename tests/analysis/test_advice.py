"""Rules over a summary's own numbers."""

import dataclasses

import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.advice import (
    CauseOfSlowSteps,
    Findings,
    Gaps,
    HostIdle,
    HostTime,
    TopRegion,
    candidates,
    on_shared_processors,
)

CALM = Findings(
    window="steady",
    basis="device time",
    exposed_communication=0.0,
    exposed_wait=0.0,
    exposed_varying=0.0,
    straggler=None,
    worst_collective=None,
    worst_collective_scope="",
    host_transfer=0.0,
    worst_transfer=None,
    device_wait=0.0,
    worst_wait=None,
    idle=0.0,
    partly_idle=0.0,
    host_idle=(),
    launches_per_step=None,
    most_launched=(),
    reads_per_step=None,
    most_delayed=None,
    top_region=None,
    long_op=None,
    recompute=0.0,
    step_median_us=100.0,
    step_mean_us=100.0,
    step_p90_us=101.0,
    slow_steps=(),
    kept_steps=10,
    hlo_attributed=1.0,
)


def ids(**changes) -> list[str]:
    return [candidate.id for candidate in candidates(dataclasses.replace(CALM, **changes))]


def test_nothing_to_say():
    assert ids() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"exposed_varying": 0.1}, ["varying-collectives"]),
        ({"exposed_varying": 0.0999}, []),
        (
            {"exposed_communication": 0.1, "worst_collective": ("all-reduce", 0.1, 0.0)},
            ["exposed-communication"],
        ),
        ({"exposed_communication": 0.0999, "worst_collective": ("all-reduce", 0.1, 0.0)}, []),
        ({"exposed_wait": 0.1}, ["uneven-arrival"]),
        ({"exposed_wait": 0.0999}, []),
        ({"exposed_wait": 0.1, "straggler": ("d", 0.02)}, ["straggler"]),
        ({"exposed_wait": 0.1, "straggler": ("d", 0.0199)}, []),
        (
            {"host_transfer": 0.1, "worst_transfer": ("device_to_host", 0.1)},
            ["exposed-host-transfer"],
        ),
        (
            {"device_wait": 0.1, "worst_wait": ("on_chip", "copy-done.1", 0.1)},
            ["exposed-device-wait"],
        ),
        ({"device_wait": 0.0999, "worst_wait": ("on_chip", "copy-done.1", 0.0999)}, []),
        ({"idle": 0.2}, ["idle-devices"]),
        ({"idle": 0.19}, []),
        ({"idle": 0.3, "partly_idle": 0.11}, []),
        ({"idle": 0.2, "partly_idle": 0.2}, ["devices-idle-apart"]),
        ({"most_delayed": Gaps("fusion", 0.05, 0.01, 7), "idle": 0.05}, ["gap-before-op"]),
        ({"most_delayed": Gaps("fusion", 0.0499, 0.01, 7), "idle": 0.06}, []),
        ({"most_delayed": Gaps("fusion", 0.06, 0.01, 7), "idle": 0.0499}, []),
        ({"most_delayed": Gaps("fusion", 0.06, 0.03, 2), "idle": 0.06}, ["gap-before-op"]),
        ({"most_delayed": Gaps("fusion", 0.06, 0.031, 1000), "idle": 0.06}, ["one-long-gap"]),
        ({"most_delayed": Gaps("fusion", 0.06, 0.06, 1), "idle": 0.06}, ["one-long-gap"]),
        ({"most_delayed": Gaps("fusion", 0.3, 0.1, 7), "idle": 0.3}, ["idle-devices"]),
        ({"top_region": TopRegion("a/b", "fusion.1", 0.1, None)}, ["dominant-region"]),
        ({"top_region": TopRegion("a/b", "fusion.1", 0.0999, None)}, []),
        ({"top_region": TopRegion("", "fusion.1", 0.1, None)}, ["dominant-op"]),
        ({"long_op": ("k", 2, 0.3)}, ["op-longer-than-steps"]),
        ({"long_op": ("k", 1, 0.9)}, []),
        ({"long_op": ("k", 30, 0.29)}, []),
        ({"recompute": 0.05}, ["recompute"]),
        ({"recompute": 0.0499}, []),
        ({"step_p90_us": 140.0}, ["uneven-steps"]),
        ({"step_p90_us": 140.0, "kept_steps": 1}, []),
        ({"step_median_us": None, "step_p90_us": None}, []),
        ({"step_mean_us": None, "step_p90_us": 140.0}, []),
        ({"step_mean_us": 102.0}, []),
        ({"step_mean_us": 102.1}, ["uneven-steps"]),
        ({"step_mean_us": 80.0}, []),
        ({"hlo_attributed": 0.5}, ["low-attribution"]),
        ({"hlo_attributed": None}, []),
    ],
)
def test_thresholds(changes, expected):
    assert ids(**changes) == expected


def test_uneven_steps_give_both_lengths_and_the_costliest_causes():
    """The mean of 125 us is 100 us and a fifth of 125 beyond it."""
    slow = tuple(CauseOfSlowSteps(f"cause {at}", at, 10.0 - at) for at in range(1, 5))
    (found,) = candidates(dataclasses.replace(CALM, step_mean_us=125.0, slow_steps=slow))
    assert found.share == pytest.approx(0.2)
    assert found.evidence == (
        "step period: typical (median) 100.0 us, mean 125.0 us, p90 101.0 us over 10 steps",
        "cause 1: 1 step, 9.0 us of the mean step",
        "cause 2: 2 steps, 8.0 us of the mean step",
        "cause 3: 3 steps, 7.0 us of the mean step",
    )


@pytest.mark.parametrize("idle", [0.1, 0.3])
def test_one_stall_is_never_called_recurring(idle):
    """99 gaps of a microsecond and one long one."""
    gaps = Gaps("fusion", 0.08, 0.079, 100)
    (found,) = candidates(dataclasses.replace(CALM, idle=idle, most_delayed=gaps))
    words = " ".join((found.title, found.rationale, *found.evidence, *found.suggestions))
    assert "again" not in words
    assert "recurring" not in words
    assert "the longest gap alone: 7.9 % of device time" in words


def stalled(*, devices: int, stalls: int) -> list[str]:
    """Steps of 100 us with a gap of 1 us before the fusion; in `stalls` of them all devices wait 90
    us longer."""
    space = Space()
    for ordinal in range(devices):
        tpu = space.tpu(ordinal)
        at = 0
        for step in range(12):
            wait = 91 if 3 <= step < 3 + stalls else 1
            tpu.module("jit_step(7)", at, wait + 100, run_id=step)
            tpu.op("copy.1", at, 10, category="copy")
            tpu.op("fusion.1", at + 10 + wait, 89, category="loop fusion")
            at += wait + 99
    found = summary_of(space.analyse()).optimization_candidates
    return [one.candidate_id for one in found if "gap" in one.candidate_id]


@pytest.mark.parametrize("devices", [1, 4])
def test_a_stall_of_all_devices_at_once_is_one(devices):
    assert stalled(devices=devices, stalls=1) == ["one-long-gap"]
    assert stalled(devices=devices, stalls=2) == ["gap-before-op"]


def test_a_graph_is_no_op_to_optimise():
    """90 of 100 us in a graph, of which a kernel on its stream covers 20 and another stream 10."""
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("CudaGraphExec:7", 0, 90).kernel("inner", 10, 20).kernel("gemm", 90, 10)
    gpu.kernel("fusion", 40, 10, stream="Stream #17(Kernel)")
    summary = summary_of(space.analyse())
    (row,) = summary.device_ledger
    assert (row.compute_duration, row.unattributed_duration) == (40, 60)
    assert {op.name: (op.category, op.exclusive_duration) for op in summary.hot_ops} == {
        "CudaGraphExec:7": ("unknown", 70),
        "inner": ("compute", 20),
        "gemm": ("compute", 10),
        "fusion": ("compute", 10),
    }
    told = " ".join(one.title for one in summary.optimization_candidates)
    assert "CudaGraphExec" not in told
    reasons = {op.name: op.reason for op in summary.coverage.unattributed_ops}
    assert reasons["CudaGraphExec:7"] == "command buffer (CudaGraphExec:7)"
    assert reasons["gemm"] == "the event names no HLO op"


def test_the_largest_share_comes_first():
    found = ids(
        idle=0.25,
        exposed_communication=0.4,
        worst_collective=("all-reduce", 0.4, 0.1),
        recompute=0.3,
    )
    assert found == ["exposed-communication", "recompute", "idle-devices"]


def test_waits_that_nobody_causes_come_last():
    found = ids(exposed_wait=0.5, exposed_varying=0.1, recompute=0.06, idle=0.3, partly_idle=0.3)
    assert found == ["recompute", "uneven-arrival", "devices-idle-apart", "varying-collectives"]


def test_no_more_is_claimed_than_there_is():
    """0.5 of idle time with a cause, then 0.4 of collectives; 0.1 is left of what recomputes."""
    found = candidates(
        dataclasses.replace(
            CALM,
            idle=0.5,
            host_idle=(HostIdle("host_event", "load", "inside", 0.5, 3),),
            exposed_communication=0.4,
            worst_collective=("all-reduce", 0.4, 0.0),
            recompute=0.3,
        )
    )
    assert [(one.id, pytest.approx(one.share)) for one in found] == [
        ("host-event", 0.5),
        ("exposed-communication", 0.4),
        ("recompute", 0.1),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "identity", "title"),
    [
        ("compile", "step", "compile-in-window", "Compile step before the loop, once"),
        ("host_event", "load_batch", "host-event", "Wait less for load_batch"),
        ("python_frame", "$a.py:3 f", "host-event", "Wait less for a.py:3 f"),
        (
            "untraced",
            "",
            "untraced-python",
            "Find the Python code between the step markers that keeps the devices waiting",
        ),
        ("dispatch", "", "dispatch-bound", "Launch fewer, larger programs"),
        ("device_read", "np.asarray", "device-reads", "Read values from the devices less often"),
        ("device_write", "put", "device-writes", "Put batches on the devices ahead of time"),
    ],
)
def test_causes_of_idle_time(kind, name, identity, title):
    def told(share: float) -> list[tuple[str, str, str]]:
        cause = HostIdle(kind, name, "between", share, 12, (), 12, 12)
        found = candidates(dataclasses.replace(CALM, idle=share, host_idle=(cause,)))
        return [(one.id, one.title, one.certainty) for one in found]

    assert told(0.05) == [(identity, title, "known")]
    assert told(0.0499) == []


def test_a_cause_in_some_steps_names_them():
    """Every fifth step is recurring, one of twelve is not."""

    def evidence(**changes) -> str:
        cause = dataclasses.replace(
            HostIdle("host_event", "save", "inside", 0.4, 5, (4, 9, 14, 19, 24), 5, 24, 5),
            **changes,
        )
        (found,) = candidates(dataclasses.replace(CALM, idle=0.4, host_idle=(cause,)))
        return found.evidence[1]

    assert evidence() == "in 5 of 24 steps (4, 9, 14, 19, 24), every 5 steps"
    one_off = {"steps": (7,), "step_count": 1, "every": None}
    assert evidence(**one_off) == "in 1 of 24 steps (7), one-off"
    most = {"steps": tuple(range(13)), "step_count": 13, "every": None}
    assert evidence(**most) == "in 13 of 24 steps (0, 1, 2, 3, 4, 5, 6, 7, ...)"
    assert evidence(steps=(), step_count=24, every=None) == "in 24 of 24 steps"


def test_idle_time_in_waits_is_nothing_that_the_host_does():
    cause = HostIdle("device_wait", "", "inside", 0.3, 0)
    assert ids(idle=0.3, host_idle=(cause,)) == ["idle-devices"]


@pytest.mark.parametrize(
    ("between", "idle", "expected"),
    [
        (0.1, 0.1, ["gaps-between-ops"]),
        (0.0999, 0.0999, []),
        (0.3, 0.5, ["gaps-between-ops", "idle-devices"]),
        (0.3, 0.4999, ["gaps-between-ops"]),
    ],
)
def test_idle_time_between_the_ops_of_a_program_is_apart(between, idle, expected):
    cause = HostIdle("on_device", "", "inside", between, 0)
    assert ids(idle=idle, host_idle=(cause,)) == expected


def test_gaps_before_one_op_are_told_before_those_between_all():
    cause = HostIdle("on_device", "", "inside", 0.19, 0)
    gap = Gaps("dot.1", share=0.08, longest=0.01, count=9)
    found = candidates(dataclasses.replace(CALM, idle=0.19, host_idle=(cause,), most_delayed=gap))
    assert [(one.id, pytest.approx(one.share)) for one in found] == [
        ("gaps-between-ops", 0.11),
        ("gap-before-op", 0.08),
    ]


def test_a_bound_counts_half_of_what_is_known():
    """25 % of recompute at most, and 13 % that the loader costs."""
    loader = HostIdle("host_event", "load", "inside", 0.13, 3)
    assert ids(recompute=0.25, idle=0.13, host_idle=(loader,)) == ["host-event", "recompute"]
    assert ids(recompute=0.27, idle=0.13, host_idle=(loader,)) == ["recompute", "host-event"]


def test_few_launches_are_late_not_too_many():
    cause = HostIdle("dispatch", "", "inside", 0.1, 12, (), 12, 12)
    busy = {"idle": 0.1, "host_idle": (cause,)}
    assert ids(launches_per_step=4.9, **busy) == ["dispatch-late"]
    assert ids(launches_per_step=5.0, **busy) == ["dispatch-bound"]
    most = {"idle": 0.5, "host_idle": (dataclasses.replace(cause, share=0.5),)}
    assert ids(launches_per_step=2.0, **most) == ["dispatch-bound"]
    assert ids(launches_per_step=1.9, **most) == ["dispatch-late"]
    few = dataclasses.replace(cause, count=4, periods=0)
    assert ids(idle=0.1, host_idle=(few,)) == ["dispatch-late"]


def test_many_reads_are_one_finding_with_the_launches_that_they_hold_up():
    causes = (
        HostIdle("dispatch", "", "inside", 0.06, 70),
        HostIdle("device_read", "np.asarray", "inside", 0.03, 400),
    )
    busy = {"idle": 0.5, "partly_idle": 0.4, "host_idle": causes}
    (found,) = candidates(dataclasses.replace(CALM, reads_per_step=20.0, **busy))
    assert (found.id, found.share) == ("device-reads", pytest.approx(0.49))
    assert found.certainty == "at most"
    assert ids(reads_per_step=19.9, **busy) == ["dispatch-bound", "devices-idle-apart"]


def test_slow_steps_that_run_another_program_name_it():
    slow = (CauseOfSlowSteps("program jit_eval", 4, 20.0, "program", "jit_eval", 4),)
    (found,) = candidates(dataclasses.replace(CALM, step_mean_us=125.0, slow_steps=slow))
    assert found.title == "Run jit_eval less often, or apart from the steps"
    assert found.evidence[1] == "program jit_eval: 4 steps, every 4 steps, 20.0 us of the mean step"
    assert found.certainty == "known"


def test_slow_steps_with_a_cause_on_the_host_are_told_once():
    cause = HostIdle("compile", "step", "inside", 0.17, 1, (3,), 1, 12)
    found = ids(step_mean_us=125.0, idle=0.2, host_idle=(cause,))
    assert found == ["compile-in-window"]


def test_evidence_holds_the_numbers():
    (found,) = candidates(
        dataclasses.replace(
            CALM, exposed_communication=0.4, worst_collective=("all-reduce", 0.35, 0.1)
        )
    )
    assert "all-reduce" in found.title
    text = " ".join(found.evidence)
    assert "40.0 %" in text
    assert "35.0 %" in text
    assert "10.0 %" in text
    assert not any(character.isdigit() for character in found.rationale + found.title)


def test_the_wait_for_a_straggler_is_its_own_finding():
    late = dataclasses.replace(
        CALM,
        exposed_communication=0.16,
        worst_collective=("all-reduce", 0.16, 0.0),
        exposed_wait=0.35,
        straggler=("host-1", 0.3),
    )
    straggler, communication = candidates(late)  # 5 % of waits that nobody causes are too few
    assert (straggler.id, straggler.title) == ("straggler", "Find out why host-1 arrives late")
    assert straggler.share == 0.3
    assert straggler.evidence == (
        "wait for host-1: 30.0 % of device time",
        "all waits for the last to arrive: 35.0 %",
    )
    assert communication.id == "exposed-communication"
    assert communication.evidence[-1] == ("not included: waiting for the last to arrive, 35.0 %")


def test_devices_that_share_processors_wait_for_them():
    """Half of the host's time some device computes, 2 of 10 all that have work communicate. The
    ledgers, of which waits and idling beside others are most, show 10 % compute; 6 of its 10 % are
    in the region. Of 30 % exposed communication 20 are waits, and 4 vary."""
    found = on_shared_processors(
        dataclasses.replace(
            CALM,
            exposed_communication=0.06,
            exposed_varying=0.04,
            exposed_wait=0.2,
            worst_collective=("all-reduce", 0.06, 0.01),
            idle=0.6,
            partly_idle=0.3,
            most_delayed=Gaps("dot.1", share=0.2, longest=0.02, count=5),
            top_region=TopRegion("jit(f)/mlp", "dot.1", 0.06, None),
            recompute=0.02,
        ),
        HostTime(
            compute=0.5,
            communication=0.2,
            idle=0.3,
            ledger_compute=0.1,
            ledger_communication=0.3,
        ),
    )
    assert found == dataclasses.replace(
        CALM,
        basis="host time",
        exposed_communication=pytest.approx(0.12),
        exposed_varying=pytest.approx(0.08),
        worst_collective=("all-reduce", pytest.approx(0.12), 0.01),
        idle=0.3,
        most_delayed=Gaps("dot.1", share=0.1, longest=0.01, count=5),
        top_region=TopRegion("jit(f)/mlp", "dot.1", pytest.approx(0.3), None),
        recompute=pytest.approx(0.1),
    )


def test_time_that_a_straggler_costs_is_no_compute_of_all():
    late = dataclasses.replace(
        CALM, exposed_wait=0.3, straggler=("host-1", 0.25), recompute=0.1, idle=0.2
    )
    time = HostTime(0.8, 0.0, 0.2, ledger_compute=0.5, ledger_communication=0.3)
    found = on_shared_processors(late, time)
    assert (found.exposed_wait, found.straggler) == (0.25, ("host-1", 0.25))
    assert found.recompute == pytest.approx(0.1 * (0.8 - 0.25) / 0.5)
    ceilings = [one.share for one in candidates(found)]
    assert sum(ceilings) <= 1.0
