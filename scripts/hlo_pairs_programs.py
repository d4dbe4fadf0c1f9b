"""JAX programs as they are and edited, for `hlo_pairs.py`; what the edit does stands in its `Case`.

Sizes are such that a step takes some milliseconds, and what is edited is a clear share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = 8


@dataclass(frozen=True)
class Program:
    """`carried`: how many leading arguments the results replace in the next step."""

    run: Any
    arguments: tuple[Any, ...]
    carried: int = 0


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def weights(*shape: int, seed: int = 1) -> np.ndarray:
    return random(*shape, seed=seed) / np.float32(shape[-2] ** 0.5)


def program(function: Callable[..., Any], *arguments: Any) -> Program:
    return Program(jax.jit(function), tuple(map(jax.device_put, arguments)))


# --- a decoder: what most cases edit ---

WIDTH, HIDDEN, HEADS, LENGTH, BATCH, LAYERS = 256, 1_024, 4, 128, 2, 2


def decoder(hidden: int = HIDDEN) -> dict[str, np.ndarray]:
    return {
        "qkv": weights(LAYERS, WIDTH, 3 * WIDTH, seed=1),
        "out": weights(LAYERS, WIDTH, WIDTH, seed=2),
        "up": weights(LAYERS, WIDTH, hidden, seed=3),
        "down": weights(LAYERS, hidden, WIDTH, seed=4),
    }


TOKENS = (BATCH, LENGTH, WIDTH)


def norm(x: Any) -> Any:
    with jax.named_scope("norm"):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x: Any, layer: dict[str, Any]) -> Any:
    with jax.named_scope("attention"):
        q, k, v = jnp.split((x @ layer["qkv"]).reshape(BATCH, LENGTH, HEADS, -1), 3, -1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return mixed.reshape(TOKENS) @ layer["out"]


def mlp(x: Any, layer: dict[str, Any]) -> Any:
    with jax.named_scope("mlp"):
        return jax.nn.silu(x @ layer["up"]) @ layer["down"]


Part = Callable[[Any, dict[str, Any]], Any]


def block(x: Any, layer: dict[str, Any], mlp: Part = mlp) -> Any:
    x = x + attention(norm(x), layer)
    return x + mlp(norm(x), layer)


def loss_of(model: dict[str, Any], x: Any, mlp: Part = mlp) -> Any:
    for at in range(LAYERS):
        x = block(x, jax.tree.map(lambda leaf, at=at: leaf[at], model), mlp)
    with jax.named_scope("loss"):
        return jnp.mean(x**2)


def scanned_loss(model: dict[str, Any], x: Any, block: Part = block, unroll: int = 1) -> Any:
    with jax.named_scope("blocks"):
        x, _ = lax.scan(lambda x, layer: (block(x, layer), None), x, model, unroll=unroll)
    with jax.named_scope("loss"):
        return jnp.mean(x**2)


def train(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(model: dict[str, Any], x: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(model, x)
        with jax.named_scope("update"):
            return jax.tree.map(lambda leaf, slope: leaf - 0.01 * slope, model, slopes), value

    return step


# --- what is computed ---


def wide_mlp(x: Any, layer: dict[str, Any]) -> Any:
    with jax.named_scope("mlp"):
        wide = jax.nn.silu(x.astype(jnp.float64) @ layer["up"].astype(jnp.float64))
        return wide.astype(x.dtype) @ layer["down"]


def dot_dtype(is_edited: bool) -> Program:
    loss = partial(loss_of, mlp=wide_mlp if is_edited else mlp)
    return program(loss, decoder(), random(*TOKENS))


def sum_dtype(is_edited: bool) -> Program:
    def pooled(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = jnp.sin(x @ w)
        with jax.named_scope("pool"):
            dtype = jnp.float64 if is_edited else jnp.float32
            sums = jnp.sum(jnp.exp(x), 0, dtype=dtype).astype(x.dtype)
        with jax.named_scope("head"):
            return sums @ w

    return program(pooled, random(16_384, 128), weights(128, 128))


def padded_hidden(is_edited: bool) -> Program:
    return program(loss_of, decoder(1_280 if is_edited else 1_000), random(*TOKENS))


def key_layout(is_edited: bool) -> Program:
    """The keys of a cache are stored by position, not by head."""
    heads, length, size = 8, 4_096, 64

    def attend(q: Any, keys: Any, values: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            q = jnp.tanh(q @ w)
        with jax.named_scope("attend"):
            if is_edited:
                keys = keys.transpose(1, 0, 2)
            scores = jnp.einsum("hqd,hkd->hqk", q, keys)
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), values)

    keys = random(heads, length, size, seed=2)
    stored = np.ascontiguousarray(keys.transpose(1, 0, 2)) if is_edited else keys
    values = random(heads, length, size, seed=3)
    return program(attend, random(heads, 16, size), stored, values, weights(size, size))


# --- what is kept, and what is computed again ---


def remat_in_scan(is_edited: bool) -> Program:
    one = jax.checkpoint(block) if is_edited else block
    return program(train(partial(scanned_loss, block=one)), decoder(), random(*TOKENS))


def remat_removed(is_edited: bool) -> Program:
    """Of the MLP alone."""
    again = mlp if is_edited else jax.checkpoint(mlp)
    one = partial(block, mlp=again)
    return program(train(partial(scanned_loss, block=one)), decoder(), random(*TOKENS))


def donation_lost(is_edited: bool) -> Program:
    def append(cache: Any, x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            rows = jnp.tanh(x @ w)
        with jax.named_scope("append"):
            return lax.dynamic_update_slice(cache, rows, (128, 0))

    run = jax.jit(append) if is_edited else jax.jit(append, donate_argnums=0)
    arguments = random(8_192, 512), random(256, 512), weights(512, 512)
    return Program(run, tuple(map(jax.device_put, arguments)), carried=1)


# --- loops ---


def recurrent(x: Any, w: Any, u: Any, unroll: int) -> Any:
    def cell(h: Any, row: Any) -> tuple[Any, Any]:
        with jax.named_scope("cell"):
            h = jnp.tanh(h @ w + row)
        return h, h.sum()

    with jax.named_scope("inputs"):
        rows = x @ u
    with jax.named_scope("recurrent"):
        return lax.scan(cell, jnp.zeros_like(rows[0]), rows, unroll=unroll)


def scan_unrolled(is_edited: bool) -> Program:
    run = partial(recurrent, unroll=8 if is_edited else 1)
    return program(run, random(512, 4, 64), weights(64, 64), weights(64, 64))


def history(x: Any, start: Any, w: Any) -> Any:
    """Rows written, one an iteration, into what the loop carries."""

    def body(at: Any, rows: Any) -> Any:
        row = jnp.tanh(lax.dynamic_slice(x, (at, 0), (1, x.shape[1])) @ w)
        return lax.dynamic_update_slice(rows, row, (at, 0))

    with jax.named_scope("history"):
        return lax.fori_loop(0, x.shape[0], body, start)


def loop_start(is_edited: bool) -> Program:
    """The loop starts from an argument, which may not be overwritten, and not from zeros."""

    def step(x: Any, start: Any, w: Any) -> Any:
        start = start if is_edited else jnp.zeros_like(start)
        return history(x, start, w) * 1.0

    return program(step, random(64, 256), np.zeros((16_384, 256), np.float32), weights(256, 256))


def loop_swap(is_edited: bool) -> Program:
    """What the loop carries changes places in each iteration."""

    def body(carry: Any, w: Any) -> tuple[Any, None]:
        one, other = carry
        with jax.named_scope("patch"):
            one = lax.dynamic_update_slice(one, jnp.sin(one[:128, :128] @ w), (0, 0))
        return ((other, one) if is_edited else (one, other)), None

    def step(x: Any, w: Any) -> Any:
        with jax.named_scope("loop"):
            return lax.scan(body, (x, x + 1), w)[0]

    return program(step, random(512, 512), weights(24, 128, 128))


# --- collectives ---


def sharded(inner: Callable[..., Any], specs: tuple[P, ...], *arguments: Any) -> Program:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    run = jax.jit(jax.shard_map(inner, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False))
    there = (
        jax.tree.map(lambda leaf, spec=spec: jax.device_put(leaf, NamedSharding(mesh, spec)), one)
        for one, spec in zip(arguments, specs, strict=True)
    )
    return Program(run, tuple(there))


def gathered_sum(is_edited: bool) -> Program:
    def inner(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = jnp.sin(x @ w)
        with jax.named_scope("combine"):
            if is_edited:
                return lax.all_gather(x, "data").sum(0)
            return lax.psum(x, "data")

    return sharded(inner, (P("data"), P()), random(DEVICES * 512, 256), weights(256, 256))


def split_sum(is_edited: bool) -> Program:
    """XLA makes one sum of two; it can not, once the second waits for the first."""

    def inner(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            one, other = jnp.sin(x @ w), jnp.cos(x @ w)
        with jax.named_scope("combine"):
            if not is_edited:
                return lax.psum((one, other), "data")
            one = lax.psum(one, "data")
            return one, lax.psum(other + 0 * one[:1], "data")

    return sharded(inner, (P("data"), P()), random(DEVICES * 512, 256), weights(256, 256))


# --- fusions and kernels ---


def kept_middle(is_edited: bool) -> Program:
    """What an activation computes on the way is a result too, so that it is written."""

    def step(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = x @ w
        with jax.named_scope("activate"):
            middle = jnp.tanh(x) * x
            found = jnp.sin(middle) + middle**2
        return (found, middle) if is_edited else (found, x)

    return program(step, random(8_192, 256), weights(256, 256))


def largest(is_edited: bool) -> Program:
    """The largest of each row: sorted, or by the kernel for that."""

    def step(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = jnp.sin(x @ w)
        with jax.named_scope("choose"):
            return lax.top_k(x, 16)[0] if is_edited else jnp.sort(x, -1)[:, :-17:-1]

    return program(step, random(2_048, 256), weights(256, 256))


# --- the same program in other words ---


def step(model: dict[str, Any], x: Any) -> Any:
    def objective(model: dict[str, Any], x: Any) -> Any:
        for at in range(LAYERS):
            layer = {name: leaf[at] for name, leaf in model.items()}
            x = x + attention(norm(x), layer)
            x = x + mlp(norm(x), layer)
        return jnp.mean(x**2)

    return jax.grad(objective)(model, x)


def train_step(params: dict[str, Any], batch: Any) -> Any:
    """`step` under another name, on other lines."""

    def mean_square(params: dict[str, Any], hidden: Any) -> Any:
        for at in range(LAYERS):
            layer = {name: leaf[at] for name, leaf in params.items()}
            hidden = hidden + attention(norm(hidden), layer)
            hidden = hidden + mlp(norm(hidden), layer)

        return jnp.mean(hidden**2)

    return jax.grad(mean_square)(params, batch)


def renamed_function(is_edited: bool) -> Program:
    return program(train_step if is_edited else step, decoder(), random(*TOKENS))


def argument_order(is_edited: bool) -> Program:
    def step(model: dict[str, Any], x: Any) -> Any:
        return jax.grad(loss_of)(model, x)

    arguments = decoder(), random(*TOKENS)
    if not is_edited:
        return program(step, *arguments)
    turned = step

    def step(x: Any, model: dict[str, Any]) -> Any:  # type: ignore[no-redef]
        return turned(model, x)

    return program(step, *reversed(arguments))


@jax.jit
def gated(x: Any) -> Any:
    return x * jax.nn.sigmoid(x)


def helper_mlp(x: Any, layer: dict[str, Any]) -> Any:
    with jax.named_scope("mlp"):
        hidden = jnp.dot(x, layer["up"])
        return jnp.dot(gated(hidden), layer["down"])


def helper_extracted(is_edited: bool) -> Program:
    loss = partial(loss_of, mlp=helper_mlp if is_edited else mlp)
    return program(train(loss), decoder(), random(*TOKENS))


def renamed_scope(is_edited: bool) -> Program:
    def feed_forward(x: Any, layer: dict[str, Any]) -> Any:
        with jax.named_scope("feed_forward" if is_edited else "mlp"):
            return jax.nn.silu(x @ layer["up"]) @ layer["down"]

    return program(train(partial(loss_of, mlp=feed_forward)), decoder(), random(*TOKENS))


def barrier(is_edited: bool) -> Program:
    """XLA for CPUs drops the barrier before it fuses."""

    def step(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = x @ w
        with jax.named_scope("activate"):
            y = jnp.tanh(x) * x
            if is_edited:
                y = lax.optimization_barrier(y)
            return jnp.sin(y) + y**2

    return program(step, random(4_096, 256), weights(256, 256))
