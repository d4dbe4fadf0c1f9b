"""A pod: many hosts whose devices meet in collectives of all of them, one device late in each.

Hosts differ in their times by some microseconds (seeded by the host's number), so that no two files
are alike.
"""

from __future__ import annotations

import random
from pathlib import Path

from builders_xspace import STAMP, Space

DEVICES = 4
STEP, WORK, LEAVES = 1000, 150, 950  # microseconds
LATE = 100


def pod_host(number: int, hosts: int, *, steps: int = 25, late: tuple[int, int] | None) -> Space:
    """In each step a device computes four times for some 150 us, meets the others of its host, and
    then all devices of the pod, which all leave together. `late`: (host, device) that computes
    LATE longer."""
    rng = random.Random(number)
    space = Space(host_name(number))
    python = space.host()
    for step in range(steps):
        python.marker(step, STEP * step, 40)
        python.call("PjitFunction(train_step)", STEP * step + 5, 30, run_id=step)
    total = hosts * DEVICES
    everybody = f"replica_groups=[1,{total}]<=[{total}]"
    of_host = f"replica_groups=[{hosts},{DEVICES}]<=[{total}]"
    for ordinal in range(DEVICES):
        tpu = space.tpu(ordinal, device_type_string="TPU v6 Lite")
        for step in range(steps):
            begin = at = STEP * step
            tpu.step(step, begin, LEAVES)
            tpu.module("jit_train_step(7)", begin, LEAVES, run_id=step)
            for part in range(4):
                length = WORK + rng.randint(0, 2)
                if (number, ordinal) == late and part == 0:
                    length += LATE
                scope = f"jit(train_step)/transformer/layer_{part}/mlp/dot"
                tpu.op(f"fusion.{part}", at, length, category="loop fusion", scope=scope)
                at += length
            # Within a host the last one keeps the others waiting here already.
            meets = begin + 4 * WORK + 8 + (LATE if late is not None and number == late[0] else 0)
            _collective(tpu, "all-gather.5", of_host, at, meets + 20)
            _collective(tpu, "all-reduce.6", everybody, meets + 20, begin + LEAVES)
    space.environment(1_767_323_045_000_000_000, 1_767_323_046_000_000_000)
    return space


def _collective(tpu, name: str, groups: str, start: int, end: int) -> None:
    kind = name.partition(".")[0]
    text = f"%{name} = f32[1000003]{{0}} {kind}(f32[1000003]{{0}} %p), {groups}"
    tpu.op(name, start, end - start, category=kind, long_name=text)


def host_name(number: int) -> str:
    return f"pod-{number:04}"


def write_pod(
    root: Path, hosts: int, *, steps: int = 25, late: tuple[int, int] | None = None
) -> Path:
    """The session folder of a capture of all hosts; files that are there stay."""
    folder = root / "plugins" / "profile" / STAMP
    for number in range(hosts):
        path = folder / f"{host_name(number)}.xplane.pb"
        if not path.exists():
            pod_host(number, hosts, steps=steps, late=late).write(path)
    return folder
