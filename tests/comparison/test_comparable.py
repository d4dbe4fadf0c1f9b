"""Caveats about a comparison: each with both values."""

from __future__ import annotations

from typing import Any

import pytest

from builders_summary import STEPS, build_summary, build_v1_summary, no_steps, step, step_time
from marin_profile.comparison import comparability
from marin_profile.schema import ProfileSummary


def other(**changes: Any) -> ProfileSummary:
    """The summary of another capture."""
    summary = build_summary()
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ef" * 32})
    return summary.model_copy(update={"trace_provenance": provenance, **changes})


def updated(field: str, **changes: Any) -> ProfileSummary:
    return other(**{field: getattr(build_summary(), field).model_copy(update=changes)})


def test_two_captures_of_one_set_up():
    found = comparability(build_summary(), other())
    assert (found.same_capture, found.caveats, found.comparable) == (False, [], True)


def test_the_same_capture():
    found = comparability(build_summary(), build_summary())
    assert (found.same_capture, found.comparable) == (True, False)


def test_another_run_commit_and_config_are_no_caveat():
    after = updated("run_metadata", run_id="run8", git_sha="b", config_hash="c")
    assert comparability(build_summary(), after).caveats == []


@pytest.mark.parametrize(
    ("after", "about", "values"),
    [
        (updated("run_metadata", hardware_type="TPU v5"), "hardware", ("TPU v6 Lite", "TPU v5")),
        (updated("run_metadata", num_devices=4), "devices", ("2 before", "4 after")),
        (updated("step_time", source="module"), "step_source", ("annotation", "module")),
        (
            updated("time_breakdown", duration_basis="exclusive_per_track"),
            "duration_basis",
            ("device_ledger", "exclusive_per_track"),
        ),
        (updated("trace_overview", suspected_truncation=True), "truncation", ("after trace",)),
        (other(step_time=no_steps()), "steps", ("after capture shows no steps",)),
    ],
)
def test_what_blocks(after, about, values):
    found = comparability(build_summary(), after)
    (caveat,) = [one for one in found.blocking if one.about == about]
    assert all(value in caveat.sentence for value in values)
    assert not found.comparable
    # Seen from the other side as well.
    assert about in {one.about for one in comparability(after, build_summary()).blocking}


@pytest.mark.parametrize(
    ("after", "about", "values"),
    [
        (updated("run_metadata", hardware_type=None), "hardware", ("TPU v6 Lite", "not known")),
        (updated("run_metadata", num_hosts=2), "hosts", ("1 before", "2 after")),
        (updated("step_time", annotation="step"), "step_source", ("train", "step")),
        (updated("step_time", warmup_steps_ignored=3), "window", ("1 before", "3 after")),
        (
            other(step_time=step_time(steps=[step(0), *map(step, range(1, 3 * STEPS))])),
            "window",
            ("4 before", "12 after"),
        ),
        (other(step_time=step_time(steps=[step(0)])), "window", ("4 before", "1 after")),
        (updated("capture", tool_version="0.2.0"), "tool", ("0.1.0", "0.2.0")),
        (
            other(source_format="perfetto_trace_json"),
            "format",
            ("xplane_pb", "perfetto_trace_json"),
        ),
        (updated("coverage", scope_attributed_share=0.5), "coverage", ("80.0%", "50.0%")),
        (updated("coverage", empty_devices=["/device:TPU:3"]), "coverage", ("0 before", "1 after")),
    ],
)
def test_what_is_noted(after, about, values):
    found = comparability(build_summary(), after)
    assert found.blocking == []
    assert found.comparable
    sentences = [one.sentence for one in found.caveats if one.about == about]
    assert any(all(value in sentence for value in values) for sentence in sentences)


def test_one_more_step_is_no_caveat():
    after = other(step_time=step_time(steps=[step(0), *map(step, range(1, STEPS + 1))]))
    assert comparability(build_summary(), after).caveats == []


def test_older_summaries_say_what_they_lack():
    found = comparability(build_v1_summary(), build_v1_summary())
    assert not found.same_capture
    assert "capture" in {caveat.about for caveat in found.caveats}


def test_a_profile_without_device_work():
    summary = build_summary()
    empty = summary.time_breakdown.model_copy(update={"total_duration": 0.0})
    after = other(device_ledger=[], time_breakdown=empty)
    assert "host_only" in {caveat.about for caveat in comparability(summary, after).blocking}
