"""numba's njit as this package uses it: compiled code kept on disk, no GIL while it runs.

Contract
* `jit` compiles any loop, `jit_no_alloc` one that allocates no array: without reference counts,
  which would take longer than the work itself in a small function.
* Where numba finds no place for its cache (read-only install, no home), a private folder below the
  temporary one is used; where that fails too, caching is off, with a warning. Never an error.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])

# No NRT (numba's runtime, which counts references). A private option of numba: without it the
# functions are slower, not wrong.
_NO_NRT = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def jit(function: Function) -> Function:
    return _compiled(function, {})


def jit_no_alloc(function: Function) -> Function:
    return _compiled(function, _NO_NRT)


def jit_inline(function: Function) -> Function:
    """Like `jit_no_alloc`, copied into its callers: for a small function in the hottest loop."""
    return _compiled(function, {**_NO_NRT, "inline": "always"})


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    try:
        return _njit(function, cache=True, **options)
    except RuntimeError:  # numba found no folder that it may write to
        pass
    folder = _private_folder()
    if folder is None:
        warnings.warn(
            "no folder is writable for compiled code: every run compiles it again (set "
            "NUMBA_CACHE_DIR to a writable folder)",
            RuntimeWarning,
            stacklevel=3,
        )
        return _njit(function, cache=False, **options)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return _njit(function, cache=True, **options)
    except RuntimeError:
        return _njit(function, cache=False, **options)
    finally:
        numba.config.CACHE_DIR = before


def _njit(function: Function, **options: Any) -> Function:
    compiled: Function = numba.njit(nogil=True, **options)(function)
    return compiled


def _private_folder() -> Path | None:
    """A folder that only this user can write: compiled code is loaded from it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"marin-profile-compiled-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == user and not facts.st_mode & 0o022
    return folder if is_ours and os.access(folder, os.W_OK) else None
