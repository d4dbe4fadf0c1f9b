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
