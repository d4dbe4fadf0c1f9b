"""A process that appends records and says, after each, that it was acknowledged."""

from __future__ import annotations

import os

from marin_profile.history import HistoryRecord, append

STEPS = tuple(1000.0 + at / 8 for at in range(1000))


def record(writer: int, number: int) -> HistoryRecord:
    """Long enough (about 8 kB) that a kill can tear its line."""
    time = f"2026-01-02T03:{writer:02}:{number % 60:02}.{number:06}Z"
    return HistoryRecord(time=time, run_id=f"{writer}/{number}", steps=STEPS)


def write(target: str, acknowledged: str, writer: int, count: int) -> None:
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for number in range(count):
        append(target, record(writer, number))
        os.write(log, b"%d/%d\n" % (writer, number))
