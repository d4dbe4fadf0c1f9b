"""What several sections of a summary need, and the step from picoseconds to microseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from marin_profile import schema
from marin_profile.analysis.collectives.waits import MergedCollectives
from marin_profile.analysis.gaps import GapTotals
from marin_profile.analysis.host import DevicePart, HostPart
from marin_profile.analysis.ledger import Ledger
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.program_runs import program_runs
from marin_profile.analysis.roofline import Peaks
from marin_profile.analysis.steps.account import DeviceAccount
from marin_profile.analysis.steps.merge import MergedStep, MergedSteps
from marin_profile.analysis.transfers import TransferTotals
from marin_profile.base.times import PS_PER_US
from marin_profile.capture.context import ProfileContext


@dataclass(frozen=True)
class SourceFile:
    """One host's file as it was read."""

    host: str
    name: str
    sha256: str
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaptureFacts:
    """What the capture's folder shows. jax_version and tool_version may be empty; `contexts` are
    those of a training's callback, in the order of its processes."""

    source_path: str
    files: tuple[SourceFile, ...]
    notes: tuple[str, ...]
    tool_version: str
    jax_version: str
    contexts: tuple[ProfileContext, ...] = ()


@dataclass(frozen=True)
class Context:
    """Merged parts that several sections need."""

    parts: Sequence[HostPart]
    devices: tuple[tuple[HostPart, DevicePart], ...]
    steps: MergedSteps
    ops: list[OpTotals]
    gaps: list[GapTotals]
    transfers: list[TransferTotals]
    collectives: MergedCollectives
    steady: bool

    @cached_property
    def main_devices(self) -> list[DevicePart]:
        """Sparse cores are devices of their own kind and stay out of headline sums."""
        main = [device for _, device in self.devices if device.kind != SPARSECORE]
        return main or [device for _, device in self.devices]

    @cached_property
    def main_ops(self) -> list[OpTotals]:
        """The ops of the main devices."""
        main = [op for op in self.ops if op.device_kind != SPARSECORE]
        return main or self.ops

    @cached_property
    def runs_by_name(self) -> dict[str, int]:
        """How often each program ran that shares its name with no other."""
        executions: Counter[str] = Counter()
        launches: Counter[str] = Counter()
        for part in self.parts:
            for row in part.calls:
                executions[row.name] += len(row.lengths)
            launches.update(part.launches)
        ops = [op for op in self.ops if op.device_kind != SPARSECORE]
        return program_runs(ops, executions, launches)

    @property
    def window(self) -> str:
        return schema.STEADY if self.steady else schema.CAPTURE

    def headline(self, device: DevicePart) -> Ledger:
        return device.steady if self.steady and device.steady else device.capture

    @property
    def window_length(self) -> int:
        """The headline window of one device, the mean over devices."""
        ledgers = [self.headline(device) for device in self.main_devices]
        return sum(ledger.end - ledger.start for ledger in ledgers) // len(ledgers)

    @property
    def periods(self) -> int:
        """Whole periods behind the per-step figures, the same for all hosts."""
        return min(part.periods for part in self.parts)

    @property
    def in_periods(self) -> bool:
        """Whether per-step figures speak of whole periods."""
        return self.steady and self.periods > 0

    @property
    def period_time(self) -> float:
        """The whole periods of all main devices together, by the mean period; a lone step counts by
        its duration. 0 where neither is known."""
        length = self.steps.mean_period
        if length is None:
            kept = self.kept_steps
            length = kept[0].duration if len(kept) == 1 else None
        return (length or 0.0) * self.periods * len(self.main_devices)

    @cached_property
    def account(self) -> list[DeviceAccount]:
        """The devices that took part in the steps; none where hosts do not have the same steps."""
        windows = {part.account and (part.account.basis, part.account.steps) for part in self.parts}
        if not self.steady or len(windows) > 1:
            return []
        return [device.account for _, device in self.devices if device.account is not None]

    @cached_property
    def device_counts(self) -> Counter[str]:
        return Counter(device.kind for _, device in self.devices)

    def op_time(self, op: OpTotals) -> int:
        """Self time in the headline window."""
        return op.steady_exclusive if self.steady else op.exclusive

    def gap_time(self, gap: GapTotals) -> int:
        return gap.steady_total if self.steady else gap.total

    def gap_longest(self, gap: GapTotals) -> int:
        """Each device's longest, summed."""
        return gap.steady_longest_each if self.steady else gap.longest_each

    def gap_count(self, gap: GapTotals) -> int:
        return gap.steady_count if self.steady else gap.count

    @cached_property
    def kept_steps(self) -> list[MergedStep]:
        return [step for step in self.steps.steps if step.kept]

    @property
    def peaks(self) -> Peaks:
        return self.main_devices[0].peaks


def us(picoseconds: int | float) -> float:
    return picoseconds / PS_PER_US


def us_or_none(picoseconds: int | float | None) -> float | None:
    return None if picoseconds is None else us(picoseconds)


def each_us(values: Mapping[str, int]) -> dict[str, float]:
    return {name: us(value) for name, value in values.items()}


def per_step(context: Context, ops: Iterable[OpTotals]) -> float | None:
    """Self time per step and device: over whole periods, and over devices of the ops' own kind."""
    if not context.steady or not context.periods:
        return None
    by_kind: Counter[str] = Counter()
    for op in ops:
        by_kind[op.device_kind] += op.period_exclusive
    return sum(
        us(time) / (context.periods * context.device_counts[kind]) for kind, time in by_kind.items()
    )
