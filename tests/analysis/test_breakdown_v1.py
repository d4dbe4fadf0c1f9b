"""The two older bases, by their older rules."""

from builders_xspace import US, Space
from marin_profile.analysis.breakdown_v1 import GLOBAL, PER_TRACK, breakdown_v1


def buckets(space: Space, mode: str) -> dict[str, int]:
    return {name: value // US for name, value in breakdown_v1(space.timeline(), mode).items()}


def example() -> Space:
    space = Space()
    tpu = space.tpu(0)
    tpu.op("while.1", 0, 100).op("fusion.1", 10, 30).op("all-reduce.1", 40, 50)
    tpu.op("fusion.2", 130, 20)
    tpu.step(0, 0, 150)
    tpu.event("XLA TraceMe", "barrier-cores", 0, 5)
    host = space.host()
    host.call("PjitFunction(f)", 0, 60).call("Wait for donation holds", 10, 20)
    space.plane("Task Environment").event("line", "thing", 0, 3)
    return space


def test_every_track_by_name():
    """while keeps 20 of its 100; the waiting host is stall; the Steps line is left out."""
    assert buckets(example(), PER_TRACK) == {
        "compute": 20 + 30 + 20,
        "communication": 50,
        "host": 40,
        "stall": 20 + 5,
        "other": 3,
    }


def test_one_global_timeline():
    """Compute events span 0-150; communication 40-90 comes first; compute is the rest of 0-100
    and 130-150."""
    assert buckets(example(), GLOBAL) == {
        "compute": 70,
        "communication": 50,
        "host": 0,
        "stall": 30,
        "other": 0,
    }


def test_no_device_events():
    space = Space()
    space.host().call("f", 0, 10)
    assert sum(buckets(space, GLOBAL).values()) == 0
    assert buckets(space, PER_TRACK)["host"] == 10


def test_it_is_computed_only_when_asked_for():
    assert example().analyse().older is None
    older = example().analyse(breakdown_v1_mode=GLOBAL).older
    assert older is not None
    assert older["communication"] // US == 50
