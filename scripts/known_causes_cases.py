"""Small training loops with one flaw each, and their twins: the same loops without it.

A case's `build(flawed)` makes the step, which returns what its end can be waited for. `right` are
the ids of advice that name the flaw, `names` what its title must hold ("" for nothing).
"""

from __future__ import annotations

import gc
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryFile
from typing import Any

DEVICES = 2
# One thread a device: more of them would share what one of them leaves.
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count={DEVICES} --xla_cpu_multi_thread_eigen=false"
)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 - reads the variables above
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

SIZE = 256
Step = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    name: str
    flaw: str
    right: tuple[str, ...]
    build: Callable[[bool], Step]
    names: str = ""


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


WEIGHTS = random(SIZE, SIZE) / SIZE


def tower(x: Any, w: Any, layers: int) -> Any:
    for _ in range(layers):
        x = jnp.sin(x @ w)
    return x


def on_one(layers: int = 8) -> Callable[[Any], Any]:
    """A program on one device, of some milliseconds."""
    w = jax.device_put(WEIGHTS)
    run = jax.jit(lambda x, w: tower(x, w, layers))
    return lambda x: run(x, w)


def sharded(inner: Callable[..., Any]) -> Step:
    """A step on all devices, the host waiting for its end."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    specs = {"in_specs": (P(), P("data")), "out_specs": P("data"), "check_vma": False}
    run = jax.jit(jax.shard_map(inner, mesh=mesh, **specs))
    weights = jax.device_put(WEIGHTS, NamedSharding(mesh, P()))
    rows = jax.device_put(random(DEVICES * SIZE, SIZE), NamedSharding(mesh, P("data")))
    return lambda: run(weights, rows).block_until_ready()


# --- the host keeps the devices waiting ---


def large_put(flawed: bool) -> Step:
    table = random(4_096, 4_096)
    there, run = jax.device_put(table), on_one()
    use = jax.jit(lambda t: t[:SIZE, :SIZE] * 2)

    def step() -> Any:
        return run(use(jax.device_put(table) if flawed else there)).block_until_ready()

    return step


def printed_loss(flawed: bool) -> Step:
    """The launch has 1,000 arguments, so that it takes a while."""
    leaves = [jax.device_put(np.float32(at)) for at in range(1_000)]
    w, x = jax.device_put(WEIGHTS), jax.device_put(random(SIZE, SIZE))
    run = jax.jit(lambda x, w, leaves: (tower(x, w, 4) + sum(leaves)).mean())

    def step() -> Any:
        loss = run(x, w, leaves)
        if flawed:
            print(f"loss {float(loss):.6f}", file=SINK)
        return loss

    return step


def tiny_programs(flawed: bool) -> Step:
    parts = [jax.jit(f) for f in (lambda x: x + 1, lambda x: x * 0.5, jnp.tanh)]

    def chain(x: Any) -> Any:
        for _ in range(40):
            for part in parts:
                x = part(x)
        return x

    run, x = chain if flawed else jax.jit(chain), jnp.ones(64)
    return lambda: run(x).block_until_ready()


def eager_layers(flawed: bool) -> Step:
    w, x = jax.device_put(WEIGHTS[:64, :64]), jax.device_put(random(64, 64))

    def model(x: Any, w: Any) -> Any:
        for _ in range(24):
            mean = x.mean(-1, keepdims=True)
            x = x + jnp.maximum((x - mean) @ w, 0)
        return x

    run = model if flawed else jax.jit(model)
    return lambda: run(x, w).block_until_ready()


def host_float64(flawed: bool) -> Step:
    raw, run = random(1_024, 1_024), on_one()

    def batch() -> np.ndarray:
        wide = raw.astype(np.float64)
        scaled = (wide - wide.mean()) / wide.std()
        return scaled[:SIZE, :SIZE].astype(np.float32)

    ready = batch()
    return lambda: run(batch() if flawed else ready).block_until_ready()


def written_checkpoint(flawed: bool) -> Step:
    """Every fourth step, 16 MB."""
    params, run, steps = jax.device_put(random(2_048, 2_048)), on_one(), count()
    x = jax.device_put(random(SIZE, SIZE))

    def step() -> Any:
        found = run(x).block_until_ready()
        if next(steps) % 4 == 3 and flawed:
            with TemporaryFile() as file:
                np.save(file, np.asarray(params))
                file.flush()
                os.fsync(file.fileno())
        return found

    return step


def evaluation(flawed: bool) -> Step:
    """On the host, every fifth step, by name."""
    run, steps, x = on_one(), count(), jax.device_put(random(SIZE, SIZE))

    def step() -> Any:
        found = run(x).block_until_ready()
        if next(steps) % 5 == 4 and flawed:
            with jax.profiler.TraceAnnotation("validate"):
                np.sort(random(1_000_000))
        return found

    return step


def collected_garbage(flawed: bool) -> Step:
    heap = [[at] for at in range(400_000)] if flawed else []
    run, x = on_one(), jax.device_put(random(SIZE, SIZE))

    def step() -> Any:
        found = run(x).block_until_ready()
        if heap:
            gc.collect()
        return found

    return step


def slow_thread(flawed: bool) -> Step:
    """Batches come through a queue from another thread, which takes 20 ms for each."""
    batches: queue.Queue[np.ndarray] = queue.Queue(maxsize=2)
    made, run = random(SIZE, SIZE), on_one()

    def produce() -> None:
        while True:
            if flawed:
                time.sleep(0.02)
            batches.put(made)

    threading.Thread(target=produce, daemon=True).start()
    return lambda: run(batches.get()).block_until_ready()


def changing_static(flawed: bool) -> Step:
    """Every fourth step has a new static argument."""
    w, x, steps = jax.device_put(WEIGHTS), jax.device_put(random(SIZE, SIZE)), count()
    run = jax.jit(lambda x, w, scale: tower(x, w, 8) * scale, static_argnums=2)

    def step() -> Any:
        at = next(steps)
        return run(x, w, at if flawed and at % 4 == 3 else -1).block_until_ready()

    return step


# --- the devices ---


def gathered_sum(flawed: bool) -> Step:
    """A sum of which each device keeps a part; all of them first gather it."""

    def inner(w: Any, x: Any) -> Any:
        x = tower(x, w, 2)
        parts = jnp.tile(x, (4, 4))
        with jax.named_scope("combine"):
            if flawed:
                whole = jax.lax.all_gather(parts, "data").sum(0)
                rows = whole.shape[0] // DEVICES
                kept = jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("data") * rows, rows)
            else:
                kept = jax.lax.psum_scatter(parts, "data", tiled=True)
        return x + kept[:SIZE, :SIZE] / 8

    return sharded(inner)


def scan_copies(flawed: bool) -> Step:
    """What the loop carries changes places in each iteration, so that both are copied."""

    def body(carry: Any, w: Any) -> tuple[Any, None]:
        one, other = carry
        one = jax.lax.dynamic_update_slice(one, jnp.sin(one[:64, :64] @ w), (0, 0))
        return ((other, one) if flawed else (one, other)), None

    x, w = jax.device_put(random(1_024, 1_024)), jax.device_put(random(24, 64, 64))
    run = jax.jit(lambda x, w: jax.lax.scan(body, (x, x + 1), w)[0])
    return lambda: run(x, w)[0].block_until_ready()


def straggler(flawed: bool) -> Step:
    def inner(w: Any, x: Any) -> Any:
        x = tower(x, w, 2)
        if flawed:
            is_late = jax.lax.axis_index("data") == DEVICES - 1
            x = jax.lax.cond(is_late, lambda x: tower(x, w, 16), lambda x: x, x)
        return tower(jax.lax.psum(x, "data") / DEVICES, w, 2)

    return sharded(inner)


def lone_softmax(flawed: bool) -> Step:
    """Beside a model of less time."""
    big, small, w = jax.device_put(random(512, 2_048)), random(SIZE, SIZE), WEIGHTS

    def model(big: Any, x: Any, w: Any) -> Any:
        with jax.named_scope("model"):
            x = tower(x, w, 2)
        if flawed:
            with jax.named_scope("router"):
                for _ in range(2):
                    big = jax.lax.optimization_barrier(jax.nn.softmax(big, -1))
        return x.sum() + big.sum()

    run, x, weights = jax.jit(model), jax.device_put(small), jax.device_put(w)
    return lambda: run(big, x, weights).block_until_ready()


def one_hot(flawed: bool) -> Step:
    """An embedding by a product with one-hot rows."""
    table, tokens = jax.device_put(random(4_096, SIZE)), np.arange(512, dtype=np.int32) * 7

    def model(table: Any, tokens: Any, w: Any) -> Any:
        with jax.named_scope("embed"):
            x = jax.nn.one_hot(tokens, table.shape[0]) @ table if flawed else table[tokens]
        with jax.named_scope("blocks"):
            return tower(x, w, 3)

    run, w, there = jax.jit(model), jax.device_put(WEIGHTS), jax.device_put(tokens)
    return lambda: run(table, there, w).block_until_ready()


def host_callback(flawed: bool) -> Step:
    """The program asks the host for a value, which takes it 10 ms."""

    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(0.01)
        return np.asarray(x)

    def model(x: Any, w: Any) -> Any:
        x = tower(x, w, 4)
        if flawed:
            with jax.named_scope("ask_host"):
                x = jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return tower(x, w, 4)

    run, w, x = jax.jit(model), jax.device_put(WEIGHTS), jax.device_put(random(SIZE, SIZE))
    return lambda: run(x, w).block_until_ready()


SINK = open(os.devnull, "w")  # noqa: SIM115 - for as long as the program runs
REGION = ("dominant-region", "memory-bound-region", "far-from-peaks")

CASES = (
    Case("large_put", "64 MB put on the device in each step", ("device-writes",), large_put),
    Case(
        "printed_loss",
        "the loss printed in each step",
        ("device-reads", "dispatch-late"),
        printed_loss,
    ),
    Case("tiny_programs", "120 tiny programs a step", ("dispatch-bound",), tiny_programs),
    Case("eager_layers", "24 layers that are not compiled", ("dispatch-bound",), eager_layers),
    Case(
        "host_float64", "a batch scaled in float64 on the host", ("untraced-python",), host_float64
    ),
    Case(
        "written_checkpoint",
        "a checkpoint written in every fourth step, unnamed",
        ("untraced-python",),
        written_checkpoint,
    ),
    Case("evaluation", "an evaluation in every fifth step", ("evaluation-pause",), evaluation),
    Case("collected_garbage", "gc.collect() in each step", ("untraced-python",), collected_garbage),
    Case("slow_thread", "batches from a slow thread", ("untraced-python",), slow_thread),
    Case(
        "changing_static",
        "a new static argument in every fourth step",
        ("compile-in-window",),
        changing_static,
    ),
    Case(
        "gathered_sum",
        "all_gather and sum in place of psum_scatter",
        ("exposed-communication", "small-collectives", *REGION),
        gathered_sum,
        "combine",
    ),
    Case("scan_copies", "a scan whose carries change places", ("loop-copies",), scan_copies),
    Case("straggler", "one device with more work", ("straggler",), straggler, f"CPU:{DEVICES - 1}"),
    Case("lone_softmax", "a softmax bound by memory", REGION, lone_softmax, "router"),
    Case("one_hot", "an embedding as a product", REGION, one_hot, "embed"),
    Case("host_callback", "a callback to the host", REGION, host_callback, "ask_host"),
)
