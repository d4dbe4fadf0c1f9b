"""Distinct ops of a plane: event metadata and the event's own stats -> Op.

Contract: an op's stats stand in its metadata or in its events; the event's own come first.
"""

from __future__ import annotations

from marin_profile.events.timeline import Op
from marin_profile.readers.hlo import Buffer, Span, fields, text
from marin_profile.readers.op_stats import OP_ANCHORS, OP_STATS, Stat, describe_op
from marin_profile.readers.xplane_planes import RawPlane, decode_stat

METADATA_FIELDS = range(1, 7)
# Their values are references to names.
NEVER_EMPTY = frozenset({"hlo_op", "hlo_category"})


class OpDecoder:
    """Describes a distinct op of one plane from its metadata and its first event."""

    def __init__(self, buffer: Buffer, plane: RawPlane, *, keep_event_stats: bool) -> None:
        self._buffer = buffer
        self._plane = plane
        self._keep_event_stats = keep_event_stats
        self._is_host = plane.is_host
        self._by_metadata: dict[int, tuple[str, str, dict[str, Stat]]] = {}
        self.nameless_stats = 0

    def __call__(self, metadata_id: int, event: Span) -> Op:
        name, display, stats = self._metadata(metadata_id)
        if self._keep_event_stats:
            own = self._stats(event, 4)
            if not self._is_host or any(key in own for key in OP_ANCHORS):
                stats = stats | own
        # On TPU the metadata's name is the HLO text and its display name the op's short name.
        long_name = name if display and name != display else ""
        return describe_op(display or name, stats, long_name)

    def knows(self, metadata_id: int) -> bool:
        return metadata_id in self._plane.metadata

    def _metadata(self, key: int) -> tuple[str, str, dict[str, Stat]]:
        if key not in self._by_metadata:
            name = display = ""
            span = self._plane.metadata.get(key, (0, 0))
            for number, _, inner in fields(self._buffer, span):
                self.nameless_stats += number not in METADATA_FIELDS
                if number == 2:
                    name = text(self._buffer, inner)
                elif number == 4:
                    display = text(self._buffer, inner)
            self._by_metadata[key] = (name, display, self._stats(span, 5))
        return self._by_metadata[key]

    def _stats(self, span: Span, field_number: int) -> dict[str, Stat]:
        decoded = (
            decode_stat(self._buffer, inner, self._plane.stat_names)
            for number, _, inner in fields(self._buffer, span)
            if number == field_number
        )
        found = {}
        for key, value in decoded:
            if key in OP_STATS:
                found[key] = value
                self.nameless_stats += value == "" and key in NEVER_EMPTY
            elif not key or key.isdecimal():
                self.nameless_stats += 1
        return found
