"""What can be named, and what cannot: nothing leads out of the roots."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from builders_capture import leave_capture
from marin_profile.base.errors import NotFoundError, ProfileError, UsageError
from marin_profile.mcp.roots import LONGEST_NAME, Roots

BEFORE, AFTER = "2026_01_02_03_04_05", "2026_01_02_04_04_05"
LATER = "2026_02_02_03_04_05"


def stamps(roots: Roots) -> list[str]:
    return [found.capture.stamp for found in roots.captures()]


def handle_by_hand(root: str, path: str, stamp: str) -> str:
    return hashlib.sha256(f"{root}\0{path}\0{stamp}".encode()).hexdigest()[:8]


def test_captures_are_listed_the_newest_first(runs: Path) -> None:
    assert stamps(Roots([str(runs)])) == [AFTER, BEFORE]


def test_a_handle_is_of_the_roots_name_the_path_and_the_stamp(runs: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "runs"
    elsewhere.parent.mkdir()
    expected = [
        handle_by_hand("runs", f"{side}/plugins/profile/{stamp}", stamp)
        for side, stamp in (("after", AFTER), ("before", BEFORE))
    ]
    assert [found.handle for found in Roots([str(runs)]).captures()] == expected
    runs.rename(elsewhere)
    assert [found.handle for found in Roots([str(elsewhere)]).captures()] == expected


def test_a_capture_is_found_by_handle_folder_session_and_file(runs: Path) -> None:
    roots = Roots([str(runs)])
    [_, before] = roots.captures()
    session = f"before/plugins/profile/{BEFORE}"
    for name in (before.handle, "before", "before/", session, str(runs / "before")):
        assert roots.find(name).handle == before.handle
    assert Roots([str(runs)]).find(before.handle).handle == before.handle
    [file] = roots.find(f"{session}/h.xplane.pb").files
    assert file.path == str(runs / session / "h.xplane.pb")
    assert roots.find(".").capture.stamp == AFTER


def test_a_handle_is_found_where_its_capture_is_now(runs: Path) -> None:
    roots = Roots([str(runs)])
    [after, before] = roots.captures()
    leave_capture(runs / "later", stamp=LATER)
    assert roots.find("later").capture.stamp == LATER
    os.rename(runs / "after", runs / "moved")
    assert roots.find(before.handle).capture.stamp == BEFORE
    with pytest.raises(NotFoundError):
        roots.find(after.handle)


def test_roots_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [tmp_path / "one" / "runs", tmp_path / "two" / "runs"]
    for folder in folders:
        leave_capture(folder / "a", stamp=BEFORE)
    roots = Roots(list(map(str, folders)))
    assert [root.name for root in roots.roots] == ["runs", "runs#2"]
    one, two = roots.captures()
    assert one.handle != two.handle
    assert roots.find(two.handle).capture.root == two.capture.root
    with pytest.raises(UsageError, match=f"2 captures .*: {one.handle}, {two.handle}"):
        roots.find("a")


@pytest.mark.parametrize("folder", ["gs://bucket/runs", "/no/such/folder"])
def test_a_root_is_a_local_folder(folder: str) -> None:
    with pytest.raises(UsageError, match="is no local folder"):
        Roots([folder])


ODD = {
    "above": "../secret",
    "within": "before/../../secret",
    "url": "file:///etc",
    "remote": "gs://bucket/run",
    "nul": "before\0",
    "newline": "before\n",
    "escape": "\x1b[2Jbefore",
    "surrogate": "\ud800",
    "long": "a/" * LONGEST_NAME,
    "empty": "",
    "blank": "  ",
}


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_odd_names_are_refused_in_a_sentence(runs: Path, name: str) -> None:
    leave_capture(runs.parent / "secret", stamp=LATER)
    with pytest.raises(UsageError) as refused:
        Roots([str(runs)]).find(name)
    assert str(runs.parent) not in str(refused.value)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 100


def test_what_lies_outside_is_as_if_it_were_not_there(runs: Path, tmp_path: Path) -> None:
    """A client learns nothing of other folders, not even whether they are there."""
    secret = leave_capture(tmp_path / "secret", stamp=LATER)
    beside = leave_capture(tmp_path / "runs2", stamp=LATER)  # the root's name is its beginning
    (runs / "out").symlink_to(tmp_path / "secret")
    (runs / "deep").mkdir()
    (runs / "deep" / "out").symlink_to("../../secret")
    (runs / "file.xplane.pb").symlink_to(secret / "h.xplane.pb")
    names = ["out", "deep/out", "deep", "file.xplane.pb", "nothing", "0123abcd", "~", "$HOME"]
    names += [*map(str, (secret, beside, tmp_path, tmp_path / "no", Path("/etc/passwd")))]
    roots = Roots([str(runs)])
    said = set()
    for name in names:
        with pytest.raises(NotFoundError) as refused:
            roots.find(name)
        said.add(str(refused.value))
    assert len(said) == 1
    assert stamps(roots) == [AFTER, BEFORE]


def test_links_in_a_session_that_lead_out_are_passed_over(runs: Path, tmp_path: Path) -> None:
    secret = leave_capture(tmp_path / "secret", host="s", stamp=LATER)
    session = runs / "linked" / "plugins" / "profile" / LATER
    session.mkdir(parents=True)
    (session / "s.xplane.pb").symlink_to(secret / "s.xplane.pb")
    roots = Roots([str(runs)])
    assert stamps(roots) == [AFTER, BEFORE]
    with pytest.raises(ProfileError):
        roots.find("linked")
    inside = runs / "before" / "plugins" / "profile" / BEFORE / "h.xplane.pb"
    (session / "h.xplane.pb").symlink_to(inside)
    [file] = roots.find("linked").files
    assert file.path == str(inside)


def test_links_that_lead_out_are_not_followed_while_listing(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "machine").symlink_to("/")
    scandir, seen = os.scandir, []

    def watched(folder: str):
        seen.append(os.path.realpath(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", watched)
    assert stamps(Roots([str(runs)])) == [AFTER, BEFORE]
    assert all(folder.startswith(str(runs)) for folder in seen)


def test_a_link_within_the_roots_is_a_name_like_others(runs: Path) -> None:
    (runs / "latest").symlink_to("after")
    roots = Roots([str(runs)])
    assert roots.find("latest").handle == roots.find("after").handle
    assert stamps(roots) == [AFTER, BEFORE]


def test_a_root_may_be_a_link(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs)
    assert stamps(Roots([str(tmp_path / "link")])) == [AFTER, BEFORE]


def test_sentences_do_not_say_where_the_roots_are(runs: Path) -> None:
    roots = Roots([str(runs)])
    assert roots.hidden(f"No profile in {runs}/before, {runs}.") == (
        "No profile in before, the root."
    )
