"""Semantic families over all ops."""

import pytest

from builders_xspace import US, Space
from marin_profile.analysis.families import family_totals
from marin_profile.events.classify import family


@pytest.mark.parametrize(
    ("name", "scope", "kind", "category", "expected"),
    [
        ("all-reduce.1", "jit(f)/mlp/psum", "all-reduce", "all-reduce", "collective"),
        ("copy-start.1", "", "device_to_host", "copy-start", "transfer"),
        ("custom-call.1", "jit(f)/splash_mha/x", "compute", "", "attention_splash"),
        ("fusion.1", "jit(f)/te_fused_attn_forward_ffi", "compute", "", "attention_flash"),
        ("fusion.1", "jit(f)/attention/add", "compute", "loop fusion", "attention"),
        ("fusion.1", "jit(f)/mlp/dot_general", "compute", "loop fusion", "matmul"),
        ("fusion.2", "jit(f)/x/y", "compute", "convolution fusion", "matmul"),
        ("Cijk_Ailk_Bljk", "", "compute", "", "matmul"),
        ("fusion.1", "jit(f)/softmax_cross_entropy/exp", "compute", "", "loss_xent"),
        ("fusion.1", "jit(f)/optimizer/mul", "compute", "loop fusion", "optimizer"),
        ("fusion.1", "jit(f)/embedding/gather", "compute", "loop fusion", "embedding"),
        ("fusion.1", "jit(f)/rms_norm/mul", "compute", "loop fusion", "normalization"),
        ("copy.3", "", "compute", "data formatting", "copy"),
        ("convert.3", "", "compute", "", "convert"),
        ("fusion.9", "", "compute", "loop fusion", "fusion"),
        ("iota.9", "", "compute", "", "other"),
        # Whole tokens only.
        ("embeddingless", "", "compute", "", "other"),
        ("normalizer", "", "compute", "", "other"),
        ("dotted", "", "compute", "", "other"),
    ],
)
def test_families_by_table(name, scope, kind, category, expected):
    assert family(name, scope, kind, category) == expected


def test_totals_by_hand():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("dot.1", 0, 40, shape="f32[8,8]{1,0}").op("dot.2", 40, 50, shape="bf16[4]{0}")
    tpu.op("copy.1", 90, 10, category="data formatting")
    rows = family_totals(space.analyse().ops)
    assert [(row.name, row.count, row.exclusive // US) for row in rows] == [
        ("matmul", 2, 90),
        ("copy", 1, 10),
    ]
    assert rows[0].example == "dot.2"
    assert rows[0].dominant_shape == "bf16[4]"
    assert rows[1].dominant_shape is None


def test_families_cover_all_op_time():
    space = Space()
    tpu = space.tpu(0)
    for index in range(40):
        tpu.op(f"thing{index}.1", index * 10, 5)
    assert sum(row.exclusive for row in family_totals(space.analyse().ops)) == 200 * US
