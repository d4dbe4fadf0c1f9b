"""What the readers take from an event's stats (XPlane) or args (JSON), and the Op it describes.

Contract: the names in OP_STATS describe an op wherever they stand; on a host an event describes one
only if it has a name in OP_ANCHORS. Values that make no sense count as not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_profile.events.timeline import Op

Stat = int | float | str | bytes

# Numbers that tell executions apart; each becomes a sparse column.
EVENT_NUMBERS = (
    "device_offset_ps",
    "device_duration_ps",
    "run_id",
    "correlation_id",
    "step_num",
    "device_ordinal",
)
# Flows between host events: who produced (type, id), who consumed it.
FLOW_NUMBERS = ("_pt", "_p", "_ct", "_c")
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
OP_ANCHORS = ("hlo_op", "hlo_category", "long_name", "memcpy_details")


def describe_op(name: str, stats: Mapping[str, Stat], long_name: str = "") -> Op:
    """The op called `name`; `long_name` serves where the stats have none."""
    hints = (_text(stats, "tf_op"), _text(stats, "name"))
    return Op(
        name=name,
        long_name=_text(stats, "long_name") or long_name,
        hlo_op=_text(stats, "hlo_op"),
        module=_text(stats, "hlo_module"),
        program_id=_program_id(stats),
        category=_text(stats, "hlo_category"),
        scope_hints=tuple(hint for hint in hints if hint),
        source=_text(stats, "source"),
        shape=_text(stats, "shape_with_layout"),
        flops=_amount(stats, "flops"),
        model_flops=_amount(stats, "model_flops"),
        bytes_accessed=_amount(stats, "bytes_accessed"),
        memcpy_details=_text(stats, "memcpy_details"),
    )


def _text(stats: Mapping[str, Stat], key: str) -> str:
    value = stats.get(key, "")
    return value if isinstance(value, str) else str(value)


def _program_id(stats: Mapping[str, Stat]) -> int | None:
    """Unsigned 64 bit."""
    value = _integer(stats.get("program_id"))
    return None if value is None else value % (1 << 64)


def _amount(stats: Mapping[str, Stat], key: str) -> int | None:
    """A count that fits int64."""
    value = _integer(stats.get(key))
    return value if value is not None and 0 <= value < 1 << 63 else None


def _integer(value: Stat | None) -> int | None:
    """Integers may be written as text or as floats."""
    if value is None or isinstance(value, bytes):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        pass
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return None
