"""From what the user names to the files of one capture."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from builders_xspace import Space
from marin_profile.base.errors import BrokenInputError, NotFoundError, UsageError
from marin_profile.capture.formats import TRACE_JSON, XPLANE
from marin_profile.capture.sources import (
    Capture,
    captures_in,
    find_captures,
    open_file,
    portable_name,
    resolve,
)

SECOND = 1_000_000_000
EPOCH = 1_767_323_045 * SECOND


def put(root: Path, *paths: str, content: bytes = b"x") -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def put_window(root: Path, path: str, start: float, stop: float) -> None:
    """An xplane that tells its profile window, in seconds."""
    window = EPOCH + int(start * SECOND), EPOCH + int(stop * SECOND)
    put(root, path, content=Space("h").environment(*window).encode())


def session(stamp: str, *names: str, under: str = "") -> list[str]:
    return [f"{under}plugins/profile/{stamp}/{name}" for name in names]


def hosts_of(captures: Iterable[Capture]) -> list[list[str]]:
    return [[host.host for host in capture.hosts] for capture in captures]


A, B, C = "2026_01_02_03_04_05", "2026_01_02_03_04_15", "2026_01_02_03_09_05"


# One session


def test_one_file_for_each_host_xplane_first(tmp_path: Path) -> None:
    names = ("h1.trace.json.gz", "h1.xplane.pb", "h0.xplane.pb", "h2.trace.json")
    put(tmp_path, *session(A, *names))
    capture, notes = resolve(profile_dir=str(tmp_path))
    assert [(host.host, host.name, host.format) for host in capture.hosts] == [
        ("h0", f"plugins/profile/{A}/h0.xplane.pb", XPLANE),
        ("h1", f"plugins/profile/{A}/h1.xplane.pb", XPLANE),
        ("h2", f"plugins/profile/{A}/h2.trace.json", TRACE_JSON),
    ]
    assert capture.hosts[1].reason == (
        "xplane.pb chosen over trace.json.gz: it also carries HLO protos, async events and op costs"
    )
    assert [file.path.rsplit("/", 1)[1] for file in capture.hosts[1].fallbacks] == [
        "h1.trace.json.gz"
    ]
    assert capture.hosts[0].reason == "the only file of this host"
    assert (capture.stamp, capture.source_path) == (A, f"plugins/profile/{A}")
    assert capture.root == str(tmp_path / "plugins/profile" / A)
    assert notes == []


def test_the_perfetto_copy_is_the_last_resort(tmp_path: Path) -> None:
    names = ("h.trace.json.gz", "perfetto_trace.json.gz", "h.xplane.pb", "h.trace.json")
    put(tmp_path, *session(A, *names))
    [host] = resolve(profile_dir=str(tmp_path))[0].hosts
    assert [file.path.rsplit("/", 1)[1] for file in (host, *host.fallbacks)] == [
        "h.xplane.pb",
        "h.trace.json.gz",
        "h.trace.json",
        "perfetto_trace.json.gz",
    ]


def test_the_perfetto_copy_alone(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "perfetto_trace.json.gz"))
    [host] = resolve(profile_dir=str(tmp_path))[0].hosts
    assert (host.host, host.format) == ("unnamed", TRACE_JSON)


def test_the_perfetto_copy_beside_one_xplane_is_that_hosts(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "perfetto_trace.json.gz", "h.xplane.pb"))
    [host] = resolve(profile_dir=str(tmp_path))[0].hosts
    assert (host.host, len(host.fallbacks)) == ("h", 1)


def test_the_perfetto_copy_beside_several_hosts_is_nobodys(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "perfetto_trace.json.gz", "h0.xplane.pb", "h1.xplane.pb"))
    capture, _ = resolve(profile_dir=str(tmp_path))
    assert hosts_of([capture]) == [["h0", "h1"]]
    assert capture.skipped == ("perfetto_trace.json.gz",)


def test_empty_files_stay_with_their_fallbacks(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"), content=b"")
    put(tmp_path, *session(A, "h.trace.json.gz"), content=b"12345")
    [host] = resolve(profile_dir=str(tmp_path))[0].hosts
    assert (host.size, host.fallbacks[0].size) == (0, 5)


def test_foreign_and_derived_files_are_skipped_and_listed(tmp_path: Path) -> None:
    foreign = ("h.overview_page.json", "h.hlo_stats.json", "m.pt.trace.json.gz", "NOTES.txt")
    put(tmp_path, *session(A, "h.xplane.pb", *foreign, ".hidden"))
    capture, notes = resolve(profile_dir=str(tmp_path))
    assert hosts_of([capture]) == [["h"]]
    assert capture.skipped == tuple(sorted(foreign))
    assert notes == [f"Not read: {', '.join(sorted(foreign))}."]


def test_what_is_written_beside_a_capture_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"))
    before = resolve(profile_dir=str(tmp_path))
    put(tmp_path, *session(A, "profile_summary.json", "profile_report.md", "profile_ingest.log"))
    put(tmp_path, *session(A, "profile_part.msgpack", "metadata.json"))
    put(tmp_path, f"plugins/profile/{A}/.publish/capture/plugins/profile/{B}/h.xplane.pb")
    assert resolve(profile_dir=str(tmp_path)) == before


# Which folder


@pytest.mark.parametrize(
    "named",
    ["", "run", "run/plugins", "run/plugins/profile", f"run/plugins/profile/{A}"],
)
def test_any_folder_above_will_do(tmp_path: Path, named: str) -> None:
    put(tmp_path, *session(A, "h.xplane.pb", under="run/"), "run/log.txt")
    capture, _ = resolve(profile_dir=str(tmp_path / named))
    assert capture.source_path == f"plugins/profile/{A}"
    assert capture.hosts[0].name == f"plugins/profile/{A}/h.xplane.pb"


def test_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"))
    monkeypatch.chdir(tmp_path / "plugins/profile" / A)
    capture, _ = resolve(profile_dir=".")
    assert capture.source_path == f"plugins/profile/{A}"
    assert Path(capture.hosts[0].path).exists()


def test_a_folder_that_holds_the_files_themselves(tmp_path: Path) -> None:
    put(tmp_path / "kept", "h.xplane.pb", *session(A, "other.xplane.pb"))
    capture, _ = resolve(profile_dir=str(tmp_path / "kept"))
    assert hosts_of([capture]) == [["h"]]
    assert (capture.source_path, capture.hosts[0].name) == ("kept", "h.xplane.pb")


def test_the_newest_capture_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    for stamp in (B, C, "2025_12_31_00_00_00"):
        put(tmp_path, *session(stamp, "h.xplane.pb"))
    capture, [note] = resolve(profile_dir=str(tmp_path))
    assert capture.stamp == C
    assert note == (
        f"3 captures found; the newest, {C}, was taken; the others: {B}, 2025_12_31_00_00_00."
    )


def test_a_named_session_is_taken_though_it_is_old(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"), *session(C, "h.xplane.pb"))
    capture, notes = resolve(profile_dir=str(tmp_path / "plugins/profile" / A))
    assert (capture.stamp, notes) == (A, [])


def test_equal_stamps_are_kept_apart_by_folder(tmp_path: Path) -> None:
    put(
        tmp_path, *session(A, "h.xplane.pb", under="one/"), *session(A, "h.xplane.pb", under="two/")
    )
    _, [note] = resolve(profile_dir=str(tmp_path))
    assert f"one/plugins/profile/{A}" in note


def test_links_in_circles_end(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"))
    (tmp_path / "plugins/again").symlink_to(tmp_path)
    assert len(find_captures(str(tmp_path))) == 1


def test_the_order_of_listing_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, *session(A, "h1.xplane.pb", "h0.xplane.pb"), *session(C, "h.trace.json"))
    expected = find_captures(str(tmp_path))
    scandir = os.scandir

    class Backwards(list):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(
        os, "scandir", lambda folder: Backwards(sorted(scandir(folder), key=str, reverse=True))
    )
    assert find_captures(str(tmp_path)) == expected


# Sessions that belong together


def test_sessions_whose_windows_overlap_are_one_capture(tmp_path: Path) -> None:
    """One capture whose hosts stopped ten minutes apart: the windows decide, not the stamps."""
    put_window(tmp_path, session(A, "h0.xplane.pb")[0], 0, 10)
    put_window(tmp_path, session(C, "h1.xplane.pb")[0], 9, 20)
    [capture] = find_captures(str(tmp_path))
    assert hosts_of([capture]) == [["h0", "h1"]]
    assert (capture.stamp, capture.source_path) == (A, f"plugins/profile/{A}")
    assert capture.root == str(tmp_path / "plugins/profile")


def test_sessions_whose_windows_are_apart_are_two(tmp_path: Path) -> None:
    put_window(tmp_path, session(A, "h0.xplane.pb")[0], 0, 5)
    put_window(tmp_path, session(B, "h1.xplane.pb")[0], 6, 9)
    assert hosts_of(find_captures(str(tmp_path))) == [["h0"], ["h1"]]


def test_without_windows_stamps_within_30_seconds_belong_together(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h0.trace.json.gz"), *session(B, "h1.trace.json.gz"))
    put(tmp_path, *session(C, "h1.trace.json.gz"))
    assert hosts_of(find_captures(str(tmp_path))) == [["h0", "h1"], ["h1"]]


@pytest.mark.parametrize(("second", "together"), [("35", True), ("36", False)])
def test_the_30_seconds_are_exact(tmp_path: Path, second: str, together: bool) -> None:
    put(tmp_path, *session(A, "h0.trace.json.gz"))
    put(tmp_path, *session(f"2026_01_02_03_04_{second}", "h1.trace.json.gz"))
    assert (len(find_captures(str(tmp_path))) == 1) is together


def test_a_damaged_file_falls_back_to_the_stamps(tmp_path: Path) -> None:
    put_window(tmp_path, session(A, "h0.xplane.pb")[0], 0, 10)
    put(tmp_path, *session(B, "h1.xplane.pb"), content=b"\xff" * 50)
    assert hosts_of(find_captures(str(tmp_path))) == [["h0", "h1"]]


def test_one_host_twice_within_30_seconds_is_two_captures(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.trace.json.gz"), *session(B, "h.trace.json.gz"))
    assert hosts_of(find_captures(str(tmp_path))) == [["h"], ["h"]]


def test_alternating_captures_of_two_hosts_find_their_partners(tmp_path: Path) -> None:
    first, second = (
        ("2026_01_02_03_04_00", "2026_01_02_03_04_05"),
        (
            "2026_01_02_03_04_20",
            "2026_01_02_03_04_25",
        ),
    )
    for stamps in (first, second):
        put(tmp_path, *session(stamps[0], "h0.trace.json.gz"))
        put(tmp_path, *session(stamps[1], "h1.trace.json.gz"))
    assert [capture.stamp for capture in find_captures(str(tmp_path))] == [first[0], second[0]]


def test_process_folders_are_one_capture_of_several_hosts(tmp_path: Path) -> None:
    for process, stamp in enumerate((A, B)):
        put(tmp_path, *session(stamp, "vm.trace.json.gz", under=f"process_{process}/"))
    [capture] = find_captures(str(tmp_path))
    assert hosts_of([capture]) == [["vm (process_0)", "vm (process_1)"]]
    assert capture.source_path == f"plugins/profile/{A}"


def test_process_folders_with_different_hosts_keep_their_names(tmp_path: Path) -> None:
    for process in range(2):
        put(tmp_path, *session(A, f"h{process}.xplane.pb", under=f"process_{process}/"))
    assert hosts_of(find_captures(str(tmp_path))) == [["h0", "h1"]]


def test_two_processes_of_one_machine_in_sibling_sessions(tmp_path: Path) -> None:
    put_window(tmp_path, session(A, "vm.xplane.pb")[0], 0, 10)
    put_window(tmp_path, session(B, "vm.xplane.pb")[0], 0, 11)
    [capture] = find_captures(str(tmp_path))
    assert hosts_of([capture]) == [[f"vm ({A})", f"vm ({B})"]]


def test_other_runs_are_never_mixed_in(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h0.trace.json.gz", under="run1/"))
    put(tmp_path, *session(A, "h1.trace.json.gz", under="run2/"))
    assert hosts_of(find_captures(str(tmp_path))) == [["h0"], ["h1"]]


def test_naming_one_of_several_sessions_notes_the_others(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h0.trace.json.gz"), *session(B, "h1.trace.json.gz"))
    capture, [note] = resolve(profile_dir=str(tmp_path / "plugins/profile" / B))
    assert hosts_of([capture]) == [["h1"]]
    assert note.startswith(f"Taken at the same time and left out: {A};")


def test_one_session_is_found_without_opening_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"))
    monkeypatch.setattr("marin_profile.capture.sources.open_file", pytest.fail)
    assert len(find_captures(str(tmp_path))) == 1


# Hosts, files, errors


def test_only_the_hosts_asked_for(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h0.xplane.pb", "h1.xplane.pb", "h2.xplane.pb"))
    capture, _ = resolve(profile_dir=str(tmp_path), hosts=["h2", "h0"])
    assert hosts_of([capture]) == [["h0", "h2"]]
    with pytest.raises(NotFoundError, match="its hosts are: h0, h1, h2"):
        resolve(profile_dir=str(tmp_path), hosts=["h"])


def test_a_host_name_means_all_its_processes(tmp_path: Path) -> None:
    for process in range(2):
        put(tmp_path, *session(A, "vm.xplane.pb", under=f"process_{process}/"))
    for wanted, expected in (("vm", 2), ("vm (process_1)", 1)):
        capture, _ = resolve(profile_dir=str(tmp_path), hosts=[wanted])
        assert len(capture.hosts) == expected


def test_single_files(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"), "loose.trace.json.gz", "other.json")
    xplane = tmp_path / session(A, "h.xplane.pb")[0]
    capture, _ = resolve(xplane_file=str(xplane))
    assert capture.source_path == f"plugins/profile/{A}/h.xplane.pb"
    assert (capture.stamp, capture.hosts[0].host, capture.hosts[0].format) == (A, "h", XPLANE)
    capture, _ = resolve(trace_file=str(tmp_path / "loose.trace.json.gz"))
    assert (capture.source_path, capture.stamp) == ("loose.trace.json.gz", "")
    capture, _ = resolve(trace_file=str(tmp_path / "other.json"))
    assert capture.hosts[0].host == "other"


@pytest.mark.parametrize(
    ("option", "name"), [("trace_file", "h.xplane.pb"), ("xplane_file", "h.trace.json.gz")]
)
def test_a_file_of_the_other_format_names_the_other_option(
    tmp_path: Path, option: str, name: str
) -> None:
    put(tmp_path, name)
    with pytest.raises(UsageError, match="name it with --"):
        resolve(**{option: str(tmp_path / name)})  # type: ignore[arg-type]


@pytest.mark.parametrize("named", [{}, {"profile_dir": "a", "trace_file": "b"}])
def test_exactly_one_source(named: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="exactly one"):
        resolve(**named)  # type: ignore[arg-type]


def test_what_is_not_there(tmp_path: Path) -> None:
    for named in ({"profile_dir": "no"}, {"trace_file": "no.json"}, {"xplane_file": "no.pb"}):
        with pytest.raises(NotFoundError, match="does not exist"):
            resolve(**{option: str(tmp_path / path) for option, path in named.items()})  # type: ignore[arg-type]


def test_files_and_folders_are_not_mistaken(tmp_path: Path) -> None:
    put(tmp_path, "h.xplane.pb")
    with pytest.raises(UsageError, match="is a file"):
        resolve(profile_dir=str(tmp_path / "h.xplane.pb"))
    with pytest.raises(UsageError, match="is a folder"):
        resolve(xplane_file=str(tmp_path))


@pytest.mark.parametrize("content", [(), ("README.md",), ("notes/deep/x.txt",)])
def test_a_folder_without_a_profile_names_what_was_searched_for(
    tmp_path: Path, content: tuple[str, ...]
) -> None:
    put(tmp_path, *content)
    with pytest.raises(NotFoundError, match=r"looked for \*\.xplane\.pb"):
        captures_in(str(tmp_path))


@pytest.mark.parametrize(
    "files",
    [
        session(A, "10.0.0.1.overview_page.json"),
        session(A, "notes.txt"),
        ["worker.pt.trace.json.gz"],
        ["worker.pt.trace.json", "x.json.gz"],
    ],
)
def test_a_folder_of_foreign_files_names_them(tmp_path: Path, files: list[str]) -> None:
    put(tmp_path, *files)
    with pytest.raises(BrokenInputError) as caught:
        captures_in(str(tmp_path))
    for file in files:
        assert file.rsplit("/", 1)[-1] in str(caught.value)
    assert ("PyTorch" in str(caught.value)) is any(".pt." in file for file in files)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_folders_below_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"), "closed/x")
    (tmp_path / "closed").chmod(0)
    try:
        assert len(find_captures(str(tmp_path))) == 1
    finally:
        (tmp_path / "closed").chmod(0o755)


def test_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for path in (*session(A, "h0.xplane.pb", "h0.trace.json.gz"), *session(C, "h1.xplane.pb")):
        system.pipe_file(f"/bucket/run/{path}", b"abc")
    capture, [note] = resolve(profile_dir="memory://bucket/run")
    assert (capture.stamp, capture.source_path) == (C, f"plugins/profile/{C}")
    assert A in note
    with open_file(capture.hosts[0].path) as stream:
        assert stream.read() == b"abc"
    single, _ = resolve(xplane_file=f"memory://bucket/run/{session(A, 'h0.xplane.pb')[0]}")
    assert (single.hosts[0].size, single.source_path) == (3, f"plugins/profile/{A}/h0.xplane.pb")
    with pytest.raises(NotFoundError):
        resolve(profile_dir="memory://bucket/nowhere")
    with pytest.raises(UsageError, match="cannot be opened"):
        resolve(profile_dir="noprotocol://bucket")


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "h.xplane.pb"))
    capture, _ = resolve(profile_dir=f"file://{tmp_path}")
    assert capture.root == str(tmp_path / "plugins/profile" / A)


def test_a_name_that_is_no_text_is_written_with_escapes(tmp_path: Path) -> None:
    put(tmp_path, *session(A, os.fsdecode(b"h\xff.xplane.pb")))
    [host] = resolve(profile_dir=str(tmp_path))[0].hosts
    assert (host.host, host.name) == ("h\\xff", f"plugins/profile/{A}/h\\xff.xplane.pb")
    with open_file(host.path) as stream:
        assert stream.read() == b"x"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/plugins/profile/s/h.pb", "plugins/profile/s/h.pb"),
        ("/plugins/profile/a/plugins/profile/s", "plugins/profile/s"),
        ("gs://b/r/plugins/profile/s/h.pb", "plugins/profile/s/h.pb"),
        ("plugins/profile/s/", "plugins/profile/s"),
        ("/a/b/h.pb", "h.pb"),
    ],
)
def test_portable_names(path: str, name: str) -> None:
    assert portable_name(path) == name


# Folders of processes, ranks and machines

FORMS = ("process_{}", "proc{}", "rank_{}", "pprank_{}", "tp_rank-{}", "worker-{}", "Rank{}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["{}/plugins/profile/S", "plugins/profile/S/{}", "{}"])
def test_folders_of_processes_are_one_capture(tmp_path: Path, form: str, layout: str) -> None:
    names = [form.format(number) for number in range(2)]
    for name in names:
        put_window(tmp_path, f"{layout.format(name).replace('S', A)}/vm.xplane.pb", 0, 10)
    [capture] = find_captures(str(tmp_path))
    assert hosts_of([capture]) == [[f"vm ({name})" for name in names]]
    assert [host.machine for host in capture.hosts] == ["vm", "vm"]
    if "S" in layout:
        assert (capture.stamp, capture.source_path) == (A, f"plugins/profile/{A}")


@pytest.mark.parametrize("form", ["host_{}", "node{}"])
def test_folders_of_machines_name_the_machine(tmp_path: Path, form: str) -> None:
    for number in range(2):
        under = f"{form.format(number)}/"
        put_window(tmp_path, session(A, "vm.xplane.pb", under=under)[0], 0, 10)
    [capture] = find_captures(str(tmp_path))
    machines = [f"{form.format(number)}/vm" for number in range(2)]
    assert [host.machine for host in capture.hosts] == machines


def test_names_do_not_depend_on_process_folders_far_above(tmp_path: Path) -> None:
    names = []
    for above in ("a/node_7", "b"):
        for rank in range(2):
            path = session(A, "vm.xplane.pb", under=f"{above}/rank_{rank}/")[0]
            put_window(tmp_path, path, 0, 10)
        [capture] = find_captures(str(tmp_path / above))
        names.append([(host.host, host.machine) for host in capture.hosts])
    assert names[0] == names[1] == [("vm (rank_0)", "vm"), ("vm (rank_1)", "vm")]


def test_folders_of_two_forms_do_not_mix(tmp_path: Path) -> None:
    for folder in ("rank_0", "worker_0"):
        put_window(tmp_path, session(A, "vm.xplane.pb", under=f"{folder}/")[0], 0, 10)
    assert hosts_of(find_captures(str(tmp_path))) == [["vm"], ["vm"]]


@pytest.mark.parametrize("name", ["ranking_1x", "processed_1", "rank_a", "step_1"])
def test_other_folders_are_no_processes(tmp_path: Path, name: str) -> None:
    put(tmp_path, f"{name}/vm.xplane.pb")
    with pytest.raises(NotFoundError):
        captures_in(str(tmp_path))


@pytest.mark.parametrize(
    ("second", "together"), [((0, 10), True), ((10, 20), True), ((10.5, 20), False)]
)
def test_windows_of_processes_decide(
    tmp_path: Path, second: tuple[float, float], together: bool
) -> None:
    put_window(tmp_path, session(A, "vm.xplane.pb", under="rank_0/")[0], 0, 10)
    put_window(tmp_path, session(A, "vm.xplane.pb", under="rank_1/")[0], *second)
    assert (len(find_captures(str(tmp_path))) == 1) is together


def test_three_ranks_with_one_missing(tmp_path: Path) -> None:
    for rank in (0, 2):
        put(tmp_path, *session(A, "vm.trace.json.gz", under=f"rank_{rank}/"))
    assert hosts_of(find_captures(str(tmp_path))) == [["vm (rank_0)", "vm (rank_2)"]]


def test_json_of_ranks_more_than_30_seconds_apart_is_two_captures(tmp_path: Path) -> None:
    put(tmp_path, *session(A, "vm.trace.json.gz", under="rank_0/"))
    put(tmp_path, *session(C, "vm.trace.json.gz", under="rank_1/"))
    assert hosts_of(find_captures(str(tmp_path))) == [["vm"], ["vm"]]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ranks_that_captured_twice_are_two_captures_though_one_window_reaches_into_the_next(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    """Rank 1 was 2 s late each time: its first window ends after rank 0's second one begins."""
    early, late = order
    for rank, shift in ((early, 0), (late, 2)):
        for stamp, start in ((A, 0), (B, 11)):
            path = session(stamp, "vm.xplane.pb", under=f"rank_{rank}/")[0]
            put_window(tmp_path, path, start + shift, start + shift + 10)
    captures = find_captures(str(tmp_path))
    assert [capture.stamp for capture in captures] == [A, B]
    assert hosts_of(captures) == [["vm (rank_0)", "vm (rank_1)"]] * 2


def test_a_rank_that_captured_twice_beside_one_that_captured_once(tmp_path: Path) -> None:
    for stamp, start in ((A, 0), (C, 300)):
        put_window(tmp_path, session(stamp, "vm.xplane.pb", under="rank_0/")[0], start, start + 10)
    put_window(tmp_path, session(C, "vm.xplane.pb", under="rank_1/")[0], 301, 310)
    assert hosts_of(find_captures(str(tmp_path))) == [["vm"], ["vm (rank_0)", "vm (rank_1)"]]


def test_a_process_named_alone_is_taken_alone(tmp_path: Path) -> None:
    for rank in range(2):
        put_window(tmp_path, f"plugins/profile/{A}/rank_{rank}/vm.xplane.pb", 0, 10)
    named = tmp_path / "plugins/profile" / A
    capture, [note] = resolve(profile_dir=str(named / "rank_1"))
    assert (hosts_of([capture]), capture.stamp) == ([["vm"]], A)
    assert capture.source_path == f"plugins/profile/{A}/rank_1"
    assert note == (
        f"Taken at the same time and left out: rank_0; name {named} to take all of one capture."
    )


@pytest.mark.parametrize("below", ["", "/plugins", f"/plugins/profile/{A}"])
def test_naming_one_process_tells_of_the_others(tmp_path: Path, below: str) -> None:
    for rank in range(3):
        put(tmp_path, *session(A, "vm.trace.json.gz", under=f"rank_{rank}/"))
    put(tmp_path, *session(A, "vm.trace.json.gz", under="worker_0/"))
    put(tmp_path, "rank_9/checkpoint.bin")
    _, [note] = resolve(profile_dir=f"{tmp_path}/rank_1{below}")
    assert note.startswith(f"Taken at the same time and left out: rank_0, rank_2; name {tmp_path} ")


def test_a_run_below_a_folder_named_like_a_process_stands_alone(tmp_path: Path) -> None:
    for node in range(2):
        put(tmp_path, *session(A, f"h{node}.trace.json.gz", under=f"node_{node}/run/"))
    for named in (tmp_path / "node_1" / "run", tmp_path / "node_1"):
        capture, notes = resolve(profile_dir=str(named))
        assert (hosts_of([capture]), notes) == ([["h1"]], [])
