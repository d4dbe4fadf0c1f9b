"""Shapes in HLO text."""

from marin_profile.events.shapes import shape_signature


def test_shape_signatures():
    assert shape_signature("f32[8,128]{1,0:T(8,128)S(5)}") == "f32[8,128]"
    assert shape_signature("(bf16[2]{0}, u32[]{:S(2)})") == "bf16[2]|u32[]"
    assert shape_signature("", "%a = f32[4]{0} add(f32[9] %x)") == "f32[4]"
    assert shape_signature("", "fusion.1") == ""
