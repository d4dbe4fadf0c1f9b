"""Damaged files of a capture: what is lost is said, a sound sibling is read, other hosts go on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from builders_json import event, process, thread, trace
from builders_xspace import STAMP, Space
from marin_profile.pipeline import summarize
from marin_profile.readers import xplane
from marin_profile.schema import ProfileSummary


def tpu_space(devices: int = 2, steps: int = 6) -> Space:
    space = Space()
    for ordinal in range(devices):
        tpu = space.tpu(ordinal)
        for step in range(steps):
            tpu.step(step, 100 * step, 95)
            tpu.op("dot.1", 100 * step, 60, category="convolution fusion")
            tpu.op("add.2", 100 * step + 70, 20, category="loop fusion")
    return space.environment(1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 700_000)


def sibling(devices: int = 2) -> bytes:
    events = []
    for ordinal in range(devices):
        events += [process(3 + ordinal, f"/device:TPU:{ordinal}"), thread(3 + ordinal)]
        events += [
            event("dot.1", str(100 * step), "60", pid=str(3 + ordinal), hlo_category="convolution")
            for step in range(6)
        ]
    return gzip.compress(trace(*events, named=False))


def summary_of_files(folder: Path, files: dict[str, bytes]) -> ProfileSummary:
    below = folder / "plugins" / "profile" / STAMP
    below.mkdir(parents=True)
    for name, content in files.items():
        (below / name).write_bytes(content)
    return summarize(folder)


def warnings_of(summary: ProfileSummary) -> str:
    return "\n".join(summary.trace_overview.quality_warnings)


def test_whatever_a_reader_stumbles_over_the_sibling_is_read_and_other_hosts_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = xplane.read_xplane

    def stumbling(stream, *, path):
        if "odd" in path:
            raise OverflowError("Python int too large to convert to C long")
        return read(stream, path=path)

    monkeypatch.setattr(xplane, "read_xplane", stumbling)
    sound = tpu_space().encode()
    found = summary_of_files(
        tmp_path,
        {"odd-0.xplane.pb": sound, "odd-0.trace.json.gz": sibling()}
        | {"odd-1.xplane.pb": sound, "whole.xplane.pb": sound + b"\x22\x05whole"},
    )
    assert [host.host for host in found.hosts] == ["odd-0", "whole"]
    assert found.run_metadata.num_devices == 4
    said = warnings_of(found)
    assert "odd-0.trace.json.gz instead" in said
    assert "holds what no profile does (OverflowError: Python int too large" in said
    assert "Host odd-1 is missing" in said
