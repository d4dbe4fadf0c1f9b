"""What only our own process may do to start faster and to hold less memory."""

from __future__ import annotations

import os
import sys
from typing import Any

_is_own_process = False


def import_numba() -> Any:
    """numba; in a process of our own without what no loop here uses, half of its start-up: SciPy
    (matrix products), cffi (foreign functions) and extensions that other packages may bring. A
    library must not do this to the process it is used in."""
    if not _is_own_process or "numba" in sys.modules:
        import numba

        return numba
    unused = [name for name in ("scipy", "cffi") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type]
    try:
        import numba
        import numba.core.entrypoints
        import numba.core.typing.cffi_utils  # the part that asks for cffi
        import numba.np.arraymath  # the part that asks for SciPy, else at the first call
    finally:
        for name in unused:
            del sys.modules[name]
    # Private: without it the metadata of all installed packages is read, no more.
    numba.core.entrypoints._already_initialized = True
    return numba


def skip_pydantic_plugins() -> None:
    """Let pydantic not look through all installed distributions for plugins, which takes a
    twentieth of reading a summary. Before pydantic makes its first model."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# From here on numpy asks for huge pages, which make fresh memory cheap.
_LARGE = 1 << 22
_KEPT = 1 << 24


def return_large_blocks() -> None:
    """Let glibc give blocks of 4 MB back when they are freed: by default it learns to keep blocks
    of up to 32 MB. What it keeps of smaller ones, up to 16 MB, is used again: to ask for every
    array of a megabyte anew takes a fifth of a summary's time. No effect elsewhere."""
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
    except (OSError, AttributeError, TypeError):
        return


def ready_to_read() -> None:
    """Before a process of our own reads a profile."""
    global _is_own_process
    _is_own_process = True
    return_large_blocks()
