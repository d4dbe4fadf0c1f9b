"""The device ledger, the step account and v1's buckets, by hand."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of

DONE = "%copy-done.5 = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %copy-start.5)"


def training(devices: int = 2, steps: int = 4, *, launch: bool = False) -> Space:
    """Steps of 100 us from 30 us on: 40 of work, 20 of an all-reduce, 10 of a copy from the host,
    then 30 idle. `launch`: executions begin 2 us before and end 3 after their ops."""
    space = Space()
    space.host().call("start", 0, 5)
    for ordinal in range(devices):
        tpu = space.tpu(ordinal)
        for step in range(steps):
            at = 30 + 100 * step
            tpu.step(step, at - 5, 95)
            if launch:
                tpu.module("jit_f(1)", at - 2, 75, run_id=step)
            tpu.op("dot.1", at, 40, category="convolution")
            tpu.op("all-reduce.2", at + 40, 20, category="all-reduce")
            tpu.op("copy-done.5", at + 60, 10, category="copy-done", long_name=DONE)
    return space


def test_the_windows_of_each_device():
    """Kept are the steps 1 to 3: from 100 us after the first op to the end of the last."""
    rows = summary_of(training().analyse(host="a")).device_ledger
    assert [(row.host, row.device, row.window) for row in rows] == [
        ("a", f"/device:TPU:{ordinal}", window)
        for ordinal in range(2)
        for window in ("steady", "capture")
    ]
    for row, start, steps in ((rows[0], 100, 3), (rows[1], 0, 4)):
        assert (row.window_start, row.window_duration) == (start, 100 * steps - 30)
        assert (row.kind, row.compute_duration) == ("tpu", 40 * steps)
        assert (row.exposed_communication_duration, row.exposed_transfer_duration) == (
            20 * steps, 10 * steps,
        )  # fmt: skip
        assert (row.overlapped_communication_duration, row.unattributed_duration) == (0, 0)
        assert row.idle_duration == 30 * (steps - 1)
        assert row.exposed_communication_by_kind == {"all-reduce": 20 * steps}
        assert row.exposed_transfer_by_kind == {"host_to_device": 10 * steps}


def test_the_account_of_whole_periods():
    """Two of 100 us on each of two devices."""
    account = summary_of(training(launch=True).analyse()).step_account
    assert account is not None
    assert (account.basis, account.device_kind, account.devices, account.steps) == (
        "periods", "tpu", 2, 2,
    )  # fmt: skip
    assert (account.total_duration, account.launch_duration) == (400, None)
    assert (account.compute_duration, account.idle_duration) == (160, 120)
    assert (account.exposed_communication_duration, account.exposed_transfer_duration) == (80, 40)
    assert (account.overlapped_communication_duration, account.unattributed_duration) == (0, 0)
    assert account.exposed_communication_by_kind == {"all-reduce": 80}
    assert account.exposed_transfer_by_kind == {"host_to_device": 40}


@pytest.mark.parametrize("launch", [False, True])
def test_the_account_of_a_lone_step(launch):
    """70 us of ops on each of two devices, and 5 us of launch where executions are known."""
    account = summary_of(training(steps=2, launch=launch).analyse()).step_account
    assert account is not None
    assert (account.basis, account.devices, account.steps) == ("execution", 2, 1)
    assert account.launch_duration == (10 if launch else None)
    assert account.total_duration == 140 + (10 if launch else 0)


def test_hosts_with_other_numbers_of_steps_have_no_account():
    one, other = training(), training(steps=5)
    assert summary_of(one.analyse(host="a"), one.analyse(host="b")).step_account is not None
    assert summary_of(one.analyse(host="a"), other.analyse(host="b")).step_account is None


def test_the_buckets_of_the_headline_window():
    """Of both devices: 3 steps, with 2 pauses between."""
    found = summary_of(training().analyse()).time_breakdown
    assert (found.duration_basis, found.basis) == ("device_ledger", "steady")
    assert found.total_duration == 2 * 270
    parts = {"compute": 240, "communication": 120, "host": 60, "stall": 120, "other": 0}
    for name, value in parts.items():
        part = getattr(found, name)
        assert (part.total_duration, part.share_of_total) == (value, value / 540), name
