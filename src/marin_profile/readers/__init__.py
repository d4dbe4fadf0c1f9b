"""Readers turn bytes into a Timeline; nothing else in the package knows a file format."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from marin_profile.events.timeline import Timeline

# What a trace JSON leaves out of the XPlane that it was made from.
JSON_LACKS = (
    "events of async lines (their threads are named, but empty)",
    "HLO protos, and with them opcodes, scope paths and operands beyond what the args say",
    "plane statistics such as the device type and its peak rates",
    "flops (model_flops and bytes_accessed are there on TPU)",
    "program ids, except in module names and on some events",
    "memory allocations and deallocations",
)


def read_timeline(stream: BinaryIO, *, path: str, is_xplane: bool) -> Timeline:
    """Read one opened profile file. Raises BrokenInputError if it is damaged or no JAX profile."""
    if is_xplane:
        from marin_profile.readers.xplane import read_xplane

        return read_xplane(stream, path=path)
    from marin_profile.readers.trace_json import read_trace_json

    return read_trace_json(stream, path=path)
