"""Readers turn bytes into a Timeline; nothing but them knows what stands in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from marin_profile.capture.formats import format_named, load

if TYPE_CHECKING:
    from marin_profile.events.timeline import Timeline


def read_timeline(stream: BinaryIO, *, path: str, source_format: str) -> Timeline:
    """Read one opened profile file. Raises BrokenInputError if it is damaged or no JAX profile."""
    timeline: Timeline = load(format_named(source_format).read)(stream, path=path)
    return timeline
