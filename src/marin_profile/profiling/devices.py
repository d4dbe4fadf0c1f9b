"""Waiting for the devices of this process, as a capture of an asynchronous loop needs it.

Contract
* `DeviceWork.wait` returns when every array that lives is ready, and when the devices have done
  what this thread gave them before: they work in order. On the CPU that is not known of dropped
  results of a program that runs on several devices.
* It records nothing in a capture and compiles nothing: that is done when a DeviceWork is made.
* Work that failed counts as done: the loop learns of it where it uses the result.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import jax
import jax.numpy as jnp

logger = logging.getLogger(__name__)


class DeviceWork:
    """To be made before the work begins: making it compiles an empty program for each device."""

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
    """The order of one device: an empty program is done when all before it is."""

    def __init__(self, device: jax.Device) -> None:
        self._token = jax.device_put(jnp.zeros((), jnp.int32), device)
        lowered = jax.jit(_empty, donate_argnums=0).lower(self._token)
        self._program: Any = lowered.compile()

    def wait(self) -> None:
        self._token = self._program(self._token)
        self._token.block_until_ready()


def _empty(token: jax.Array) -> jax.Array:
    """The given buffer is the result, so that nothing runs and nothing is recorded."""
    return jax.lax.optimization_barrier(token)


def _queues() -> list[_Queue]:
    try:
        return [_Queue(device) for device in jax.local_devices()]
    except Exception as error:
        logger.debug("results that nobody holds are not waited for: %s", error)
        return []
