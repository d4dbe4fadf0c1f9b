"""Pairs as they come up in practice: an edit among renames, two edits at once, a larger batch, one
more layer, another optimizer or sharding; and rewritings without effect. `hlo_pairs.py --mixed`."""

from __future__ import annotations

from functools import partial
from typing import Any

import hlo_pairs_programs as programs
import jax
import jax.numpy as jnp
import numpy as np
from hlo_pairs_cases import Case
from hlo_pairs_held_out import IMAGES, convolved, kernels, stages
from hlo_pairs_programs import (
    DEVICES,
    TOKENS,
    WIDTH,
    Program,
    block,
    decoder,
    loss_of,
    program,
    random,
    scanned_loss,
    sharded,
    train,
    weights,
)
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def larger_batch(is_edited: bool) -> Program:
    def net(x: Any, kernels: Any) -> Any:
        return stages(x, kernels).mean((1, 2))

    return program(net, random(6 if is_edited else 4, *IMAGES[1:]), kernels())


def one_more_stage(is_edited: bool) -> Program:
    def net(x: Any, kernels: Any) -> Any:
        return stages(x, kernels).mean((1, 2))

    more = (weights(3, 3, *IMAGES[-1:], *IMAGES[-1:], seed=9) / 3,) if is_edited else ()
    return program(net, random(*IMAGES), (*kernels(), *more))


def longer_scan(is_edited: bool) -> Program:
    layers = 3 if is_edited else 2
    model = {name: np.repeat(leaf[:1], layers, 0) for name, leaf in decoder().items()}
    return program(train(scanned_loss), model, random(*TOKENS))


def donation_among_renames(is_edited: bool) -> Program:
    def append(cache: Any, x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            rows = jnp.tanh(x @ w)
        with jax.named_scope("append"):
            return lax.dynamic_update_slice(cache, rows, (128, 0))

    def extend(history: Any, tokens: Any, kernel: Any) -> Any:
        with jax.named_scope("embed"):
            new = jnp.tanh(tokens @ kernel)
        with jax.named_scope("extend"):
            return lax.dynamic_update_slice(history, new, (128, 0))

    run = jax.jit(extend) if is_edited else jax.jit(append, donate_argnums=0)
    arguments = random(8_192, 512), random(256, 512), weights(512, 512)
    return Program(run, tuple(map(jax.device_put, arguments)), carried=1)


def feed_forward(x: Any, layer: dict[str, Any]) -> Any:
    with jax.named_scope("feed_forward"):
        return jax.nn.silu(x @ layer["up"]) @ layer["down"]


def remat_among_renames(is_edited: bool) -> Program:
    """The MLP has another name too."""
    one = partial(block, mlp=jax.checkpoint(feed_forward)) if is_edited else block
    return program(train(partial(scanned_loss, block=one)), decoder(), random(*TOKENS))


def remat_policy(is_edited: bool) -> Program:
    """Products are no longer kept."""
    policy = None if is_edited else jax.checkpoint_policies.dots_saveable
    one = jax.checkpoint(block, policy=policy)
    return program(train(partial(scanned_loss, block=one)), decoder(), random(*TOKENS))


def momentum(is_edited: bool) -> Program:
    def step(model: Any, speed: Any, x: Any) -> Any:
        slopes = jax.grad(loss_of)(model, x)
        with jax.named_scope("update"):
            if is_edited:
                speed = jax.tree.map(lambda v, slope: 0.9 * v + slope, speed, slopes)
                slopes = speed
            model = jax.tree.map(lambda leaf, slope: leaf - 0.01 * slope, model, slopes)
        return (model, speed) if is_edited else model

    return program(step, decoder(), decoder(), random(*TOKENS))


def half_product(is_edited: bool) -> Program:
    """XLA for CPUs may compute in float32 what is asked for in bfloat16."""

    def layer(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            if is_edited:
                x, w = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
            y = (x @ w).astype(jnp.float32)
        with jax.named_scope("activate"):
            return jnp.tanh(y)

    return program(layer, random(2_048, 512), weights(512, 512))


def wide_accumulation(is_edited: bool) -> Program:
    def layer(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            dtype = jnp.float64 if is_edited else jnp.float32
            y = jnp.dot(x, w, preferred_element_type=dtype).astype(jnp.float32)
        with jax.named_scope("activate"):
            return jnp.tanh(y)

    return program(layer, random(2_048, 512), weights(512, 512))


def masked(is_edited: bool) -> Program:
    """The mask becomes part of a fusion that was there."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        with jax.named_scope("scores"):
            scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
            if is_edited:
                with jax.named_scope("mask"):
                    at = jnp.arange(q.shape[1])
                    scores = jnp.where(at[:, None] >= at, scores, -1e9)
        with jax.named_scope("mix"):
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)

    return program(attend, *(random(4, 512, 64, seed=seed) for seed in (1, 2, 3)))


def dtype_and_layout(is_edited: bool) -> Program:
    """Two edits: one convolution in float64, and keys stored by position."""

    def model(x: Any, kernels: Any, keys: Any, queries: Any) -> Any:
        with jax.named_scope("stem"):
            first, kernel = x, kernels[0]
            if is_edited:
                first, kernel = first.astype(jnp.float64), kernel.astype(jnp.float64)
            x = jnp.tanh(convolved(first, kernel)).astype(jnp.float32)
        with jax.named_scope("lookup"):
            order = "khd" if is_edited else "hkd"
            return x, jax.nn.softmax(jnp.einsum(f"hqd,{order}->hqk", queries, keys))

    keys = random(8, 2_048, 64)
    keys = np.ascontiguousarray(keys.swapaxes(0, 1)) if is_edited else keys
    return program(model, random(*IMAGES), kernels(), keys, random(8, 16, 64))


def wide_sum(is_edited: bool) -> Program:
    """Slopes are summed over devices in float64."""

    def inner(x: Any, w: Any) -> Any:
        with jax.named_scope("slopes"):
            slopes = jnp.sin(x @ w)
        with jax.named_scope("reduce"):
            wide = slopes.astype(jnp.float64) if is_edited else slopes
            return lax.psum(wide, "data").astype(jnp.float32)

    return sharded(inner, (P("data"), P()), random(DEVICES * 512, 256), weights(256, 256))


def sharded_weights(is_edited: bool) -> Program:
    """Each device keeps a part of the weights, and gathers them to use them."""
    mesh = Mesh(np.array(jax.devices()), ("data",))

    def loss(w: Any, x: Any) -> Any:
        with jax.named_scope("mlp"):
            return (jnp.tanh(x @ w) ** 2).mean()

    def put(leaf: np.ndarray, spec: P) -> Any:
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    w = put(weights(512, 512), P("data") if is_edited else P())
    return Program(jax.jit(jax.grad(loss)), (w, put(random(DEVICES * 64, 512), P("data"))))


def turned_weights(is_edited: bool) -> Program:
    """Weights are stored the other way round; the product takes them as they are."""

    def layer(x: Any, w: Any) -> Any:
        with jax.named_scope("project"):
            return jnp.tanh(x @ (w.T if is_edited else w))

    return program(layer, random(1_024, 512), weights(512, 512))


def rewritten(is_edited: bool) -> Program:
    """einsum for @, where for maximum's twin, keywords, a closure, a dict as a tuple."""

    def plain(model: Any, x: Any) -> Any:
        hidden = jnp.maximum(x @ model["up"], 0)
        return (hidden @ model["down"]).sum()

    def other(model: Any, batch: Any) -> Any:
        down, up = model

        def relu(values: Any) -> Any:
            return jnp.maximum(values, jnp.float32(0))

        hidden = relu(jnp.einsum("nx,xh->nh", batch, up))
        return jnp.sum(jnp.einsum("nh,hx->nx", hidden, down))

    up, down = weights(WIDTH, 1_024), weights(1_024, WIDTH)
    model = (down, up) if is_edited else {"up": up, "down": down}
    return program(jax.grad(other if is_edited else plain), model, random(512, WIDTH))


def loop_for_scan(is_edited: bool) -> Program:
    """A loop of Python over the layers, or a scan that is unrolled wholly: about the same."""
    loss = loss_of if is_edited else partial(scanned_loss, unroll=programs.LAYERS)
    return program(loss, decoder(), random(*TOKENS))


def learning_rate(is_edited: bool) -> Program:
    rate = 0.02 if is_edited else 0.01

    def step(model: Any, x: Any) -> Any:
        slopes = jax.grad(loss_of)(model, x)
        return jax.tree.map(lambda leaf, slope: leaf - rate * slope, model, slopes)

    return program(step, decoder(), random(*TOKENS))


MIXED = (
    Case(
        "larger_batch",
        "4 images -> 6",
        "shape",
        larger_batch,
        before=r" convolution\(",
        after=r" convolution\(",
    ),
    Case("one_more_stage", "3 stages -> 4", "op_added", one_more_stage, "stage3", after="/stage3/"),
    Case(
        "longer_scan",
        "a scan over 2 layers -> 3",
        "loop_trips",
        longer_scan,
        before=r" while\(|/while/body/",
        after=r" while\(|/while/body/",
        also=("shape",),
    ),
    Case(
        "donation_among_renames",
        "donation lost, all names new",
        "donation_lost",
        donation_among_renames,
        after=r" copy\(%history",
    ),
    Case(
        "remat_among_renames",
        "the MLP renamed and under jax.checkpoint",
        "remat_on",
        remat_among_renames,
        "feed_forward",
        after="rematted_computation",
    ),
    Case(
        "remat_policy",
        "products no longer kept",
        "remat_on",
        remat_policy,
        after="rematted_computation.* dot|dot.*rematted_computation",
    ),
    Case(
        "momentum",
        "momentum in the optimizer",
        "op_added",
        momentum,
        "update",
        after="/update/",
        before="/update/",
    ),
    Case(
        "half_product",
        "a product in bfloat16",
        "dtype",
        half_product,
        "project",
        after=r" convert\(",
        also=("op_added",),
    ),
    Case(
        "wide_accumulation",
        "a product adds up in float64",
        "accumulate_dtype",
        wide_accumulation,
        "project",
        before=r" dot\(",
        after=r" dot\(",
        also=("dtype",),
        x64=True,
    ),
    Case("masked", "a causal mask", "op_added", masked, "mask", after="/mask/"),
    Case(
        "dtype_and_layout",
        "a convolution in float64, keys by position",
        "dtype",
        dtype_and_layout,
        before=r" convolution\(",
        after=r" convolution\(| transpose\(",
        also=("layout_copy",),
        x64=True,
    ),
    Case(
        "wide_sum",
        "slopes summed over devices in float64",
        "dtype",
        wide_sum,
        "reduce",
        before=r" all-reduce\(",
        after=r" all-reduce\(",
        also=("accumulate_dtype",),
        devices=DEVICES,
        x64=True,
    ),
    Case(
        "sharded_weights",
        "weights sharded",
        "op_added",
        sharded_weights,
        "mlp",
        after=r" (all-gather|reduce-scatter|all-reduce|all-to-all|collective-permute)\(",
        also=("collective_kind",),
        devices=DEVICES,
    ),
    Case(
        "turned_weights",
        "weights stored the other way round",
        "op_changed",
        turned_weights,
        "project",
        before=r" dot\(",
        after=r" dot\(",
        also=("layout_copy",),
    ),
    Case("rewritten", "einsum for @, other names, a tuple for a dict", "", rewritten),
    Case("loop_for_scan", "an unrolled scan -> a loop of Python", "", loop_for_scan),
    Case("learning_rate", "another constant", "", learning_rate),
)
