"""How far long work has come, for whoever shows it.

Contract: who works says so with `doing` and `advance`, which cost next to nothing and change
nothing; nobody hears it unless the work is `watched` in this context. Who shows it reads the `Work`
from another thread whenever it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Work:
    """`what` is being done, `done` of `size` bytes (0: it is not known how many), and the events
    read since the beginning. `look`: counts the bytes where who works does not."""

    what: str = ""
    size: int = 0
    done: int = 0
    events: int = 0
    look: Callable[[], int] | None = None


_WATCHED: ContextVar[Work | None] = ContextVar("watched", default=None)


@contextmanager
def watched() -> Iterator[Work]:
    """What is done in this block, as it goes on."""
    work = Work()
    token = _WATCHED.set(work)
    try:
        yield work
    finally:
        _WATCHED.reset(token)


def doing(what: str, *, size: int = 0, look: Callable[[], int] | None = None) -> None:
    """Another piece of work begins."""
    work = _WATCHED.get()
    if work is not None:
        work.what, work.size, work.done, work.look = what, size, 0, look


def advance(*, done: int = 0, events: int = 0) -> None:
    """So many more bytes are done, and so many more events read."""
    work = _WATCHED.get()
    if work is not None:
        work.done += done
        work.events += events
