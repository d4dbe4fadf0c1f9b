"""The scope of an op."""

from __future__ import annotations

import pytest

from builders_xspace import Space, computation, hlo_proto, instruction, shape_proto, summary_of
from marin_profile.analysis.op_facts import Product


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


F32, BF16 = shape_proto(11, 8, 8), shape_proto(16, 8, 8)


def facts_of(space: Space, name: str):
    (fact,) = [fact for fact in space.devices().facts if fact.name == name]
    return fact


@pytest.mark.parametrize(
    ("stored", "multiplied", "product"),
    [
        (F32, F32, Product(32, from_narrow=False)),
        (BF16, F32, Product(32, from_narrow=True)),
        (BF16, BF16, Product(16, from_narrow=False)),
        (F32, BF16, Product(16, from_narrow=False)),
    ],
)
def test_what_a_product_in_a_fusion_multiplies(stored, multiplied, product):
    """Its first factor is transposed after it is converted."""
    inside = computation(
        2,
        24,
        instruction("p0", "parameter", id=21, shape=stored, parameter=0),
        instruction("convert.1", "convert", id=22, shape=multiplied, operands=[21]),
        instruction("transpose.1", "transpose", id=23, shape=multiplied, operands=[22]),
        instruction("dot.1", "dot", id=24, shape=F32, operands=[23, 23], contracting=[1]),
    )
    entry = computation(1, 11, instruction("fusion.1", "fusion", id=11, shape=F32, calls=[2]))
    space = Space().hlo(7, hlo_proto(inside, entry))
    space.host().cpu_op("fusion.1", 0, 40, run_id=1, program_id=7)
    assert facts_of(space, "fusion.1").product == product


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("%dot.1 = f32[8,8]{1,0} dot(bf16[8,8]{1,0} %a, bf16[8,8]{1,0} %b)", 16),
        ("%dot.1 = bf16[8,8]{1,0} convolution(f32[8,8]{1,0} %a, bf16[8,8]{1,0} %b)", 32),
        ("%dot.1 = f32[8,8]{1,0} add(f32[8,8]{1,0} %a, f32[8,8]{1,0} %b)", 0),
        ("", 0),
    ],
)
def test_what_a_product_multiplies_by_its_text(text, bits):
    space = Space()
    space.tpu(0).op("dot.1", 0, 10, category="convolution", long_name=text)
    assert facts_of(space, "dot.1").product == Product(bits)


def test_an_op_in_the_body_of_a_loop():
    """By the proto, where the copy has no metadata, and by the scope."""
    body = computation(2, 21, instruction("copy.1", "copy", id=21))
    entry = computation(
        1,
        12,
        instruction("copy.2", "copy", id=11),
        instruction("while.1", "while", id=12, calls=[2]),
    )
    space = Space().hlo(7, hlo_proto(body, entry))
    host = space.host()
    for at, name in enumerate(("copy.1", "copy.2")):
        host.cpu_op(name, 50 * at, 40, run_id=1, program_id=7)
    assert [facts_of(space, name).in_loop for name in ("copy.1", "copy.2")] == [True, False]
    space = Space()
    space.tpu(0).op("copy.3", 0, 10, category="copy", scope="jit(f)/while/body/copy:")
    assert facts_of(space, "copy.3").in_loop


@pytest.mark.parametrize(
    ("opcodes", "moves"),
    [
        (("transpose", "copy"), True),
        (("bitcast", "pad"), True),
        (("bitcast",), False),
        (("multiply", "transpose", "copy"), False),
    ],
)
def test_a_fusion_only_moves_if_all_that_is_in_it_does(opcodes, moves):
    """Whatever its name says, which comes from its last ops."""
    first = instruction("p", "parameter", id=20, shape=F32, parameter=0)
    inner = [
        instruction(f"{opcode}.9", opcode, id=at, shape=F32, operands=[at - 1])
        for at, opcode in enumerate(opcodes, 21)
    ]
    inside = computation(2, 20 + len(inner), first, *inner)
    entry = computation(
        1, 11, instruction("copy_bitcast_fusion.1", "fusion", id=11, shape=F32, calls=[2])
    )
    space = Space().hlo(7, hlo_proto(inside, entry))
    space.host().cpu_op("copy_bitcast_fusion.1", 0, 40, run_id=1, program_id=7)
    assert facts_of(space, "copy_bitcast_fusion.1").only_moves == moves
