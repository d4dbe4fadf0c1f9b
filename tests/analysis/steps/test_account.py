"""What the kept steps cost: the windows of devices, and the launch of a lone step."""

from __future__ import annotations

import pytest

from builders_xspace import US, Space
from marin_profile.analysis.steps.account import EXECUTION, PERIODS, AccountWindows


@pytest.mark.parametrize(
    ("first", "last", "launch"),
    [((10, 30), (40, 60), 10 + 40), ((0, 30), (40, 60), 40), ((10, 30), (40, 90), 10 + 10),
     ((0, 30), (40, 100), 0)],
)  # fmt: skip
def test_the_launch_of_a_lone_step_is_before_its_first_and_after_its_last_op(first, last, launch):
    """An execution of 100 us after one of warm-up, with two ops at these times in it."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(2):
        at = 200 * step
        tpu.step(step, at, 150).module("jit_f(1)", at, 100, run_id=step)
        tpu.op("fusion.1", at + first[0], first[1] - first[0])
        tpu.op("dot.2", at + last[0], last[1] - last[0])
    part = space.analyse()
    assert part.account is not None
    assert (part.account.basis, part.account.steps) == (EXECUTION, 1)
    (device,) = part.devices
    assert device.account is not None
    ledger = device.account.ledger
    assert (ledger.end - ledger.start, device.account.launch) == (
        (last[1] - first[0]) * US,
        launch * US,
    )


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_several_kept_steps_are_accounted_by_their_periods(count):
    """Steps of 100 us; the first is warm-up. The second device begins 5 us later."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(count):
            tpu.step(step, 100 * step, 99).op("fusion.1", 100 * step + 5 * ordinal, 60)
    last = 100 * (count - 1)
    windows = ((100 * US, last * US), (105 * US, (last + 5) * US))
    part = space.analyse()
    assert part.account == AccountWindows(PERIODS, count - 2, windows)
    assert [device.account.launch for device in part.devices if device.account] == [None, None]


def test_a_device_without_part_in_a_lone_step_has_no_window():
    """The first three steps are warm-up, of which the second device runs the second one only."""
    space = Space()
    for ordinal, steps in enumerate((range(4), (1,), range(4))):
        tpu = space.tpu(ordinal)
        for step in steps:
            tpu.step(step, 100 * step, 99).op("fusion.1", 100 * step + ordinal, 60)
    windows = ((300 * US, 360 * US), None, (302 * US, 362 * US))
    assert space.analyse(warmup_steps=3).account == AccountWindows(EXECUTION, 1, windows)


def test_without_kept_steps_there_are_no_windows():
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    assert space.analyse().account is None


def test_a_lone_step_without_executions_has_no_launch():
    space = Space()
    tpu = space.tpu(0)
    for step in range(2):
        tpu.step(step, 100 * step, 99).op("fusion.1", 100 * step, 60)
    (device,) = space.analyse().devices
    assert device.account is not None
    assert device.account.launch is None


@pytest.mark.parametrize("outside", ["first", "last"])
def test_a_lone_step_that_begins_or_ends_outside_of_executions_has_no_launch(outside):
    space = Space()
    tpu = space.tpu(0)
    for step in range(2):
        at = 200 * step
        tpu.step(step, at, 150).module("jit_f(1)", at + 30, 40, run_id=step)
        tpu.op("fusion.1", at + (5 if outside == "first" else 30), 10)
        tpu.op("dot.2", at + (60 if outside == "first" else 80), 10)
    (device,) = space.analyse().devices
    assert device.account is not None
    assert device.account.launch is None


def test_of_several_executions_the_first_begins_and_the_last_ends_the_step():
    """The first begins 10 us before its op and ends with it, the second begins with its op and
    ends 20 us after it."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(2):
        at = 200 * step
        tpu.step(step, at, 150)
        tpu.module("jit_f(1)", at, 50).op("fusion.1", at + 10, 40)
        tpu.module("jit_g(2)", at + 60, 80).op("dot.2", at + 60, 60)
    (device,) = space.analyse().devices
    assert device.account is not None
    assert device.account.launch == (10 + 20) * US
