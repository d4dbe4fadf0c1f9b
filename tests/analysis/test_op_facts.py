"""The scope of an op."""

from __future__ import annotations

import pytest

from builders_xspace import Space, computation, hlo_proto, instruction, summary_of


@pytest.mark.parametrize("opcode", ["fusion", "custom-call"])
def test_a_fusion_is_in_the_scope_of_the_product_that_it_holds(opcode):
    """XLA names a fusion after its root, here the sum; the time is the dot's."""
    body = computation(
        2,
        22,
        instruction("dot.1", "dot", id=21, op_name="jit(f)/giant/dot_general", contracting=[1]),
        instruction("sum.1", "reduce", id=22, op_name="jit(f)/reduce_sum", operands=[21]),
    )
    plain = computation(
        3, 31, instruction("exp.1", "exponential", id=31, op_name="jit(f)/other/exp")
    )
    entry = computation(
        1,
        12,
        instruction("fusion.1", opcode, id=11, op_name="jit(f)/reduce_sum", calls=[2]),
        instruction("fusion.2", "fusion", id=12, op_name="jit(f)/loss/exp", calls=[3]),
    )
    space = Space().hlo(7, hlo_proto(body, plain, entry))
    host = space.host()
    for at, name in ((0, "fusion.1"), (50, "fusion.2")):
        host.cpu_op(name, at, 40, run_id=1, program_id=7)
    scopes = {op.name: op.tf_op_path for op in summary_of(space.analyse(warmup_steps=0)).hot_ops}
    assert scopes == {"fusion.1": "jit(f)/giant/dot_general", "fusion.2": "jit(f)/loss/exp"}
