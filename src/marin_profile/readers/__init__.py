"""Readers turn bytes into a Timeline; nothing but them knows what stands in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from marin_profile.base.errors import BrokenInputError, ProfileError
from marin_profile.capture.formats import format_named, load

if TYPE_CHECKING:
    from marin_profile.events.timeline import Timeline


def read_timeline(stream: BinaryIO, *, path: str, source_format: str) -> Timeline:
    """Read one opened profile file. Raises BrokenInputError if it is damaged or no JAX profile,
    and for whatever else its reader stumbles over: another file of the host may be sound."""
    try:
        timeline: Timeline = load(format_named(source_format).read)(stream, path=path)
    except (ProfileError, MemoryError, OSError):
        raise
    except Exception as error:
        raise BrokenInputError(
            f"{path} holds what no profile does ({type(error).__name__}: {error}); copy or capture "
            "it again."
        ) from error
    return timeline
