"""Signals that may be somebody else's.

Contract: `taken` takes a signal only where nobody has it, neither in Python nor, as faulthandler,
below it; `give_back` leaves it alone where somebody took it since. Only the main thread can do
either; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Taken:
    """A signal of which `handler` is told; `address`: the C level's handler since then."""

    number: signal.Signals
    handler: Callable[..., object]
    address: int | None

    def give_back(self) -> None:
        """As it was before: without a handler."""
        is_ours = signal.getsignal(self.number) == self.handler
        if _is_main() and is_ours and _address(self.number) == self.address:
            signal.signal(self.number, signal.SIG_DFL)


def taken(name: str, handler: Callable[..., object]) -> Taken | None:
    """The signal of that name, if it is free."""
    number = getattr(signal, name, None)
    if number is None or not _is_main():
        return None
    if signal.getsignal(number) != signal.SIG_DFL or _address(number):
        return None
    signal.signal(number, handler)
    return Taken(number, handler, _address(number))


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _address(number: signal.Signals) -> int | None:
    """Where the C level's handler is, 0 for none; None where the system does not tell."""
    found = ctypes.create_string_buffer(512)  # a struct sigaction, whose first field it is
    try:
        if ctypes.CDLL(None).sigaction(ctypes.c_int(number), None, found):
            return None
    except (OSError, AttributeError, TypeError):
        return None
    return ctypes.c_size_t.from_buffer(found).value
