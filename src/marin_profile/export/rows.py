"""Device events block by block: what every table of them is made of.

Contract
* A row is an event that the summary counts as device work (see `analysis.devices`), in the order of
  hosts, devices and starts. Names of hosts, devices, programs, ops, kinds, passes and regions are
  those of the summary.
* Times are picoseconds, lengths on the device's clock. `start` counts from the host's first device
  op, as all times of the summary do. Clocks of hosts are not compared.
* Sums are the summary's: `duration` and `self` by op to its totals, `exposed` by device and kind
  to the ledger of the whole capture, since an event's `exposed` time is what it owns (`ownership`).
* `step` is the step that the summary counts the event to, by its number, else its index; None
  outside of steps, on sparse cores, and where steps are not linked to work.
* At most BLOCK rows a block, and one host's Timeline in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.ops import programs_of
from marin_profile.analysis.ownership import is_serial, owned_time
from marin_profile.analysis.steps.boundaries import FoundSteps
from marin_profile.analysis.steps.find import find_members
from marin_profile.analysis.steps.series import NO_STEP, Bools
from marin_profile.base.columns import distinct, sum_by
from marin_profile.base.errors import CannotAnswerError
from marin_profile.capture.sources import Capture
from marin_profile.events.scopes import SEPARATOR
from marin_profile.events.timeline import Int32s, Int64s, Timeline
from marin_profile.pipeline.reading import read_hosts

TEXTS = ("host", "device", "program", "program_id", "op", "kind", "pass", "region")
NUMBERS = ("start_ps", "duration_ps", "self_ps", "exposed_ps")
COLUMNS = ("host", "device", "step", *TEXTS[2:], *NUMBERS)
BLOCK = 1 << 16
UNKNOWN = -1


@dataclass(frozen=True)
class Texts:
    """A column: `codes` index `values`, which are distinct; UNKNOWN is no text."""

    values: tuple[str, ...]
    codes: Int32s


@dataclass(frozen=True)
class Block:
    """Some rows, column by column. step: a number where `has_step` is true."""

    count: int
    texts: dict[str, Texts]
    step: Int64s
    has_step: Bools
    numbers: dict[str, Int64s]


def event_blocks(capture: Capture, note: Callable[[str], None]) -> Iterator[Block]:
    """All events of a capture; what is missing or doubtful is a note. Raises BrokenInputError if no
    file can be read, CannotAnswerError if no device did any work."""
    is_empty = True
    for timeline, file in read_hosts(capture, note):
        for line in (*file.notes, *timeline.doubts, *timeline.notes):
            note(f"{file.name}: {line}")
        for block in _of_host(timeline, file.host):
            is_empty = False
            yield block
        del timeline  # large: not beside the next one
    if is_empty:
        raise CannotAnswerError(
            f"{capture.source_path} shows no device work, so there are no events to write; capture "
            "while the device executes."
        )


def _of_host(timeline: Timeline, name: str) -> Iterator[Block]:
    host = find_devices(timeline, name)
    if not host.devices:
        return
    steps = find_members(host)
    first = min(int(device.start.min()) for device in host.devices)
    places = {device.name: place for place, device in enumerate(host.main)}
    for device in host.devices:
        place = places.get(device.name)
        yield from _of_device(host, device, steps, place, first)


def _of_device(
    host: HostDevices, device: DeviceOps, steps: FoundSteps, place: int | None, first: int
) -> Iterator[Block]:
    """`place`: of the device in the series of steps, None where it is not part of it."""
    programs, index = programs_of(device, host.facts)
    op_of = np.zeros(len(programs), np.int64)
    op_of[index] = device.op
    step = np.full(len(device.op), NO_STEP, np.int64)
    if place is not None and steps.step_of_op:
        step = steps.step_of_op[place]
    # As an index, NO_STEP is that of the entry appended.
    names = np.array([*_step_names(steps.series.numbers), 0], np.int64)
    exposed = exposed_time(host, device)
    for at in range(0, len(device.op), BLOCK):
        rows = slice(at, at + BLOCK)
        used = distinct(index[rows], len(programs))
        own = np.searchsorted(used, index[rows])
        count = len(own)
        facts = [host.facts[op] for op in op_of[used].tolist()]
        ran = [programs[pair] for pair in used.tolist()]
        texts = {
            "program": [program for program, _ in ran],
            "program_id": ["" if number is None else str(number) for _, number in ran],
            "op": [fact.name for fact in facts],
            "kind": [fact.kind for fact in facts],
            "pass": [fact.pass_name for fact in facts],
            "region": [SEPARATOR.join(fact.scope) for fact in facts],
        }
        same = np.zeros(count, np.int32)
        yield Block(
            count=count,
            texts={
                "host": Texts((host.host,), same),
                "device": Texts((device.name,), same),
                **{column: _texts(values, own) for column, values in texts.items()},
            },
            step=names[step[rows]],
            has_step=step[rows] != NO_STEP,
            numbers={
                "start_ps": device.start[rows] - first,
                "duration_ps": device.end[rows] - device.start[rows],
                "self_ps": device.self_time[rows],
                "exposed_ps": exposed[rows],
            },
        )


def exposed_time(host: HostDevices, device: DeviceOps) -> Int64s:
    """The time that each event owns."""
    if is_serial(device):
        return device.self_time
    terms = np.array([fact.group for fact in host.facts], np.int64)
    owned = owned_time(device, terms, host.name_ranks)
    return sum_by(owned.owner, owned.end - owned.start, len(device.op))


def _step_names(numbers: Sequence[int | None]) -> list[int]:
    """What people call the steps."""
    return [at if number is None else number for at, number in enumerate(numbers)]


def _texts(values: Sequence[str], index: Int64s) -> Texts:
    """The values in the order in which they first stand; "" is no text."""
    places: dict[str, int] = {}
    codes = [places.setdefault(value, len(places)) if value else UNKNOWN for value in values]
    return Texts(tuple(places), np.array(codes, np.int32)[index])
