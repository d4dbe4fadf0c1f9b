"""Costs by hand, on HLO protos and on what profiles state."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders_xspace import (
    Space,
    computation,
    convolution_dims,
    hlo_proto,
    instruction,
    shape_proto,
)
from marin_profile.analysis.costs import (
    DERIVED,
    STATED,
    UNKNOWN_COSTS,
    Costs,
    costs_of,
    derived_costs,
    stated_costs,
)
from marin_profile.events.timeline import Op
from marin_profile.readers.hlo import read_hlo_proto

F32, BF16, S4, PRED = 11, 16, 21, 1


def module(*computations: bytes):
    proto = hlo_proto(*computations)
    return read_hlo_proto(np.frombuffer(proto, np.uint8), 0, len(proto))


def array(element: int, *dims: int) -> bytes:
    return shape_proto(element, *dims)


def tuple_of(*parts: bytes) -> bytes:
    return shape_proto(13, parts=parts)


def parameter(name: str, id: int, shape: bytes) -> bytes:
    return instruction(name, "parameter", id=id, shape=shape)


def costs(opcode: str, result: bytes, *operands: bytes, inner: tuple[bytes, ...] = (), **facts):
    """Of one instruction of the entry computation; `inner` are the computations that it calls."""
    given = [parameter(f"p.{at}", 10 + at, shape) for at, shape in enumerate(operands)]
    found = module(
        *inner,
        computation(
            1,
            99,
            *given,
            instruction(
                "it", opcode, id=99, shape=result, operands=range(10, 10 + len(operands)), **facts
            ),
        ),
    )
    return derived_costs(found["it"], found)


# what the profile states


@pytest.mark.parametrize(
    ("name", "stats", "expected"),
    [
        ("fusion.1", {"flops": 7, "bytes_accessed": 5}, (7, 5)),
        ("fusion.1", {"flops": 7, "model_flops": 3, "bytes_accessed": 5}, (3, 5)),
        ("fusion.1", {"flops": 7, "model_flops": 0, "bytes_accessed": 5}, (0, 5)),
        ("fusion.1", {"flops": 7}, (7, None)),
        ("fusion.1", {"bytes_accessed": 5}, (None, 5)),
        # No computation moves no bytes: XLA could not see into it.
        ("fusion.1", {"flops": 0, "bytes_accessed": 0}, None),
        ("fusion.1", {"flops": 7, "bytes_accessed": 0}, None),
        ("tuple.1", {"flops": 0, "bytes_accessed": 0}, (0, 0)),
        ("fusion.1", {}, None),
        ("kernel", {"category": "custom-call", "flops": 0, "bytes_accessed": 0}, None),
        ("kernel", {"category": "custom-call", "flops": 9, "bytes_accessed": 0}, None),
        ("kernel", {"category": "custom-call", "flops": 0, "bytes_accessed": 9}, None),
        ("kernel", {"category": "custom-call", "flops": 9}, None),
        ("kernel", {"category": "custom-call", "flops": 9, "bytes_accessed": 8}, (9, 8)),
    ],
)
def test_stated_costs(name, stats, expected):
    found = stated_costs(Op(name=name, **stats), "")
    assert found == (UNKNOWN_COSTS if expected is None else Costs(*expected, STATED))


def test_a_custom_call_is_told_by_its_opcode_too():
    assert stated_costs(Op(name="k", flops=9, bytes_accessed=0), "custom-call") == UNKNOWN_COSTS
    assert stated_costs(Op(name="b", flops=0, bytes_accessed=0), "bitcast").are_known
    text = "%k = f32[8] custom-call(%p)"
    op = Op(name="k", long_name=text, flops=0, bytes_accessed=9)
    assert costs_of(op, None, {}) == UNKNOWN_COSTS


def test_stated_costs_come_first_and_the_proto_fills_in():
    hlo = module(
        computation(
            1,
            2,
            parameter("p", 1, array(F32, 3)),
            instruction("add.1", "add", id=2, shape=array(F32, 3), operands=[1, 1]),
            instruction("call.1", "custom-call", id=3, shape=array(F32, 3), operands=[1]),
        )
    )
    derived = Costs(3, 24, DERIVED)
    add, call = hlo["add.1"], hlo["call.1"]
    stated = Op(name="add.1", flops=70, bytes_accessed=50)
    assert costs_of(stated, add, hlo) == Costs(70, 50, STATED)
    assert costs_of(Op(name="add.1"), add, hlo) == derived
    assert costs_of(Op(name="add.1", flops=70), add, hlo) == derived
    half = Op(name="call.1", model_flops=None, flops=None, bytes_accessed=None)
    assert costs_of(half, call, hlo) == UNKNOWN_COSTS
    sort = module(computation(1, 2, instruction("sort.1", "sort", id=2, shape=array(F32, 5))))
    assert costs_of(Op(name="sort.1"), sort["sort.1"], sort) == Costs(None, 20, DERIVED)
    partly = Op(name="sort.1", flops=70)
    assert costs_of(partly, sort["sort.1"], sort) == Costs(70, None, STATED)


# flops


def test_a_dot_is_two_flops_for_each_product():
    """[5,7] x [7,3]: 2 x 15 x 7 flops; 35 + 21 + 15 elements of four bytes."""
    found = costs("dot", array(F32, 5, 3), array(F32, 5, 7), array(F32, 7, 3), contracting=[1])
    assert found == Costs(210, 284, DERIVED)


def test_a_batched_dot_with_two_contracted_dimensions():
    """[2,3,5,7] and [2,5,7,11] over 5 and 7: 2 x (2 x 3 x 11) x 35."""
    found = costs(
        "dot",
        array(BF16, 2, 3, 11),
        array(BF16, 2, 3, 5, 7),
        array(BF16, 2, 5, 7, 11),
        contracting=[2, 3],
    )
    assert found == Costs(4620, 2 * (66 + 210 + 770), DERIVED)


@pytest.mark.parametrize("facts", [{}, {"contracting": [2]}, {"contracting": [5]}])
def test_a_dot_whose_dimensions_are_not_known(facts):
    found = costs("dot", array(F32, 5, 3), array(F32, 5, 7), array(F32, 7, 3), **facts)
    assert (found.flops, found.bytes_accessed) == (None, 284)


GEMM = {
    "gemm_backend_config": {
        "dot_dimension_numbers": {
            "lhs_contracting_dimensions": ["1"],
            "rhs_contracting_dimensions": ["0"],
        }
    }
}


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"])
def test_a_product_by_cublas(target):
    """Its workspace is no part of its bytes."""
    found = costs(
        "custom-call",
        tuple_of(array(BF16, 5, 3), array(2, 4096)),
        array(BF16, 5, 7),
        array(BF16, 7, 3),
        target=target,
        config=json.dumps(GEMM),
    )
    assert found == Costs(210, 2 * (15 + 35 + 21), DERIVED)


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[]",
        '{"dot_dimension_numbers"',
        '{"gemm_backend_config": {"dot_dimension_numbers": {}}}',
        '{"gemm_backend_config": {"dot_dimension_numbers": 3}}',
    ],
)
def test_a_product_by_cublas_that_does_not_say_over_what(config):
    found = costs(
        "custom-call",
        array(BF16, 5, 3),
        array(BF16, 5, 7),
        array(BF16, 7, 3),
        target="__cublas$gemm",
        config=config,
    )
    assert found.flops is None


@pytest.mark.parametrize("target", ["tpu_custom_call", "__cudnn$fmhaSoftmax", "my_ffi", ""])
def test_other_custom_calls_are_unknown(target):
    found = costs("custom-call", array(F32, 5), array(F32, 5), target=target, config="{}")
    assert found == UNKNOWN_COSTS


def test_a_convolution_by_cudnn_in_three_directions():
    """Input [7,9,3], kernel [4,3,5] (spatial, in, out), output [7,6,5], no padding: 6 x 4 pairs,
    2 x 7 x 5 x 24 x 3 flops, whichever of the three is the result."""
    inputs, kernel, output = array(F32, 7, 9, 3), array(F32, 4, 3, 5), array(F32, 7, 6, 5)
    moved = 4 * (189 + 60 + 210)
    facts = {
        "window": [{"size": 4}],
        "convolution": convolution_dims(
            kernel_input_feature=1, input_spatial=[1], output_spatial=[1]
        ),
    }
    for target, result, operands in (
        ("__cudnn$convForward", output, (inputs, kernel)),
        ("__cudnn$convBiasActivationForward", output, (inputs, kernel)),
        ("__cudnn$convBackwardInput", inputs, (output, kernel)),
        ("__cudnn$convBackwardFilter", kernel, (inputs, output)),
    ):
        result = tuple_of(result, array(2, 77))
        found = costs("custom-call", result, *operands, target=target, **facts)
        assert found == Costs(5040, moved, DERIVED), target


def test_a_grouped_convolution_counts_the_features_of_one_group():
    """8 input features in 4 groups: the kernel has 2 of them."""
    found = costs(
        "convolution",
        array(F32, 1, 5, 12),
        array(F32, 1, 5, 8),
        array(F32, 1, 2, 12),
        window=[{"size": 1}],
        convolution=convolution_dims(kernel_input_feature=1, input_spatial=[1], output_spatial=[1]),
    )
    assert found.flops == 2 * 60 * 1 * 2


@pytest.mark.parametrize(
    ("inputs", "outputs", "window", "pairs"),
    [
        (9, 9, {"size": 3, "padding_low": 1, "padding_high": 1}, 8 + 9 + 8),
        # Outputs at 0, 2, 4 with kernel 0..2 on five inputs.
        (5, 2, {"size": 3, "stride": 2}, 6),
        (5, 3, {"size": 3, "stride": 2, "padding_low": 1, "padding_high": 1}, 2 + 3 + 2),
        # Kernel elements two apart: offsets 0, 2, 4.
        (7, 3, {"size": 3, "window_dilation": 2}, 9),
        (7, 7, {"size": 3, "window_dilation": 2, "padding_low": 2, "padding_high": 2}, 5 + 7 + 5),
        # Inputs at 0, 3, 6 of seven places: outputs 0..5, kernel 0..1.
        (3, 6, {"size": 2, "base_dilation": 3}, 2 + 2),
        (3, 3, {"size": 2, "base_dilation": 3, "stride": 2}, 1 + 1),
        (9, 12, {"size": 3, "base_dilation": 4, "stride": 6, "padding_low": 2}, 3 + 0 + 3),
        (3, 2, {"size": 5, "padding_low": -4}, 0),
        (4, 2, {"size": 2, "padding_low": -1}, 4),
        (4, 0, {"size": 2}, 0),
    ],
)
def test_padding_and_holes_take_no_flops(inputs, outputs, window, pairs):
    found = costs(
        "convolution",
        array(F32, 1, outputs, 1),
        array(F32, 1, inputs, 1),
        array(F32, window["size"], 1, 1),
        window=[window],
        convolution=convolution_dims(kernel_input_feature=1, input_spatial=[1], output_spatial=[1]),
    )
    assert found.flops == 2 * pairs


@given(
    inputs=st.integers(1, 9),
    outputs=st.integers(0, 9),
    size=st.integers(0, 5),
    stride=st.integers(1, 4),
    padding_low=st.integers(-4, 4),
    window_dilation=st.integers(1, 3),
    base_dilation=st.integers(1, 4),
)
def test_pairs_are_those_that_trying_all_finds(inputs, outputs, size, **moves):
    """A place of the dilated input holds an element where base_dilation divides it."""
    held = {at * moves["base_dilation"] for at in range(inputs)}
    pairs = sum(
        output * moves["stride"] + position * moves["window_dilation"] - moves["padding_low"]
        in held
        for output in range(outputs)
        for position in range(size)
    )
    found = costs(
        "convolution",
        array(F32, 1, outputs, 3),
        array(F32, 1, inputs, 2),
        array(F32, size, 2, 3),
        window=[{"size": size, **moves}],
        convolution=convolution_dims(kernel_input_feature=1, input_spatial=[1], output_spatial=[1]),
    )
    assert found.flops == 2 * 3 * 2 * pairs


@pytest.mark.parametrize(
    "facts",
    [
        {"window": [{"size": 4}]},
        {
            "window": [],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[1], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=3, input_spatial=[1], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=5, input_spatial=[1], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[5], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[1], output_spatial=[5]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[1, 2], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[1], output_spatial=[1, 2]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[3], output_spatial=[1]
            ),
        },
        {
            "window": [{"size": 4}],
            "convolution": convolution_dims(
                kernel_input_feature=1, input_spatial=[1], output_spatial=[3]
            ),
        },
    ],
)
def test_a_convolution_whose_dimensions_are_not_known(facts):
    found = costs(
        "convolution", array(F32, 2, 6, 5), array(F32, 2, 9, 3), array(F32, 4, 3, 5), **facts
    )
    assert found.flops is None


@pytest.mark.parametrize(
    ("opcode", "flops"),
    [
        *[(opcode, 15) for opcode in ("add", "compare", "convert", "divide", "not", "or")],
        *[(opcode, 15) for opcode in ("remainder", "round-nearest-even", "subtract", "xor")],
        *[(opcode, 0) for opcode in ("tanh", "atan2", "power", "log-plus-one", "copy", "reshape")],
        *[(opcode, 0) for opcode in ("pad", "bitcast-convert", "transpose")],
    ],
)
def test_elementwise(opcode, flops):
    found = costs(opcode, array(BF16, 5, 3), array(F32, 5, 3))
    assert found == Costs(flops, 30 + 60, DERIVED)


@pytest.mark.parametrize(
    ("element", "size"), [(F32, 60), (BF16, 30), (PRED, 15), (S4, 8), (20, 15), (15, 120), (17, 0)]
)
def test_element_sizes(element, size):
    assert costs("iota-like", array(element, 5, 3)).bytes_accessed == size


def region(id: int, *opcodes: str) -> bytes:
    """A computation on scalars."""
    scalars = [
        instruction(f"{opcode}.{id}.{at}", opcode, id=1000 * id + at, shape=array(F32))
        for at, opcode in enumerate(opcodes)
    ]
    return computation(id, 1000 * id + len(opcodes) - 1, *scalars)


def test_a_reduction_applies_its_computation_to_each_element_it_takes_in():
    """24 elements into 4: 20 applications of two flops."""
    inner = (region(7, "compare", "select"),)
    found = costs("reduce", array(F32, 4), array(F32, 4, 6), array(F32), inner=inner, calls=[7])
    assert found == Costs(40, 4 * (4 + 24 + 1), DERIVED)


def test_a_reduction_without_its_computation_is_unknown():
    assert costs("reduce", array(F32, 4), array(F32, 4, 6), array(F32)).flops is None
    inner = (region(7, "add", "sort"),)
    sorts = costs("reduce", array(F32, 4), array(F32, 4, 6), array(F32), inner=inner, calls=[7])
    assert sorts.flops is None


@pytest.mark.parametrize("opcode", ["dot", "convolution", "reduce", "scatter"])
def test_operands_that_are_not_there(opcode):
    inner = (region(7, "add"),)
    found = costs(opcode, array(F32, 4), inner=inner, calls=[7], contracting=[0])
    assert found.flops is None


@pytest.mark.parametrize("opcode", ["reduce", "scatter"])
def test_a_reduction_of_what_is_not_known(opcode):
    inner = (region(7, "add"),)
    found = costs(opcode, array(F32, 4), b"", b"", b"", inner=inner, calls=[7])
    assert found == UNKNOWN_COSTS


def test_a_reduction_over_windows():
    """Eight results over windows of 2 x 3: five additions each."""
    found = costs(
        "reduce-window",
        array(F32, 8),
        array(F32, 48),
        array(F32),
        inner=(region(7, "add"),),
        calls=[7],
        window=[{"size": 2}, {"size": 3}],
    )
    assert found.flops == 40


def test_a_scatter_applies_it_to_each_update():
    """Operand, indices, updates: the updates are read twice and written, the rest stays."""
    found = costs(
        "scatter",
        array(F32, 1000),
        array(F32, 1000),
        array(8, 3),
        array(F32, 3, 7),
        inner=(region(7, "add"),),
        calls=[7],
    )
    assert found == Costs(21, 3 * 84, DERIVED)


@pytest.mark.parametrize("opcode", ["sort", "fft", "cholesky", "all-reduce", "", "unheard-of"])
def test_what_is_not_in_the_rules_has_unknown_flops(opcode):
    found = costs(opcode, array(F32, 5), array(F32, 5))
    assert (found.flops, found.bytes_accessed) == (None, 40)


def test_bookkeeping_costs_nothing():
    for opcode in ("parameter", "get-tuple-element", "tuple", "bitcast"):
        assert costs(opcode, array(F32, 5), array(F32, 5)) == Costs(0, 0, DERIVED)


@pytest.mark.parametrize(
    ("size", "flops"), [(1 << 16, 2 * 3), (1 << 17, None), (1 << 62, None), (-1, 0)]
)
def test_an_absurd_window_is_not_counted_out(size, flops):
    found = costs(
        "convolution",
        array(F32, 1, 1, 1),
        array(F32, 1, 3, 1),
        array(F32, 1, 1, 1),
        window=[{"size": size}],
        convolution=convolution_dims(kernel_input_feature=1, input_spatial=[1], output_spatial=[1]),
    )
    assert found.flops == flops


def test_counts_fit_int64():
    edge = (1 << 63) - 1
    assert costs("add", array(2, edge)).flops == edge
    assert costs("add", array(2, edge + 1)) == UNKNOWN_COSTS


# bytes


def test_an_operand_used_twice_is_read_once():
    hlo = module(
        computation(
            1,
            2,
            parameter("p", 1, array(F32, 5)),
            instruction("square", "multiply", id=2, shape=array(F32, 5), operands=[1, 1]),
        )
    )
    assert derived_costs(hlo["square"], hlo) == Costs(5, 40, DERIVED)


def test_slices_move_what_they_take():
    assert costs("slice", array(F32, 5), array(F32, 1000)).bytes_accessed == 40
    assert costs("dynamic-slice", array(F32, 5), array(F32, 1000), array(8)).bytes_accessed == 40
    assert costs("gather", array(F32, 5), array(F32, 1000), array(8, 5)).bytes_accessed == 40


def test_an_update_in_place_moves_the_update():
    found = costs(
        "dynamic-update-slice", array(F32, 1000), array(F32, 1000), array(F32, 5), array(8)
    )
    assert found == Costs(0, 40, DERIVED)


def test_an_operand_of_unknown_shape():
    assert costs("add", array(F32, 5), b"", array(F32, 5)).bytes_accessed is None
    assert costs("add", b"", array(F32, 5)) == UNKNOWN_COSTS


def fusion(*body: bytes, root: int, outside: tuple[bytes, ...], result: bytes):
    return costs("fusion", result, *outside, inner=(computation(7, root, *body),), calls=[7])


def test_a_fusion_sums_what_is_inside_and_moves_what_crosses_its_edge():
    """dot 2 x 15 x 7, then 15 additions; the product itself stays inside."""
    found = fusion(
        parameter("a", 71, array(F32, 5, 7)),
        parameter("b", 72, array(F32, 7, 3)),
        parameter("c", 73, array(F32, 5, 3)),
        instruction("d", "dot", id=74, shape=array(F32, 5, 3), operands=[71, 72], contracting=[1]),
        instruction("e", "add", id=75, shape=array(BF16, 5, 3), operands=[74, 73]),
        root=75,
        outside=(array(F32, 5, 7), array(F32, 7, 3), array(F32, 5, 3)),
        result=array(BF16, 5, 3),
    )
    assert found == Costs(225, 4 * (35 + 21 + 15) + 30, DERIVED)


def test_a_fusion_with_something_unknown_inside():
    found = fusion(
        parameter("a", 71, array(F32, 5)),
        instruction("s", "sort", id=72, shape=array(F32, 5), operands=[71]),
        instruction("e", "add", id=73, shape=array(F32, 5), operands=[72, 72]),
        root=73,
        outside=(array(F32, 5),),
        result=array(F32, 5),
    )
    assert found == Costs(None, 40, DERIVED)


def test_a_fusion_in_a_fusion():
    found = costs(
        "fusion",
        array(F32, 5),
        array(F32, 5),
        inner=(
            computation(
                8,
                82,
                parameter("b", 81, array(F32, 5)),
                instruction("n", "negate", id=82, shape=array(F32, 5), operands=[81]),
            ),
            computation(
                7,
                72,
                parameter("a", 71, array(F32, 5)),
                instruction("f", "fusion", id=72, shape=array(F32, 5), operands=[71], calls=[8]),
            ),
        ),
        calls=[7],
    )
    assert found == Costs(5, 40, DERIVED)


@pytest.mark.parametrize(("levels", "flops"), [(1, 5), (6, 5), (7, None)])
def test_fusions_nest_only_so_deep(levels, flops):
    """The innermost is one addition of five elements."""
    last = computation(
        100 + levels, 1, instruction("add", "add", id=1, shape=array(F32, 5), operands=[])
    )
    between = [
        computation(
            100 + level,
            1,
            instruction(f"f.{level}", "fusion", id=1, shape=array(F32, 5), calls=[101 + level]),
        )
        for level in range(1, levels)
    ]
    found = costs("fusion", array(F32, 5), inner=(*between, last), calls=[101])
    assert found.flops == flops


def test_a_computation_that_calls_itself_never_ends_in_an_error():
    found = costs(
        "fusion",
        array(F32, 5),
        inner=(
            computation(7, 71, instruction("f", "fusion", id=71, shape=array(F32, 5), calls=[7])),
        ),
        calls=[7],
    )
    assert found.flops is None


def test_a_fusion_reads_only_the_slice_that_it_takes_of_an_operand():
    """As in a scan: layer i of 100 stacked weights; the index is four bytes."""
    stack, layer = array(F32, 100, 8), array(F32, 1, 8)
    found = fusion(
        parameter("w", 71, stack),
        parameter("i", 72, array(8)),
        instruction("s", "dynamic-slice", id=73, shape=layer, operands=[71, 72]),
        instruction("e", "negate", id=74, shape=layer, operands=[73]),
        root=74,
        outside=(stack, array(8)),
        result=layer,
    )
    assert found == Costs(8, 32 + 4 + 32, DERIVED)


def test_a_fusion_reads_the_whole_where_something_else_uses_it_too():
    stack, layer = array(F32, 100, 8), array(F32, 1, 8)
    found = fusion(
        parameter("w", 71, stack),
        instruction("s", "slice", id=73, shape=layer, operands=[71]),
        instruction("n", "negate", id=74, shape=stack, operands=[71]),
        instruction("t", "tuple", id=75, shape=tuple_of(layer, stack), operands=[73, 74]),
        root=75,
        outside=(stack,),
        result=tuple_of(layer, stack),
    )
    assert found.bytes_accessed == 3200 + 32 + 3200


def test_many_slices_read_no_more_than_the_whole():
    whole, part = array(F32, 10), array(F32, 9)
    found = fusion(
        parameter("w", 71, whole),
        instruction("s", "slice", id=72, shape=part, operands=[71]),
        instruction("u", "slice", id=73, shape=part, operands=[71]),
        instruction("e", "add", id=74, shape=part, operands=[72, 73]),
        root=74,
        outside=(whole,),
        result=part,
    )
    assert found.bytes_accessed == 40 + 36


def test_a_slice_behind_a_bitcast():
    found = fusion(
        parameter("w", 71, array(F32, 100, 8)),
        instruction("b", "bitcast", id=72, shape=array(F32, 800), operands=[71]),
        instruction("s", "slice", id=73, shape=array(F32, 8), operands=[72]),
        root=73,
        outside=(array(F32, 100, 8),),
        result=array(F32, 8),
    )
    assert found.bytes_accessed == 64


def test_a_slice_of_unknown_size_counts_as_the_whole():
    whole = array(F32, 100)
    found = fusion(
        parameter("w", 71, whole),
        instruction("s", "slice", id=72, operands=[71]),
        instruction("n", "negate", id=73, shape=array(F32, 5), operands=[72]),
        root=73,
        outside=(whole,),
        result=array(F32, 5),
    )
    assert found.bytes_accessed == 400 + 20


def test_an_index_is_read_whole():
    """The operand that is sliced is the first one."""
    indices = array(8, 50)
    found = fusion(
        parameter("i", 71, indices),
        parameter("w", 72, array(F32, 1000)),
        instruction("g", "gather", id=73, shape=array(F32, 5), operands=[72, 71]),
        root=73,
        outside=(indices, array(F32, 1000)),
        result=array(F32, 5),
    )
    assert found.bytes_accessed == 200 + 20 + 20


def test_what_is_also_an_index_is_read_whole():
    """50 numbers of four bytes, looked up in themselves, and put into themselves."""
    chain, part = array(8, 50), array(8, 5)
    for opcode, result, written in (("gather", part, 20), ("dynamic-update-slice", chain, 200)):
        found = fusion(
            parameter("w", 71, chain),
            instruction("g", opcode, id=72, shape=result, operands=[71, 71]),
            root=72,
            outside=(chain,),
            result=result,
        )
        assert found.bytes_accessed == 200 + written


@pytest.mark.parametrize("rename", [False, True])
def test_a_fusion_that_updates_a_buffer_in_place(rename):
    """Five elements come in and are written; the buffer of 1000 stays where it is."""
    last = (
        [instruction("b", "bitcast", id=75, shape=array(F32, 10, 100), operands=[74])]
        if rename
        else []
    )
    found = fusion(
        parameter("buffer", 71, array(F32, 1000)),
        parameter("x", 72, array(BF16, 5)),
        instruction("c", "convert", id=73, shape=array(F32, 5), operands=[72]),
        instruction("u", "dynamic-update-slice", id=74, shape=array(F32, 1000), operands=[71, 73]),
        *last,
        root=75 if rename else 74,
        outside=(array(F32, 1000), array(BF16, 5)),
        result=array(F32, 10, 100) if rename else array(F32, 1000),
    )
    assert found == Costs(5, 10 + 20, DERIVED)


def test_a_fusion_that_writes_a_result_beside_an_update():
    found = fusion(
        parameter("buffer", 71, array(F32, 1000)),
        parameter("x", 72, array(F32, 5)),
        instruction("u", "dynamic-update-slice", id=74, shape=array(F32, 1000), operands=[71, 72]),
        instruction("n", "negate", id=75, shape=array(F32, 5), operands=[72]),
        instruction(
            "t", "tuple", id=76, shape=tuple_of(array(F32, 1000), array(F32, 5)), operands=[74, 75]
        ),
        root=76,
        outside=(array(F32, 1000), array(F32, 5)),
        result=tuple_of(array(F32, 1000), array(F32, 5)),
    )
    assert found == Costs(5, 20 + 20 + 20, DERIVED)


@pytest.mark.parametrize(("levels", "read"), [(6, 20), (7, 400)])
def test_a_slice_is_seen_only_so_far_behind_renames(levels, read):
    whole = array(F32, 100)
    found = fusion(
        parameter("w", 71, whole),
        *(
            instruction(f"b{at}", "bitcast", id=at, shape=whole, operands=[at - 1])
            for at in range(72, 72 + levels)
        ),
        instruction("s", "slice", id=90, shape=array(F32, 5), operands=[71 + levels]),
        root=90,
        outside=(whole,),
        result=array(F32, 5),
    )
    assert found.bytes_accessed == read + 20


@pytest.mark.parametrize(("levels", "written"), [(7, 20), (8, 400)])
def test_an_update_is_seen_only_so_deep_in_tuples(levels, written):
    whole, update = array(F32, 100), array(F32, 5)
    shapes = [whole]
    for _ in range(levels):
        shapes.append(tuple_of(shapes[-1]))
    found = fusion(
        parameter("w", 71, whole),
        parameter("u", 72, update),
        instruction("d", "dynamic-update-slice", id=80, shape=whole, operands=[71, 72]),
        *(
            instruction(f"t{at}", "tuple", id=80 + at, shape=shapes[at], operands=[79 + at])
            for at in range(1, levels + 1)
        ),
        root=80 + levels,
        outside=(whole, update),
        result=shapes[-1],
    )
    assert found.bytes_accessed == 20 + written


def test_values_that_are_made_of_themselves_never_end_in_an_error():
    found = fusion(
        parameter("w", 71, array(F32, 5)),
        instruction("b", "bitcast", id=72, shape=array(F32, 5), operands=[72, 71]),
        instruction("t", "tuple", id=73, shape=tuple_of(array(F32, 5)), operands=[73]),
        root=73,
        outside=(array(F32, 5),),
        result=array(F32, 5),
    )
    assert found.bytes_accessed == 20 + 20


# from the file to the op


def test_ops_of_a_cpu_take_their_costs_from_the_proto():
    """2 x 4 x 6 x 5 flops; 4 x (20 + 30 + 24) bytes."""
    proto = hlo_proto(
        computation(
            1,
            3,
            parameter("a", 1, array(F32, 4, 5)),
            parameter("b", 2, array(F32, 5, 6)),
            instruction(
                "dot.1", "dot", id=3, shape=array(F32, 4, 6), operands=[1, 2], contracting=[1]
            ),
        )
    )
    space = Space().hlo(7, proto)
    space.host().cpu_op("dot.1", 0, 10, program_id=7).cpu_op("dot.1", 20, 10, program_id=7)
    (op,) = space.analyse().ops
    assert (op.costs, op.cost_count) == (Costs(240, 296, DERIVED), 2)


def test_a_collective_takes_none_from_the_proto():
    """A wait is no work: what it would cost is not asked."""
    proto = hlo_proto(
        computation(1, 1, instruction("all-reduce.1", "all-reduce", id=1, shape=array(F32, 4)))
    )
    space = Space().hlo(7, proto)
    space.host().cpu_op("all-reduce.1", 0, 10, program_id=7)
    (op,) = space.analyse().ops
    assert op.costs == UNKNOWN_COSTS


def gpu_product() -> tuple[Space, object]:
    proto = hlo_proto(
        computation(
            1,
            3,
            parameter("a", 1, array(F32, 4, 5)),
            parameter("b", 2, array(F32, 5, 6)),
            instruction(
                "custom-call.1",
                "custom-call",
                id=3,
                shape=array(F32, 4, 6),
                operands=[1, 2],
                target="__cublas$gemm",
                config=json.dumps(GEMM),
            ),
        )
    )
    space = Space().hlo(7, proto)
    return space, {"hlo_op": "custom-call.1", "program_id": 7, "module": "jit_f"}


def test_of_several_kernels_of_an_op_one_bears_its_costs():
    """The one with most self time; the others' executions are none of the op."""
    space, op = gpu_product()
    gpu = space.gpu(0)
    for at in (0, 100):
        gpu.kernel("split_k", at, 40, **op)
        gpu.kernel("reduce", at + 40, 10, **op).kernel("reduce", at + 50, 10, **op)
    found = {op.facts.name: op for op in space.analyse().ops}
    main, other = found["split_k"], found["reduce"]
    assert (main.costs, main.count, main.cost_count) == (Costs(240, 296, DERIVED), 2, 2)
    assert (other.costs, other.count, other.cost_count) == (Costs(0, 0, DERIVED), 4, 0)


def test_devices_may_run_an_op_by_different_kernels():
    space, op = gpu_product()
    space.gpu(0).kernel("a", 0, 40, **op).kernel("b", 40, 10, **op)
    space.gpu(1).kernel("b", 0, 60, **op)
    found = {op.facts.name: op for op in space.analyse().ops}
    assert (found["a"].cost_count, found["b"].cost_count, found["b"].count) == (1, 1, 2)


def test_kernels_of_different_programs_are_different_ops():
    space, op = gpu_product()
    gpu = space.gpu(0)
    gpu.kernel("a", 0, 40, **op).kernel("b", 40, 10, **{**op, "program_id": 8})
    gpu.kernel("c", 50, 10)
    assert {op.facts.name: op.cost_count for op in space.analyse().ops} == dict.fromkeys("abc", 1)
