"""What runs, word for word, and what is shown of it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from marin_profile.experiment.launching import again, launch, shown
from marin_profile.experiment.plan import Plan, plan_of

ODD = ["a b", "$(touch x)", "'\"", "{out}", "{other}", ""]
FOLDER = Path("/somewhere")


def plan(tmp_path: Path, **facts) -> Plan:
    texts = {"command": ["prog", "--to={out}"], "arms": {"a": {"arguments": ODD}}, **facts}
    return plan_of(texts, named="plan", files_from=tmp_path, folder=tmp_path)


def words_of(text: str) -> list[str]:
    """As a shell reads it, where `prog` prints its arguments and the variable."""
    script = f'prog() {{ printf "%s\\n" "$MARIN_PROFILE_OUT" "$@"; }}; {text}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_words(tmp_path: Path) -> None:
    the_plan = plan(tmp_path)
    made = launch(the_plan, the_plan.arm("a"), out="/o ut/{out}", folder=FOLDER)
    filled = [*ODD[:3], "/o ut/{out}", *ODD[4:]]
    assert made.arguments == ("prog", "--to=/o ut/{out}", *filled)
    assert made.environment == {"MARIN_PROFILE_OUT": "/o ut/{out}"}
    text = shown(the_plan, the_plan.arm("a"), out="/o ut/{out}", folder=FOLDER)
    assert words_of(text) == ["/o ut/{out}", *made.arguments[1:]]


def test_a_shell(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, command='printf "%s|" "$@"; echo $((1 + 1))', shell="true")
    made = launch(the_plan, the_plan.arm("a"), out="/o", folder=FOLDER)
    done = subprocess.run(made.arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "|".join([*ODD[:3], "/o", *ODD[4:], "2\n"])


@pytest.mark.parametrize(
    ("launcher", "depth"),
    [
        (["sh", "-c", "{command}"], 1),
        (["sh", "-c", "cd / && {command}"], 1),
        (["sh", "-c", "sh -c {quoted_command}"], 2),
        (["nice", "{arguments}"], 0),
    ],
)
def test_a_launcher_hands_every_word_on(tmp_path: Path, launcher: list[str], depth: int) -> None:
    script = tmp_path / "show"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$TOKEN" "$MARIN_PROFILE_OUT" "$@"\n')
    script.chmod(0o755)
    facts = {"command": [str(script)], "launcher": launcher, "environment": {"TOKEN": "hush 'x"}}
    the_plan = plan(tmp_path, **facts)
    made = launch(the_plan, the_plan.arm("a"), out="/o", folder=FOLDER)
    done = subprocess.run(made.arguments, capture_output=True, text=True, check=True, env={})
    assert done.stdout.split("\n")[:-1] == ["hush 'x", "/o", *ODD[:3], "/o", *ODD[4:]]
    text = shown(the_plan, the_plan.arm("a"), out="/o", folder=FOLDER)
    assert "hush" not in text
    assert "TOKEN" in text


def test_a_launcher_over_ssh(tmp_path: Path) -> None:
    """ssh joins its words with blanks, and the shell beyond reads them again."""
    the_plan = plan(tmp_path, launcher=["ssh", "host", "{command}"])
    made = launch(the_plan, the_plan.arm("a"), out="/o", folder=FOLDER)
    assert made.arguments[:2] == ("ssh", "host")
    beyond = shlex.split(" ".join(made.arguments[2:]))
    assert beyond == [
        *("env", "MARIN_PROFILE_OUT=/o", "prog", "--to=/o"),
        *(*ODD[:3], "/o", *ODD[4:]),
    ]


def test_once_more(tmp_path: Path) -> None:
    facts = {"arms": {"a": {"environment": {"TOKEN": "hush"}}}}
    the_plan = plan(tmp_path, **facts)
    assert again(the_plan, the_plan.arm("a"), {}) == (
        f"cd {tmp_path} && TOKEN='***' MARIN_PROFILE_OUT=/tmp/marin-profile-a "
        "prog --to=/tmp/marin-profile-a"
    )
