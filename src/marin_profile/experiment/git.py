"""git, asked about a repository: no hook runs, and asking leaves even the index as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from marin_profile.base.errors import UsageError
from marin_profile.base.text import visible

# Where git runs in a hook it is told of another repository.
_OF_OTHERS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_LONGEST_WORDS = 300


def git(folder: Path, *arguments: str) -> str:
    """What git says. Raises UsageError with git's own words where it refuses."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_OTHERS}
    try:
        done = subprocess.run(
            ["git", "-c", f"core.hooksPath={os.devnull}", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            check=False,
        )
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror or error}; install it.") from error
    if done.returncode != 0:
        words = visible(" ".join(done.stderr.decode(errors="replace").split()), _LONGEST_WORDS)
        raise UsageError(f"git {arguments[0]} in {folder} failed: {words.rstrip('.')}.")
    return done.stdout.decode(errors="surrogateescape")
