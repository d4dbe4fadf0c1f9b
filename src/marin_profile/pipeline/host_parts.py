"""One host's share of a summary as bytes: what processes of a run hand to the one that merges.

Contract: decoding what `encode_host` made gives an equal HostRead; anything else (another format, a
damaged file, another version of the package) raises ValueError. Nothing in the bytes is run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, get_origin

import msgspec
import numpy as np

from marin_profile.analysis.host import HostPart
from marin_profile.assemble import SourceFile


@dataclass(frozen=True)
class HostRead:
    """A host's file, and what it says."""

    file: SourceFile
    part: HostPart
    jax_version: str


@dataclass(frozen=True)
class _Stored:
    tool_version: str
    warmup_steps: int
    host_read: HostRead


def encode_host(host_read: HostRead, *, tool_version: str, warmup_steps: int) -> bytes:
    return msgspec.msgpack.encode(
        _Stored(tool_version, warmup_steps, host_read), enc_hook=_to_plain
    )


def decode_host(data: bytes, *, tool_version: str, warmup_steps: int) -> HostRead:
    """Raises ValueError unless the part was made in the same way."""
    try:
        stored = msgspec.msgpack.decode(data, type=_Stored, dec_hook=_from_plain)
    except (msgspec.DecodeError, TypeError, KeyError) as error:
        raise ValueError(f"no host part of this version: {error}") from error
    if (stored.tool_version, stored.warmup_steps) != (tool_version, warmup_steps):
        raise ValueError("the host part was made by another version, or with another warm-up")
    return stored.host_read


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {
            "dtype": value.dtype.str,
            "shape": value.shape,
            "data": np.ascontiguousarray(value).tobytes(),
        }
    raise TypeError(f"{type(value).__name__} has no plain form")


def _from_plain(wanted: Any, value: Any) -> Any:
    if get_origin(wanted) is np.ndarray:
        array = np.frombuffer(value["data"], np.dtype(value["dtype"]))
        return array.reshape(value["shape"]).copy()
    if get_origin(wanted) is Counter or wanted is Counter:
        return Counter(value)
    raise TypeError(f"{wanted} has no plain form")
