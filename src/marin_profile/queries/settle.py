"""Names and numbers that a query is asked with -> those of the capture, or why there are none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from marin_profile.queries.model import CannotAnswer
from marin_profile.queries.names import Names, no_such
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary, Step

MOST_NAMED = 12
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


def settle(summary: ProfileSummary, parameters: Parameters) -> Parameters | CannotAnswer:
    """Programs, scopes, families, devices and steps as the summary calls them. Ops stay as they
    are asked for: queries look them up among those that they list."""
    for kind in ("program", "scope", "family", "span"):
        text = getattr(parameters, kind)
        if text is None:
            continue
        found = Names(summary).find(text)
        if kind not in found.kinds:
            return no_such(text, found, kind)
        settled: dict[str, Any] = {kind: found.kinds[kind]}
        parameters = replace(parameters, **settled)
    if parameters.device is not None:
        devices = {row.device for row in summary.device_ledger}
        devices.update(device for host in summary.hosts for device in host.devices)
        numbers = {number_of(device) for device in devices}
        known = sorted(number for number in numbers if number is not None)
        if known and parameters.device not in known:
            return _no_number("device", parameters.device, known)
    if parameters.step is not None:
        known = [step_number(step) for step in summary.step_time.steps]
        if parameters.step not in known:
            return _no_number("step", parameters.step, known)
    return parameters


def number_of(device: str) -> int | None:
    """The number in a device's name."""
    match = _LAST_NUMBER.search(device)
    return int(match.group(1)) if match else None


def step_number(step: Step) -> int:
    """What a step is called by: its own number, else its index."""
    return step.step_num if step.step_num is not None else step.index


def _no_number(what: str, asked: int, known: list[int]) -> CannotAnswer:
    if not known:
        return CannotAnswer(
            f"No {what} {asked} is in this capture: it holds no {what}s.",
            f"Capture one that holds {what}s, or ask for the whole.",
        )
    shown = (
        ", ".join(map(str, known))
        if len(known) <= MOST_NAMED
        else f"{len(known)} of them, {min(known)} to {max(known)}"
    )
    nearest = min(known, key=lambda number: (abs(number - asked), number))
    return CannotAnswer(
        f"No {what} {asked} is in this capture; there are {what}s {shown}.",
        f"Ask for one of them; the nearest is {nearest}.",
        (f"{what} {nearest}",),
    )
