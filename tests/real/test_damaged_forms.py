"""Damaged captures read with plain and with compiled loops: the same events, or the same error."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest

from marin_profile.base.errors import ProfileError
from marin_profile.base.jit import COMPILED, PLAIN, forced
from marin_profile.capture.formats import XPLANE
from marin_profile.events.timeline import Timeline
from marin_profile.readers import read_timeline
from plain_values import plain
from real.captures import CPU8, GPU_CONV, GPU_GTX

# Small ones, of a CPU, an AMD and an Nvidia GPU.
SAMPLES = (f"{CPU8}/cpu8.xplane.pb", f"{GPU_CONV}/tw003.xplane.pb", f"{GPU_GTX}/cyclops.xplane.pb")
ROUNDS = 25


def _damaged(content: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, set, taken out or put in, and now and then the end cut."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        at = rng.randrange(len(damaged))
        size = rng.choice((1, 1, 2, 10))
        match rng.randrange(4):
            case 0:
                damaged[at] ^= 1 << rng.randrange(8)
            case 1:
                damaged[at : at + size] = bytes([rng.choice((0, 0x7F, 0x80, 0xFF))]) * size
            case 2:
                del damaged[at : at + size]
            case _:
                damaged[at:at] = rng.randbytes(size)
    end = rng.randrange(len(damaged)) if rng.random() < 0.2 else len(damaged)
    return bytes(damaged[:end])


def _read(content: bytes, form: str) -> Any:
    with forced(form):
        try:
            timeline: Timeline = read_timeline(
                io.BytesIO(content), path="a.xplane.pb", source_format=XPLANE
            )
        except ProfileError as error:
            return str(error)
    return plain(timeline)


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_is_read_alike(traces: Path, name: str) -> None:
    content = (traces / name).read_bytes()
    rng = random.Random(name)
    for index in range(ROUNDS):
        damaged = _damaged(content, rng)
        assert _read(damaged, PLAIN) == _read(damaged, COMPILED), index
