"""Comparability of several captures a side."""

from __future__ import annotations

import pytest

from builders_pairs import capture
from marin_profile.base.errors import UsageError
from marin_profile.comparison import compare
from marin_profile.comparison.captures import comparability_of_all
from marin_profile.schema import ProfileSummary, RunMetadata


def known(number: int, hardware: str = "TPU v6 Lite", devices: int = 2) -> ProfileSummary:
    summary = capture()
    run = RunMetadata(hardware_type=hardware, num_devices=devices, num_hosts=1)
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": f"{number:064}"})
    return summary.model_copy(update={"run_metadata": run, "trace_provenance": provenance})


def test_repeats_are_comparable():
    found = comparability_of_all([known(1), known(2)], [known(3), known(4)])
    assert (found.comparable, found.same_capture, found.caveats) == (True, False, [])


def test_what_holds_for_all_names_none():
    found = comparability_of_all([known(1), known(2)], [known(3, "TPU v5"), known(4, "TPU v5")])
    assert [one.sentence for one in found.caveats] == [
        "Hardware differs: TPU v6 Lite before, TPU v5 after."
    ]
    assert not found.comparable


def test_what_holds_for_some_names_them():
    found = comparability_of_all([known(1), known(2, "TPU v5")], [known(3), known(4, devices=4)])
    assert [one.sentence for one in found.caveats] == [
        "Before 2, after 1: Hardware differs: TPU v5 before, TPU v6 Lite after.",
        "Before 1, after 2: Number of devices differs: 2 before, 4 after.",
    ]
    assert not found.comparable


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ([1, 2], [3, 2], "before 2 and as after 2"),
        ([1, 1], [3], "before 1 and as before 2"),
        ([1], [3, 3], "after 1 and as after 2"),
    ],
)
def test_a_capture_counts_once(before, after, named):
    found = comparability_of_all(list(map(known, before)), list(map(known, after)))
    assert [(one.severity, one.sentence) for one in found.caveats] == [
        ("blocking", f"One capture is named twice, as {named}.")
    ]
    assert not found.comparable


def test_one_a_side_is_the_same_capture():
    assert comparability_of_all([known(1)], [known(1)]).same_capture


@pytest.mark.parametrize("sides", [([], [1]), ([1], [])])
def test_both_sides_take_a_capture(sides):
    with pytest.raises(UsageError, match="at least one summary before and one after"):
        compare(*(list(map(known, side)) for side in sides))


def test_a_capture_without_an_account_is_named():
    old = known(2).model_copy(update={"step_account": None})
    found = compare([known(1), old], known(3))
    assert found.cannot_attribute is not None
    assert found.cannot_attribute.startswith("The before 2 summary has no step account")
