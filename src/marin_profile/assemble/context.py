"""What several sections of a summary need, and the step from picoseconds to microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_profile import schema
from marin_profile.analysis.collectives import CollectiveTotals
from marin_profile.analysis.gaps import GapTotals
from marin_profile.analysis.host import DevicePart, HostPart
from marin_profile.analysis.ledger import Ledger
from marin_profile.analysis.merge_steps import MergedStep, MergedSteps
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.roofline import Peaks
from marin_profile.timeline import PS_PER_US


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
    """What the capture's folder tells. jax_version and tool_version may be empty."""

    source_path: str
    files: tuple[SourceFile, ...]
    notes: tuple[str, ...]
    tool_version: str
    jax_version: str


@dataclass(frozen=True)
class Context:
    """Merged parts that several sections need."""

    parts: Sequence[HostPart]
    devices: tuple[tuple[HostPart, DevicePart], ...]
    steps: MergedSteps
    ops: list[OpTotals]
    gaps: list[GapTotals]
    collectives: list[CollectiveTotals]
    steady: bool

    @property
    def main_devices(self) -> list[DevicePart]:
        """Sparse cores are devices of their own kind and stay out of headline sums."""
        main = [device for _, device in self.devices if device.kind != SPARSECORE]
        return main or [device for _, device in self.devices]

    @property
    def window(self) -> str:
        return schema.STEADY if self.steady else schema.CAPTURE

    def headline(self, device: DevicePart) -> Ledger:
        return device.steady if self.steady and device.steady else device.capture

    @property
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


def per_step(context: Context, steady_exclusive: int) -> float | None:
    """Per kept step and device, in the steady window."""
    kept = len(context.kept_steps)
    if not context.steady or not kept:
        return None
    return us(steady_exclusive) / (kept * len(context.main_devices))
