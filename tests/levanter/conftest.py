"""Trainings that several tests look at are run once, however the tests are spread over workers."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[str, Callable[[Path], None]], Path]:
    """`once(name, make)`: a folder that `make` has filled, in this worker or in another one."""
    base = tmp_path_factory.getbasetemp()
    if base.name.startswith("popen-"):  # a worker's own, below the folder of all workers
        base = base.parent

    def folder_of(name: str, make: Callable[[Path], None]) -> Path:
        folder = base / name
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                folder.mkdir()
                make(folder)
        return folder

    return folder_of
