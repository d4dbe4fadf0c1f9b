"""Where the processes of a run read each other's notes.

Contract
* A note is a short text, one per process, read whole or not at all. `lag`: seconds until one that
  was written is usually seen; `poll_every`: seconds between two looks.
* JAX's coordination service is used where it runs, else a folder or URL that all processes see.
  `coordination_client` is the only place that knows JAX's private name for it.
* Any method may raise, and may wait for the network: none belongs in training's thread.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from marin_profile.base.errors import NotFoundError
from marin_profile.base.storage import (
    delete_file,
    files_below,
    is_url,
    open_file,
    plain,
    read_files,
    write_file,
)
from marin_profile.profiling.run import Run

POLL_EVERY, POLL_EVERY_REMOTE = 0.25, 2.0  # seconds
MOST_LOOKS = 200  # a second, of all processes together: one process serves them
FOLDER = ".agreement"  # hidden: not a capture


class Medium(Protocol):
    poll_every: float
    lag: float

    def write(self, process: int, note: str) -> None: ...

    def read(self, process: int) -> str | None: ...

    def read_all(self) -> dict[int, str]: ...

    def delete(self, process: int) -> None:
        """It need not be there."""


def medium_of(run: Run) -> Medium:
    client = coordination_client()
    if client is not None:
        return KeyValueStore(client, run.run_id, run.count)
    return SharedFolder(run.shared or str(run.profile_dir), run.count)


def coordination_client() -> Any | None:
    """The client of JAX's coordination service; None where there is none, or not as we know it."""
    try:
        from jax._src.distributed import global_state

        client = global_state.client
    except (ImportError, AttributeError):
        return None
    names = ("key_value_set", "key_value_dir_get", "key_value_delete")
    return client if all(hasattr(client, name) for name in names) else None


class KeyValueStore:
    """In JAX's coordination service: it lives as long as the first process does."""

    lag = 0.25

    def __init__(self, client: Any, run_id: str, count: int) -> None:
        self._client = client
        self._root = f"marin_profile/{run_id}/"
        self.poll_every = max(POLL_EVERY, count / MOST_LOOKS)

    def write(self, process: int, note: str) -> None:
        self._client.key_value_set(f"{self._root}{process}/note", note, allow_overwrite=True)

    def read(self, process: int) -> str | None:
        found = self._client.key_value_dir_get(f"{self._root}{process}/")
        return found[0][1] if found else None

    def read_all(self) -> dict[int, str]:
        found = self._client.key_value_dir_get(self._root)
        return {int(key.split("/")[-2]): note for key, note in found}

    def delete(self, process: int) -> None:
        self._client.key_value_delete(f"{self._root}{process}/")


class SharedFolder:
    """As small files in a folder, or behind an fsspec URL."""

    lag = 2.0

    def __init__(self, root: str, count: int) -> None:
        self._root = f"{plain(root).rstrip('/')}/{FOLDER}"
        slowest = POLL_EVERY_REMOTE if is_url(self._root) else POLL_EVERY
        self.poll_every = max(slowest, count / MOST_LOOKS)

    def write(self, process: int, note: str) -> None:
        write_file(self._path(process), note.encode())

    def read(self, process: int) -> str | None:
        try:
            with open_file(self._path(process)) as stream:
                return stream.read().decode(errors="replace")
        except NotFoundError:
            return None

    def read_all(self) -> dict[int, str]:
        try:
            listed = [name for name, _ in files_below(self._root)]
        except NotFoundError:
            return {}  # nobody wrote yet
        names = {name: process for name in listed if (process := _process(name)) is not None}
        try:
            found = read_files(self._root, list(names))
        except NotFoundError:  # one of them has just gone
            each = {process: self.read(process) for process in names.values()}
            return {process: note for process, note in each.items() if note is not None}
        return {
            process: data.decode(errors="replace")
            for process, data in zip(names.values(), found, strict=True)
        }

    def delete(self, process: int) -> None:
        delete_file(self._path(process))
        if not is_url(self._root):
            with suppress(OSError):
                Path(self._root).rmdir()  # the last one

    def _path(self, process: int) -> str:
        return f"{self._root}/{process}.json"


def _process(name: str) -> int | None:
    number, ending, rest = name.partition(".json")
    return int(number) if ending and not rest and number.isdecimal() else None
