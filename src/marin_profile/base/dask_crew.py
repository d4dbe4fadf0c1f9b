"""A Dask cluster as a crew: one that runs, or one of processes on this machine.

Contract: `distributed` (extra `fleet`) is imported here alone, when a cluster is asked for. Workers
need this package in the same version, and must see the files under the same names. No wait is
without end: not for workers here to start, nor for some to come where all are gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from marin_profile.base.errors import MissingPackageError, RemoteError

LOCAL = "local"
SECONDS_TO_CONNECT = 30
SECONDS_TO_START = 120
SECONDS_WITHOUT_WORKERS = 120
# Of workers here. Dask lets workers give memory back all the time, which takes as long as reading;
# and it gives a worker up for good that died and is not back in 15 seconds, which on a busy machine
# leaves none.
CONFIG = {
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.deploy.lost-worker-timeout": "1 day",
}


@dataclass(frozen=True)
class DaskCrew:
    client: Any
    address: str
    workers: int
    deaths: tuple[type[BaseException], ...]

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        executor = self.client.get_executor(pure=False)
        try:
            yield executor
        except CancelledError as error:
            raise self._gone() from error
        finally:
            executor.shutdown(wait=False)  # what nobody waits for any more may never be done

    def watch(self) -> Callable[[], None]:
        alone_since: float | None = None

        def look() -> None:
            nonlocal alone_since
            try:
                is_alone = not self.client.nthreads()
            except OSError as error:
                raise self._gone() from error
            now = time.monotonic()
            alone_since = (alone_since or now) if is_alone else None
            if alone_since is not None and now - alone_since > SECONDS_WITHOUT_WORKERS:
                raise RemoteError(
                    f"No Dask worker is left at {self.address}, and none came in "
                    f"{SECONDS_WITHOUT_WORKERS} s; start workers, then start again."
                )

        return look

    def _gone(self) -> RemoteError:
        return RemoteError(f"The Dask scheduler {self.address} is gone; start again.")


@contextmanager
def dask_crew(
    scheduler: str, jobs: int, begin: Callable[[], None] = lambda: None
) -> Iterator[DaskCrew]:
    """`scheduler`: the address of one, or LOCAL for `jobs` processes here, in which `begin` is
    called first. Raises MissingPackageError, or RemoteError where no worker can be reached."""
    try:
        import dask
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise MissingPackageError(
            "--scheduler needs Dask: pip install 'marin-profile[fleet]'."
        ) from error
    # It tells of workers that die, which is told of the hosts.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if scheduler == LOCAL:
        with dask.config.set(CONFIG), _cluster(jobs) as cluster, Client(cluster) as client:
            client.run(begin)
            yield DaskCrew(client, LOCAL, jobs, (KilledWorker,))
        return
    try:
        client = Client(scheduler, timeout=SECONDS_TO_CONNECT)
        client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise RemoteError(f"No Dask worker can be reached at {scheduler}: {error}.") from error
    with client:
        threads = sum(client.nthreads().values())
        yield DaskCrew(client, scheduler, threads, (KilledWorker,))


def _cluster(jobs: int) -> Any:
    from distributed import LocalCluster

    try:
        return LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},  # several may run beside each other
            silence_logs=logging.CRITICAL,
            death_timeout=SECONDS_TO_START,
        )
    # A worker that does not start in time is a TimeoutError, or trips over an assertion of Dask's.
    except (OSError, RuntimeError, AssertionError) as error:
        raise RemoteError(
            f"Dask's workers could not be started here in {SECONDS_TO_START} s "
            f"({type(error).__name__}); read with --jobs alone."
        ) from error
