"""`compare`: what it prints, and when it objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders_pairs import capture, changed
from marin_profile.comparison import compare
from marin_profile.reports.comparison import render_comparison
from marin_profile.schema import ProfileSummary, RunMetadata


def known(summary: ProfileSummary, digest: str) -> ProfileSummary:
    """The summary of a capture of known origin."""
    run = RunMetadata(hardware_type="TPU v6 Lite", num_devices=2, num_hosts=1)
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": digest * 64})
    return summary.model_copy(update={"run_metadata": run, "trace_provenance": provenance})


BEFORE = known(capture(), "a")
AFTER = known(capture(changed("fusion", 2, length=21)), "b")
NONE = ([None], [None])  # a summary holds no programs


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return written(tmp_path / "before.json", BEFORE)


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return written(tmp_path / "after.json", AFTER)


def written(path: Path, summary: ProfileSummary) -> Path:
    path.write_text(summary.to_json(), encoding="utf-8")
    return path


def test_json_is_the_default(call, before, after):
    result = call("compare", "--before", before, "--after", after, "--top-k", 3)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == compare(BEFORE, AFTER, top_k=3, programs=NONE).to_json()
    assert json.loads(result.stdout)["schema_version"] == "profile_comparison.v1"


def test_several_captures_a_side(call, before, after, tmp_path):
    again = written(tmp_path / "again.json", known(capture(steps=6), "c"))
    result = call("compare", "--before", before, "--before", again, "--after", after)
    assert result.exit_code == 0
    expected = compare(
        [BEFORE, known(capture(steps=6), "c")], [AFTER], programs=([None, None], [None])
    )
    assert result.stdout == expected.to_json()
    assert len(json.loads(result.stdout)["before"]) == 2


def test_markdown_to_a_file(call, before, after, tmp_path):
    target = tmp_path / "new/compare.md"
    result = call(
        "compare", "--before", before, "--after", after, "--format", "md", "--output", target
    )
    assert result.stdout == f"{target}\n"
    assert target.read_text(encoding="utf-8") == render_comparison(
        compare(BEFORE, AFTER, programs=NONE)
    )


def test_a_summary_against_itself(call, before):
    result = call("compare", "--before", before, "--after", before)
    assert result.exit_code == 0
    assert "same capture" in result.stderr
    assert json.loads(result.stdout)["comparability"]["same_capture"] is True
    strict = call("compare", "--before", before, "--after", before, "--strict-provenance")
    assert strict.exit_code == 1
    assert strict.stdout == result.stdout


def test_strict_provenance_exits_1_on_a_caveat(call, before, tmp_path):
    run = AFTER.run_metadata.model_copy(update={"hardware_type": None})
    other_run = written(tmp_path / "x.json", AFTER.model_copy(update={"run_metadata": run}))
    arguments = ("compare", "--before", before, "--after", other_run)
    lax, strict = call(*arguments), call(*arguments, "--strict-provenance")
    assert (lax.exit_code, strict.exit_code) == (0, 1)
    assert "TPU v6 Lite before, not known after" in strict.stderr


def test_strict_provenance_lets_the_known_pass(call, before, after):
    result = call("compare", "--before", before, "--after", after, "--strict-provenance")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("given", [(), ("--before",), ("--after",)])
def test_both_sides_must_be_named(call, before, given):
    arguments = [part for name in given for part in (name, before)]
    result = call("compare", *arguments)
    assert result.exit_code == 2
    assert "--before and --after" in result.stderr


def test_a_missing_summary_exits_3(call, before, tmp_path):
    result = call("compare", "--before", before, "--after", tmp_path / "none.json")
    assert (result.exit_code, result.stdout) == (3, "")
