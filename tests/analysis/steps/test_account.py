"""What the kept steps cost: the windows of devices, and the launch of a lone step."""

from __future__ import annotations

import pytest

from builders_xspace import US, Space
from marin_profile.analysis.steps.account import EXECUTION


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
