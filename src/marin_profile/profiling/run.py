"""The run that is profiled: its name, its folders, and which of its processes this is.

Contract: names and paths only; nothing is read or written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from marin_profile.capture.filenames import PROFILE_FOLDERS, process_folder

PROFILER_FOLDER = "profiler"  # as Levanter names it, in the run's folder
# pathlib makes one slash of the two of a URL.
_URL_AS_PATH = re.compile(r"^([a-z][a-z0-9+.-]+):/(?=[^/])")


@dataclass(frozen=True)
class Run:
    """`folder` is the run's folder on this machine; `shared`: the URL of its profiler folder that
    all processes see, if there is one; `index` of `count`: this process; `num_steps`: where it
    ends, if that is known."""

    run_id: str
    folder: Path
    num_steps: int | None = None
    index: int = 0
    count: int = 1
    shared: str | None = None

    @property
    def profile_dir(self) -> Path:
        return self.folder / PROFILER_FOLDER

    @property
    def own_dir(self) -> Path:
        """Where this process puts its captures: no two processes meet in one folder."""
        return self.dir_of(self.index)

    def dir_of(self, index: int) -> Path:
        return self.profile_dir / process_folder(index) if self.count > 1 else self.profile_dir

    @property
    def own_shared(self) -> str | None:
        if self.shared is None or self.count == 1:
            return self.shared
        return f"{self.shared}/{process_folder(self.index)}"

    def shared_session(self, session: str) -> str | None:
        """The URL that the capture is copied to, where one is."""
        if self.own_shared is None:
            return None
        return "/".join((self.own_shared, *PROFILE_FOLDERS, session))


def shared_profile_dir(log_dir: Path, shared_dir: str | None, run_id: str) -> str | None:
    """The URL of the run's profiler folder, where the config names one or the log folder is one."""
    url = shared_dir or str(log_dir)
    url = _URL_AS_PATH.sub(r"\1://", url)
    if shared_dir is None and "://" not in url:
        return None
    return f"{url.rstrip('/')}/{run_id}/{PROFILER_FOLDER}"
