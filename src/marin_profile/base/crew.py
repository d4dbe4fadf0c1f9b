"""One function over many tasks, on any `concurrent.futures.Executor`.

Contract
* Results come in the order of the tasks, whatever order they are done in.
* Where a process dies under tasks, they are done again: each of them alone, so that none is blamed
  for another. One under which a process dies TRIES times is Lost. An executor that broke is made
  anew. What the function itself raises ends the work.
* At most one task more than there are workers is handed out at a time.
* While nothing gets done, the crew is asked every WATCH_SECONDS whether it can go on.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

TRIES = 3
WATCH_SECONDS = 5.0


class Crew(Protocol):
    """Who does the work. `workers`: how many tasks run at once. `deaths`: what a task's future
    raises where its process died."""

    @property
    def workers(self) -> int: ...

    @property
    def deaths(self) -> tuple[type[BaseException], ...]: ...

    def executor(self) -> AbstractContextManager[Executor]:
        """A new one, for as long as the block lasts."""
        ...

    def watch(self) -> Callable[[], None]:
        """Of one wait for tasks: called now and then, it raises a ProfileError where nobody is left
        to do them."""
        ...


@dataclass(frozen=True)
class Lost:
    """What becomes of a task under which a process died that often."""

    tries: int


class _InTurn(Executor):
    """Does a task when it is submitted."""

    def submit(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Alone:
    """This process, which does one task after the other."""

    workers: int = 1
    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def executor(self) -> AbstractContextManager[Executor]:
        return _InTurn()

    def watch(self) -> Callable[[], None]:
        return _nothing


@dataclass(frozen=True)
class Processes:
    """Processes of this machine. `begin` is called in each of them before its first task."""

    workers: int
    begin: Callable[[], None]
    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # Never a fork of this process, which may have threads and holds a lot of memory.
        method = {"forkserver", "spawn"}.intersection(multiprocessing.get_all_start_methods())
        context = multiprocessing.get_context(min(method))
        pool = ProcessPoolExecutor(
            self.workers, context, initializer=_begin_process, initargs=(self.begin,)
        )
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    def watch(self) -> Callable[[], None]:
        return _nothing  # where a process dies the pool breaks, and nothing waits


def _begin_process(begin: Callable[[], None]) -> None:
    """An interrupt ends the process at once and in silence, and it ends with the one that made
    it, also where that is killed."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin()


def _end_with_parent() -> None:
    import os
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def each(
    function: Callable[[T], R],
    tasks: Sequence[T],
    crew: Crew,
    *,
    on_done: Callable[[int], None] = lambda done: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[R | Lost]:
    """What the function makes of each task. `on_done` is told how many are done; `meanwhile` is
    called once, when the first tasks are under way."""
    waiting, suspects = deque(range(len(tasks))), deque[int]()
    tries: Counter[int] = Counter()
    results: dict[int, R | Lost] = {}
    following = 0
    while following < len(tasks):
        with crew.executor() as executor:
            hand = _Hand(function, tasks, executor)
            while hand.under_way or (not hand.is_broken and (waiting or suspects)):
                if suspects:
                    hand.out(suspects, most=1)
                else:
                    hand.out(waiting, most=crew.workers + 1)
                meanwhile()
                meanwhile = _nothing
                for number, future in hand.back(crew.watch()):
                    try:
                        results[number] = future.result()
                    except crew.deaths as death:
                        hand.is_broken |= isinstance(death, BrokenExecutor)
                        tries[number] += 1
                        if tries[number] < TRIES:
                            suspects.append(number)
                            continue
                        results[number] = Lost(tries[number])
                    on_done(following + len(results))
                while following in results:
                    yield results.pop(following)
                    following += 1


def _nothing() -> None:
    pass


class _Hand:
    """Hands tasks out to one executor, and takes back what is done."""

    def __init__(self, function: Callable[[T], R], tasks: Sequence[T], executor: Executor) -> None:
        self._submit = lambda number: executor.submit(function, tasks[number])
        self.under_way: dict[Future[Any], int] = {}
        self.is_broken = False

    def out(self, numbers: deque[int], *, most: int) -> None:
        while numbers and len(self.under_way) < most and not self.is_broken:
            try:
                self.under_way[self._submit(numbers[0])] = numbers[0]
            except BrokenExecutor:
                self.is_broken = True
            else:
                numbers.popleft()

    def back(self, watch: Callable[[], None]) -> list[tuple[int, Future[Any]]]:
        if not self.under_way:
            return []
        while not (done := wait(self.under_way, WATCH_SECONDS, FIRST_COMPLETED).done):
            watch()
        return sorted((self.under_way.pop(future), future) for future in done)
