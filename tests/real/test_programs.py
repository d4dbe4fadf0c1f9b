"""What XLA did differently, between real captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.comparison.hlo.explain import explain


def test_one_program_on_two_versions_of_jax(traces: Path) -> None:
    """Names and order of parameters differ; 19 of 19 instructions compute the same (counted by
    hand in XLA's text), and six have the same name."""
    found = explain([traces / "gpu_mi300x_legacy"], [traces / "gpu_mi300x_conv"])
    assert found.hlo is not None
    assert found.target is not None
    (pair,) = found.hlo.programs
    assert (pair.before, pair.after) == ("jit_forward_3d_conv", "jit_forward_3d_conv")
    assert (pair.before_instructions, pair.after_instructions) == (19, 19)
    assert (pair.matched_instructions, pair.same_names) == (19, 6)
    assert found.hlo.differences == []
    assert found.hlo.unchanged is not None
    assert found.hlo.unchanged.delta == found.target.delta


@pytest.mark.parametrize("name", ["tpu_v6e_4dev", "cpu_8dev", "gpu_mi300x_gemm", "gpu_gtx1080ti"])
def test_nothing_differs_from_itself(traces: Path, name: str) -> None:
    found = explain([traces / name], [traces / name]).hlo
    assert found is not None
    assert found.differences == []
    assert all(one.matched_instructions == one.before_instructions for one in found.programs)


def test_one_collective_against_another(traces: Path) -> None:
    """Two programs of different work: every op is accounted for, and nothing is left over."""
    found = explain([traces / "tpu_v6e_4dev"], [traces / "cpu_8dev"], top_k=1000)
    hlo, target = found.hlo, found.target
    assert hlo is not None
    assert target is not None
    rows = [*hlo.differences, hlo.unchanged, hlo.elsewhere]
    total = sum(row.delta or 0.0 for row in rows if row is not None)
    assert total == pytest.approx(target.delta, rel=1e-9)
