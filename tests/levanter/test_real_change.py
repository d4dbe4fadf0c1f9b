"""A real slowdown of the demo model, through trainings and the command line: is it found?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs_levanter

SCRIPT = Path(__file__).parents[2] / "scripts" / "real_change.py"

pytestmark = [
    needs_levanter,
    pytest.mark.long,
    pytest.mark.timed,
]


def test_the_bundle_names_the_slow_region_first_and_fails_confirmed(tmp_path):
    # Where other programs share the machine runs differ much, and fewer show nothing.
    command = [sys.executable, str(SCRIPT), "--keep", str(tmp_path), "--only", "slow_region"]
    command += ["--runs", "4", "--kept-steps", "6"]
    subprocess.run(command, check=True, timeout=600)
    bundle = tmp_path / "bundle_slow_region"
    compared, judge_window = (
        json.loads((bundle / f"{name}.json").read_text()) for name in ("compare", "track")
    )
    assert (judge_window["status"], judge_window["confidence"]) == ("fail", "confirmed")
    first, second = compared["attribution"]["regions"]["rows"][:2]
    assert "=>block_0=>mlp_up" in first["name"]
    assert first["delta"] > abs(second["delta"])
    (line,) = [
        line
        for line in (bundle / "compare_report.md").read_text().splitlines()
        if line.startswith("Regions: ")
    ]
    assert "=>block_0=>mlp_up" in line.partition(",")[0]
    statuses = [json.loads(line)["status"] for line in (tmp_path / "history.jsonl").open()]
    assert statuses == ["fail"] * 4
