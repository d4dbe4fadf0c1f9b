"""Rules over a summary's own numbers."""

import dataclasses

import pytest

from marin_profile.analysis.advice import Findings, candidates

CALM = Findings(
    window="steady",
    exposed_communication=0.0,
    worst_collective=None,
    host_transfer=0.0,
    worst_transfer=None,
    idle=0.0,
    longest_gap=None,
    top_op=None,
    top_op_bound_by=None,
    recompute=0.0,
    step_median_us=100.0,
    step_p90_us=101.0,
    kept_steps=10,
    hlo_attributed=1.0,
)


def ids(**changes) -> list[str]:
    return [candidate.id for candidate in candidates(dataclasses.replace(CALM, **changes))]


def test_nothing_to_say():
    assert ids() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"exposed_communication": 0.15, "worst_collective": ("all-reduce", 0.15, 0.0)},
            ["exposed-communication"],
        ),
        ({"exposed_communication": 0.1499, "worst_collective": ("all-reduce", 0.1, 0.0)}, []),
        (
            {"host_transfer": 0.1, "worst_transfer": ("device_to_host", 0.1)},
            ["exposed-host-transfer"],
        ),
        ({"idle": 0.2}, ["idle-devices"]),
        ({"idle": 0.19}, []),
        ({"longest_gap": ("fusion", 0.05, 7)}, ["gap-before-op"]),
        ({"longest_gap": ("fusion", 0.3, 7), "idle": 0.3}, ["idle-devices"]),
        ({"top_op": ("fusion.1", "a/b", 0.3)}, ["dominant-op"]),
        ({"recompute": 0.15}, ["recompute"]),
        ({"step_p90_us": 140.0}, ["uneven-steps"]),
        ({"step_p90_us": 140.0, "kept_steps": 1}, []),
        ({"step_median_us": None, "step_p90_us": None}, []),
        ({"hlo_attributed": 0.5}, ["low-attribution"]),
        ({"hlo_attributed": None}, []),
    ],
)
def test_thresholds(changes, expected):
    assert ids(**changes) == expected


def test_the_largest_share_comes_first():
    found = ids(
        idle=0.25,
        exposed_communication=0.4,
        worst_collective=("all-reduce", 0.4, 0.1),
        recompute=0.3,
    )
    assert found == ["exposed-communication", "recompute", "idle-devices"]


def test_evidence_holds_the_numbers():
    (found,) = candidates(
        dataclasses.replace(
            CALM, exposed_communication=0.4, worst_collective=("all-reduce", 0.35, 0.1)
        )
    )
    assert "all-reduce" in found.title
    text = " ".join(found.evidence)
    assert "40.0 %" in text
    assert "35.0 %" in text
    assert "10.0 %" in text
    assert not any(character.isdigit() for character in found.rationale + found.title)
