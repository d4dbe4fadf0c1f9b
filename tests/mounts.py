"""A file system of its own below a folder: a full disk, or one that is read only."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
_OWN_MOUNTS = ("unshare", "--map-root-user", "--mount", "sh", "-c")


def mounted(
    folder: Path, options: str, command: Sequence[object]
) -> subprocess.CompletedProcess[str]:
    """Run a command that sees an empty tmpfs with these mount options in place of `folder`."""
    try:
        subprocess.run([*_OWN_MOUNTS, "mount -t tmpfs tmpfs /tmp"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine allows no mounts")
    prefix = [*_OWN_MOUNTS, _MOUNT, "sh", options, str(folder)]
    return subprocess.run(
        [*prefix, *map(str, command)], capture_output=True, text=True, timeout=600
    )
