"""The limits of what captures take on disk, and which files go."""

from pathlib import Path

import pytest

from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.disk import Disk
from marin_profile.profiling.job import Job, newest_outputs
from marin_profile.profiling.record import (
    CaptureRecord,
    State,
    failed,
    noted,
    read_record,
    write_record,
)
from marin_profile.profiling.run import Run

OF_THE_PROFILER = ["h.trace.json.gz", "h.xplane.pb"]
OURS = [
    "capture_record.json",
    "profile_context.json",
    "profile_report.html",
    "profile_report.md",
    "profile_summary.json",
]
KEPT, ALL = len(OURS), len(OURS) + len(OF_THE_PROFILER)


def disk(root: Path, keep: int | None = None, free: float = 0.0, most: float | None = None) -> Disk:
    return Disk(root, keep, free, most)


def leave(root: Path, second: int, state: State = State.PUBLISHED, size: int = 1000) -> Path:
    folder = root / "plugins" / "profile" / f"2026_01_02_03_04_{second:02}"
    folder.mkdir(parents=True)
    for name in (*OF_THE_PROFILER, *OURS):
        (folder / name).write_bytes(b"x" * size)
    record = CaptureRecord(run_id="r", start_step=1, stop_step=2, folder=str(folder))
    write_record(
        failed(record, "no luck")
        if state is State.FAILED
        else CaptureRecord(run_id="r", start_step=1, stop_step=2, folder=str(folder), state=state)
    )
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_captures_keep_their_files_and_the_others_what_we_wrote(tmp_path):
    folders = [leave(tmp_path, second) for second in range(4)]
    disk(tmp_path, keep=2).make_room()
    assert [names(one) for one in folders[:2]] == [OURS, OURS]
    assert [names(one) for one in folders[2:]] == [sorted(OURS + OF_THE_PROFILER)] * 2


def test_all_captures_are_kept_unless_asked_for(tmp_path):
    folders = [leave(tmp_path, second) for second in range(4)]
    disk(tmp_path).make_room()
    assert all(len(names(one)) == ALL for one in folders)


@pytest.mark.parametrize("state", [State.INGESTING, State.SHARED, State.FAILED])
def test_what_is_not_published_keeps_its_files(tmp_path, state):
    folders = [leave(tmp_path, 0, state), leave(tmp_path, 1), leave(tmp_path, 2)]
    disk(tmp_path, keep=1).make_room()
    assert [len(names(one)) for one in folders] == [ALL, KEPT, ALL]


def test_what_was_never_to_be_summarised_goes_once_it_is_taken(tmp_path):
    """With `ingest` off; what an earlier start was to summarise stays for one that does."""
    folders = [leave(tmp_path, second, State.SETTLING) for second in range(3)]
    record = read_record(folders[0])
    write_record(noted(record, job=Job(folders[0], folders[0])))
    Disk(tmp_path, 1, 0.0, None, ingests=False).make_room()
    assert [len(names(one)) for one in folders] == [ALL, KEPT, ALL]


def test_a_capture_that_is_published_late_goes_then(tmp_path):
    late = leave(tmp_path, 0, State.INGESTING)
    others = [leave(tmp_path, second) for second in (1, 2)]
    kept = disk(tmp_path, keep=1)
    kept.make_room()
    assert len(names(late)) == ALL
    write_record(
        CaptureRecord(
            run_id="r", start_step=1, stop_step=2, folder=str(late), state=State.PUBLISHED
        )
    )
    kept.make_room()
    assert [len(names(one)) for one in (late, *others)] == [KEPT, KEPT, ALL]


def test_too_little_free_is_a_reason_that_names_the_limit(tmp_path):
    """Also before the folder is there."""
    limits = disk(tmp_path / "not" / "yet", free=1e9)
    assert limits.why_not().endswith("GB are free, less than min_free_disk_gb (1e+09)")
    assert disk(tmp_path, free=1e-9).why_not() is None


def test_too_much_taken_is_a_reason_that_names_the_limit(tmp_path):
    """Six files of 1000 bytes and a short record a capture: more than 6 kB, less than 7."""
    leave(tmp_path, 0)
    limits = disk(tmp_path, most=12e-6)
    assert limits.why_not() is None
    leave(tmp_path, 1)
    assert limits.why_not() is None  # looked at a moment ago
    said = limits.why_not(anew=True)
    assert said.startswith("the captures of this run take 1.2")
    assert said.endswith("e-05 GB, max_capture_gb is 1.2e-05")


def test_two_runs_of_one_output_dir_have_a_folder_each(tmp_path):
    config = ProfilerConfig(output_dir=str(tmp_path))
    one, other = (Run(run_id=name, folder=tmp_path / name) for name in ("a", "b"))
    assert newest_outputs(config, one) == tmp_path / "a"
    assert newest_outputs(config, other) == tmp_path / "b"
