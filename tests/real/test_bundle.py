"""A bundle of two real captures of one step each: told what changed, but no verdict."""

from __future__ import annotations

from pathlib import Path

from marin_profile.bundle import make_bundle
from marin_profile.pipeline import summarize


def test_one_step_a_side_is_compared_but_not_judged(traces: Path) -> None:
    folder = traces / "tpu_vllm_serving/plugins/profile"
    before, after = (summarize(path) for path in sorted(folder.iterdir()))
    report = make_bundle([before], [after]).files["compare_report.md"]
    head = report.split("\n## ")[0].splitlines()
    assert head[2].startswith(
        "**Helped: cannot tell. Inconclusive: one step per side cannot be judged; take 3 captures "
    )
    assert head[4].startswith("A step takes 1.45 ms less on each device (-2.2 %): 66.95 ms before")
    assert head[6] == "Device time: `compute` -2.27 ms, `exposed_communication` +785.40 us."
    assert head[8].startswith("Regions: `jit(step_fun)=>MergedColumnParallelLinear` -8.68 ms")
