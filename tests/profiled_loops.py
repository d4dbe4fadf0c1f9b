"""Loops of several kinds under `marin_profile.profile`, for test_profiled.py.

`python profiled_loops.py FOLDER` writes what became of them to FOLDER/results.json; its stdout
holds what was shown."""

import json
import logging
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import optax

import marin_profile
from marin_profile import ProfilerConfig

FOLDER = Path(sys.argv[1])
RESULTS = {}
LOG = []


class Lines(logging.Handler):
    def emit(self, record):
        LOG.append(record.getMessage())


logging.getLogger("marin_profile").addHandler(Lines())
logging.getLogger("marin_profile").setLevel(logging.INFO)


def told(name, profiled):
    found = profiled.result()
    RESULTS[name] = {
        "answer": None if found is None else found.headline,
        "steps": None if found is None else [step.step_num for step in found.steps],
        "source": None if found is None else found.summary.step_time.source,
        "repr": repr(profiled),
        "html": profiled._repr_html_(),
        "log": list(LOG),
    }
    LOG.clear()
    return found


def plain():
    """No marker, nothing waited for."""
    step = jax.jit(lambda w: w - 0.1 * (w @ w))
    w = step(jnp.eye(64))
    with marin_profile.profile(FOLDER / "plain") as p:
        RESULTS["inside"] = [p.is_done, repr(p), p.result()]
        for _ in range(6):
            w = step(w)
    found = told("plain", p)
    RESULTS["ops"] = found.ops[0].count
    RESULTS["asked"] = found.ask("top 1 op")["returned"]
    RESULTS["rows"] = found.events().num_rows
    RESULTS["opened"] = marin_profile.open(found.name).headline == found.headline


def flax():
    """A train state of flax, as its examples have it."""
    from flax import linen
    from flax.training import train_state

    model = linen.Dense(8)
    x = jnp.ones((16, 8))
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(0), x), tx=optax.adam(1e-3)
    )

    @jax.jit
    def train_step(state, x):
        def loss(params):
            return (state.apply_fn(params, x) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    state, _ = train_step(state, x)
    with marin_profile.profile(FOLDER / "flax") as p:
        for _ in range(5):
            state, value = train_step(state, x)
            float(value)
    told("flax", p)


def like_maxtext():
    """Numbered markers around the step, donated state, metrics read a step later."""

    def train_step(state, batch):
        grads = jax.grad(lambda w: ((batch @ w) ** 2).mean())(state)
        return state - 0.1 * grads, {"loss": (grads**2).sum()}

    p_train_step = jax.jit(train_step, donate_argnums=0)
    batch = jnp.ones((32, 32))
    state, metrics = p_train_step(jnp.eye(32), batch)
    with marin_profile.profile(str(FOLDER / "maxtext"), show=False) as p:
        for number in range(10, 15):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                state, following = p_train_step(state, batch)
            float(metrics["loss"])
            metrics = following
    told("maxtext", p)


def raising():
    step = jax.jit(lambda w: w @ w)
    try:
        with marin_profile.profile(FOLDER / "raising") as p:
            step(jnp.eye(32)).block_until_ready()
            raise KeyError("mine")
    except KeyError as error:
        RESULTS["raised"] = str(error)
    told("raising", p)


def what_cannot_be():
    (FOLDER / "a_file").write_text("")
    with marin_profile.profile(FOLDER / "a_file") as p:
        jnp.ones(3).sum().block_until_ready()
    told("in_a_file", p)
    jax.profiler.start_trace(str(FOLDER / "another"))
    with marin_profile.profile(FOLDER / "busy") as p:
        jnp.ones(3).sum().block_until_ready()
    jax.profiler.stop_trace()
    told("busy", p)
    with marin_profile.profile(FOLDER / "off", ProfilerConfig(enabled=False)) as p:
        pass
    told("off", p)
    with marin_profile.profile(FOLDER / "kept", ProfilerConfig(ingest=False)) as p:
        jax.jit(lambda w: w @ w)(jnp.eye(32)).block_until_ready()
    told("kept", p)
    # The capture goes before the process that summarises it can read it.
    from marin_profile.profiling import loops

    job, loops.Job = loops.Job, lambda folder, out: job(folder / "gone", out)
    with marin_profile.profile(FOLDER / "lost") as p:
        jax.jit(lambda w: w @ w)(jnp.eye(32)).block_until_ready()
    loops.Job = job
    told("lost", p)


plain()
try:
    flax()
except ImportError:
    RESULTS["flax"] = None
like_maxtext()
raising()
what_cannot_be()
with marin_profile.profile(FOLDER / "at_exit") as last:
    jax.jit(lambda w: w @ w @ w)(jnp.eye(48)).block_until_ready()
(FOLDER / "results.json").write_text(json.dumps(RESULTS))
