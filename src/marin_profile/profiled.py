"""`marin_profile.profile`: any block that runs JAX, captured, summarised and shown.

Contract
* The capture is `profile_window`'s, with its contract: nothing raises into the block, and the block
  is held up by nothing but the profiler's own start and stop and by the work that it gave the
  devices.
* Summary and report are made in a process beside whatever follows; a thread, which does nothing
  else, shows the answer once on stdout when they are there. What nobody waited for is shown at the
  interpreter's exit.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from marin_profile.opened import Profile
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.loops import LOOK_EVERY, ProfiledWindow, profile_window
from marin_profile.reports.screen import render_screen
from marin_profile.schema import load_summary

logger = logging.getLogger(__name__)


@contextmanager
def profile(
    folder: str | Path, config: ProfilerConfig | None = None, *, show: bool = True
) -> Iterator[Profiled]:
    """Capture the block into `folder/plugins/profile/<timestamp>`, summarise it there, and show
    where the time goes.

    The config says what is recorded and how it is summarised; its windows have no effect.
    """
    with profile_window(folder, config) as window:
        profiled = Profiled(window, show)
        try:
            yield profiled
        finally:
            profiled._has_ended = True
    # Not reached where the block raised: its capture is summarised at exit all the same.
    profiled._begin()


class Profiled:
    """What became of a block. In a notebook it shows the answer."""

    def __init__(self, window: ProfiledWindow, show: bool) -> None:
        self._window = window
        self._shows = show
        self._has_ended = False
        self._once = threading.Lock()

    @property
    def folder(self) -> Path | None:
        """Of the capture; None if the profiler did not start."""
        return self._window.folder

    @property
    def report(self) -> Path | None:
        """Where the report is, or will be."""
        return self._window.report

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to wait for; never waits."""
        return self._has_ended and self._window.is_done

    def result(self) -> Profile | None:
        """The answers, as `marin_profile.open` gives them; waits for them, at most `ingest_timeout`
        seconds. None if there are none, which a log line explains."""
        if not self._has_ended or self.folder is None:
            return None
        if not self._window.is_done:
            self._window.finish()
        return self._found()

    def _begin(self) -> None:
        if self.folder is None or not self._shows:
            return
        atexit.register(self._at_exit)  # after `finish` of the window is, so it runs before
        try:
            threading.Thread(target=self._watch, name="marin-profile-show", daemon=True).start()
        except RuntimeError as error:  # no more threads: it is shown at exit
            logger.debug("not shown yet: %s", error)

    def _watch(self) -> None:
        while not self._window.is_done:
            time.sleep(LOOK_EVERY)
        self._window.finish()  # says what went wrong
        self._show()

    def _at_exit(self) -> None:
        self.result()
        self._show()

    def _show(self) -> None:
        """Once, whoever comes first."""
        with self._once:
            found = self._found() if self._shows else None
            self._shows = False
            atexit.unregister(self._at_exit)
            if found is None:
                return
            try:
                width = shutil.get_terminal_size().columns - 1
                sys.stdout.write(render_screen(found.summary, found.name, width=width))
                sys.stdout.flush()
            except Exception as error:  # stdout may be closed, or somebody else's
                logger.debug("not shown: %s: %s", type(error).__name__, error)

    def _found(self) -> Profile | None:
        """As `open` of the capture's folder, without reading it again."""
        path = self._window.summary
        if path is None or not self._window.is_done or self._window.problem is not None:
            return None
        try:
            if not path.exists():  # the config says not to summarise
                return None
            return Profile(load_summary(path), str(self.folder))
        except Exception as error:
            logger.warning("%s: no summary: %s", self.folder, error)
            return None

    def __repr__(self) -> str:
        if self.folder is None:
            return "<Profiled: not profiled>"
        if not self.is_done:
            return f"<Profiled {self.folder}: not summarised yet>"
        found = self._found()
        return repr(found) if found is not None else f"<Profiled {self.folder}: not summarised>"

    def _repr_markdown_(self) -> str | None:
        found = self.result()
        return found._repr_markdown_() if found is not None else None

    def _repr_html_(self) -> str | None:
        found = self.result()
        return found._repr_html_() if found is not None else None
