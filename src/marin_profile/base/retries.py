"""What is tried again: a bounded number of times, after waits that grow and differ.

Contract
* `Retries.call(action)` gives what the action returns. It is called at most `tries` times, and not
  again once `most_seconds` have passed. Before try n + 1 there is a wait between half and all of
  `first_wait` doubled n - 1 times, at most `longest_wait`; the seeded `jitter` draws it, so that
  processes that fail together do not come back together.
* An error that does not pass is raised as it is, at once; one that does, in the end, as GaveUp.
* Clock and sleep are given: tests need no time.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class GaveUp(Exception):
    """The last `error`, and how often it was tried `of` how many times."""

    def __init__(self, error: Exception, tried: int, of: int) -> None:
        super().__init__(f"{error} (try {tried} of {of})")
        self.error = error
        self.tried = tried
        self.of = of


def _own_jitter() -> random.Random:
    """Another sequence in each process."""
    return random.Random(f"{socket.gethostname()} {os.getpid()}")


@dataclass(frozen=True)
class Retries:
    tries: int = 5
    first_wait: float = 0.25
    longest_wait: float = 8.0
    most_seconds: float = 60.0
    jitter: random.Random = field(default_factory=_own_jitter)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def call(self, action: Callable[[], T], passes: Callable[[Exception], bool]) -> T:
        begun = self.clock()
        tried = 0
        while True:
            try:
                return action()
            except Exception as error:
                tried += 1
                if not passes(error):
                    raise
                wait = self._wait(tried)
                if tried >= self.tries or self.clock() + wait - begun > self.most_seconds:
                    raise GaveUp(error, tried, self.tries) from error
            self.sleep(wait)

    def _wait(self, tried: int) -> float:
        most = min(self.longest_wait, self.first_wait * 2 ** (tried - 1))
        return most * self.jitter.uniform(0.5, 1)
