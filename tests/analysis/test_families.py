"""Semantic families over all ops."""

from builders_xspace import US, Space
from marin_profile.analysis.families import family_totals


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
