"""Who reads the hosts of a capture, or many captures: this process, processes here, or Dask's.

`jobs_options` are the options that say so; progress goes to stderr.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from marin_profile.base.startup import ready_to_read
from marin_profile.base.text import plural
from marin_profile.cli.options import all_of, note

if TYPE_CHECKING:
    from marin_profile.base.crew import Crew
    from marin_profile.base.resumable import Progress
    from marin_profile.capture.sources import Capture
    from marin_profile.pipeline.summarizing import ReadHosts

TELL_EVERY = 5.0  # seconds

jobs_options = all_of(
    click.option(
        "--jobs",
        metavar="N",
        type=click.IntRange(min=1),
        help="How many processes read at once; default: by processors, free memory and what there "
        "is to read.",
    ),
    click.option(
        "--scheduler",
        metavar="S",
        help="Let Dask's workers read: a scheduler's address (tcp://...), or 'local'.",
    ),
)


@contextmanager
def crew_of(jobs: int, scheduler: str | None, size: int) -> Iterator[Crew]:
    """`size`: the bytes that there are to read."""
    if scheduler is not None:
        from marin_profile.base.dask_crew import dask_crew

        with dask_crew(scheduler, jobs, ready_to_read) as crew:
            yield crew
        return
    from marin_profile.base.crew import Alone, Processes

    yield Alone() if jobs == 1 else Processes(jobs, partial(_begin, size // jobs))


def _begin(size: int) -> None:
    """In each process, which reads about as many bytes."""
    from marin_profile.base.jit import expect

    ready_to_read()
    expect(size)


@contextmanager
def hosts_reader(
    capture: Capture, jobs: int | None, scheduler: str | None, *, use_cache: bool
) -> Iterator[ReadHosts | None]:
    """None where this process alone reads them, as it does what is small if nobody says
    otherwise."""
    from marin_profile.pipeline.jobs import default_jobs, is_much, processors

    is_asked_for = jobs is not None or scheduler is not None
    if len(capture.hosts) < 2 or not (is_asked_for or is_much(capture.hosts)):
        yield None
        return
    if jobs is None:
        jobs = processors() if scheduler is not None else default_jobs(capture.hosts)
    from marin_profile.base.resumable import Nowhere
    from marin_profile.cache import kept_parts
    from marin_profile.pipeline.crew_reading import CrewReading

    with crew_of(jobs, scheduler, sum(host.size for host in capture.hosts)) as crew:
        store = kept_parts() if use_cache else Nowhere()
        yield CrewReading(crew, store, telling("host"))


def telling(noun: str) -> Callable[[Progress], None]:
    """Notes on progress, not too often."""
    told_at = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal told_at
        if time.monotonic() - told_at < TELL_EVERY:
            return
        told_at = time.monotonic()
        before = f", {progress.kept:,} of them read before" if progress.kept else ""
        note(f"{progress.there:,} of {plural(progress.tasks, noun)} read{before}.")

    return tell
