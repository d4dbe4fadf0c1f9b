"""Steps that take much longer than the median, and what their devices and host did then.

Contract
* A step is an outlier if its period exceeds the median by more than MADS standard deviations
  (1.4826 times the median absolute deviation) and by more than LEAST_EXCESS of the median.
* The witness of an outlier is the device whose exposed communication grew least: the one that the
  others waited for. Its cause is the part of the witness's period that grew most against the
  other kept steps: a term of the ledger, or programs that the others do not run.
* Idle time is explained by the longest of the gaps before the op before which idle time grew most,
  and by what the host did then (see `host_activity`).
* Times are picoseconds. Medians of terms may be halves; growths are cut to whole picoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.gaps import LOOKAHEAD, NOISE, find_gaps
from marin_profile.analysis.host_activity import HostActivity, IdleGap
from marin_profile.analysis.host_thread import HostThread
from marin_profile.analysis.steps.series import NO_STEP, StepSeries, known_medians
from marin_profile.base.columns import counts_of, sum_by, unique_pairs
from marin_profile.events.classify import (
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
    is_bookkeeping,
)
from marin_profile.events.scopes import RECOMPUTE
from marin_profile.events.timeline import Int64s

_HIGH = np.iinfo(np.int64).max
# Of programs; as an index it is that of a last entry for such ops.
_NOT_KNOWN = -1

MADS = 5
LEAST_EXCESS = 0.10
_DEVIATIONS_PER_MAD = 1.4826

# The part of the other steps below which a program is one that they do not run.
SELDOM = 0.5
# Of so many outliers a host looks into the causes, the longest first.
MOST_EXPLAINED = 256

GAP, PROGRAM = "gap", "program"
COMMUNICATION, TRANSFER, COMPUTE = "communication", "transfer", "compute"
RECOMPUTED, UNATTRIBUTED = "recompute", "unattributed"

_GROUPS = {
    "exposed_communication": (COMMUNICATION, GROUP_COMMUNICATION),
    "exposed_transfer": (TRANSFER, GROUP_TRANSFER),
    "compute": (COMPUTE, GROUP_COMPUTE),
    "unattributed": (UNATTRIBUTED, GROUP_UNKNOWN),
}


@dataclass(frozen=True)
class Cause:
    """Why a step is slow. name: of the host event, program or op ("" if none stands out); before:
    the op after the gap, for causes of idle time; growth: of the part that is the cause;
    communication: growth of the witness's exposed communication."""

    kind: str
    name: str
    before: str
    growth: int
    communication: int


def outliers(periods: Sequence[float | None]) -> list[int]:
    """The places of the periods (None: not known) that stand out, ascending."""
    values = np.array([np.nan if period is None else period for period in periods], np.float64)
    known = values[~np.isnan(values)]
    if not len(known):
        return []
    median = float(np.median(known))
    deviation = _DEVIATIONS_PER_MAD * float(np.median(np.abs(known - median)))
    most = median + max(MADS * deviation, LEAST_EXCESS * median)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(values > most).tolist()


def slow_steps(steps: StepSeries, first: int) -> list[int]:
    """The positions of one host's outliers among its steps from `first` on."""
    return outliers([*[None] * first, *known_medians(steps.period()[:, first:])])


def explain(
    host: HostDevices,
    steps: StepSeries,
    first: int,
    slow: Sequence[int],
    terms: Sequence[dict[str, Int64s]],
    thread: HostThread | None,
) -> dict[int, Cause]:
    """The causes of the outliers at the positions `slow`. `terms`: per device of the steps the
    ledger terms of each step's period; `thread`: see `thread_beside`."""
    if not slow:
        return {}
    begin, end, known = steps.spans
    is_slow = np.zeros(steps.count, np.bool_)
    is_slow[list(slow)] = True
    usual = known & ~is_slow & (np.arange(steps.count) >= first)
    views = [
        _Device(host, device, begin[row], end[row], known[row], usual[row], terms[row])
        for row, device in enumerate(host.main)
    ]
    activity = HostActivity(thread)
    by_length = sorted(slow, key=lambda at: _longest(begin, end, known, at), reverse=True)
    causes = {}
    for position in by_length[:MOST_EXPLAINED]:
        able = [view for view in views if view.known[position] and view.usual.any()]
        if able:
            witness = min(able, key=lambda view: view.growth("exposed_communication", position))
            causes[position] = _cause(witness, position, activity)
    return dict(sorted(causes.items()))


def _longest(begin: Int64s, end: Int64s, known: NDArray[np.bool_], position: int) -> int:
    return int((end - begin)[known[:, position], position].max())


def _cause(device: _Device, position: int, activity: HostActivity) -> Cause:
    growths = {term: device.growth(term, position) for term in ("idle", *_GROUPS)}
    program, extra = device.other_program(position)
    waited = max(0, growths["exposed_communication"])
    term = max(growths, key=lambda name: growths[name])
    if extra and extra >= growths[term]:
        return Cause(PROGRAM, program, "", extra, waited)
    if term == "idle":
        kind, name, before = _why_idle(device, position, activity)
        return Cause(kind, name, before, growths[term], waited)
    kind, group = _GROUPS[term]
    name, is_recompute = device.grown_op(position, group)
    kind = RECOMPUTED if kind == COMPUTE and is_recompute else kind
    return Cause(kind, name, "", growths[term], waited)


def _why_idle(device: _Device, position: int, activity: HostActivity) -> tuple[str, str, str]:
    """Cause, host event and the op after the gap."""
    gap = device.grown_gap(position)
    if gap is None:
        return GAP, "", ""
    return (*(activity.during(gap) or (GAP, "")), gap.before)


class _Device:
    """One device in its periods: arrays over the n steps, and what is asked of single ones."""

    def __init__(
        self,
        host: HostDevices,
        device: DeviceOps,
        begin: Int64s,
        end: Int64s,
        known: NDArray[np.bool_],
        usual: NDArray[np.bool_],
        terms: dict[str, Int64s],
    ) -> None:
        self.ops = device
        self.begin, self.end, self.known, self.usual = begin, end, known, usual
        self._host = host
        self._terms = terms

    def growth(self, term: str, position: int) -> int:
        """Of a ledger term, against the median of the usual steps."""
        return int(self._terms[term][position] - self._usual_terms[term])

    @cached_property
    def _usual_terms(self) -> dict[str, float]:
        return {term: float(np.median(of[self.usual])) for term, of in self._terms.items()}

    def steps_of(self, points: Int64s) -> Int64s:
        """The step whose known period holds each of ascending times, else NO_STEP; linear."""
        positions = np.flatnonzero(self.known)
        first = np.searchsorted(points, self.begin[positions])
        counts = np.searchsorted(points, self.end[positions]) - first
        step = np.full(len(points), NO_STEP, np.int64)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        step[np.repeat(first, counts) + within] = np.repeat(positions, counts)
        return step

    def span(self, points: Int64s, position: int) -> slice:
        """Those of ascending times that lie in the period of a step."""
        edges = (self.begin[position], self.end[position])
        return slice(*np.searchsorted(points, edges).tolist())

    @cached_property
    def _step_of_op(self) -> Int64s:
        return self.steps_of(self.ops.start)

    def _usual_sums(self, index: Int64s, step: Int64s, values: Int64s) -> Int64s:
        """Sums of values by op over all usual steps."""
        usual = (step >= 0) & self.usual[step]
        return sum_by(index[usual], values[usual], len(self._host.facts))

    def _growth_by_op(self, index: Int64s, values: Int64s, usual: Int64s) -> Int64s:
        """Of one step's sums by op against the mean of the usual steps, times their number."""
        return sum_by(index, values, len(usual)) * int(self.usual.sum()) - usual

    def _largest(self, grown: Int64s) -> int | None:
        """The op that grew most; ties: by name."""
        tied = np.flatnonzero((grown > 0) & (grown == grown.max())).tolist()
        return min(tied, key=lambda op: self._host.facts[op].sort_key, default=None)

    @cached_property
    def _usual_op_time(self) -> Int64s:
        return self._usual_sums(self.ops.op, self._step_of_op, self.ops.self_time)

    def grown_op(self, position: int, group: int) -> tuple[str, bool]:
        """The op of a group whose self time grew most, and whether it recomputes."""
        facts = self._host.facts
        here = self.span(self.ops.start, position)
        grown = self._growth_by_op(self.ops.op[here], self.ops.self_time[here], self._usual_op_time)
        in_group = np.array([fact.group for fact in facts]) == group
        op = self._largest(np.where(in_group, grown, 0))
        return ("", False) if op is None else (facts[op].name, facts[op].pass_name == RECOMPUTE)

    # Gaps.

    @cached_property
    def _gaps(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Start and end of gaps, cut at the boundaries of steps; payload and marker after them."""
        bookkeeping = np.array([is_bookkeeping(fact.name) for fact in self._host.facts], np.bool_)
        ops = self.ops
        payload, marker, length = find_gaps(
            ops.start, ops.end, bookkeeping[ops.op], LOOKAHEAD, NOISE
        )
        end = ops.start[marker]
        start = end - length
        if not len(start):
            return start, end, payload, marker
        cuts = np.unique(np.concatenate((self.begin[self.known], self.end[self.known])))
        of_cut = np.searchsorted(end, cuts, side="right")
        cuts = cuts[cuts > np.append(start, _HIGH)[of_cut]]
        starts = np.sort(np.concatenate((start, cuts)))
        owner = np.searchsorted(end, starts, side="right")
        ends = end[owner]
        follows = np.append(starts[1:], ends[-1:])
        return starts, np.minimum(ends, follows), payload[owner], marker[owner]

    @cached_property
    def _usual_gap_time(self) -> Int64s:
        start, end, payload, _ = self._gaps
        return self._usual_sums(self.ops.op[payload], self.steps_of(start), end - start)

    def grown_gap(self, position: int) -> IdleGap | None:
        """The longest gap of a step before the op before which idle time grew most."""
        here = self.span(self._gaps[0], position)
        start, end, payload, marker = (column[here] for column in self._gaps)
        op, length = self.ops.op[payload], end - start
        largest = self._largest(self._growth_by_op(op, length, self._usual_gap_time))
        if largest is None:
            return None
        before = np.flatnonzero(op == largest)
        at = before[np.argmax(length[before])]
        follower = int(marker[at])
        shift = int(self.ops.timeline.start[self.ops.rows[follower]] - self.ops.start[follower])
        edges = (start[at], end[at], self.begin[position], self.end[position])
        return IdleGap(self._host.facts[largest].name, *(int(edge) + shift for edge in edges))

    # Programs.

    @cached_property
    def _programs(self) -> tuple[list[str], Int64s]:
        """Names of programs, and the program of each op (_NOT_KNOWN among them)."""
        executions = self.ops.executions
        if executions is not None:
            names = [name for name, _ in executions.modules]
            return names, np.append(executions.key, _NOT_KNOWN)[self.ops.execution]
        facts = self._host.facts
        keys = sorted(
            {(fact.module, fact.program_id) for fact in facts if fact.module},
            key=lambda key: key[0],
        )
        at = {key: index for index, key in enumerate(keys)}
        known = [at.get((fact.module, fact.program_id), _NOT_KNOWN) for fact in facts]
        of_op = np.array(known, np.int64)
        return [name for name, _ in keys], of_op[self.ops.op]

    @cached_property
    def _seldom_run(self) -> NDArray[np.bool_]:
        """For each program, and last for what is _NOT_KNOWN, whether most usual steps do not run
        it."""
        names, program = self._programs
        step = self._step_of_op
        inside = (step >= 0) & self.usual[step] & (program >= 0)
        run, _, _ = unique_pairs(program[inside], step[inside])
        seldom = counts_of(run, len(names)) < SELDOM * self.usual.sum()
        return np.append(seldom & (len(names) > 1), False)

    def other_program(self, position: int) -> tuple[str, int]:
        """The program that the usual steps do not run and that takes longest, and how long such
        programs take: from the first to the last op of each row of them."""
        names, program = self._programs
        span = self.span(self.ops.start, position)
        here = np.arange(span.start, span.stop)
        is_other = self._seldom_run[program[here]]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], is_other.astype(np.int8), [0]))))
        length = 0
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            row = here[first:last]
            stop = min(int(self.ops.end[row].max()), int(self.end[position]))
            length += stop - int(self.ops.start[row[0]])
        others = here[is_other]
        times = sum_by(program[others], self.ops.self_time[others], len(names))
        return (names[int(np.argmax(times))] if length else ""), length
