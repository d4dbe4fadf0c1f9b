"""What JAX compiled in this process, as it tells its listeners.

Contract
* `compiles()` gives running totals since the first call in this process; a look costs a tuple.
* JAX cannot take a listener back, so there is one per process, for as long as it lives.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, NamedTuple

_COMPILED = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT = "/jax/compilation_cache/cache_hits"


class Compiles(NamedTuple):
    """Programs compiled, the seconds of that, and programs that the cache held instead."""

    programs: int = 0
    seconds: float = 0.0
    cache_hits: int = 0

    def since(self, before: Compiles) -> Compiles:
        return Compiles(
            self.programs - before.programs,
            self.seconds - before.seconds,
            self.cache_hits - before.cache_hits,
        )


class _Totals:
    """The newest totals, replaced whole: readers need no lock."""

    def __init__(self) -> None:
        self.now = Compiles()
        self._lock = threading.Lock()  # programs are compiled in threads, too

    def duration(self, event: str, seconds: float, **_: Any) -> None:
        if event == _COMPILED:
            with self._lock:
                count, total, hits = self.now
                self.now = Compiles(count + 1, total + seconds, hits)

    def event(self, event: str, **_: Any) -> None:
        if event == _CACHE_HIT:
            with self._lock:
                self.now = self.now._replace(cache_hits=self.now.cache_hits + 1)


@cache
def _totals() -> _Totals:
    import jax.monitoring

    found = _Totals()
    jax.monitoring.register_event_duration_secs_listener(found.duration)
    jax.monitoring.register_event_listener(found.event)
    return found


def compiles() -> Compiles:
    return _totals().now
