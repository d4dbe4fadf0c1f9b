"""Waiting for the devices of this process, as a capture of an asynchronous loop needs it.

Contract
* `DeviceWork.wait` returns when every array that lives is ready, and when the devices have done
  what this thread gave them before: they work in order. On the CPU programs of several devices have
  an order of their own.
* It records no op in a capture and compiles nothing: that is done when a DeviceWork is made.
* Work that failed counts as done: the loop learns of it where it uses the result.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

logger = logging.getLogger(__name__)


class DeviceWork:
    """To be made before the work begins: making it compiles an empty program for each queue."""

    def __init__(self) -> None:
        self._queues = _queues()

    def wait_at_most(self, seconds: float) -> None:
        """For devices that may wait in turn for processes that are gone."""
        thread = threading.Thread(target=self.wait, name="marin-profile-devices", daemon=True)
        thread.start()
        thread.join(seconds)

    def wait(self) -> None:
        try:
            jax.effects_barrier()
            jax.block_until_ready(jax.live_arrays())
            for queue in self._queues:
                queue.wait()
        except Exception as error:
            logger.debug("device work failed: %s", error)


class _Queue:
    """The order of one device, or of the programs of several: an empty program is done when all
    before it is."""

    def __init__(self, devices: list[jax.Device]) -> None:
        mesh = Mesh(np.array(devices), ("devices",))
        token = jnp.zeros((len(devices),), jnp.int32)
        self._token = jax.device_put(token, NamedSharding(mesh, PartitionSpec("devices")))
        lowered = jax.jit(_empty, donate_argnums=0).lower(self._token)
        self._program: Any = lowered.compile()

    def wait(self) -> None:
        self._token = self._program(self._token)
        self._token.block_until_ready()


def _empty(token: jax.Array) -> jax.Array:
    """The given buffer is the result, so that no op runs, and none is recorded."""
    return jax.lax.optimization_barrier(token)


def _queues() -> list[_Queue]:
    try:
        devices = jax.local_devices()
        together = len(devices) > 1 and devices[0].platform == "cpu"
        return [_Queue([one]) for one in devices] + ([_Queue(devices)] if together else [])
    except Exception as error:
        logger.debug("results that nobody holds are not waited for: %s", error)
        return []
