"""Pairs of other programs, on which the diff was not written: `hlo_pairs.py --held-out`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hlo_pairs_cases import Case
from hlo_pairs_programs import DEVICES, Program, program, random, sharded, weights
from jax import lax
from jax.sharding import PartitionSpec as P

# --- a convolutional net ---

CHANNELS = 32
IMAGES = (4, 48, 48, CHANNELS)


def kernels(width: int = 3) -> tuple[np.ndarray, ...]:
    shape = (width, width, CHANNELS, CHANNELS)
    return tuple(weights(*shape, seed=seed) / 3 for seed in (1, 2, 3))


def convolved(x: Any, kernel: Any, order: str = "NHWC") -> Any:
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=(order, "HWIO", order)
    )


def stages(images: Any, kernels: Any) -> Any:
    for at, kernel in enumerate(kernels):
        with jax.named_scope(f"stage{at}"):
            images = images + jax.nn.gelu(convolved(images, kernel))
    return images


def conv_narrowed(is_edited: bool) -> Program:
    def net(x: Any, kernels: Any) -> Any:
        dtype = jnp.float32 if is_edited else jnp.float64
        x, kernels = jax.tree.map(lambda leaf: leaf.astype(dtype), (x, kernels))
        return stages(x, kernels).mean((1, 2))

    return program(net, random(*IMAGES), kernels())


def conv_order(is_edited: bool) -> Program:
    """One stage takes its channels first, the others last."""

    def net(x: Any, kernels: Any) -> Any:
        with jax.named_scope("stem"):
            x = jax.nn.gelu(convolved(x, kernels[0]))
        with jax.named_scope("middle"):
            if is_edited:
                x = convolved(x.transpose(0, 3, 1, 2), kernels[1], "NCHW").transpose(0, 2, 3, 1)
            else:
                x = convolved(x, kernels[1])
        with jax.named_scope("last"):
            return jnp.tanh(convolved(x, kernels[2]))

    return program(net, random(*IMAGES), kernels())


def conv_width(is_edited: bool) -> Program:
    def net(x: Any, kernels: Any) -> Any:
        return stages(x, kernels).mean((1, 2))

    return program(net, random(*IMAGES), kernels(5 if is_edited else 3))


def conv_recomputed(is_edited: bool) -> Program:
    """In a loop of Python, not of XLA."""

    def net(kernels: Any, x: Any) -> Any:
        one = lambda x, kernel: x + jax.nn.gelu(convolved(x, kernel))  # noqa: E731
        one = jax.checkpoint(one) if is_edited else one
        for kernel in kernels:
            x = one(x, kernel)
        return (x**2).mean()

    return program(jax.grad(net), kernels(), random(*IMAGES))


def conv_rewritten(is_edited: bool) -> Program:
    """Other names, scopes, and a helper; the same program."""

    def net(x: Any, kernels: Any) -> Any:
        return stages(x, kernels).mean((1, 2))

    def unit(images: Any, weight: Any) -> Any:
        change = jax.nn.gelu(convolved(images, weight))
        return images + change

    def network(images: Any, weights: Any) -> Any:
        for number, weight in enumerate(weights):
            with jax.named_scope(f"block_{number}"):
                images = unit(images, weight)
        return jnp.mean(images, axis=(1, 2))

    return program(network if is_edited else net, random(*IMAGES), kernels())


# --- attention ---

HEADS, LENGTH, SIZE = 4, 512, 64


def attended(q: Any, k: Any, v: Any) -> Any:
    with jax.named_scope("scores"):
        shares = jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k) / 8)
    with jax.named_scope("mix"):
        return jnp.einsum("hqk,hkd->hqd", shares, v)


def heads(*seeds: int) -> tuple[np.ndarray, ...]:
    return tuple(random(HEADS, LENGTH, SIZE, seed=seed) for seed in seeds)


def sorted_queries(is_edited: bool) -> Program:
    """Scores below the median of their row are left out."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
        if is_edited:
            with jax.named_scope("sparsify"):
                middle = jnp.sort(scores, -1)[..., LENGTH // 2, None]
                scores = jnp.where(scores < middle, -1e9, scores)
        with jax.named_scope("mix"):
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)

    return program(attend, *heads(1, 2, 3))


def layers_rolled(is_edited: bool) -> Program:
    def layer(x: Any, w: Any) -> tuple[Any, None]:
        with jax.named_scope("layer"):
            q, k, v = (x @ one for one in jnp.split(w, 3, -1))
            return x + attended(q, k, v), None

    def model(x: Any, ws: Any) -> Any:
        return lax.scan(layer, x, ws, unroll=1 if is_edited else ws.shape[0])[0]

    return program(model, *heads(1), weights(6, SIZE, 3 * SIZE))


def loss_logged(is_edited: bool) -> Program:
    """The scores are no longer a result."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        with jax.named_scope("gate"):
            gated = jnp.exp(-(q**2)) * k
            found = jnp.cos(gated) * v + gated
        return found if is_edited else (found, gated)

    big = tuple(np.tile(one, (8, 1, 1)) for one in heads(1, 2, 3))
    return program(attend, *big)


def previous_cache(is_edited: bool) -> Program:
    """Each iteration keeps the cache as it was before it."""

    def body(at: Any, carry: Any) -> Any:
        cache, previous, q = carry
        with jax.named_scope("decode"):
            row = jnp.tanh(q @ cache[:64].T) @ cache[:64]
            written = lax.dynamic_update_slice(cache, row, (at, 0))
        return written, cache if is_edited else previous, row

    def decode(q: Any) -> Any:
        empty = jnp.ones((4_096, 64), jnp.float32)
        return lax.fori_loop(0, 32, body, (empty, empty * 2, q))

    return program(decode, random(1, 64))


# --- others ---


def expert_order(is_edited: bool) -> Program:
    experts, tokens = 8, 2_048

    def layer(x: Any, up: Any, down: Any) -> Any:
        order = "tex" if is_edited else "etx"
        with jax.named_scope("experts"):
            hidden = jnp.tanh(jnp.einsum(f"{order},exh->eth", x, up))
            return jnp.einsum("eth,ehx->etx", hidden, down)

    x = random(experts, tokens, 64)
    x = np.ascontiguousarray(x.swapaxes(0, 1)) if is_edited else x
    return program(layer, x, weights(experts, 64, 32), weights(experts, 32, 64))


def table_donated(is_edited: bool) -> Program:
    """Rows of a large table are updated in place."""

    def update(table: Any, rows: Any, w: Any) -> Any:
        with jax.named_scope("slopes"):
            slopes = jnp.sin(random(512, 256) @ w)
        with jax.named_scope("update"):
            return table.at[rows].add(-0.1 * slopes)

    run = jax.jit(update, donate_argnums=0) if is_edited else jax.jit(update)
    rows = np.arange(512, dtype=np.int32) * 7
    arguments = random(32_768, 256), rows, weights(256, 256)
    return Program(run, tuple(map(jax.device_put, arguments)), carried=1)


def slopes_together(is_edited: bool) -> Program:
    """Sums of the slopes one after the other -> all at once."""

    def inner(x: Any, ws: Any) -> Any:
        def loss(ws: Any) -> Any:
            hidden = x
            for w in ws:
                hidden = jnp.tanh(hidden @ w)
            return (hidden**2).mean()

        with jax.named_scope("slopes"):
            slopes = jax.grad(loss)(ws)
        with jax.named_scope("reduce"):
            if is_edited:
                return lax.psum(slopes, "data")
            done = [lax.psum(slopes[0], "data")]
            for slope in slopes[1:]:
                done.append(lax.psum(slope + 0 * done[-1][:1], "data"))
            return tuple(done)

    ws = tuple(weights(256, 256, seed=seed) for seed in (1, 2, 3))
    return sharded(inner, (P("data"), P()), random(DEVICES * 64, 256), ws)


def scattered_sum(is_edited: bool) -> Program:
    """A sum of which each device keeps a part, and then gathers all parts."""

    def inner(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            x = jnp.tanh(x @ w)
        with jax.named_scope("reduce"):
            if is_edited:
                part = lax.psum_scatter(x, "data", tiled=True)
                return lax.all_gather(part, "data", tiled=True)
            return lax.psum(x, "data")

    return sharded(inner, (P("data"), P()), random(DEVICES * 1_024, 128), weights(128, 128))


HELD_OUT = (
    Case(
        "conv_narrowed",
        "a convolutional net in float32, not float64",
        "dtype",
        conv_narrowed,
        before=r"= f64\[.* convolution\(",
        after=r"= f32\[.* convolution\(",
        x64=True,
    ),
    Case(
        "expert_order",
        "tokens stored by position, not by expert",
        "layout_copy",
        expert_order,
        "experts",
        after=r" (transpose|copy)\(",
    ),
    Case(
        "conv_width",
        "kernels of 3 x 3 -> 5 x 5",
        "shape",
        conv_width,
        before=r" convolution\(",
        after=r" convolution\(",
    ),
    Case(
        "conv_recomputed",
        "stages under jax.checkpoint, in a loop of Python",
        "remat_on",
        conv_recomputed,
        after="rematted_computation",
    ),
    Case("conv_order", "a convolution with channels first, which XLA turns", "", conv_order),
    Case("conv_rewritten", "other names and scopes, a helper", "", conv_rewritten),
    Case(
        "sorted_queries",
        "scores below their median left out",
        "op_added",
        sorted_queries,
        "sparsify",
        after="/sparsify/",
    ),
    Case(
        "layers_rolled",
        "layers of a scan no longer unrolled",
        "loop_rolled",
        layers_rolled,
        before="/layer/",
        after=r" while\(|/layer/",
    ),
    Case(
        "loss_logged",
        "a value amid a gate is no result any more",
        "fusion_merged",
        loss_logged,
        "gate",
        before=r" fusion\(.*/gate/",
        after=r" fusion\(.*/gate/",
    ),
    Case(
        "previous_cache",
        "a loop keeps what it overwrites",
        "loop_copy",
        previous_cache,
        after=r"= f32\[4096,64\]\S* copy\(",
    ),
    Case(
        "table_donated",
        "donate_argnums given",
        "donation_gained",
        table_donated,
        before=r" copy\(%table",
    ),
    Case(
        "slopes_together",
        "three psums in turn -> at once",
        "collective_grouping",
        slopes_together,
        "reduce",
        before=r" all-reduce\(",
        after=r" all-reduce\(",
        devices=DEVICES,
    ),
    Case(
        "scattered_sum",
        "psum -> psum_scatter and all_gather",
        "collective_kind",
        scattered_sum,
        "reduce",
        before=r" all-reduce\(",
        after=r" (all-gather|reduce-scatter)\(",
        devices=DEVICES,
    ),
)
