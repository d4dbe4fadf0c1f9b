"""How much of its memory each device had in use while the profile ran, as its allocator tells.

Contract
* In use is what is reserved and what is allocated; capacity is that and what is available.
* `most_in_use` is the largest after any event of the profile; `allocated_peak` the allocator's own
  figure, without what is reserved, since the process began. What is free beyond both is headroom.
* An allocator that has neither a name nor a device's number is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from marin_profile.analysis.planes import plane_kind
from marin_profile.events.timeline import AllocatorState, Timeline

_GPU_ALLOCATOR = re.compile(r"^GPU_(\d+)_")


@dataclass(frozen=True, slots=True)
class AllocatorUse:
    """Bytes. device: its plane's name, "" for memory of the host, and where it is not known."""

    name: str
    device: str
    in_use: int
    most_in_use: int
    allocated_peak: int
    capacity: int

    @property
    def headroom(self) -> int:
        return max(self.capacity - max(self.most_in_use, self.allocated_peak), 0)


def allocators(timeline: Timeline) -> tuple[AllocatorUse, ...]:
    """By device, then by name."""
    states: dict[tuple[str, int | None], list[AllocatorState]] = {}
    for state in timeline.allocations:
        if state.name or state.ordinal is not None:
            states.setdefault((state.name, state.ordinal), []).append(state)
    devices = {
        plane.name.rpartition(":")[2]: plane.name for plane in timeline.planes if plane_kind(plane)
    }
    found = []
    for (name, ordinal), own in states.items():
        last = max(own, key=lambda state: state.start)
        number = _GPU_ALLOCATOR.match(name)
        found.append(
            AllocatorUse(
                name=name,
                device=devices.get(number.group(1) if number else str(ordinal), ""),
                in_use=last.in_use,
                most_in_use=max(state.most_in_use for state in own),
                allocated_peak=max(state.peak for state in own),
                capacity=last.capacity,
            )
        )
    return tuple(sorted(found, key=lambda use: (use.device == "", use.device, use.name)))
