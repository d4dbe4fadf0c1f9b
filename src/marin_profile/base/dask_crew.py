"""A Dask cluster as a crew: one that runs, or one of processes on this machine.

Contract: `distributed` (extra `fleet`) is imported here alone, when a cluster is asked for. Workers
need this package in the same version, and must see the files under the same names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from marin_profile.base.errors import MissingPackageError, RemoteError

LOCAL = "local"
SECONDS_TO_CONNECT = 30


@dataclass(frozen=True)
class DaskCrew:
    client: Any
    address: str
    workers: int
    deaths: tuple[type[BaseException], ...]

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        try:
            with self.client.get_executor(pure=False) as executor:
                yield executor
        except CancelledError as error:
            raise RemoteError(f"The Dask scheduler {self.address} is gone; start again.") from error


@contextmanager
def dask_crew(scheduler: str, jobs: int) -> Iterator[DaskCrew]:
    """`scheduler`: the address of one, or LOCAL for `jobs` processes here. Raises
    MissingPackageError, or RemoteError where no worker can be reached."""
    try:
        import dask
        from distributed import Client, LocalCluster
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise MissingPackageError(
            "--scheduler needs Dask: pip install 'marin-profile[fleet]'."
        ) from error
    # It tells of workers that die, which is told of the hosts.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if scheduler == LOCAL:
        # Dask lets workers give memory back all the time, which takes as long as reading.
        with (
            dask.config.set({"distributed.nanny.pre-spawn-environ": {}}),
            LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
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
