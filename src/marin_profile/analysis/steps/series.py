"""A series of steps on the devices of one host, and what every source of steps is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.events.timeline import Int64s

DEVICE_STEPS, ANNOTATION, MODULE, NONE = "device_steps", "annotation", "module", "none"
Bools = NDArray[np.bool_]
# The step of what belongs to none; as an index it is that of a last entry for such things.
NO_STEP = -1


@dataclass(frozen=True)
class SharedSteps:
    """The steps of one host that all hosts have: their positions, and which are cut on any host."""

    positions: tuple[int, ...]
    cut: tuple[bool, ...]


@dataclass(frozen=True)
class LongOp:
    """The longest op that outlasts a typical step: its device, self time in picoseconds, and how
    many typical steps fit into it."""

    name: str
    device: str
    time: int
    steps: int


@dataclass(frozen=True)
class StepSeries:
    """n steps on d devices.

    numbers: n step numbers (None: the source has none). start, end: (d, n) first start and last end
    of a step's ops, device clock; boundary: (d, n) where the step begins, at or before its first
    op (see `boundaries`); `present` says where a device took part. cut: (n,) whether the capture
    holds only a part of the step, which then is in no statistic and no window. Where `linked` is
    False, start and boundary hold the markers' starts and end the next marker's (the last step's
    end equals its start). too_few: whether so few of the source's steps have device work that they
    do not speak for the others: none is kept then. without_work: how many more steps the source
    names, without any device work. doubts: what changes the reading of the numbers, for people.
    """

    source: str
    annotation: str | None
    linked: bool
    numbers: tuple[int | None, ...]
    start: Int64s
    end: Int64s
    boundary: Int64s
    present: Bools
    cut: Bools
    too_few: bool = False
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = field(default=())
    without_work: int = 0
    long_op: LongOp | None = None

    @staticmethod
    def none(notes: tuple[str, ...] = (), doubts: tuple[str, ...] = ()) -> StepSeries:
        nothing = np.zeros((0, 0), np.int64)
        absent = nothing.astype(np.bool_)
        return StepSeries(
            NONE, None, False, (), nothing, nothing, nothing, absent, absent[:0].ravel(), False,
            notes, doubts,
        )  # fmt: skip

    @property
    def count(self) -> int:
        return len(self.numbers)

    def only(self, shared: SharedSteps) -> StepSeries:
        at = list(shared.positions)
        return replace(
            self,
            numbers=tuple(self.numbers[position] for position in at),
            start=self.start[:, at],
            end=self.end[:, at],
            boundary=self.boundary[:, at],
            present=self.present[:, at],
            cut=np.array(shared.cut, np.bool_),
        )

    @property
    def whole(self) -> range:
        """The positions of the steps that may be kept: only the first and the last may be cut."""
        if self.too_few or not self.count:
            return range(0)
        return range(int(self.cut[0]), self.count - int(self.cut[-1]))

    def window(self, first: int) -> tuple[int, int] | None:
        """From the earliest boundary of step `first` to the latest end of the last whole step."""
        if first >= self.whole.stop:
            return None
        kept = slice(first, self.whole.stop)
        present = self.present[:, kept]
        start = int(self.boundary[:, kept][present].min())
        end = int(self.end[:, kept][present].max())
        return (start, end) if start < end else None

    def periods(self, first: int) -> tuple[list[tuple[int, int]], int]:
        """Per device the whole periods from step `first` on, and how many they are: from its
        boundary to the last one (a step that the capture's end cuts still has a boundary). A lone
        step counts by its duration."""
        last = self.count - 1
        whole = self.window(first)
        if whole is None:
            return [], 0
        if first == last:
            return [whole] * len(self.start), 1
        windows = []
        for boundary, present in zip(self.boundary, self.present, strict=True):
            begin, end = (
                boundary[at] if present[at] else self.boundary[self.present[:, at], at].min()
                for at in (first, last)
            )
            windows.append((int(begin), max(int(begin), int(end))))
        return windows, self._distance(first)

    def _distance(self, first: int) -> int:
        """Steps from `first` to the last one, missing numbers counted."""
        between = self.count - 1 - first
        numbers = [number for number in self.numbers[first:] if number is not None]
        if not numbers:
            return between
        distances = np.diff(numbers)
        if (distances <= 0).any():
            return between
        passed, rest = divmod(numbers[-1] - numbers[0], _commonest(distances))
        return between if rest else passed

    @property
    def spans(self) -> tuple[Int64s, Int64s, Bools]:
        """(d, n) start and end of each device's period of each step, from its boundary to that of
        the very next step, and whether both are known and in this order (markers of several threads
        may name steps in another order than devices run them)."""
        end = np.roll(self.boundary, -1, axis=1)
        known = self.present & np.roll(self.present, -1, axis=1) & self.has_successor
        known &= end >= self.boundary
        if self.count and self.cut[0]:
            known[:, 0] = False
        return self.boundary, end, known

    @property
    def has_successor(self) -> Bools:
        """(n,) whether the next step is the very next one, by the commonest distance of numbers."""
        known = np.zeros(self.count, np.bool_)
        numbers = [number for number in self.numbers if number is not None]
        if not numbers:
            known[:-1] = True
        elif len(distances := np.diff(numbers)):
            known[:-1] = distances == _commonest(distances)
        return known

    def period(self) -> NDArray[np.float64]:
        """(d, n) boundary to next boundary, NaN where one of them is not known."""
        begin, end, known = self.spans
        return np.where(known, end - begin, np.nan)


def _commonest(distances: Int64s) -> int:
    """Ties: the least."""
    values, counts = np.unique(distances, return_counts=True)
    return int(values[np.argmax(counts)])


def known_medians(values: NDArray[np.float64]) -> list[float | None]:
    """(d, n) values of devices, NaN where not known, to the medians of the n steps; None where no
    device has a value."""
    if not values.size:
        return [None] * values.shape[1]
    unknown = np.isnan(values)
    medians: list[float | None] = np.median(values, axis=0).tolist()
    for index in np.flatnonzero(unknown.any(axis=0)).tolist():
        known = values[~unknown[:, index], index]
        medians[index] = float(np.median(known)) if len(known) else None
    return medians
