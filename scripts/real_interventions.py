"""Does a change save what `what_if` says? `python scripts/real_interventions.py [--only NAME]...`.

Six small programs on CPU devices, each with one flaw, and each again without it: captured in turns,
so that a drift of the machine cancels. The saving that was measured (the median over the pairs of
the mean step with the flaw less that without it) stands beside the interval that `what_if` states
from the captures with the flaw alone (the medians of its ends, wider by the replay's error and by
what two such captures differ by chance). Exits 1 if less than five in six lie inside. A busy
machine measures little: where the 98 % interval of the median (in parentheses) reaches into the
stated one, it is undecided.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
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

from marin_profile import summarize  # noqa: E402
from marin_profile.schema import ProfileSummary, WhatIf, WhatIfChange  # noqa: E402

STEPS = 20
SIZE = 256
INSIDE = 5 / 6
Step = Callable[[], None]


@dataclass(frozen=True)
class Intervention:
    """`build` makes the step with or without the flaw; `is_answer` picks its row of what_if."""

    name: str
    build: Callable[[bool], Step]
    is_answer: Callable[[WhatIfChange], bool]


def sharded(inner: Callable[..., Any]) -> Step:
    """A step of the function on all devices, the host waiting for its end."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    run = jax.jit(
        jax.shard_map(
            inner, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"), check_vma=False
        )
    )
    weights = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32) / SIZE
    rows = jax.device_put(
        np.ones((DEVICES * SIZE, SIZE), np.float32), NamedSharding(mesh, P("data"))
    )
    weights = jax.device_put(weights, NamedSharding(mesh, P()))
    return lambda: run(weights, rows).block_until_ready()


def matmuls(x: Any, w: Any, count: int) -> Any:
    for _ in range(count):
        x = jnp.sin(x @ w)
    return x


def straggler(flawed: bool) -> Step:
    def inner(w: Any, x: Any) -> Any:
        x = matmuls(x, w, 2)
        if flawed:
            late = jax.lax.axis_index("data") == DEVICES - 1
            x = jax.lax.cond(late, lambda x: matmuls(x, w, 12), lambda x: x, x)
        return matmuls(jax.lax.psum(x, "data") / DEVICES, w, 2)

    return sharded(inner)


def psum(flawed: bool) -> Step:
    def inner(w: Any, x: Any) -> Any:
        for _ in range(6):
            x = matmuls(x, w, 1)
            if flawed:
                x = jax.lax.psum(x, "data") / DEVICES
        return x

    return sharded(inner)


def op_halved(flawed: bool) -> Step:
    def inner(w: Any, x: Any) -> Any:
        with jax.named_scope("tower"):
            x = matmuls(x, w, 16 if flawed else 8)
        return jax.lax.psum(x, "data")

    return sharded(inner)


def host_gap(flawed: bool, *, name: str = "") -> Step:
    run = sharded(lambda w, x: jax.lax.psum(matmuls(x, w, 4), "data"))

    def step() -> None:
        if flawed:
            with jax.profiler.TraceAnnotation(name) if name else nullcontext():
                time.sleep(0.01)
        run()

    return step


def recompute(flawed: bool) -> Step:
    def block(x: Any, w: Any) -> tuple[Any, None]:
        return matmuls(x, w, 4), None

    def loss(w: Any, x: Any) -> Any:
        body = jax.checkpoint(block) if flawed else block
        return jax.lax.scan(body, x, jnp.stack([w] * 3))[0].sum()

    def inner(w: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(w, x)
        return x + value + jax.lax.psum(gradient, "data").sum()

    return sharded(inner)


INTERVENTIONS = (
    Intervention("straggler", straggler, lambda row: row.name == f"/device:CPU:{DEVICES - 1}"),
    Intervention(
        "psum", psum, lambda row: row.change == "communication" and row.name == "all-reduce"
    ),
    Intervention("op_halved", op_halved, lambda row: "tower" in (row.name or "")),
    Intervention("host_gap", host_gap, lambda row: row.change == "host_gaps"),
    Intervention(
        "input_wait",
        partial(host_gap, name="load_batch"),
        lambda row: row.change == "host_gaps",
    ),
    Intervention("recompute", recompute, lambda row: row.change == "pass"),
)


def captured(step: Step, folder: Path) -> ProfileSummary:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step()
    return summarize(folder)


def replayed(summary: ProfileSummary) -> WhatIf:
    if summary.what_if is None or summary.what_if.step_now is None:
        raise SystemExit(f"not replayed: {summary.what_if}")
    return summary.what_if


def shown(intervention: Intervention, pairs: int, folder: Path) -> bool:
    """Prints one line; whether the measured saving lies in the stated interval."""
    steps = {flawed: intervention.build(flawed) for flawed in (True, False)}
    for step in steps.values():
        for _ in range(3):
            step()
    measured, least, most, errors, now = [], [], [], [], []
    chance = []
    for pair in range(pairs):
        found = {}
        for flawed in (True, False) if pair % 2 == 0 else (False, True):
            place = folder / f"{intervention.name}_{pair}_{flawed}"
            found[flawed] = replayed(captured(steps[flawed], place))
        before = found[True]
        row = next((row for row in before.changes if intervention.is_answer(row)), None)
        if row is None:
            names = [(row.change, row.name) for row in before.changes]
            raise SystemExit(f"{intervention.name}: no answer among {names}")
        assert before.step_now is not None
        assert found[False].step_now is not None
        measured.append(before.step_now - found[False].step_now)
        least.append(row.saving_at_least)
        most.append(row.saving)
        errors.append((before.replay_error or 0.0) * before.step_now)
        chance.append(before.chance or 0.0)
        now.append(before.step_now)
    spare = median(errors) + median(chance)
    low, high = median(least) - spare, median(most) + spare
    inside = low <= median(measured) <= high
    # The median of ten lies between the second and the ninth of them in 98 of 100 cases.
    ordered = sorted(measured)
    edge = len(ordered) // 10
    first, last = ordered[edge], ordered[-1 - edge]
    may_be = first <= high and last >= low
    verdict = "inside" if inside else "undecided" if may_be else "OUTSIDE"
    print(
        f"{intervention.name:<12} step {median(now):9.0f} us, stated {low:8.0f} to {high:8.0f}, "
        f"measured {median(measured):8.0f} ({first:.0f} to {last:.0f}): {verdict}",
        flush=True,
    )
    return inside


def main() -> None:
    names = [one.name for one in INTERVENTIONS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--only", action="append", choices=names)
    options = parser.parse_args()
    chosen = [one for one in INTERVENTIONS if one.name in (options.only or names)]
    with tempfile.TemporaryDirectory() as made:
        inside = [shown(one, options.pairs, Path(made)) for one in chosen]
    print(f"{sum(inside)} of {len(inside)} inside")
    sys.exit(sum(inside) < INSIDE * len(inside))


if __name__ == "__main__":
    main()
