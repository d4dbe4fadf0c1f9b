"""Real captures, replayed as they are, take as long as they did."""

from __future__ import annotations

import pytest

from real.captures import CPU8, V6E, VLLM_AFTER, VLLM_BEFORE, summarize


@pytest.mark.parametrize("name", [V6E, CPU8, VLLM_BEFORE, VLLM_AFTER])
def test_untouched(traces, name):
    found = summarize(traces / name).what_if
    assert found is not None
    assert found.replay_error is not None
    assert found.replay_error <= 0.005


def test_devices_that_share_processors(traces):
    """Less work may save as large a part of the step as it is of all work."""
    found = summarize(traces / CPU8).what_if
    assert found is not None
    for row in found.changes:
        assert 0 <= row.saving_at_least <= row.saving < found.step_now
        if row.change == "communication":
            assert row.saving_at_least == 0
