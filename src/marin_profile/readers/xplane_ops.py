"""Distinct ops of a plane: event metadata and the event's own stats -> Op.

Contract: the stats in OP_STATS describe an op wherever they stand; on the host plane an event
describes one only if it has a stat in OP_ANCHORS.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_profile.readers.hlo import Buffer, Span, fields, text
from marin_profile.readers.xplane_planes import RawPlane, Stat, decode_stat
from marin_profile.timeline import Op

# Stats that describe an op, wherever they stand (event metadata or event).
OP_STATS = (
    "long_name",
    "hlo_op",
    "hlo_module",
    "program_id",
    "hlo_category",
    "tf_op",
    "name",
    "source",
    "shape_with_layout",
    "flops",
    "model_flops",
    "bytes_accessed",
    "memcpy_details",
)
# On the host plane an event describes an op only if it has one of these.
OP_ANCHORS = ("hlo_op", "hlo_category", "long_name", "memcpy_details")


class OpDecoder:
    """Describes a distinct op of one plane from its metadata and its first event."""

    def __init__(self, buffer: Buffer, plane: RawPlane, *, keep_event_stats: bool) -> None:
        self._buffer = buffer
        self._plane = plane
        self._keep_event_stats = keep_event_stats
        self._is_host = plane.is_host
        self._by_metadata: dict[int, tuple[str, str, dict[str, Stat]]] = {}

    def __call__(self, metadata_id: int, event: Span) -> Op:
        name, display, stats = self._metadata(metadata_id)
        if self._keep_event_stats:
            own = self._stats(event, 4)
            if not self._is_host or any(key in own for key in OP_ANCHORS):
                stats = stats | own
        return _op(name, display, stats)

    def _metadata(self, key: int) -> tuple[str, str, dict[str, Stat]]:
        if key not in self._by_metadata:
            name = display = ""
            span = self._plane.metadata.get(key, (0, 0))
            for number, _, inner in fields(self._buffer, span):
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
        return {key: value for key, value in decoded if key in OP_STATS}


def _op(name: str, display: str, stats: Mapping[str, Stat]) -> Op:
    """On TPU the metadata's name is the HLO text and its display name the op's short name."""
    long_name = _text(stats, "long_name") or (name if display and name != display else "")
    hints = (_text(stats, "tf_op"), _text(stats, "name"))
    return Op(
        name=display or name,
        long_name=long_name,
        hlo_op=_text(stats, "hlo_op"),
        module=_text(stats, "hlo_module"),
        program_id=_integer(stats, "program_id"),
        category=_text(stats, "hlo_category"),
        scope_hints=tuple(hint for hint in hints if hint),
        source=_text(stats, "source"),
        shape=_text(stats, "shape_with_layout"),
        flops=_integer(stats, "flops"),
        model_flops=_integer(stats, "model_flops"),
        bytes_accessed=_integer(stats, "bytes_accessed"),
        memcpy_details=_text(stats, "memcpy_details"),
    )


def _text(stats: Mapping[str, Stat], key: str) -> str:
    value = stats.get(key, "")
    return value if isinstance(value, str) else str(value)


def _integer(stats: Mapping[str, Stat], key: str) -> int | None:
    """Integers may be written as text; anything else is unknown."""
    value = stats.get(key)
    if isinstance(value, int):
        return value % (1 << 64) if key == "program_id" else value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return int(value) if isinstance(value, float) and value.is_integer() else None
