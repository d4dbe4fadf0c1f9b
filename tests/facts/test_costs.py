"""Compute whose costs are not known, by families."""

from __future__ import annotations

import pytest

from builders_summary import build_summary
from marin_profile.facts.costs import without_costs
from marin_profile.reports.first import uncosted
from marin_profile.schema import ProfileSummary, Roofline, RooflineRow


def of(coverage: float | None, *families: tuple[str, float, float | None]) -> ProfileSummary:
    rows = [
        RooflineRow(by="family", name=name, duration=duration, coverage=part)
        for name, duration, part in families
    ]
    roofline = Roofline(coverage=coverage, compute_duration=1000.0, by=rows)
    return build_summary(roofline=roofline)


# Of 1,000 us: 300 of 400 attention, all 300 matmul, 5 of the rest.
KERNELS = (("attention", 400.0, 0.25), ("matmul", 300.0, 0.0), ("other", 300.0, 1 - 5 / 300))


def test_shares_are_of_compute_time():
    found = without_costs(of(0.395, *KERNELS))
    assert found is not None
    assert found.share == pytest.approx(0.605)
    assert [name for name, _ in found.families] == ["attention", "matmul"]
    assert [part for _, part in found.families] == [pytest.approx(0.3), pytest.approx(0.3)]


@pytest.mark.parametrize(
    "summary",
    [of(0.95, *KERNELS), of(None, *KERNELS), of(0.0), build_summary(roofline=None)],
    ids=["little", "not known", "no op has costs", "no roofline"],
)
def test_where_there_is_nothing_to_say(summary):
    assert without_costs(summary) is None
    assert uncosted(summary) == ""


def test_the_words():
    assert uncosted(of(0.395, *KERNELS)) == (
        "No costs are known for 60.5 % of compute time (attention 30.0 %, matmul 30.0 %), so there "
        "are no rates and no MFU; pallas_call(cost_estimate=...) states a kernel's"
    )
    assert "so MFU is a lower bound" in uncosted(of(0.7, ("matmul", 300.0, 0.0)))
