"""Damaged files of a capture: what is lost is said, a sound sibling is read, other hosts go on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from builders_json import event, process, thread, trace
from builders_xspace import STAMP, Space
from marin_profile.base.errors import BrokenInputError
from marin_profile.history import record_of
from marin_profile.pipeline import summarize
from marin_profile.readers import xplane
from marin_profile.reports.report import render_markdown
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import assess

pytestmark = pytest.mark.usefixtures("loops")


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


# --- a cut between planes ----------------------------------------------------------------------

MEETS = "%all-reduce.3 = f32[8] all-reduce(%dot.1), replica_groups={{0,1,2,3}}"
EARLY = "The file ends behind the planes of its devices: "


def meeting(steps: int = 6, offset: int = 0, end: bool = True) -> Space:
    """Four devices that meet, and what a profiler writes behind their planes."""
    space = Space()
    for ordinal in range(4):
        tpu = space.tpu(ordinal)
        for step in range(steps):
            at = 100 * step + offset
            tpu.step(step, at, 95).op("dot.1", at, 60, category="convolution fusion")
            tpu.op("all-reduce.3", at + 60, 20, category="all-reduce", long_name=MEETS)
    if end:
        space.host().call("work", 0, 5)
        space.environment(1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 700_000)
    return space


@pytest.mark.parametrize("planes", [1, 2, 3])
def test_a_file_cut_behind_a_plane_is_said_first_and_not_judged(
    tmp_path: Path, planes: int
) -> None:
    space = meeting()
    whole = summary_of_files(tmp_path / "whole", {"a.xplane.pb": meeting(offset=1).encode()})
    del space.planes[planes:]
    found = summary_of_files(tmp_path / "cut", {"a.xplane.pb": space.encode()})
    assert found.run_metadata.num_devices == planes
    verb = "is" if planes == 1 else "are"
    assert found.trace_overview.quality_warnings[0] == (
        f"{EARLY}what the profiler writes after them (the host, the Task Environment) is not "
        f"there, and its programs run on 4 devices, of which {planes} {verb} there. It is cut, and "
        "devices are lost: totals are lower bounds."
    )
    assert found.trace_overview.suspected_truncation
    first = render_markdown(found).splitlines()[2]
    assert first.startswith("The capture is cut or damaged, and the figures are of what is left")
    assert "after may be truncated" in assess([whole], [found]).reasons
    assert record_of(found, label="").suspected_truncation


def test_a_file_with_all_its_devices_may_end_behind_them(tmp_path: Path) -> None:
    found = summary_of_files(tmp_path, {"a.xplane.pb": meeting(end=False).encode()})
    assert EARLY not in warnings_of(found)
    assert not found.trace_overview.suspected_truncation


def test_one_of_several_hosts_has_fewer_devices_than_take_part(tmp_path: Path) -> None:
    space = meeting()
    del space.planes[:2]
    found = summary_of_files(tmp_path / "end", {"a.xplane.pb": space.encode()})
    assert EARLY not in warnings_of(found)
    named = meeting(end=False)
    del named.planes[:2]
    named.hostname = "a"
    found = summary_of_files(tmp_path / "name", {"a.xplane.pb": named.encode()})
    assert not found.trace_overview.suspected_truncation


def test_the_devices_of_all_hosts_together_are_counted(tmp_path: Path) -> None:
    halves = []
    for planes in (slice(0, 2), slice(2, 4)):
        space = meeting(end=False)
        del space.planes[planes]
        halves.append(space.encode())
    files = {f"host-{n}.xplane.pb": content for n, content in enumerate(halves)}
    assert not summary_of_files(tmp_path, files).trace_overview.suspected_truncation


@pytest.mark.parametrize(("planes", "source"), [(1, "a.trace.json.gz"), (2, "a.xplane.pb")])
def test_a_sibling_that_shows_more_devices_is_read(
    tmp_path: Path, planes: int, source: str
) -> None:
    """The sibling has two; both files are sound by themselves."""
    space = tpu_space()
    del space.planes[planes:]
    files = {"a.xplane.pb": space.encode(), "a.trace.json.gz": sibling()}
    found = summary_of_files(tmp_path, files)
    assert [Path(host.file).name for host in found.hosts] == [source]
    assert found.run_metadata.num_devices == 2
    assert ("a.xplane.pb ends behind the planes of its devices" in warnings_of(found)) == (
        planes == 1
    )


def test_a_file_that_lost_its_names_gives_way_and_says_so(tmp_path: Path) -> None:
    space = tpu_space()
    for plane in space.planes[:2]:
        plane._metadata.clear()
    found = summary_of_files(
        tmp_path, {"a.xplane.pb": space.encode(), "a.trace.json.gz": sibling()}
    )
    assert [Path(host.file).name for host in found.hosts] == ["a.trace.json.gz"]
    assert "a.trace.json.gz instead: 36 events of 36 have no name" in warnings_of(found)


# --- a file that shows no device work ----------------------------------------------------------


def test_without_device_work_a_file_that_ends_early_may_be_cut(tmp_path: Path) -> None:
    space = Space()
    space.plane("/host:metadata", jax_version="0.11.2").event("x", "y", 0, 5)
    with pytest.raises(BrokenInputError, match="it may be cut; copy or capture it again"):
        summary_of_files(tmp_path, {"a.xplane.pb": space.encode()})


def test_a_damaged_json_without_device_work_is_no_host_only_profile(tmp_path: Path) -> None:
    host = [process(701, "/host:CPU"), thread(701, 1, "python")]
    host += [event("f", str(n), "1", pid="701", tid="1") for n in range(3)]
    text = trace(*host, event("dot.1", "5", "1").replace('"ts"', "ts"), named=False)
    with pytest.raises(BrokenInputError, match="is damaged, and what is left of it shows no"):
        summary_of_files(tmp_path, {"a.trace.json": text})
