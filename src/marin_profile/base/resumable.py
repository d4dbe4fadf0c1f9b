"""Work whose results are kept, so that a second run does only what is new.

Contract
* A result is kept under its task's key, which says all that it depends on beside the content of
  files, and that content. Without a result for any content no file is read to find out.
* A result that is damaged, or gone meanwhile, is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from marin_profile.base.crew import Crew, Lost, each
from marin_profile.base.errors import ProfileError, UsageError

T = TypeVar("T")
R = TypeVar("R")


class Store(Protocol):
    """Where results are kept, by key and content."""

    def may_hold(self, key: str) -> bool:
        """False where there is nothing for any content."""
        ...

    def holds(self, key: str, content: str) -> bool: ...

    def get(self, key: str, content: str) -> bytes | None: ...

    def keep(self, key: str, content: str, result: bytes) -> None: ...


class Nowhere:
    """The store that keeps nothing."""

    def may_hold(self, key: str) -> bool:
        return False

    def holds(self, key: str, content: str) -> bool:
        return False

    def get(self, key: str, content: str) -> bytes | None:
        return None

    def keep(self, key: str, content: str, result: bytes) -> None:
        pass


@dataclass(frozen=True)
class Made:
    """A result, and the content that it was made of."""

    result: bytes
    content: str


@dataclass(frozen=True)
class Progress:
    """How many results are there; `kept`: how many of these were there before."""

    there: int
    tasks: int
    kept: int


@dataclass(frozen=True)
class Work(Generic[T, R]):
    """`make` and `content_of` run in the crew's processes, and return the errors that end a task
    and not the work; `decode` raises ValueError for what is no result."""

    make: Callable[[T], Made | ProfileError]
    content_of: Callable[[T], str | ProfileError]
    key_of: Callable[[T], str]
    decode: Callable[[T, bytes], R]


def each_result(
    work: Work[T, R],
    tasks: Sequence[T],
    crew: Crew,
    store: Store,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[R | ProfileError | Lost]:
    """The result for each task, in their order. `meanwhile` is called once, when the first new ones
    are under way."""
    if not tasks:
        return
    keys = [work.key_of(task) for task in tasks]
    kept = _kept(work, tasks, keys, crew, store)
    new = [task for number, task in enumerate(tasks) if number not in kept]

    def on_done(done: int) -> None:
        on_progress(Progress(len(kept) + done, len(tasks), len(kept)))

    on_done(0)
    made_of_new = each(work.make, new, crew, on_done=on_done, meanwhile=meanwhile)
    for number, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        if number not in kept:
            made = next(made_of_new)
        else:
            result = _kept_result(work, task, store.get(key, kept[number]))
            if result is not None:
                yield result
                continue
            made = work.make(task)
        if isinstance(made, Made):
            result = _new_result(work, task, made)
            store.keep(key, made.content, made.result)
            yield result
        else:
            yield made


def _kept(
    work: Work[T, R], tasks: Sequence[T], keys: Sequence[str], crew: Crew, store: Store
) -> dict[int, str]:
    """The contents for which the store holds results, by the number of the task."""
    hopeful = [number for number, key in enumerate(keys) if store.may_hold(key)]
    contents = each(work.content_of, [tasks[number] for number in hopeful], crew)
    return {
        number: content
        for number, content in zip(hopeful, contents, strict=True)
        if isinstance(content, str) and store.holds(keys[number], content)
    }


def _kept_result(work: Work[T, R], task: T, kept: bytes | None) -> R | None:
    try:
        return None if kept is None else work.decode(task, kept)
    except ValueError:
        return None


def _new_result(work: Work[T, R], task: T, made: Made) -> R:
    try:
        return work.decode(task, made.result)
    except ValueError as error:
        raise UsageError(
            f"The processes that do the work are not of this installation: {error}."
        ) from error
