"""A bundle: what is in it, and that it is complete or absent."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders_pairs import PROGRAM, Work, changed, with_work
from builders_pairs import capture as program
from builders_verdict import capture, noisy
from marin_profile.base.errors import UsageError
from marin_profile.bundle import MANIFEST_FILE, bundle_folder, make_bundle, write_bundle
from marin_profile.comparison import compare
from marin_profile.reports.report import render_markdown
from marin_profile.reports.verdict import render_change
from marin_profile.schema import ProfileSummary, TraceProvenance, parse_summary
from marin_profile.tracking import track

EXTRA = Work("all-reduce", 9, 90, 7, "all-reduce", "jit(step)/layers/router/psum")
NAMES = {
    "before/profile_summary.json",
    "before/profile_report.md",
    "after/profile_summary.json",
    "after/profile_report.md",
    "compare.json",
    "track.json",
    "compare_report.html",
    "compare_report.md",
    "manifest.json",
}


def made(name: str, works: tuple[Work, ...] = PROGRAM, *, period: float = 100) -> ProfileSummary:
    """A capture of the synthetic program; `name` makes its digest."""
    summary = program(works, steps=12, period=period)
    digest = hashlib.sha256(name.encode()).hexdigest()
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": digest})
    run = summary.run_metadata.model_copy(update={"hardware_type": "TPU v6 Lite"})
    return summary.model_copy(update={"trace_provenance": provenance, "run_metadata": run})


@pytest.fixture(scope="module")
def before() -> list[ProfileSummary]:
    """Of median step time is the third one."""
    return [made(f"before {period}", period=period) for period in (100, 104, 102)]


@pytest.fixture(scope="module")
def after() -> list[ProfileSummary]:
    """Of two, the shorter one, which is the second."""
    return [made(f"after {period}", with_work(EXTRA), period=period) for period in (123, 121)]


def digest_of(summary: ProfileSummary) -> str | None:
    return summary.trace_provenance.trace_sha256


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_whole(folder: Path) -> None:
    """The manifest lists exactly the other files, with their digests and sizes."""
    found = contents(folder)
    manifest = json.loads(found.pop(MANIFEST_FILE))
    assert manifest["files"] == {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in found.items()
    }


# What is in it


def test_the_files_are_what_the_library_says(before, after, tmp_path):
    one, two = before[0], after[0]
    bundle = make_bundle([one], [two], label="router", top_k=3)
    assert set(bundle.files) == NAMES
    assert parse_summary(bundle.files["before/profile_summary.json"]).to_json() == one.to_json()
    assert bundle.files["after/profile_report.md"] == render_markdown(two)
    comparison, tracked = compare(one, two, top_k=3), track([one], [two], label="router")
    assert bundle.files["compare.json"] == comparison.to_json()
    assert bundle.files["track.json"] == tracked.assessment.to_json()
    expected = render_change(tracked.assessment, comparison, two)
    assert bundle.files["compare_report.md"] == expected

    folder = write_bundle(bundle.files, str(tmp_path / "out"))
    assert_whole(folder)
    manifest = json.loads((folder / MANIFEST_FILE).read_text())
    assert manifest["schema_version"] == "profile_bundle.v1"
    assert (manifest["label"], manifest["status"]) == ("router", tracked.assessment.status)
    assert manifest["sentence"] == tracked.assessment.sentence
    assert manifest["doubts"] == []
    assert [side["trace_sha256"] for side in manifest["after"]] == [digest_of(two)]


def test_of_several_captures_all_are_judged_and_compared(before, after):
    bundle = make_bundle(before, after)
    assert bundle.tracked.assessment.before.captures == 3
    assert bundle.tracked.assessment.after.captures == 2
    assert bundle.tracked.assessment.confidence == "confirmed"
    assert bundle.tracked.assessment.status == "fail"
    compared = json.loads(bundle.files["compare.json"])
    assert [one["trace_sha256"] for one in compared["before"]] == list(map(digest_of, before))
    assert [one["trace_sha256"] for one in compared["after"]] == list(map(digest_of, after))
    assert compared["attribution"]["intervals_from"] == "captures"
    report = bundle.files["compare_report.md"]
    assert "What to try next is from the capture of median step time: after 2 of 2." in report
    assert {name.split("/")[0] for name in bundle.files if "/" in name} == {
        *("before", "before_2", "before_3", "after", "after_2")
    }
    third = parse_summary(bundle.files["before_3/profile_summary.json"])
    assert digest_of(third) == digest_of(before[2])


def test_the_answer_names_the_region_and_the_op_that_account_for_it(before, after):
    report = make_bundle([before[0]], [after[1]]).files["compare_report.md"]
    head = report.split("\n## ", 1)[0]
    assert "**Helped: no (likely). Likely fail: the mean step is 21" in head.splitlines()[2]
    # 7 of 21 us is the new collective; the rest is idle time behind the step.
    assert "Device time: `idle` +14.00 us, `exposed_communication` +7.00 us." in head
    assert "Regions: (idle) +14.00 us, `jit(step)=>layers=>router` +7.00 us." in head
    assert "Ops: (idle) +14.00 us, `all-reduce` (added) +7.00 us." in head


def test_a_slower_region_is_named_first(before):
    slower = changed("fusion", 2, length=20.5, start=12)
    report = make_bundle([before[0]], [made("x", slower)]).files["compare_report.md"]
    assert "\nRegions: `jit(step)=>layers=>attention` +500.00 ns" in report


def uneven(seed: int, steps: int, every: int = 0, longer: float = 1.0) -> ProfileSummary:
    """Periods about 100 us; each `every`-th step so many times as long, which the devices idle."""
    periods = noisy(seed, steps + 2, typical=100.0, variation=0.01)
    if every:
        periods = [p * longer if at % every == 3 else p for at, p in enumerate(periods)]
    summary = program(period=periods)
    provenance = TraceProvenance(trace_sha256=hashlib.sha256(str(periods).encode()).hexdigest())
    return summary.model_copy(update={"trace_provenance": provenance})


def test_verdict_and_comparison_do_not_contradict_each_other() -> None:
    """A stall of two steps in every twelfth, four times: to Welch's t of the steps it is just above
    the noise, to the verdict certain."""
    before, after = uneven(1, 48), uneven(2, 48, 12, 3.0)
    made = make_bundle([before], [after])
    assert made.tracked.assessment.status == "likely_fail"
    assert made.comparison.target is not None
    assert not made.comparison.target.noise
    report = made.files["compare_report.md"]
    assert "No change is told from noise" not in report
    assert "the mean step is 1" in report
    # Of one program, neither tells a change.
    same = make_bundle([before], [uneven(3, 48)])
    assert same.tracked.assessment.status == "pass"
    assert same.comparison.target is not None
    assert same.comparison.target.noise


def test_windows_that_hold_other_parts_of_a_cycle_are_reconciled() -> None:
    """Five of 50 steps against four: the windows differ by 3 %, the programs do not."""
    before, after = uneven(1, 48, 12, 3.0), uneven(2, 52, 12, 3.0)
    found = make_bundle([before], [after])
    mean = next(one for one in found.tracked.assessment.checks if one.check == "mean_step_time")
    assert mean.change == pytest.approx(0, abs=0.6)
    target = found.comparison.target
    assert target is not None
    assert target.relative == pytest.approx((1 + 2 * 5 / 52) / (1 + 2 * 4 / 48) - 1, abs=0.006)
    assert "whatever part of a cycle a window holds" in found.files["compare_report.md"]


def test_same_inputs_same_bytes_wherever_it_lies(before, after, tmp_path):
    for name in ("one", "two/deep"):
        write_bundle(make_bundle(before, after, label="x").files, str(tmp_path / name))
    first = contents(tmp_path / "one")
    assert first == contents(tmp_path / "two/deep")
    assert not any(str(tmp_path).encode() in content for content in first.values())


def test_names_outside_ascii_are_written_as_they_were_digested(tmp_path):
    summary = capture(noisy(1, 25))
    named = summary.model_copy(update={"source_path": "plugins/profile/été→"})
    bundle = make_bundle([named], [capture(noisy(2, 25))])
    assert_whole(write_bundle(bundle.files, str(tmp_path / "out")))


# Complete or absent


OLD = {MANIFEST_FILE: '{"schema_version": "profile_bundle.v1", "files": {"a.md": {}}}', "a.md": "a"}
NEW = {"b/c.md": "c", MANIFEST_FILE: '{"schema_version": "profile_bundle.v1", "files": {}}'}


def as_bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


def test_a_bundle_that_is_there_is_replaced_whole(tmp_path):
    for files in (OLD, NEW):
        assert write_bundle(files, str(tmp_path / "out")) == tmp_path / "out"
        assert contents(tmp_path / "out") == as_bytes(files)
    assert os.listdir(tmp_path) == ["out"]
    plain = tmp_path / "plain"
    plain.mkdir()
    assert (tmp_path / "out").stat().st_mode == plain.stat().st_mode


def test_an_empty_folder_and_a_link_are_written_to(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    write_bundle(OLD, str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    write_bundle(NEW, f"file://{tmp_path}/link/")
    assert contents(tmp_path / "empty") == as_bytes(NEW)
    assert sorted(os.listdir(tmp_path)) == ["empty", "link"]


@pytest.mark.parametrize("old", [None, OLD], ids=["nothing there", "a bundle there"])
@pytest.mark.parametrize(
    ("broken", "error"),
    [({"n" * 300: "x"}, UsageError), ({"z.md": "\ud800"}, UnicodeEncodeError)],
    ids=["a disk that refuses", "a defect"],
)
def test_a_failure_in_the_middle_changes_nothing(tmp_path, old, broken, error):
    if old:
        write_bundle(old, str(tmp_path / "out"))
    with pytest.raises(error):
        write_bundle({**NEW, **broken}, str(tmp_path / "out"))
    assert contents(tmp_path) == {f"out/{name}": text for name, text in as_bytes(old or {}).items()}
    assert os.listdir(tmp_path) == (["out"] if old else [])


KILLED = """
import os, signal, sys
from marin_profile.bundle import write_bundle

class Files(dict):
    def items(self):
        yield from list(super().items())[:1]
        os.kill(os.getpid(), signal.SIGKILL)

write_bundle(Files({"new.md": "x", "never.md": "y"}), sys.argv[1])
"""


@pytest.mark.parametrize("old", [None, OLD], ids=["nothing there", "a bundle there"])
def test_a_kill_in_the_middle_leaves_a_hidden_folder_until_the_next_bundle(tmp_path, old):
    target = tmp_path / "out"
    if old:
        write_bundle(old, str(target))
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    [hidden] = {name for name in os.listdir(tmp_path) if name != "out"}
    assert hidden.startswith(".marin-profile-")
    assert target.exists() == bool(old)
    assert contents(target) == as_bytes(old or {})
    write_bundle(NEW, str(target))
    assert contents(target) == as_bytes(NEW)
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({"thesis.tex": "x"}, "thesis.tex"),
        ({"manifest.json": '{"name": "my web app"}', "index.js": ""}, "index.js"),
        ({"manifest.json": "[]"}, "manifest.json"),
        ({**OLD, "notes/mine.md": ""}, "notes"),
        ({**OLD, "before/extra.md": ""}, "before"),
    ],
    ids=["foreign", "a manifest of others", "no manifest", "notes", "notes beside"],
)
def test_a_folder_that_holds_anything_else_is_left_alone(tmp_path, found, named):
    for name, text in found.items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(text)
    for attempt in (
        lambda: bundle_folder(str(tmp_path / "out")),
        lambda: write_bundle(NEW, str(tmp_path / "out")),
    ):
        with pytest.raises(UsageError, match=f"out holds {named}, which is no part of a bundle"):
            attempt()
    assert contents(tmp_path / "out") == as_bytes(found)


def test_what_is_no_place_for_a_bundle(tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("file", "file/far/below"):
        with pytest.raises(UsageError, match=r"/file is a file; name a folder"):
            write_bundle(NEW, str(tmp_path / name))
    with pytest.raises(UsageError, match=r"gs://bucket/out is a URL, but .* a local folder"):
        write_bundle(NEW, "gs://bucket/out")
    assert os.listdir(tmp_path) == ["file"]
