"""What this machine has for taking and summarising captures, check by check.

Contract: nothing is written or downloaded, and no backend of JAX is started; JAX itself is
imported. Versions are those of the installed packages.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from marin_profile.base.kept import is_private
from marin_profile.base.storage import is_url, plain
from marin_profile.base.text import visible
from marin_profile.cache import cache_folder
from marin_profile.facts.health import BAD, OK, UNKNOWN, WARN, Check
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.version import package_version

_GB = 1e9
# Distribution -> what it is needed for, how to get it, and the state where it is not there.
PACKAGES = {
    "jax": ("to take captures", "pip install jax", WARN),
    "jaxlib": ("to take captures", "pip install jax", WARN),
    "marin-levanter": ("to train with Levanter", "pip install 'marin-profile[levanter]'", OK),
    "wandb": ("for W&B runs", "pip install 'marin-profile[wandb]'", OK),
}


def environment(log_dir: str | None) -> list[Check]:
    """`log_dir`: where captures are to be written, if that is known."""
    return [
        Check(
            check="marin-profile",
            state=OK,
            seen=f"{package_version()}, Python {'.'.join(map(str, sys.version_info[:3]))}",
        ),
        *(_package(name, *about) for name, about in PACKAGES.items()),
        _tensorflow(),
        _profile_options(),
        _summaries(),
        _downloads(),
        _compiled(),
        *_log_dir(log_dir),
    ]


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _package(name: str, purpose: str, how: str, without: str) -> Check:
    found = _version(name)
    if found is not None:
        return Check(check=name, state=OK, seen=visible(found))
    seen = f"not installed; needed {purpose} alone"
    return Check(check=name, state=without, seen=seen, do=f"{how}, if you want that here.")


def _tensorflow() -> Check:
    found = _version("tensorflow")
    seen = f"{visible(found)}, not needed" if found else "not installed, and not needed"
    return Check(check="tensorflow", state=OK, seen=seen)


def _profile_options() -> Check:
    check = "ProfileOptions"
    if _version("jax") is None:
        return Check(check=check, state=UNKNOWN, seen="jax is not installed")
    try:
        from marin_profile.profiling.trace import SET, options_lacking

        lacking = options_lacking()
    except Exception as error:  # whatever a broken installation raises
        seen = f"jax cannot be imported: {type(error).__name__}: {visible(str(error), 200)}"
        return Check(check=check, state=BAD, seen=seen, do="pip install --force-reinstall jax")
    if lacking:
        return Check(
            check=check,
            state=BAD,
            seen=f"jax.profiler lacks {', '.join(lacking)}, which captures set",
            do="pip install --upgrade jax",
        )
    return Check(check=check, state=OK, seen=f"jax.profiler has all {len(SET)} that captures set")


# --- places ------------------------------------------------------------------------------------


def _nearest(folder: Path) -> Path | None:
    """The folder, or the nearest above it that is there."""
    absolute = folder.absolute()
    return next((one for one in (absolute, *absolute.parents) if os.path.lexists(one)), None)


def _is_writable(folder: Path) -> bool:
    there = _nearest(folder)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _shown(folder: Path) -> str:
    return visible(str(folder), None)


def _summaries() -> Check:
    folder = cache_folder()
    if not _is_writable(folder):
        return Check(
            check="summary cache",
            state=WARN,
            seen=f"{_shown(folder)} cannot be written: each profile is read again every time",
            do="Set XDG_CACHE_HOME to a folder that you can write.",
        )
    if folder.exists() and not is_private(folder):
        return Check(
            check="summary cache",
            state=WARN,
            seen=f"{_shown(folder)} is not yours alone, so it is not used",
            do=f"chmod go-w {_shown(folder)}, if it is yours.",
        )
    return Check(check="summary cache", state=OK, seen=f"{_shown(folder)}, writable")


def _downloads() -> Check:
    from marin_profile.wandb.download import default_root

    folder = Path(default_root())
    if _is_writable(folder):
        return Check(check="W&B downloads", state=OK, seen=f"{_shown(folder)}, writable")
    return Check(
        check="W&B downloads",
        state=WARN,
        seen=f"{_shown(folder)} cannot be written",
        do="Name another folder with --download-root, or set XDG_CACHE_HOME.",
    )


def _compiled() -> Check:
    """Where numba keeps compiled loops."""
    from marin_profile.readers.wire import line_header

    place = line_header.compiled.stats.cache_path
    if place is None:
        return Check(
            check="compiled loops",
            state=WARN,
            seen="no folder can be written: every run compiles them again",
            do="Set NUMBA_CACHE_DIR to a folder that you can write.",
        )
    return Check(check="compiled loops", state=OK, seen=f"{_shown(Path(place))}, writable")


def _log_dir(log_dir: str | None) -> Iterator[Check]:
    if log_dir is None:
        return
    if is_url(log_dir):
        seen = f"{visible(log_dir, None)}: what is free there is not known"
        yield Check(check="log dir", state=UNKNOWN, seen=seen)
        return
    folder = Path(plain(log_dir))
    there = _nearest(folder)
    if there is None or not _is_writable(folder):
        yield Check(
            check="log dir",
            state=BAD,
            seen=f"{_shown(folder)} cannot be written",
            do="Name a folder that you can write.",
        )
        return
    free, least = shutil.disk_usage(there).free / _GB, ProfilerConfig.min_free_disk_gb
    seen = f"{_shown(folder)}, writable, {free:,.1f} GB free"
    if free < least:
        do = f"Make room: no capture starts below {least:g} GB (ProfilerConfig.min_free_disk_gb)."
        yield Check(check="log dir", state=BAD, seen=seen, do=do)
    else:
        yield Check(check="log dir", state=OK, seen=seen)
