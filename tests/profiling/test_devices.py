"""Waiting for what the devices of a process were given."""

import importlib.util
import os
import subprocess
import sys

import pytest

from patience import PATIENCE

# Each shard takes its time, then says so. A pure callback is no effect that JAX would wait for.
CODE = """
import time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec
from marin_profile.profiling.devices import DeviceWork

work, done = DeviceWork(), []

def slowly(x):
    time.sleep(0.5)
    done.append(None)
    return x

def step(x):
    return jax.pure_callback(slowly, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

over = PartitionSpec("d")
for count in (3, 1):
    mesh = Mesh(np.array(jax.local_devices()[:count]), ("d",))
    sharded = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=over, out_specs=over))
    x = jax.device_put(jnp.ones((count,)), jax.sharding.NamedSharding(mesh, over))
    sharded(x).block_until_ready()
    done.clear()
    sharded(x)
    work.wait()
    assert len(done) == count, (count, done)
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_results_that_nobody_holds_are_waited_for_on_one_device_and_on_several():
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    child = subprocess.run(
        [sys.executable, "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert child.returncode == 0, child.stderr[-3000:]
