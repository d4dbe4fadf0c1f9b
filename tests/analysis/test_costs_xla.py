"""Derived costs against XLA's own cost analysis of programs that it compiled for the CPU."""

from collections.abc import Callable

import numpy as np
import pytest

from builders_xspace import message
from marin_profile.analysis.costs import derived_costs
from marin_profile.readers.hlo import read_hlo_proto

jax = pytest.importorskip("jax", reason="jax is not installed: nothing can be compiled")
jnp = jax.numpy


def x():
    return jnp.ones((8, 16))


def image():
    return jnp.ones((2, 11, 13, 3))


def kernel():
    return jnp.ones((3, 5, 3, 7))


def convolved(strides: tuple[int, int], padding, **how) -> Callable:
    def run(image, kernel):
        return jax.lax.conv_general_dilated(
            image, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **how
        )

    return run


def gradients(image, kernel):
    def loss(image, kernel):
        return convolved((2, 2), "SAME")(image, kernel).sum()

    return jax.grad(loss, argnums=(0, 1))(image, kernel)


# name: (function, arguments, whether XLA counts the bytes alike)
PROGRAMS = {
    "convert": (lambda x: x.astype(jnp.bfloat16), (x,), True),
    "select": (lambda x: jnp.where(x > 0, x, 2 * x), (x,), True),
    "tanh": (jnp.tanh, (x,), True),
    "sum": (lambda x: x.sum(), (x,), True),
    "max": (lambda x: x.max(1), (x,), True),
    "argmax": (lambda x: jnp.argmax(x, 1), (x,), True),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (x,), True),
    "dot": (lambda x: x @ x.T, (x,), True),
    "softmax": (lambda x: jax.nn.softmax(x @ x.T), (x,), True),
    "layer": (lambda x: jax.nn.gelu(x @ x.T) * jax.lax.rsqrt((x * x).mean(1)), (x,), True),
    # An operand that stands twice is read once; XLA counts it twice. Indices come on top.
    "batched dot": (
        lambda x: jnp.einsum("bik,bjk->bij", x, x),
        (lambda: jnp.ones((3, 5, 7)),),
        False,
    ),
    "gather": (lambda x: x[jnp.array([1, 2, 3])], (x,), False),
    "scatter": (lambda x: x.at[jnp.array([1, 2, 3])].add(1.0), (x,), True),
    "update": (lambda x: jax.lax.dynamic_update_slice(x, 2 * x[:2], (3, 0)), (x,), True),
    "same": (convolved((1, 1), "SAME"), (image, kernel), True),
    "strided": (convolved((3, 2), [(2, 1), (0, 3)]), (image, kernel), True),
    "dilated": (convolved((1, 1), "SAME", rhs_dilation=(2, 1)), (image, kernel), True),
    "transposed": (
        convolved((2, 1), [(1, 4), (2, 2)], lhs_dilation=(3, 2)),
        (image, kernel),
        True,
    ),
    "cropped": (convolved((1, 1), [(-1, 2), (3, -2)]), (image, kernel), True),
    "grouped": (
        convolved((1, 1), "SAME", feature_group_count=3),
        (image, lambda: jnp.ones((3, 5, 1, 6))),
        True,
    ),
    "gradients": (gradients, (image, kernel), True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_costs_are_xlas(name):
    function, arguments, same_bytes = PROGRAMS[name]
    with jax.default_device(jax.devices("cpu")[0]):
        compiled = jax.jit(function).lower(*(argument() for argument in arguments)).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    proto = np.frombuffer(message(1, module.as_serialized_hlo_module_proto()), np.uint8)
    instructions = read_hlo_proto(proto, 0, len(proto))
    inner = {
        called
        for instruction in instructions.values()
        for computation in instruction.called
        for called in computation.instructions
    }
    costs = [
        derived_costs(instruction, instructions)
        for called, instruction in instructions.items()
        if called not in inner
    ]
    expected = compiled.cost_analysis()
    assert sum(cost.flops for cost in costs) == expected.get("flops", 0)
    moved = sum(cost.bytes_accessed for cost in costs)
    if same_bytes:
        assert moved == pytest.approx(expected["bytes accessed"], rel=1e-3)
    else:
        assert 0 < moved < expected["bytes accessed"]
