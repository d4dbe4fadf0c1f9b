"""An XSpace masked in place.

Contract: only bytes inside texts change, never a length, so what was readable stays readable. The
frames' table of an HLO proto (`stack_frame_index`) counts as source stacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from marin_profile.readers.hlo import Buffer, Span, fields
from marin_profile.readers.protobuf import WIRE_BYTES
from marin_profile.readers.wire import walk
from marin_profile.readers.xplane import METADATA_PLANE
from marin_profile.readers.xplane_planes import map_entry, plane_name
from marin_profile.redact.names import Redactor
from marin_profile.redact.spans import USED_BY_STACK, stack_values, stat_names, text_spans
from marin_profile.redact.stacks import STACK_STATS, masked_stack

_BLOCK = 16 << 20
_LARGEST_ID = 1 << 24
_MOST_KEPT, _LONGEST_KEPT = 1 << 14, 1 << 10
_STACK_NAMES = tuple(name.encode() for name in STACK_STATS)
# xla's hlo.proto: HloProto.hlo_module, HloModuleProto.stack_frame_index and its texts.
_HLO_MODULE, _STACK_FRAME_INDEX, _FRAME_TEXTS = 1, 17, (1, 2)


def mask_xspace(buffer: Buffer, redactor: Redactor) -> None:
    """Mask a whole `*.xplane.pb`; `buffer` is writable."""
    buffer = np.asarray(buffer)  # slices of a memmap cost far more
    content = memoryview(buffer)  # type: ignore[arg-type]
    for at, end in _stacks(buffer):
        content[at:end] = masked_stack(bytes(content[at:end]))
    masked = _Masks(redactor)
    for at, end in text_spans(buffer, _hits(buffer, redactor.needles)).tolist():
        content[at:end] = masked[bytes(content[at:end])]


class _Masks(dict[bytes, bytes]):
    """Masked texts; the file names of a program's instructions repeat."""

    def __init__(self, redactor: Redactor) -> None:
        self._mask = redactor.bytes

    def __missing__(self, text: bytes) -> bytes:
        masked = self._mask(text)
        if len(text) <= _LONGEST_KEPT and len(self) < _MOST_KEPT:
            self[text] = masked
        return masked


def host_names(buffer: Buffer) -> list[str]:
    """The hosts that an XSpace names."""
    rows, _ = walk(buffer, 0, len(buffer))
    return [
        buffer[at : at + length].tobytes().decode("utf-8", "replace")
        for number, wire, at, length in rows
        if number == 4 and wire == WIRE_BYTES and length
    ]


def _hits(buffer: Buffer, needles: Sequence[bytes]) -> np.ndarray:
    """The sorted offsets of all needles, in upper or lower case; block by block, so that memory
    stays bounded."""
    overlap = max(map(len, needles)) - 1
    found: list[int] = []
    for begin in range(0, len(buffer), _BLOCK):
        block = buffer[begin : begin + _BLOCK + overlap].tobytes().lower()
        for needle in needles:
            at = block.find(needle)
            while 0 <= at < _BLOCK:
                found.append(begin + at)
                at = block.find(needle, at + 1)
    return np.unique(np.array(found, np.int64))


def _stacks(buffer: Buffer) -> Iterator[Span]:
    rows, _ = walk(buffer, 0, len(buffer))
    for number, wire, at, length in rows:
        if number != 1 or wire != WIRE_BYTES:
            continue
        plane = (at, at + length)
        yield from _plane_stacks(buffer, plane)
        if plane_name(buffer, plane) == METADATA_PLANE:
            yield from _frame_tables(buffer, plane)


def _plane_stacks(buffer: Buffer, plane: Span) -> Iterator[Span]:
    names = stat_names(buffer, *plane)
    lengths = names[:, 2] - names[:, 1]
    ids = [
        key
        for key, at, end in names[np.isin(lengths, [len(name) for name in _STACK_NAMES])].tolist()
        if buffer[at:end].tobytes() in _STACK_NAMES
    ]
    if not ids:
        return
    known = names[:, 0]
    size = int(known[(known >= 0) & (known < _LARGEST_ID)].max(initial=-1)) + 1
    uses = np.zeros(size, np.uint8)
    yield from map(tuple, stack_values(buffer, *plane, np.array(ids, np.int64), uses).tolist())
    # A text that serves another stat too (a stack of one frame is also the source) stays.
    for key, at, end in names.tolist():
        if 0 <= key < size and uses[key] == USED_BY_STACK:
            yield at, end


def _frame_tables(buffer: Buffer, plane: Span) -> Iterator[Span]:
    for number, _, entry in fields(buffer, plane):
        if number != 4:
            continue
        _, metadata = map_entry(buffer, entry)
        for proto in _under(buffer, [metadata], 5, 6):
            for table in _under(buffer, [proto], _HLO_MODULE, _STACK_FRAME_INDEX):
                yield from (span for tag, _, span in fields(buffer, table) if tag in _FRAME_TEXTS)


def _under(buffer: Buffer, messages: list[Span], *path: int) -> list[Span]:
    for wanted in path:
        messages = [
            span
            for message in messages
            for number, _, span in fields(buffer, message)
            if number == wanted
        ]
    return messages
