"""Devices and hosts that changed otherwise than the others, in sentences and as a table."""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration
from marin_profile.comparison.model import Change, Comparison, DeviceChange
from marin_profile.documents.model import Block, Paragraph, table
from marin_profile.documents.text import code

# Of the change of a step, what a device must have changed by to account for it.
LEAST_ACCOUNTED = 0.5

_VERBS = {
    "compute": "computes",
    "exposed_transfer": "waits for transfers",
    "unattributed": "spends in ops of unknown kind",
    "exposed_communication": "communicates, its waits for others aside,",
    "idle": "idles",
}


def device_sentence(row: DeviceChange) -> str:
    """ "TPU:3 computes 15.0 % longer (+4.20 ms a step); the others wait 4.10 ms longer for it"."""
    amount = _signed(row.delta)
    how = _more(row.delta)
    if row.relative is not None:
        how = f"{100 * abs(row.relative):.1f} % {how}"
    text = f"{device_name(row)} {_VERBS[row.term]} {how} ({amount} a step)"
    wait = row.wait_caused
    if wait is None or not wait.delta:
        return text
    others = "the others" if row.device is not None else "devices of other hosts"
    return f"{text}; {others} wait {duration(abs(wait.delta))} {_more(wait.delta)} for it"


def device_name(row: DeviceChange) -> str:
    if row.device is None:
        return f"host {row.host}"
    return f"{row.host} {row.device.removeprefix('/device:')}".lstrip()


def accounting_device(comparison: Comparison) -> str:
    """A sentence where one device or host accounts for the change of a step, else ""."""
    target, rows = comparison.target, comparison.devices
    if comparison.comparability.same_capture or target is None or not target.delta:
        return ""
    if len(rows) != 1:
        return ""
    if rows[0].beyond_others / target.delta < LEAST_ACCOUNTED:
        return ""
    return (
        f"One {'device' if rows[0].device else 'host'} accounts for it: {device_sentence(rows[0])}."
    )


def device_table(comparison: Comparison) -> list[Block]:
    """Empty where all changed alike."""
    if not comparison.devices:
        return []
    rows = [
        [
            code(device_name(row)),
            row.term.replace("_", " "),
            duration(row.before),
            duration(row.after),
            _signed(row.delta),
            _signed(row.beyond_others),
            *_waits(row.wait_caused),
        ]
        for row in comparison.devices
    ]
    headers = ["device", "term", "before", "after", "change", "beyond the others"]
    waits = ["wait for it before", "after"]
    note = Paragraph("Per step. Where all devices changed alike there is no row.")
    return [note, table([*headers, *waits], rows, "ll")]


def _waits(wait: Change | None) -> list[str]:
    return [NOT_KNOWN] * 2 if wait is None else [duration(wait.before), duration(wait.after)]


def _more(delta: float | None) -> str:
    return "longer" if (delta or 0.0) > 0 else "less"


def _signed(delta: float | None) -> str:
    return ("+" if delta is not None and delta > 0 else "") + duration(delta)
