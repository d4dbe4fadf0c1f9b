"""Real captures: whole ones raise no doubt of their being whole; cut behind a plane they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.missing import find_missing
from marin_profile.analysis.steps.find import find_steps
from marin_profile.readers.protobuf import read_varint
from real.captures import (
    CPU8,
    GPU_CONV,
    GPU_GEMM,
    GPU_GTX,
    GPU_LEGACY,
    V6E,
    VLLM_AFTER,
    VLLM_BEFORE,
    read,
    summarize,
)

WHOLE = (
    f"{V6E}/host0.xplane.pb",
    f"{V6E}/host0.trace.json.gz",
    f"{VLLM_BEFORE}/t1v-n-9eb622fc-w-0.trace.json.gz",
    f"{VLLM_AFTER}/t1v-n-9eb622fc-w-0.trace.json.gz",
    f"{CPU8}/cpu8.xplane.pb",
    f"{CPU8}/cpu8.trace.json.gz",
    f"{GPU_CONV}/tw003.xplane.pb",
    f"{GPU_CONV}/tw003.trace.json.gz",
    f"{GPU_GEMM}/tw003.xplane.pb",
    f"{GPU_LEGACY}/mi300x.xplane.pb",
    f"{GPU_GTX}/cyclops.xplane.pb",
)


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_missing_from_a_whole_capture(traces: Path, name: str) -> None:
    timeline = read(traces / name)
    found = find_devices(timeline, "")
    assert find_missing(found, find_steps(found)).doubts == ()
    assert not timeline.truncated
    assert not timeline.ends_early


def ends_of_planes(content: bytes) -> list[int]:
    at, ends = 0, []
    while at < len(content):
        _, behind = read_varint(content, at)
        length, behind = read_varint(content, behind)
        at = behind + length
        ends.append(at)
    return ends


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_a_tpu_capture_cut_behind_a_device(traces: Path, tmp_path: Path, devices: int) -> None:
    """The program runs on eight, of which this host has four."""
    content = (traces / V6E / "host0.xplane.pb").read_bytes()
    cut = tmp_path / "host0.xplane.pb"
    cut.write_bytes(content[: ends_of_planes(content)[devices - 1]])
    found = summarize(cut)
    assert found.run_metadata.num_devices == devices
    assert found.trace_overview.quality_warnings[0].startswith(
        "The file ends behind the planes of its devices: "
    )
    assert found.trace_overview.suspected_truncation


@pytest.mark.parametrize("devices", [1, 4, 7])
def test_a_gpu_capture_cut_behind_a_device(traces: Path, tmp_path: Path, devices: int) -> None:
    """No op tells how many devices there are; the HLO proto does: eight."""
    content = (traces / GPU_CONV / "tw003.xplane.pb").read_bytes()
    cut = tmp_path / "tw003.xplane.pb"
    cut.write_bytes(content[: ends_of_planes(content)[devices]])  # /host:metadata stands first
    found = summarize(cut)
    assert "its programs run on 8 devices" in found.trace_overview.quality_warnings[0]
    assert found.trace_overview.suspected_truncation
