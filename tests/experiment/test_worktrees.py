"""Worktrees of a real repository; its checkout stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.experiment.worktrees import Repository, worktrees


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=n", "-c", "user.email=e@x")
    done = subprocess.run(
        ["git", *names, "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two commits of `sub/x`, "one" and "two"; the checkout has "mine" in it, not committed, a file
    of its own, and a hook that says that it ran."""
    top = tmp_path / "checkout"
    (top / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", str(top))
    for text in ("one\n", "two\n"):
        (top / "sub" / "x").write_text(text)
        git(top, "add", ".")
        git(top, "commit", "-q", "-m", text.strip())
    (top / "sub" / "x").write_text("mine\n")
    (top / "untracked").write_text("")
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook_ran\n")
    hook.chmod(0o755)
    return top


def state(top: Path) -> list[str]:
    return [
        git(top, "status", "--porcelain"),
        git(top, "worktree", "list"),
        git(top, "branch", "-a"),
        git(top, "diff"),
        git(top, "stash", "list"),
    ]


def test_commits_and_patches(checkout: Path, tmp_path: Path) -> None:
    before = state(checkout)
    repository = Repository.around(checkout / "sub")
    assert repository.changed_files() == ["sub/x"]
    head, first = repository.commit("HEAD"), repository.commit("main~1")
    patch = tmp_path / "p.patch"
    patch.write_text(git(checkout, "diff"))
    with worktrees(repository, tmp_path / "work") as made:
        found = {
            "head": made.add("head", head),
            "first": made.add("first", first),
            "patched": made.add("patched", head, patch),
        }
        texts = {name: (folder / "x").read_text() for name, folder in found.items()}
        assert texts == {"head": "two\n", "first": "one\n", "patched": "mine\n"}
        assert found["head"] == tmp_path / "work" / "head" / "sub"
        assert not (tmp_path / "work" / "head" / "untracked").exists()
        (found["head"] / "x").write_text("written by a run\n")
        assert (made.add("head", head) / "x").read_text() == "two\n"
    assert state(checkout) == before
    assert (checkout / "sub" / "x").read_text() == "mine\n"
    assert not (tmp_path / "work").exists()
    assert not (tmp_path / "hook_ran").exists()


def test_what_a_killed_process_left(checkout: Path, tmp_path: Path) -> None:
    """As a whole, without its folder, and without git knowing of it."""
    before = state(checkout)
    repository = Repository.around(checkout)
    head = repository.commit("HEAD")
    for name in ("whole", "gone"):
        git(checkout, "worktree", "add", "--detach", str(tmp_path / "work" / name), head)
    (tmp_path / "work" / "foreign").mkdir()
    subprocess.run(["rm", "-r", str(tmp_path / "work" / "gone")], check=True)
    with worktrees(repository, tmp_path / "work") as made:
        for name in ("whole", "gone", "foreign"):
            assert (made.add(name, head) / "sub" / "x").read_text() == "two\n"
    assert state(checkout) == before


def test_others_worktrees_stay(checkout: Path, tmp_path: Path) -> None:
    """Also one whose disk is away for now."""
    other = tmp_path / "other"
    git(checkout, "worktree", "add", "--detach", str(other), "HEAD")
    other.rename(tmp_path / "away")
    repository = Repository.around(checkout)
    with worktrees(repository, tmp_path / "work") as made:
        made.add("one", repository.commit("HEAD"))
    assert str(other) in git(checkout, "worktree", "list")


def test_what_git_refuses(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a git repository"):
        Repository.around(tmp_path)
    repository = Repository.around(checkout)
    for name in ("nowhere", "--all", "main:sub/x"):
        with pytest.raises(UsageError, match="git rev-parse"):
            repository.commit(name)
    head = repository.commit("HEAD")
    patch = tmp_path / "p.patch"
    patch.write_text(git(checkout, "diff").replace("-two", "-three"))
    with worktrees(repository, tmp_path / "work") as made:
        with pytest.raises(UsageError, match=r"patch does not apply\.$"):
            made.add("a", head, patch)
        with pytest.raises(NotFoundError, match="no patch"):
            made.add("a", head, tmp_path / "none")
    assert state(checkout)[1].count("\n") == 1
