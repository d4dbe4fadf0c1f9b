"""What only our own process may do to start faster."""

from __future__ import annotations

import sys


def import_numba() -> None:
    """Import numba without SciPy, which it takes for matrix products that no loop here uses; that
    is a third of its start-up. A library must not do this to the process it is used in."""
    if "numba" in sys.modules or "scipy" in sys.modules:
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        import numba  # noqa: F401
    finally:
        del sys.modules["scipy"]
