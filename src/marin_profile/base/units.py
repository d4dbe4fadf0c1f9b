"""The units of quantities, as types of fields: `duration: Microseconds | None`.

Contract: an alias is the plain number, annotated with its `Unit`; nothing is converted or checked.
A list or a map of quantities has the unit inside: `dict[str, Microseconds]`. Numbers that only
name something (a step's number, an index, a depth) are plain.
"""

from __future__ import annotations

import typing
from typing import Annotated, Any


class Unit(str):
    """A unit as it is written."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A quantity's JSON Schema names its unit."""
        return {**handler(core_schema), "unit": str(self)}


Microseconds = Annotated[float, Unit("us")]
Share = Annotated[float, Unit("share of 1")]
ShareOfOpTime = Annotated[float, Unit("share of device op time")]
ShareOfComputeTime = Annotated[float, Unit("share of compute time")]
ShareOfCommunication = Annotated[float, Unit("share of communication")]
Ratio = Annotated[float, Unit("ratio")]
Count = Annotated[int, Unit("count")]
Steps = Annotated[int, Unit("step")]
StepsPerSecond = Annotated[float, Unit("step/s")]
Devices = Annotated[int, Unit("device")]
Bytes = Annotated[int, Unit("byte")]
BytesPerCall = Annotated[float, Unit("byte/call")]
BytesPerStep = Annotated[float, Unit("byte/step")]
Flops = Annotated[int, Unit("flop")]
FlopsPerByte = Annotated[float, Unit("flop/byte")]
FlopProxy = Annotated[float, Unit("flop")]
MicrosecondsPerFlop = Annotated[float, Unit("us/flop")]
GigabytesPerSecond = Annotated[float, Unit("GB/s")]
TeraflopsPerSecond = Annotated[float, Unit("TFLOP/s")]
# Of maps whose keys end in their unit, as `hbm_gigabytes_per_second` does.
NamedByKey = Annotated[float, Unit("named by the key")]


def unit_in(annotation: Any) -> str | None:
    """The unit in an annotation as `get_type_hints(..., include_extras=True)` gives it, at whatever
    depth; None if it is no quantity."""
    for part in getattr(annotation, "__metadata__", ()):
        if isinstance(part, Unit):
            return str(part)
    return next(filter(None, map(unit_in, typing.get_args(annotation))), None)
