"""A compiled loop that reads a protobuf and keeps nothing, for bench_floors.py.

numba is started as the command line starts it, and the compiled code is kept beside this file.
"""

from __future__ import annotations

import numpy as np

from marin_profile.base.startup import import_numba, ready_to_read

ready_to_read()
njit = import_numba().njit


@njit(nogil=True, cache=True)
def varint(buffer, at):
    """The value and the offset behind it."""
    result, shift = np.uint64(0), np.uint64(0)
    while True:
        byte = buffer[at]
        at += 1
        result |= np.uint64(byte & np.uint8(127)) << shift
        if byte < 128:
            return result, at
        shift += np.uint64(7)


@njit(nogil=True, cache=True)
def total(buffer):
    """Of all varints, modulo 2^64: those of a space, and of its planes, lines, events and
    statistics (fields 1, 3, 4 and 4 of each other), whose ends are a stack."""
    found = np.uint64(0)
    inside = np.array([1, 3, 4, 4, 0])
    ends = np.zeros(5, np.int64)
    ends[0] = len(buffer)
    depth = at = 0
    while depth >= 0:
        if at >= ends[depth]:
            depth -= 1
            continue
        tag, at = varint(buffer, at)
        wire = tag & np.uint64(7)
        if wire == 0:
            value, at = varint(buffer, at)
            found += value
        elif wire == 2:
            length, at = varint(buffer, at)
            if np.int64(tag >> np.uint64(3)) == inside[depth]:
                depth += 1
                ends[depth] = at + np.int64(length)
            else:
                at += np.int64(length)
        else:
            at += 8 if wire == 1 else 4
    return found
