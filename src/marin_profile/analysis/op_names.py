"""What ops' own texts show to be damaged: bytes that are no text, and two names for one op.

Contract: a file's texts are UTF-8; what is none was read as U+FFFD. Of a CPU an event's name and
the HLO op that it tells are one; a kernel of a GPU has a name of its own, and several HLO ops may
share it. Of an op of two names, one must be an HLO op that other events agree on.
"""

from __future__ import annotations

from marin_profile.analysis.device_ops import HostDevices
from marin_profile.analysis.planes import CPU
from marin_profile.base.text import plural

UNREADABLE = "\ufffd"


def two_names(found: HostDevices) -> tuple[str, ...]:
    """A sentence if there are such ops."""
    facts = found.facts
    agreed = {(one.module, one.name) for one in facts if one.hlo_op and one.name == one.hlo_op}
    odd = {
        index
        for index, one in enumerate(facts)
        if one.hlo_op
        and one.name != one.hlo_op
        and not agreed.isdisjoint({(one.module, one.name), (one.module, one.hlo_op)})
    }
    if not odd:
        return ()
    ran = [op for device in found.devices if device.kind == CPU for op in device.op.tolist()]
    ran = [op for op in ran if op in odd]
    if not ran:
        return ()
    first = facts[ran[0]]
    tell = "tells" if len(ran) == 1 else "tell"
    return (
        f"{plural(len(ran), 'event')} of CPU devices {tell} another "
        f"HLO op than by name ({first.name!r} tells {first.hlo_op!r}): one of the two may be "
        "damaged, and with it the op's kind.",
    )


def no_text(found: HostDevices) -> tuple[str, ...]:
    """A sentence if ops that ran hold bytes that are no text."""
    odd = {
        index
        for index, op in enumerate(found.timeline.ops)
        if any(UNREADABLE in text for text in (op.name, op.long_name, op.category, op.shape))
        or any(UNREADABLE in text for text in (op.hlo_op, op.module, *op.scope_hints))
    }
    ran = {op for device in found.devices for op in device.op.tolist()} & odd if odd else set()
    if not ran:
        return ()
    name = min(found.timeline.ops[op].name for op in ran)
    return (
        f"The names or HLO texts of {plural(len(ran), 'op')} hold bytes that are no text (one is "
        f"{name!r}): the file may be damaged, and with it what the op is.",
    )
