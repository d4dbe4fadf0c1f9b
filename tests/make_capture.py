"""One real capture on the CPU: `python tests/make_capture.py OUTDIR`.

Twelve steps of a two-layer MLP, tensor-parallel over eight forced host devices. As in Levanter, the
step annotation covers the dispatch only and the wait for the result stands behind it. The capture
holds HLO protos (scopes mlp_up, mlp_down, norm) and no Python frames.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

STEPS = 12
SIZE = 512


def mlp(w_up, w_down, x):
    with jax.named_scope("mlp_up"):
        hidden = jnp.tanh(x @ w_up)
    with jax.named_scope("mlp_down"):
        y = jax.lax.psum(hidden @ w_down, "x")
    with jax.named_scope("norm"):
        return y / jnp.sqrt(1e-6 + jnp.mean(y * y))


def profiler_options():
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = True
    return options


def main(out: str) -> None:
    mesh = jax.make_mesh((8,), ("x",))
    up, down, replicated = P(None, "x"), P("x", None), P()
    step = jax.jit(
        jax.shard_map(mlp, mesh=mesh, in_specs=(up, down, replicated), out_specs=replicated)
    )
    rng = np.random.default_rng(0)

    def array(spec):
        values = rng.standard_normal((SIZE, SIZE), dtype=np.float32)
        return jax.device_put(values, NamedSharding(mesh, spec))

    w_up, w_down, x = array(up), array(down), array(replicated)
    x = step(w_up, w_down, x).block_until_ready()
    with jax.profiler.trace(out, profiler_options=profiler_options()):
        for i in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=i):
                x = step(w_up, w_down, x)
            x.block_until_ready()


if __name__ == "__main__":
    main(sys.argv[1])
