"""Rules over a summary's own numbers."""

import dataclasses

import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.advice import CauseOfSlowSteps, Findings, Gaps, candidates

CALM = Findings(
    window="steady",
    exposed_communication=0.0,
    exposed_wait=0.0,
    straggler=None,
    worst_collective=None,
    host_transfer=0.0,
    worst_transfer=None,
    device_wait=0.0,
    worst_wait=None,
    idle=0.0,
    most_delayed=None,
    top_op=None,
    top_op_bound_by=None,
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
        (
            {"exposed_communication": 0.15, "worst_collective": ("all-reduce", 0.15, 0.0)},
            ["exposed-communication"],
        ),
        ({"exposed_communication": 0.1499, "worst_collective": ("all-reduce", 0.1, 0.0)}, []),
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
        ({"most_delayed": Gaps("fusion", 0.05, 0.01, 7)}, ["gap-before-op"]),
        ({"most_delayed": Gaps("fusion", 0.0499, 0.01, 7)}, []),
        ({"most_delayed": Gaps("fusion", 0.06, 0.03, 2)}, ["gap-before-op"]),
        ({"most_delayed": Gaps("fusion", 0.06, 0.031, 1000)}, ["one-long-gap"]),
        ({"most_delayed": Gaps("fusion", 0.06, 0.06, 1)}, ["one-long-gap"]),
        ({"most_delayed": Gaps("fusion", 0.3, 0.1, 7), "idle": 0.3}, ["idle-devices"]),
        ({"top_op": ("fusion.1", "a/b", 0.3)}, ["dominant-op"]),
        ({"top_op": ("k", "", 0.9), "long_op": ("k", 2)}, ["op-longer-than-steps"]),
        ({"top_op": ("k", "", 0.9), "long_op": ("k", 1)}, ["dominant-op"]),
        ({"top_op": ("k", "", 0.9), "long_op": ("other", 30)}, ["dominant-op"]),
        ({"recompute": 0.15}, ["recompute"]),
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
    straggler, communication = candidates(late)
    assert (straggler.id, straggler.title) == ("straggler", "Find out why host-1 arrives late")
    assert straggler.share == 0.3
    assert straggler.evidence == (
        "wait for host-1: 30.0 % of device time",
        "all waits for the last to arrive: 35.0 %",
    )
    assert communication.id == "exposed-communication"
    assert communication.evidence[-1] == "not included: the wait for host-1, 30.0 %"


def test_waits_without_a_straggler_are_evidence():
    (found,) = candidates(
        dataclasses.replace(
            CALM,
            exposed_communication=0.4,
            worst_collective=("all-reduce", 0.4, 0.0),
            exposed_wait=0.25,
        )
    )
    assert found.evidence[-1] == "of which waiting for the last to arrive: 25.0 %"
