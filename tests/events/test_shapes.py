"""Shapes in HLO text."""

import re

import pytest

from marin_profile.events.shapes import DTYPE_BITS, end_of_shape, shape_signature


def test_shape_signatures():
    assert shape_signature("f32[8,128]{1,0:T(8,128)S(5)}") == "f32[8,128]"
    assert shape_signature("(bf16[2]{0}, u32[]{:S(2)})") == "bf16[2]|u32[]"
    assert shape_signature("", "%a = f32[4]{0} add(f32[9] %x)") == "f32[4]"
    assert shape_signature("", "fusion.1") == ""


@pytest.mark.parametrize(("dtype", "bits"), DTYPE_BITS.items())
def test_the_bits_of_an_element_are_in_its_types_name(dtype, bits):
    """ "bf16", "f8e4m3": the first number; a pred takes a byte, a token nothing."""
    named = re.match(r"[a-z]+?(\d+)", dtype)
    assert bits == (int(named.group(1)) if named else {"pred": 8, "token": 0}[dtype])


def test_a_result_shape_ends_at_a_space_outside_brackets():
    assert end_of_shape("f32[8, 128]{1,0} add(%p)") == 16
    assert end_of_shape("f32[4]\tadd (%p)") == 10
    assert end_of_shape("(f32[2], u32[])") == 15
