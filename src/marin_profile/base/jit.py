"""Loops in two forms: plain Python for small files, compiled by numba for large ones.

Contract
* A loop is plain Python until the files that this process has said it will read (`expect`) are
  large together, and compiled from then on: numba is imported, and a loop compiled, with the first
  call that needs it. Both forms give the same values. MARIN_PROFILE_LOOPS=plain or =compiled
  decides instead.
* `portable` names the plain form where it is not the loop's own code. `views` passes the plain form
  memory views in place of arrays: their elements are Python integers, and read twice as fast.
* `jit` compiles any loop, `jit_no_alloc` one that allocates no array: without reference counts,
  which would take longer than the work itself in a small function.
* Compiled code is kept on disk and runs without the GIL. Where numba finds no place for its cache
  (read-only install, no home), a private folder below the temporary one is used; where that fails
  too, caching is off, with a warning. Never an error.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from marin_profile.base.startup import import_numba

Function = Callable[..., Any]

PLAIN, COMPILED = "plain", "compiled"
# Some 200,000 events: reading them takes about as long as compiling what would read them.
LARGE_BYTES = 6 << 20


class _Forms:
    """Which form runs in this process."""

    def __init__(self, forced: str) -> None:
        self.forced = forced
        self.expected = 0
        self.compiled = False
        self.choose()

    def choose(self) -> None:
        self.compiled = self.forced == COMPILED or (
            self.forced != PLAIN and self.expected >= LARGE_BYTES
        )


_forms = _Forms(os.environ.get("MARIN_PROFILE_LOOPS", ""))
_compiling = threading.RLock()


def expect(size: int) -> None:
    """Say that a file of `size` bytes, unpacked, is about to be read."""
    _forms.expected += size
    _forms.choose()


def is_compiled() -> bool:
    """Whether loops run compiled from now on."""
    return _forms.compiled


def load_compiler() -> None:
    """Import numba, if the next loop needs it."""
    if _forms.compiled:
        import_numba()


def prepare(size: int, loop: Callable[[], object]) -> None:
    """Load numba, and with a call of a loop what any loop needs of it, if `size` bytes of protobuf
    will be expected: in a thread of its own, while they are read."""
    if _forms.forced != PLAIN and _forms.expected + size >= LARGE_BYTES:
        import_numba()
        loop()


@contextmanager
def forced(form: str) -> Iterator[None]:
    """All loops in this form, whatever the size; for tests."""
    before, _forms.forced = _forms.forced, form
    _forms.choose()
    try:
        yield
    finally:
        _forms.forced = before
        _forms.choose()


class Loop:
    """A function in both forms; called, it is the one that is due."""

    def __init__(
        self,
        function: Function,
        portable: Function | None,
        views: bool,
        options: dict[str, Any],
    ) -> None:
        self._function = function
        self._portable = portable or function
        self._views = views
        self._options = options
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return (self.compiled if _forms.compiled else self.plain)(*arguments)

    @cached_property
    def compiled(self) -> Function:
        with _compiling:
            return _compile(_linked(self._function, "compiled"), **self._options)

    @cached_property
    def plain(self) -> Function:
        return _with_views(self.inner) if self._views else self.inner

    @cached_property
    def inner(self) -> Function:
        """The plain form as other plain forms call it: with what they were called with."""
        return _linked(self._portable, "inner")


def jit(
    function: Function | None = None,
    *,
    portable: Function | None = None,
    views: bool = False,
) -> Any:
    return _loop(function, portable, views)


def jit_no_alloc(
    function: Function | None = None,
    *,
    portable: Function | None = None,
    views: bool = False,
) -> Any:
    return _loop(function, portable, views, counts_references=False)


def jit_inline(
    function: Function | None = None,
    *,
    portable: Function | None = None,
    views: bool = False,
) -> Any:
    """Like `jit_no_alloc`, copied into its callers: for a small function in the hottest loop."""
    return _loop(function, portable, views, counts_references=False, inline="always")


def _loop(
    function: Function | None,
    portable: Function | None,
    views: bool,
    **options: Any,
) -> Any:
    def decorate(function: Function) -> Loop:
        return Loop(function, portable, views, options)

    return decorate if function is None else decorate(function)


def _with_views(function: Function) -> Function:
    def plain(*arguments: Any) -> Any:
        return function(*(one.data if isinstance(one, np.ndarray) else one for one in arguments))

    return plain


def _linked(function: Function, form: str) -> Function:
    """The function, calling the loops that it calls in this form of theirs."""
    assert isinstance(function, FunctionType)
    names = function.__globals__
    loops = {
        name: getattr(names[name], form)
        for name in function.__code__.co_names
        if isinstance(names.get(name), Loop)
    }
    if not loops:
        return function
    linked = FunctionType(
        function.__code__, names | loops, function.__name__, function.__defaults__
    )
    return update_wrapper(linked, function)


def _compile(function: Function, *, counts_references: bool = True, **options: Any) -> Function:
    numba = import_numba()
    from numba.core.options import DefaultOptions

    # No NRT (numba's runtime, which counts references). A private option of numba: without it the
    # functions are slower, not wrong.
    if not counts_references and hasattr(DefaultOptions, "_nrt"):
        options["_nrt"] = False

    def njit(*, cache: bool) -> Function:
        compiled: Function = numba.njit(nogil=True, cache=cache, **options)(function)
        return compiled

    try:
        return njit(cache=True)
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
        return njit(cache=False)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return njit(cache=True)
    except RuntimeError:
        return njit(cache=False)
    finally:
        numba.config.CACHE_DIR = before


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
