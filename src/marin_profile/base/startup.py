"""What only our own process may do to start faster and to hold less memory."""

from __future__ import annotations

import os
import sys
from typing import Any

_is_own_process = False


def import_numba() -> Any:
    """numba; in a process of our own without SciPy, which it takes for matrix products that no loop
    here uses: that is a third of its start-up. A library must not do this to the process it is used
    in."""
    if not _is_own_process or "numba" in sys.modules or "scipy" in sys.modules:
        import numba

        return numba
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        import numba
        import numba.np.arraymath  # the part that asks for SciPy, else at the first call
    finally:
        del sys.modules["scipy"]
    return numba


def skip_pydantic_plugins() -> None:
    """Let pydantic not look through all installed distributions for plugins, which takes a
    twentieth of reading a summary. Before pydantic makes its first model."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20


def return_large_blocks() -> None:
    """Let glibc give blocks of a megabyte back when they are freed: by default it learns to keep
    blocks of up to 32 MB, which holds a tenth more memory at the peak. No effect elsewhere."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
    except (OSError, AttributeError, TypeError):
        return


def ready_to_read() -> None:
    """Before a process of our own reads a profile."""
    global _is_own_process
    _is_own_process = True
    return_large_blocks()
