"""What tests let processes do: by name, so that another process finds it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Deed:
    """Gives its number back, after `seconds`; before, it kills its process while there are fewer
    than `kills` marks in the folder."""

    number: int
    folder: str
    kills: int = 0
    seconds: float = 0.0


def do(deed: Deed) -> int:
    marks = list(Path(deed.folder).glob(f"{deed.number}-*"))
    Path(deed.folder, f"{deed.number}-{len(marks)}").touch()
    if len(marks) < deed.kills:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(deed.seconds)
    return deed.number


def runs_of(deed: Deed) -> int:
    """How often it was begun."""
    return len(list(Path(deed.folder).glob(f"{deed.number}-*")))


def fail(number: int) -> int:
    raise ZeroDivisionError(number)


def process_of(_: int) -> int:
    return os.getpid()


def begin() -> None:
    pass


def kill_readers_of(host: str, folder: str, times: int) -> None:
    """From now on this process dies when it reads the host, while there are fewer marks than
    that."""
    from marin_profile.pipeline import crew_reading

    read_host = crew_reading.read_host

    def deadly(file, *arguments, **options):
        marks = list(Path(folder).glob("killed-*"))
        if host in file.path and len(marks) < times:
            Path(folder, f"killed-{len(marks)}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return read_host(file, *arguments, **options)

    crew_reading.read_host = deadly
