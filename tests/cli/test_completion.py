"""Completion, in a real bash and by the protocol of the others."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marin_profile.cli import COMPLETING, VERBS
from marin_profile.cli.completion import SHELLS, complete

Call = Callable[..., Any]
Environment = dict[str, str]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A path that begins with a `marin-profile` that runs this code."""
    program = tmp_path / "bin/marin-profile"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m marin_profile "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"}


def completed(environment: Environment, *words: str) -> list[str]:
    """What bash offers for the last word."""
    listed = " ".join(f"'{word}'" for word in words)
    script = (
        'eval "$(marin-profile completion bash)"\n'
        f"COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1}\n"
        "_marin_profile_completion marin-profile 2>/dev/null\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_bash_completes_verbs(environment):
    assert completed(environment, "marin-profile", "co") == ["compare", "completion"]
    assert completed(environment, "marin-profile", "") == list(VERBS)
    assert completed(environment, "marin-profile", "--v") == ["--version"]


def test_bash_completes_options_and_their_values(environment):
    assert completed(environment, "marin-profile", "report", "--f") == ["--format"]
    assert completed(environment, "marin-profile", "runs/mine", "--no-c") == ["--no-cache"]
    assert completed(environment, "marin-profile", "compare", "a", "b", "--format", "") == [
        "json",
        "md",
        "html",
    ]
    assert completed(environment, "marin-profile", "completion", "") == list(SHELLS)


def test_a_wrong_command_line_has_no_completion(environment):
    assert completed(environment, "marin-profile", "reprot", "--f") == []


@pytest.mark.parametrize(
    "line", ["marin-profile ru", "marin-profile report -o ru", "marin-profile mcp --root ru"]
)
def test_bash_completes_paths(environment, tmp_path, line):
    (tmp_path / "runs_of_mine").mkdir()
    seen = ""
    for seen in typed(environment, tmp_path, f"{line}\t"):
        if "runs_of_mine/" in seen:
            break
    assert "runs_of_mine/" in seen


def typed(environment: Environment, folder: Path, keys: str) -> Iterator[str]:
    """What stands on the terminal of a bash in which these keys are pressed, as it comes."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
    try:
        seen = ""
        setup = (
            'eval "$(marin-profile completion bash)"; bind "set bell-style none"; echo re""ady\n'
        )
        os.write(terminal, setup.encode())
        while "ready" not in seen:
            seen += os.read(terminal, 1 << 16).decode()
        os.write(terminal, keys.encode())
        while True:
            seen += os.read(terminal, 1 << 16).decode()
            yield seen
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_what_calls_the_program(call: Call, shell: str) -> None:
    found = call("completion", shell)
    assert (found.exit_code, found.stderr) == (0, "")
    assert f"{COMPLETING}={shell}_complete" in found.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_are_answered(
    shell: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", "marin-profile rep")
    monkeypatch.setenv("COMP_CWORD", "1" if shell == "zsh" else "rep")
    assert complete(f"{shell}_complete") == 0
    assert "report" in capfd.readouterr().out


def test_what_no_shell_asks_is_not_answered(capfd: pytest.CaptureFixture[str]) -> None:
    assert [complete(asked) for asked in ("", "bash_source", "dash_complete")] == [1, 1, 1]
    assert capfd.readouterr() == ("", "")


def test_a_shell_that_is_not_known_is_a_usage_error(call: Call) -> None:
    assert call("completion", "dash").exit_code == 2
    assert call("completion").exit_code == 2
