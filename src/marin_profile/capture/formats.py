"""The file formats of a JAX profile: one entry each, which tells all that the package asks of them.

Contract: to read one more format, write its reader and add one entry to `FORMATS`. Entries stand in
order of preference: where a host has files of several formats, the first one's is read. What an
entry names as "module:function" is imported when it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

XPLANE = "xplane_pb"
TRACE_JSON = "perfetto_trace_json"


@dataclass(frozen=True)
class Format:
    """One file format.

    `name` is its `source_format`, `called` its name in messages. A capture's files are
    "<host><suffix>", of suffixes the better one first, or have one of the `hostless_names`; a file
    that a user names may have any of the `endings`. `read(stream, *, path)` gives a Timeline.
    `read_window(stream)`, if there is one, gives the epoch nanoseconds of the profile's start and
    stop, or None, without reading the events. `mask(file, copy, redactor)` writes a masked copy
    and `host_names(file)` gives the hosts that the file names inside; without `mask` it is not
    copied. `lacks` is what a better format holds of the same profile, `excels` why this one was
    chosen before another. `memory_per_byte`: the peak per byte of file, above what every run takes.
    """

    name: str
    called: str
    option: str
    suffixes: tuple[str, ...]
    endings: tuple[str, ...]
    read: str
    memory_per_byte: float
    hostless_names: tuple[str, ...] = ()
    read_window: str | None = None
    mask: str | None = None
    host_names: str | None = None
    excels: str = "it tells more of the profile"
    lacks: tuple[str, ...] = ()

    @property
    def argument(self) -> str:
        """The option as an argument's name."""
        return self.option.lstrip("-").replace("-", "_")

    @property
    def patterns(self) -> tuple[str, ...]:
        """What the names of a capture's files look like."""
        return (*(f"*{suffix}" for suffix in self.suffixes), *self.hostless_names)


# `memory_per_byte` was measured on files of 90 MB.
FORMATS = (
    Format(
        name=XPLANE,
        called="XPlane protobuf",
        option="--xplane-file",
        suffixes=(".xplane.pb",),
        endings=(".pb",),
        read="marin_profile.readers.xplane:read_xplane",
        read_window="marin_profile.readers.profile_window:read_profile_window",
        mask="marin_profile.redact.capture:mask_xspace_file",
        host_names="marin_profile.redact.capture:xspace_host_names",
        memory_per_byte=2.5,
        excels="it also carries HLO protos, async events and op costs",
    ),
    Format(
        name=TRACE_JSON,
        called="trace JSON",
        option="--trace-file",
        suffixes=(".trace.json.gz", ".trace.json"),
        endings=(".json", ".json.gz"),
        hostless_names=("perfetto_trace.json.gz",),
        read="marin_profile.readers.trace_json:read_trace_json",
        mask="marin_profile.redact.capture:mask_json_file",
        memory_per_byte=3.5,
        lacks=(
            "events of async lines (their threads are named, but empty)",
            "HLO protos, and with them opcodes, scope paths and operands beyond what the args say",
            "plane statistics such as the device type and its peak rates",
            "flops (model_flops and bytes_accessed are there on TPU)",
            "program ids, except in module names and on some events",
            "memory allocations and deallocations",
        ),
    ),
)


def format_named(name: str) -> Format:
    return next(one for one in FORMATS if one.name == name)


def format_of(name: str) -> Format | None:
    """The format of a capture's file, by the file's name."""
    for one in FORMATS:
        if name in one.hostless_names or name.endswith(one.suffixes):
            return one
    return None


def format_ending(path: str) -> Format | None:
    """The format of a file that a user names, by how its name ends."""
    return next((one for one in FORMATS if path.endswith(one.endings)), None)


def host_suffixes() -> tuple[str, ...]:
    """Every suffix behind a host's name, in order of preference."""
    return tuple(suffix for one in FORMATS for suffix in one.suffixes)


def load(reference: str) -> Any:
    """The function that "module:function" names."""
    module, _, function = reference.partition(":")
    return getattr(import_module(module), function)
