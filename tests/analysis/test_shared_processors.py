"""What the time of a host with CPU devices goes to, by hand and against a plain oracle."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from builders_xspace import US, Space
from marin_profile.analysis.shared_processors import SharedTime

ALL_REDUCE = "all-reduce.1"


def test_a_device_that_waits_while_another_computes_waits_for_processors() -> None:
    """Device 0 computes 0 to 40 and waits in its all-reduce until 100; device 1 idles to 30,
    computes to 80 and is in the all-reduce to 100. Then both idle until device 0 copies."""
    host = Space()
    ops = host.host()
    ops.cpu_op("dot.1", 0, 40).cpu_op(ALL_REDUCE, 40, 60)
    ops.cpu_op("dot.1", 30, 50, ordinal=1).cpu_op(ALL_REDUCE, 80, 20, ordinal=1)
    ops.cpu_op("dot.2", 130, 10)
    assert host.analyse().shared == SharedTime(
        length=140 * US, compute=(80 + 10) * US, communication=20 * US, other=0, idle=30 * US
    )


def test_a_lone_device_shares_with_nobody() -> None:
    space = Space()
    space.host().cpu_op("dot.1", 0, 40)
    assert space.analyse().shared is None


def test_accelerators_have_their_own_processors() -> None:
    space = Space()
    space.tpu(0).op("dot.1", 0, 40)
    space.tpu(1).op("dot.1", 0, 40)
    assert space.analyse().shared is None


@pytest.mark.parametrize("seed", range(10))
def test_like_instants_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    space = Space()
    ops = space.host()
    names = {"dot.1": "compute", ALL_REDUCE: "communication"}
    states: list[set[str]] = [set() for _ in range(400)]
    for device in range(3):
        at = 0
        while at < 300:
            at += draw.randint(0, 9)
            name = draw.choice(list(names))
            length = draw.randint(1, 12)
            ops.cpu_op(name, at, length, ordinal=device)
            for instant in range(at, at + length):
                states[instant].add(names[name])
            at += length
    busy = [at for at, state in enumerate(states) if state]
    window = states[busy[0] : busy[-1] + 1]
    found = space.analyse().shared
    assert found is not None
    assert [found.length, found.compute, found.communication, found.idle] == [
        Fraction(US) * count
        for count in (
            len(window),
            sum("compute" in state for state in window),
            sum(state == {"communication"} for state in window),
            sum(not state for state in window),
        )
    ]
