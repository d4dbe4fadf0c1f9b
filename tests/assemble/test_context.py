"""What the sections share: windows, periods and their time."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_xspace import US, Space, summarize_spaces, summary_of
from marin_profile.assemble.context import Context


def context_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *spaces: Space) -> Context:
    """The context of the summary of these spaces."""
    made: list[Context] = []
    monkeypatch.setattr("marin_profile.assemble.roofline_section", made.append)
    summarize_spaces(tmp_path, *spaces)
    (found,) = made
    return found


def steps(lengths: list[list[int]]) -> Space:
    """Per device the lengths of its steps, each busy for 50 us."""
    space = Space()
    for ordinal, own in enumerate(lengths):
        tpu = space.tpu(ordinal)
        at = 0
        for number, length in enumerate(own):
            tpu.step(number, at, length - 1).op("fusion.1", at, 50)
            at += length
    return space


FAST, SLOW = [80, 100, 200, 90], [80, 110, 230, 90]


@pytest.mark.parametrize(
    ("spaces", "window"),
    [([steps([FAST, SLOW])], 390), ([steps([FAST]), steps([SLOW])], (350 + 390) // 2)],
)
def test_the_time_of_the_whole_periods(monkeypatch, tmp_path, spaces, window):
    """Kept are the steps 1 to 3: two periods, of 100 and 200 us and of 110 and 230 us; of the
    devices' means of 150 and 170 the median is 160. A host's window ends with its last op."""
    found = context_of(monkeypatch, tmp_path, *spaces)
    assert (found.steady, found.in_periods, found.periods) == (True, True, 2)
    assert found.steps.mean_period == 160 * US
    assert found.period_time == 160 * US * 2 * 2
    assert found.window_length == window * US


def test_a_lone_step_counts_by_its_duration(monkeypatch, tmp_path):
    found = context_of(monkeypatch, tmp_path, steps([[80, 100], [80, 110]]))
    assert (found.periods, found.steps.mean_period) == (1, None)
    assert found.period_time == 50 * US * 2


def test_without_steps_no_time_of_periods_is_known(monkeypatch, tmp_path):
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    found = context_of(monkeypatch, tmp_path, space)
    assert (found.periods, found.in_periods, found.period_time) == (0, False, 0.0)
    assert found.window_length == 5 * US


def test_a_host_without_device_work_leaves_no_whole_periods(monkeypatch):
    """Nothing shows whether its devices took the same steps."""
    idle = Space()
    idle.host().call("start", 0, 5)
    made: list[Context] = []
    monkeypatch.setattr("marin_profile.assemble.roofline_section", made.append)
    summary = summary_of(steps([FAST]).analyse(host="a"), idle.analyse(host="b"))
    (found,) = made
    assert (found.steady, found.periods, found.in_periods) == (True, 0, False)
    assert found.account == []
    assert [op.per_step_duration for op in summary.hot_ops] == [None]


def test_an_op_of_no_duration_has_no_share(tmp_path):
    space = Space()
    space.gpu(0).kernel("k", 0, 0)
    summary = summarize_spaces(tmp_path, space)
    assert summary.time_breakdown.total_duration == 0
    assert summary.time_breakdown.compute.share_of_total == 0
    assert [row.share_of_total for row in summary.semantic_families] == [0]
    assert summary.coverage.hlo_attributed_share is None
    assert summary.roofline is None
