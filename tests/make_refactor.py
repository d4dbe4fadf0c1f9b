"""A real training before and after a refactor: `python tests/make_refactor.py OUTDIR [after]`.

Two dozen captured steps of gradient descent on a scanned MLP, on one CPU device. After the refactor
the program and the layers' scope have other names, and each layer is recomputed (jax.checkpoint).
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 24
BATCH, SIZE, HIDDEN = 256, 256, 512
LAYERS = 4


def layer(x, weights):
    with jax.named_scope("up"):
        hidden = jnp.tanh(x @ weights["up"])
    with jax.named_scope("down"):
        return x + hidden @ weights["down"], None


def loss(weights, x, after):
    with jax.named_scope("layers" if after else "blocks"):
        x, _ = jax.lax.scan(jax.checkpoint(layer) if after else layer, x, weights)
    with jax.named_scope("loss"):
        return jnp.mean(x * x)


def train_step(weights, x):
    return descend(weights, jax.grad(loss)(weights, x, False))


def train_step_v2(weights, x):
    return descend(weights, jax.grad(loss)(weights, x, True))


def descend(weights, gradients):
    with jax.named_scope("optimizer"):
        return jax.tree.map(lambda one, gradient: one - 1e-3 * gradient, weights, gradients)


def main(out, after):
    step = jax.jit(train_step_v2 if after else train_step)
    rng = np.random.default_rng(0)

    def array(*shape):
        return jnp.asarray(rng.standard_normal(shape, dtype=np.float32) / shape[-2] ** 0.5)

    weights = {"up": array(LAYERS, SIZE, HIDDEN), "down": array(LAYERS, HIDDEN, SIZE)}
    x = array(BATCH, SIZE)
    weights = jax.block_until_ready(step(weights, x))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = True
    with jax.profiler.trace(out, profiler_options=options):
        for at in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=at):
                weights = jax.block_until_ready(step(weights, x))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["after"])
