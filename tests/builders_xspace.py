"""Synthetic XSpace protobufs. Times go in as microseconds and become integer picoseconds.

    space = Space("host-a")
    tpu = space.tpu(0)
    tpu.module("jit_step(7)", 0, 100, run_id=1)
    tpu.op("fusion.1", 0, 60, category="loop fusion", scope="jit(step)/mlp/add")
    part = space.analyse()

A stat's type follows its value: int -> int64, `Unsigned` -> uint64, float -> double, str, bytes,
`Ref` -> a reference into the stat metadata. Nothing here knows how the package reads a file.
"""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np

from marin_profile.analysis.collectives.waits import MergedCollectives
from marin_profile.analysis.device_ops import HostDevices
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.host import HostPart, analyse_host
from marin_profile.assemble import CaptureFacts, SourceFile, assemble
from marin_profile.assemble.communication import merged_collectives
from marin_profile.capture.sources import resolve
from marin_profile.events.timeline import Timeline
from marin_profile.pipeline import SummarizeOptions, summarize_capture
from marin_profile.readers.xplane import read_xplane
from marin_profile.schema import ProfileSummary

US = 1_000_000
Time = int | float | Fraction


class Unsigned(int):
    """Written as a uint64 stat."""


class Ref(str):
    """Written as a reference to a stat metadata of this name."""


Stat = int | float | str | bytes
Stats = Mapping[str, Stat]
P = TypeVar("P", bound="PlaneBuilder")


# --- wire format -------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def message(tag: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(content)) + content


def double(tag: int, value: float) -> bytes:
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def fixed32(tag: int, value: int) -> bytes:
    return varint(tag << 3 | 5) + struct.pack("<I", value)


def packed(tag: int, values: Iterable[int]) -> bytes:
    return message(tag, b"".join(map(varint, values)))


def ps(us: Time) -> int:
    """Microseconds as picoseconds; decimals that a float writes are meant exactly."""
    exact = Fraction(str(us)) if isinstance(us, float) else Fraction(us)
    return round(exact * US)


# --- planes ------------------------------------------------------------------------------------


@dataclass
class Event:
    metadata: int
    start_ps: int
    duration_ps: int
    stats: bytes
    aggregated: bool = False

    def encode(self, line_ps: int) -> bytes:
        place = number(5, 3) if self.aggregated else number(2, self.start_ps - line_ps)
        return number(1, self.metadata) + place + number(3, self.duration_ps) + self.stats


@dataclass
class LineBuilder:
    id: int
    name: str
    timestamp_ns: int = 0
    display_name: str = ""
    events: list[Event] = field(default_factory=list)
    raw: bytes = b""

    def encode(self, shuffle: random.Random | None) -> bytes:
        events = list(self.events)
        if shuffle:
            shuffle.shuffle(events)
        return b"".join(
            (
                number(1, self.id),
                message(2, self.name),
                number(3, self.timestamp_ns) if self.timestamp_ns else b"",
                *(message(4, event.encode(self.timestamp_ns * 1000)) for event in events),
                message(11, self.display_name) if self.display_name else b"",
                self.raw,
            )
        )


class PlaneBuilder:
    def __init__(self, name: str, plane_id: int, stats: Stats) -> None:
        self.name = name
        self.id = plane_id
        self.stats = dict(stats)
        self.lines: dict[str, LineBuilder] = {}
        self._stat_ids: dict[str, int] = {}
        self._metadata: dict[tuple[str, str, bytes], int] = {}
        self._raw_metadata: list[bytes] = []

    def line(
        self,
        name: str,
        *,
        line_id: int | None = None,
        timestamp_ns: int = 0,
        display_name: str = "",
    ) -> LineBuilder:
        """The line of this name; made on first use."""
        if name not in self.lines:
            number_ = len(self.lines) + 1 if line_id is None else line_id
            self.lines[name] = LineBuilder(number_, name, timestamp_ns, display_name)
        return self.lines[name]

    def event(
        self,
        line: str,
        name: str,
        start: Time,
        duration: Time,
        *,
        display: str = "",
        shared: Stats | None = None,
        aggregated: bool = False,
        **stats: Stat,
    ) -> PlaneBuilder:
        """`shared` stats stand in the event metadata, `stats` on the event itself."""
        key = self.metadata(name, display, shared or {})
        own = self.encode_stats(4, stats)
        self.line(line).events.append(Event(key, ps(start), ps(duration), own, aggregated))
        return self

    def metadata(self, name: str, display: str = "", shared: Stats | None = None) -> int:
        encoded = self.encode_stats(5, shared or {})
        return self._metadata.setdefault((name, display, encoded), len(self._metadata) + 1)

    def raw_metadata(self, key: int, content: bytes) -> None:
        """A metadata entry whose key the test decides."""
        self._raw_metadata.append(message(4, number(1, key) + message(2, content)))

    def stat_id(self, name: str) -> int:
        return self._stat_ids.setdefault(name, len(self._stat_ids) + 1)

    def encode_stats(self, tag: int, stats: Stats) -> bytes:
        return b"".join(message(tag, self.encode_stat(key, stats[key])) for key in stats)

    def encode_stat(self, name: str, value: Stat) -> bytes:
        head = number(1, self.stat_id(name))
        if isinstance(value, Ref):
            return head + number(7, self.stat_id(str(value)))
        if isinstance(value, Unsigned):
            return head + number(3, value)
        if isinstance(value, int):
            return head + number(4, value)
        if isinstance(value, float):
            return head + double(2, value)
        return head + message(5 if isinstance(value, str) else 6, value)

    def encode(self, shuffle: random.Random | None) -> bytes:
        lines = list(self.lines.values())
        if shuffle:
            shuffle.shuffle(lines)
        encoded_lines = [message(3, line.encode(shuffle)) for line in lines]
        stats = self.encode_stats(6, self.stats)
        metadata = [
            message(
                4,
                number(1, key)
                + message(
                    2,
                    number(1, key)
                    + message(2, name)
                    + (message(4, display) if display else b"")
                    + encoded,
                ),
            )
            for (name, display, encoded), key in self._metadata.items()
        ]
        stat_names = [
            message(5, number(1, key) + message(2, number(1, key) + message(2, name)))
            for name, key in self._stat_ids.items()
        ]
        return b"".join(
            (
                number(1, self.id),
                message(2, self.name),
                *encoded_lines,
                *metadata,
                *self._raw_metadata,
                *stat_names,
                stats,
            )
        )


class Tpu(PlaneBuilder):
    """A TPU core: "XLA Ops", "XLA Modules", "Async XLA Ops", "Steps"."""

    def __init__(
        self, name: str, plane_id: int, stats: Stats, device_clock_shift: Time | None
    ) -> None:
        super().__init__(name, plane_id, stats)
        self.device_clock_shift = device_clock_shift

    def op(
        self,
        name: str,
        start: Time,
        duration: Time,
        *,
        category: str = "",
        scope: str = "",
        long_name: str = "",
        shape: str = "",
        source: str = "",
        program_id: int | None = None,
        flops: int | None = None,
        model_flops: int | None = None,
        bytes_accessed: int | None = None,
        device_start: Time | None = None,
        device_duration: Time | None = None,
        line: str = "XLA Ops",
        **stats: Stat,
    ) -> Tpu:
        """On TPU the metadata's name is the HLO text, its display name the short name. With a
        device clock every op carries device times, by default its own shifted."""
        shared: dict[str, Stat] = {
            key: value
            for key, value in (
                ("hlo_category", category),
                ("tf_op", scope),
                ("shape_with_layout", shape),
                ("source", source),
                ("program_id", None if program_id is None else Unsigned(program_id)),
                ("flops", flops),
                ("model_flops", model_flops),
                ("bytes_accessed", bytes_accessed),
            )
            if value not in ("", None)
        }
        if device_start is None and self.device_clock_shift is not None:
            device_start = Fraction(ps(start) + ps(self.device_clock_shift), US)
        if device_start is not None:
            stats["device_offset_ps"] = ps(device_start)
            stats["device_duration_ps"] = ps(
                duration if device_duration is None else device_duration
            )
        self.event(
            line,
            long_name or name,
            start,
            duration,
            display=name if long_name else "",
            shared=shared,
            **stats,
        )
        return self

    def module(self, name: str, start: Time, duration: Time, *, run_id: int | None = None) -> Tpu:
        stats: dict[str, Stat] = {} if run_id is None else {"run_id": run_id}
        self.event("XLA Modules", name, start, duration, **stats)
        return self

    def step(self, number_: int, start: Time, duration: Time) -> Tpu:
        self.event("Steps", str(number_), start, duration)
        return self

    def async_op(
        self, hlo_op: str, start: Time, duration: Time, *, name: str = "async-copy", **shared: Stat
    ) -> Tpu:
        self.event("Async XLA Ops", name, start, duration, shared=shared, hlo_op=hlo_op, _a=1)
        return self


class Gpu(PlaneBuilder):
    """A GPU: kernels on "Stream #..." lines."""

    def kernel(
        self,
        name: str,
        start: Time,
        duration: Time,
        *,
        stream: str = "Stream #16(Kernel)",
        correlation: int | None = None,
        hlo_op: str = "",
        module: str = "",
        program_id: int | None = None,
        scope: str = "",
        **stats: Stat,
    ) -> Gpu:
        found: dict[str, Stat | None] = {
            "correlation_id": correlation,
            "hlo_op": hlo_op or None,
            "hlo_module": module or None,
            "program_id": program_id,
            "name": scope or None,
            **stats,
        }
        own = {key: value for key, value in found.items() if value is not None}
        # `name` is a parameter of `event` too, so the stats go in encoded.
        key = self.metadata(name)
        self.line(stream).events.append(
            Event(key, ps(start), ps(duration), self.encode_stats(4, own))
        )
        return self


class Host(PlaneBuilder):
    """The host plane: step markers and launches on the python thread, CPU ops on pool threads."""

    def marker(
        self, step: int, start: Time, duration: Time, *, name: str = "train", line: str = "python"
    ) -> Host:
        self.event(line, name, start, duration, step_num=step, _r=1)
        return self

    def call(
        self, name: str, start: Time, duration: Time, *, line: str = "python", **stats: Stat
    ) -> Host:
        """Any host event; a launch carries run_id or correlation_id."""
        self.event(line, name, start, duration, **stats)
        return self

    def cpu_op(
        self,
        hlo_op: str,
        start: Time,
        duration: Time,
        *,
        ordinal: int = 0,
        run_id: int | None = None,
        thread: int = 0,
        module: str = "jit_f",
        program_id: int | None = None,
        **stats: Stat,
    ) -> Host:
        found: dict[str, Stat | None] = {
            "hlo_op": hlo_op,
            "hlo_module": module,
            "device_ordinal": ordinal,
            "run_id": run_id,
            "program_id": program_id,
            **stats,
        }
        own = {key: value for key, value in found.items() if value is not None}
        self.event(f"tf_XLAPjRtCpuClient/{thread}", hlo_op, start, duration, **own)
        return self


# --- HLO protos --------------------------------------------------------------------------------


def shape_proto(element: int, *dims: int, parts: Iterable[bytes] = ()) -> bytes:
    """Element types: 11 f32, 16 bf16, 13 tuple."""
    return (
        number(2, element)
        + (packed(3, dims) if dims else b"")
        + b"".join(message(4, part) for part in parts)
    )


def instruction(
    name: str,
    opcode: str,
    *,
    op_name: str = "",
    id: int = 0,
    shape: bytes = b"",
    operands: Iterable[int] = (),
    calls: Iterable[int] = (),
    groups: Iterable[Iterable[int]] = (),
    iota_groups: tuple[int, int] | None = None,
    thread: str = "",
    use_packed: bool = True,
    contracting: Iterable[int] | None = None,
    window: Iterable[Mapping[str, int]] = (),
    convolution: bytes = b"",
    target: str = "",
    config: str = "",
    parameter: int | None = None,
) -> bytes:
    """`contracting`: the dimensions of the left operand that a dot sums over; `window`: its
    dimensions by the names in WINDOW_FIELDS."""

    def repeated(tag: int, values: Iterable[int]) -> bytes:
        values = list(values)
        if use_packed:
            return packed(tag, values) if values else b""
        return b"".join(number(tag, value) for value in values)

    device_list = b""
    if iota_groups:
        device_list = message(87, message(2, number(1, iota_groups[0]) + number(2, iota_groups[1])))
    return b"".join(
        (
            message(1, name),
            message(2, opcode),
            message(3, shape) if shape else b"",
            message(7, message(2, op_name)) if op_name else b"",
            b"" if parameter is None else number(9, parameter),
            message(15, b"".join(map(window_dimension, window))) if window else b"",
            message(16, convolution) if convolution else b"",
            message(28, target) if target else b"",
            b"" if contracting is None else message(30, packed(1, contracting)),
            number(35, id),
            repeated(36, operands),
            repeated(38, calls),
            message(43, config) if config else b"",
            *(message(49, repeated(1, group)) for group in groups),
            message(79, thread) if thread else b"",
            device_list,
        )
    )


WINDOW_FIELDS = {
    "size": 1, "stride": 2, "padding_low": 3, "padding_high": 4, "window_dilation": 5,
    "base_dilation": 6,
}  # fmt: skip


def window_dimension(facts: Mapping[str, int]) -> bytes:
    whole = {"size": 1, "stride": 1, "window_dilation": 1, "base_dilation": 1, **facts}
    return message(1, b"".join(number(WINDOW_FIELDS[name], whole[name]) for name in whole))


def convolution_dims(
    *, kernel_input_feature: int, input_spatial: Iterable[int], output_spatial: Iterable[int]
) -> bytes:
    return (
        (number(3, kernel_input_feature) if kernel_input_feature else b"")
        + packed(11, input_spatial)
        + packed(12, output_spatial)
    )


def computation(id: int, root: int, *instructions: bytes, thread: str = "") -> bytes:
    return (
        message(1, f"computation.{id}")
        + b"".join(message(2, one) for one in instructions)
        + number(5, id)
        + number(6, root)
        + (message(8, thread) if thread else b"")
    )


def hlo_proto(*computations: bytes, name: str = "jit_f") -> bytes:
    return message(1, message(1, name) + b"".join(message(3, one) for one in computations))


def logical_buffer(
    id: int, size: int, *, instruction: int = 0, index: Iterable[int] = (), space: int = 0
) -> bytes:
    index = list(index)
    definition = (packed(3, index) if index else b"") + number(4, instruction)
    return message(1, number(1, id) + number(2, size) + message(3, definition) + number(4, space))


def allocation(size: int, *buffers: int, space: int = 0, **flags: bool) -> bytes:
    """`flags`, by the names in ALLOCATION_FLAGS, are set if given."""
    return message(
        3,
        number(2, size)
        + b"".join(number(ALLOCATION_FLAGS[name], int(value)) for name, value in flags.items())
        + number(8, space)
        + b"".join(message(9, number(1, one)) for one in buffers),
    )


ALLOCATION_FLAGS = {"thread_local": 3, "parameter": 5, "output": 7, "constant": 12}


def heap_trace(
    *events: tuple[str, int] | tuple[str, int, int] | tuple[str, int, int, str],
) -> bytes:
    """Events as (kind, buffer[, buffer whose memory it shares[, instruction]])."""
    kinds = {"alloc": 0, "free": 1, "share": 2}
    encoded = []
    for kind, buffer, *rest in events:
        event = number(1, kinds[kind]) + number(2, buffer)
        event += message(4, rest[1]) if len(rest) > 1 else b""
        event += number(5, rest[0]) if kind == "share" else b""
        encoded.append(message(1, event))
    return message(4, b"".join(encoded))


def buffer_assignment(*parts: bytes) -> bytes:
    """What an HLO proto holds beside its module: logical buffers, allocations, heap traces."""
    return message(3, b"".join(parts))


# --- the space ---------------------------------------------------------------------------------


class Space:
    def __init__(self, hostname: str = "") -> None:
        self.hostname = hostname
        self.planes: list[PlaneBuilder] = []
        self._metadata_plane: PlaneBuilder | None = None

    def plane(self, name: str, plane_id: int | None = None, **stats: Stat) -> PlaneBuilder:
        return self._add(PlaneBuilder(name, self._next(plane_id), stats))

    def tpu(
        self,
        ordinal: int,
        *,
        device_clock_shift: Time | None = None,
        core: str = "",
        **stats: Stat,
    ) -> Tpu:
        name = f"/device:TPU:{ordinal}" + (f" {core}" if core else "")
        return self._add(Tpu(name, self._next(None), stats, device_clock_shift))

    def gpu(self, ordinal: int, **stats: Stat) -> Gpu:
        return self._add(Gpu(f"/device:GPU:{ordinal}", self._next(None), stats))

    def host(self, **stats: Stat) -> Host:
        return self._add(Host("/host:CPU", self._next(None), stats))

    def hlo(self, program_id: int, proto: bytes, *, module: str = "jit_f") -> Space:
        """Register a module's HLO proto in /host:metadata."""
        if self._metadata_plane is None:
            self._metadata_plane = self.plane("/host:metadata")
        plane = self._metadata_plane
        stat = plane.encode_stats(5, {"Hlo Proto": proto})
        plane.raw_metadata(
            program_id, number(1, program_id) + message(2, f"{module}({program_id})") + stat
        )
        return self

    def environment(self, start_ns: int, stop_ns: int) -> Space:
        self.plane(
            "Task Environment",
            profile_start_time=Unsigned(start_ns),
            profile_stop_time=Unsigned(stop_ns),
        )
        return self

    def _add(self, plane: P) -> P:
        self.planes.append(plane)
        return plane

    def _next(self, plane_id: int | None) -> int:
        return len(self.planes) + 1 if plane_id is None else plane_id

    # What becomes of it.

    def encode(self, shuffle: int | None = None) -> bytes:
        """`shuffle` is a seed: planes, lines and events then stand in another order."""
        rng = None if shuffle is None else random.Random(shuffle)
        planes = list(self.planes)
        if rng:
            rng.shuffle(planes)
        body = b"".join(message(1, plane.encode(rng)) for plane in planes)
        return body + (message(4, self.hostname) if self.hostname else b"")

    def timeline(self, shuffle: int | None = None) -> Timeline:
        return read_bytes(self.encode(shuffle))

    def devices(self) -> HostDevices:
        return find_devices(self.timeline(), "")

    def analyse(
        self, *, host: str = "", warmup_steps: int = 1, breakdown_v1_mode: str | None = None
    ) -> HostPart:
        return analyse_host(
            self.timeline(), host, warmup_steps=warmup_steps, breakdown_v1_mode=breakdown_v1_mode
        )

    def write(self, path: Path, shuffle: int | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.encode(shuffle))
        return path


def read_bytes(content: bytes, path: str = "x.xplane.pb") -> Timeline:
    """Through a real file, as users' profiles are read."""
    with tempfile.TemporaryFile() as stream:
        stream.write(content)
        stream.seek(0)
        return read_xplane(stream, path=path)


def collectives_of(*spaces: Space, warmup_steps: int = 1) -> MergedCollectives:
    """The collectives of the spaces as the hosts "host-0", "host-1", ... of one capture. Division
    by zero and overflow are errors."""
    parts = [
        space.analyse(host=f"host-{index}", warmup_steps=warmup_steps)
        for index, space in enumerate(spaces)
    ]
    steady = all(device.steady is not None for part in parts for device in part.devices)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        return merged_collectives(parts, steady=steady)


STAMP = "2026_01_02_03_04_05"


def summarize_spaces(
    folder: Path, *spaces: Space, shuffle: int | None = None, **options: object
) -> ProfileSummary:
    """Write the spaces as the hosts of one capture ("host-0", ...) and summarise them."""
    below = folder / "plugins" / "profile" / STAMP
    for index, space in enumerate(spaces):
        space.write(below / f"host-{index}.xplane.pb", shuffle)
    capture, _ = resolve(profile_dir=str(folder))
    return summarize_capture(capture, SummarizeOptions(**options))  # type: ignore[arg-type]


def summary_of(*parts: HostPart) -> ProfileSummary:
    """The parts as one capture whose files have made-up names and digests."""
    files = tuple(
        SourceFile(
            host=part.host, name=f"{index}.xplane.pb", sha256=f"{index:064}", reason="made up"
        )
        for index, part in enumerate(parts)
    )
    facts = CaptureFacts(
        source_path="made/up", files=files, notes=(), tool_version="0", jax_version=""
    )
    return assemble(parts, facts, hot_op_limit=25, breakdown_mode="device_ledger")
