"""Wire times, waits and their causes against a plain oracle, over made-up jobs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from builders_xspace import US, Space, collectives_of

OPS = 3


def job(seed: int):
    """A job of random size: its spaces, the groups of its op, and stays[step][device][occurrence].
    Some hosts open or close a step late or early."""
    draw = random.Random(seed)
    hosts, devices = draw.choice([(1, 4), (2, 2), (2, 4), (3, 2), (4, 1)])
    total = hosts * devices
    size = draw.choice([size for size in (1, 2, 3, 4, 6, 8) if total % size == 0])
    ids = list(range(total))
    draw.shuffle(ids)
    groups = [tuple(ids[at : at + size]) for at in range(0, total, size)]
    steps = range(10, 10 + draw.randint(3, 6))
    seen = [
        range(steps.start + draw.randint(0, 1), steps.stop - draw.randint(0, 1))
        for _ in range(hosts)
    ]
    stays = {
        (step, device): [draw.randint(1, 90) for _ in range(OPS)]
        for step in steps
        for device in range(total)
    }
    text = "replica_groups={" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"
    spaces = []
    for host in range(hosts):
        space = Space()
        offset = draw.randint(0, 5_000)
        for ordinal in range(devices):
            tpu = space.tpu(ordinal)
            for step in seen[host]:
                at = offset + 1000 * (step - steps.start)
                tpu.step(step, at, 900).op("fusion.1", at, 50)
                for occurrence, stay in enumerate(stays[step, host * devices + ordinal]):
                    tpu.op(
                        "all-reduce.1",
                        at + 300 * (occurrence + 1) - stay,
                        stay,
                        long_name=f"%all-reduce.1 = f32[10] all-reduce(f32[10] %p), {text}",
                    )
        spaces.append(space)
    return spaces, groups, stays, seen, devices


@pytest.mark.parametrize("seed", range(40))
def test_like_a_plain_oracle(seed):
    spaces, groups, stays, seen, devices = job(seed)
    merged = collectives_of(*spaces, warmup_steps=0)
    (row,) = merged.rows
    wire = wait = instances = 0
    waits: Counter[int] = Counter()
    caused: Counter[int] = Counter()
    on_host: Counter[int] = Counter()
    last: Counter[int] = Counter()
    wires = []
    is_whole = True
    for step in sorted({step for steps in seen for step in steps}):
        for group in groups:
            here = [device for device in group if step in seen[device // devices]]
            for occurrence in range(OPS if here else 0):
                instances += 1
                own = {device: stays[step, device][occurrence] for device in here}
                least = min(own.values())
                if len(here) < len(group):
                    is_whole = False
                else:
                    wire += least * len(group)
                    wires.append(least)
                if len(here) < 2:
                    continue
                lost = sum(stay - least for stay in own.values())
                wait += lost
                for device, stay in own.items():
                    waits[device] += stay - least
                if len(here) == len(group):
                    # Ties go to the first device.
                    late = min(sorted(group), key=lambda device: own[device])
                    caused[late] += lost
                    last[late] += lost > 0
                    on_host[late] += sum(
                        stay - least
                        for device, stay in own.items()
                        if device // devices == late // devices
                    )
    assert row.instances == instances
    assert (row.wire or 0) == wire * US
    assert (row.wait or 0) == wait * US
    assert row.wait is None or row.wait_is_lower_bound is not is_whole
    if merged.members:
        assert [one.wait for one in merged.members] == [
            waits[device] * US for device in range(len(merged.members))
        ]
        assert [one.wait_caused for one in merged.members] == [
            caused[device] * US for device in range(len(merged.members))
        ]
        assert [(one.arrived_last, one.caused_on_host) for one in merged.members] == [
            (last[device], on_host[device] * US) for device in range(len(merged.members))
        ]
        assert merged.exposed_wait == {"all-reduce": wait * US}
        varying = sum(wires) - len(wires) * min(wires, default=0)
        assert merged.exposed_varying == {"all-reduce": varying * len(groups[0]) * US}
        assert merged.exposed_wait_caused == {
            "all-reduce": tuple(caused[device] * US for device in range(len(merged.members)))
        }
        assert sum(one.exposed_wait for one in merged.members) == wait * US
