"""What only our own process may do to start faster and to hold less memory."""

from __future__ import annotations

import os
import sys


def import_numba() -> None:
    """Import numba without SciPy, which it takes for matrix products that no loop here uses; that
    is a third of its start-up. A library must not do this to the process it is used in."""
    if "numba" in sys.modules or "scipy" in sys.modules:
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        import numba
        import numba.np.arraymath  # noqa: F401  # the part that asks for SciPy, else at the first call
    finally:
        del sys.modules["scipy"]


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
    """Both, before a process of our own reads a profile."""
    return_large_blocks()
    import_numba()
