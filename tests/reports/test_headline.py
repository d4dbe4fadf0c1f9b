"""The first line: it answers, and never says more than the summary holds."""

from __future__ import annotations

from typing import Any

import pytest

from builders_summary import (
    NO_STATS,
    breakdown,
    build_summary,
    build_v1_summary,
    ledger,
    no_steps,
    stats,
    step,
    step_time,
    uneven_steps,
)
from marin_profile.reports.headline import headline
from marin_profile.schema import ProfileSummary

DEVICE_TIME = (
    "device time: 50.0 % compute, 20.0 % exposed communication (all-reduce 20.0), 4.0 % exposed "
    "transfer (device_to_host 4.0), 1.0 % unattributed, 25.0 % idle"
)


def one_step() -> dict[str, Any]:
    return {
        "step_time": step_time(
            warmup_steps_ignored=0,
            all_steps=stats(900.0, 1),
            steady_state_steps=stats(900.0, 1),
            period=NO_STATS,
            steps=[step(0, period=None)],
        )
    }


CASES = {
    "steps": (
        build_summary(),
        f"Step 1.00 ms (median period, 4 kept steps); {DEVICE_TIME} (2 devices, steady window).",
    ),
    "a mean that differs": (
        build_summary(step_time=uneven_steps()),
        "Step: typical 1.00 ms, mean 1.50 ms (median and mean period, 4 kept steps): step 7 waited "
        "for host event save_checkpoint, which adds 500.00 us to the mean; "
        f"{DEVICE_TIME} (2 devices, steady window: shares of the mean step).",
    ),
    "no steps": (
        build_summary(step_time=no_steps(), device_ledger=[ledger(window="capture")]),
        f"No steps were found; {DEVICE_TIME} (1 device, whole capture).",
    ),
    "one step": (
        build_summary(**one_step()),
        "Step 900.00 us (duration of the one step kept: no statistics); "
        f"{DEVICE_TIME} (2 devices, steady window).",
    ),
    "steps without device work": (
        build_summary(
            step_time=step_time(
                linked=False, steady_state_steps=NO_STATS, critical_path=None, classes=[]
            )
        ),
        "Step 1.00 ms (median period, 4 kept steps, device work not tied to the steps); "
        f"{DEVICE_TIME} (2 devices, steady window).",
    ),
    "steps of unknown length": (
        build_summary(
            step_time=step_time(
                period=NO_STATS, steady_state_steps=NO_STATS, critical_path=None, classes=[]
            )
        ),
        f"4 steps found, but the length is not known; {DEVICE_TIME} (2 devices, steady window).",
    ),
    "no ledger": (
        build_v1_summary(),
        "Step 900.00 us (median duration, 4 kept steps); time by the exclusive_per_track "
        "breakdown: 50.0 % compute, 20.0 % communication, 4.0 % host, 25.0 % stall, 1.0 % other.",
    ),
    "nothing": (
        build_summary(
            step_time=no_steps(),
            device_ledger=[],
            time_breakdown=breakdown().model_copy(update={"total_duration": 0.0}),
        ),
        "No steps were found; no device time was recorded.",
    ),
    "an empty window": (
        build_summary(device_ledger=[ledger(scale=0.0)], step_time=no_steps()),
        "No steps were found; time by the device_ledger breakdown: 50.0 % compute, 20.0 % "
        "communication, 4.0 % host, 25.0 % stall, 1.0 % other.",
    ),
    "sparse cores": (
        build_summary(device_ledger=[ledger(), ledger("/device:SC:0", kind="sparsecore")]),
        f"Step 1.00 ms (median period, 4 kept steps); {DEVICE_TIME} "
        "(1 device of the leading device kind, steady window).",
    ),
}


@pytest.mark.parametrize(("summary", "expected"), CASES.values(), ids=CASES.keys())
def test_headline(summary: ProfileSummary, expected: str) -> None:
    assert headline(summary) == expected


def test_kinds_are_limited_and_nothing_is_not_listed() -> None:
    kinds = {"all-reduce": 400.0, "all-gather": 200.0, "send-recv": 100.0, "all-to-all": 99.0}
    row = ledger().model_copy(
        update={"exposed_communication_by_kind": kinds | {"reduce-scatter": 0.5}}
    )
    assert "(all-reduce 10.0, all-gather 5.0, send-recv 2.5, 1 more)" in headline(
        build_summary(device_ledger=[row])
    )


def test_kinds_that_run_at_the_same_time_say_so() -> None:
    both = {"host_to_device": 120.0, "device_to_host": 100.0}
    row = ledger().model_copy(update={"exposed_transfer_by_kind": both})
    assert (
        "4.0 % exposed transfer (host_to_device 3.0, device_to_host 2.5, partly at the same time)"
        in headline(build_summary(device_ledger=[row]))
    )
