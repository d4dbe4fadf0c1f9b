"""Ranges of commits of real repositories: what is searched, and what makes no range."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_repository import git, repository
from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.experiment.commits import commit_range
from marin_profile.experiment.worktrees import Repository


def commit(top: Path, name: str) -> None:
    (top / name).write_text(name)
    git(top, "add", name)
    git(top, "commit", "-q", "-m", name)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """a - b - c - merge of (x - y) - d on main; x left main at b. `other` has no history in
    common with it."""
    top = tmp_path / "repository"
    repository(top, [{"a": "a"}], {})
    git(top, "tag", "a")
    for name in ("b", "x", "y"):
        if name == "x":
            git(top, "tag", "b")
            git(top, "checkout", "-q", "-b", "side")
        commit(top, name)
    git(top, "checkout", "-q", "main")
    commit(top, "c")
    git(top, "merge", "-q", "--no-ff", "-m", "merge of side", "side")
    commit(top, "d")
    git(top, "checkout", "-q", "--orphan", "other")
    commit(top, "o")
    git(top, "checkout", "-q", "main")
    return top


def test_first_parents_from_good_to_bad(top: Path) -> None:
    found = commit_range(Repository.around(top), "b", "main")
    assert [one.subject for one in found.commits] == ["b", "c", "merge of side", "d"]
    assert [one.is_merge for one in found.commits] == [False, False, True, False]
    assert (found.last, found.merged) == (3, 2)
    assert [found.index(one.sha) for one in found.commits] == [0, 1, 2, 3]
    assert found.index("0" * 40) is None


def test_a_range_of_one(top: Path) -> None:
    found = commit_range(Repository.around(top), "a", "b")
    assert [one.subject for one in found.commits] == ["Change 0", "b"]


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("main", "main~0", "same commit"),
        ("main", "b", "exchange --good and --bad"),
        ("main~2", "side", "is not in the history of side"),
        ("side", "main", "came into main through a merge"),
        ("other", "main", "no history in common"),
    ],
)
def test_what_makes_no_range(top: Path, good: str, bad: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        commit_range(Repository.around(top), good, bad)


def test_where_they_part_is_named(top: Path) -> None:
    fork = git(top, "rev-parse", "b").strip()[:12]
    for good, bad in (("main~2", "side"), ("side", "main")):
        with pytest.raises(UsageError, match=fork):
            commit_range(Repository.around(top), good, bad)


@pytest.mark.parametrize("name", ["nothing", "--help", ""])
def test_no_commit(top: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="There is no commit"):
        commit_range(Repository.around(top), name, "main")


def test_a_shallow_clone_says_so(top: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{top}", "shallow")
    git(tmp_path / "shallow", "fetch", "-q", "--depth=1", "origin", "tag", "a")
    with pytest.raises(UsageError, match="fetch --unshallow"):
        commit_range(Repository.around(tmp_path / "shallow"), "a", "main")


def test_subjects_of_any_bytes(tmp_path: Path) -> None:
    top = tmp_path / "repository"
    repository(top, [{"a": "a"}], {})
    git(
        top,
        "-c",
        "i18n.commitEncoding=UTF-8",
        "commit",
        "-q",
        "--allow-empty",
        "-F",
        "-",
        given="fast \u00fc \x1b[31m\n\nbody".encode() + b" \xff",
    )
    git(top, "config", "log.showSignature", "true")
    [_, last] = commit_range(Repository.around(top), "main~1", "main").commits
    assert last.subject == "fast \u00fc \x1b[31m"
