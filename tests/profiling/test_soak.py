"""Many captures in one process, as `scripts/bench.py soak` takes them: nothing grows."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_soak.py"


@pytest.fixture
def bench_soak():
    spec = importlib.util.spec_from_file_location("bench_soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_nothing_grows_over_forty_captures(bench_soak):
    samples = bench_soak.soaked(bench_soak.OURS, 40, "subprocess")
    last = samples[-1]
    assert last["captures"] == 40
    assert (last["children"], last["zombies"], last["temp_files"]) == (0, 0, 0)
    assert last["with_files"] == bench_soak.KEPT
    assert max(sample["children"] for sample in samples) <= 1
    growth = bench_soak.growth_of(samples)
    assert growth["rss_mb"] < 0.1  # a kept capture, or its notes, would be more
    assert growth["threads"] < 0.05
    assert growth["handles"] < 0.05
