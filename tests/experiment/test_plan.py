"""Plans that are sound, and one sentence about each that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marin_profile.base.errors import NotFoundError, ProfileError, UsageError
from marin_profile.cli import run
from marin_profile.experiment.plan import Plan, plan_of
from marin_profile.experiment.plan_file import texts_of

SOUND = """
command: [python, train.py, --steps, 20, --lr, 1e-3, --flag, on, "010", 0x10]
environment: {XLA_FLAGS: --all}
arms:
  big: {arguments: [--batch, 64]}
  flag:
    environment: {XLA_FLAGS: --mine, EMPTY: }
    timeout: 2m
timeout: 90
rounds: 6
"""


def plan_in(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return plan_of(texts_of(path), named="plan.yaml", files_from=tmp_path, folder=tmp_path)


def test_a_plan(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, SOUND)
    words = "python train.py --steps 20 --lr 1e-3 --flag on 010 0x10"
    assert plan.command == tuple(words.split())
    assert [arm.name for arm in plan.arms] == ["control", "big", "flag"]
    control, big, flag = plan.arms
    assert (control.arguments, big.arguments) == ((), ("--batch", "64"))
    assert [arm.timeout for arm in plan.arms] == [90.0, 90.0, 120.0]
    assert plan.environment_of(big) == {"XLA_FLAGS": "--all"}
    assert plan.environment_of(flag) == {"XLA_FLAGS": "--mine", "EMPTY": ""}
    assert (plan.rounds, plan.warmup_rounds, plan.measure) == (6, 1, "typical")
    assert not plan.is_of_git
    described = str(plan.described())
    assert "XLA_FLAGS" in described
    assert "--mine" not in described
    assert "--all" not in described


def test_the_control_may_be_spelled_out(tmp_path: Path) -> None:
    text = "command: [x]\narms: {b: {}, control: {arguments: [-c]}, a: {}}\n"
    plan = plan_in(tmp_path, text)
    assert [arm.name for arm in plan.arms] == ["control", "b", "a"]
    assert plan.control.arguments == ("-c",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name the base command, as a list"),
        ("[a, b]", "this is no mapping"),
        (
            "command: python train.py\narms: {a: {}}",
            'command: this is a list of arguments, as in ["p',
        ),
        ("command: [x]", "arms: name one arm or more besides the control"),
        ("command: [x]\narms: {control: {}}", "arms: name one arm or more besides"),
        (
            "command: [x]\narms: {a: {argument: [y]}}",
            "arms.a.argument: there is no such field; did",
        ),
        ("command: [x]\narms: {a: {}}\nround: 3", "round: there is no such field; did you mean r"),
        ("command: [x]\narms: {a: {}}\nrounds: 2", "rounds: this is a whole number from 3 to 20"),
        ("command: [x]\narms: {a: {}}\nrounds: 5.5", "rounds: this is a whole number from 3 to 20"),
        ("command: [x]\narms: {a: {}}\ntimeout: soon", "timeout: this is a time, as 90, 90s"),
        ("command: [x]\narms: {a: {timeout: 0}}", "arms.a.timeout: this is a time"),
        ("command: [x]\narms: {a: {}}\nmeasure: p90", "measure: this is typical or mean, not p90"),
        ("command: [x]\narms: {a: {}}\nshell: maybe", "shell: this is true or false, not maybe"),
        ("command: [x]\narms: {../a: {}}", "arms.../a: a name is up to 64 letters"),
        ("command: [x]\narms: {a: {}, A: {}}", "arms: two names differ in capitals alone"),
        ("command: [x]\narms: {a: {}, a: {}}", "line 2: a stands twice"),
        ("command: [x]\narms: {a: {patch: none}}", "arms.a.patch: there is no file"),
        ("command: [x]\narms: {a: {environment: {A-B: 1}}}", "A-B: this is no name of an env"),
        ("command: [x]\narms: {a: {environment: [A]}}", "environment: this is no mapping"),
        (
            "command: [x]\narms: {a: {environment: {MARIN_PROFILE_OUT: x}}}",
            "MARIN_PROFILE_OUT: the runner sets it",
        ),
        ("command: [x]\narms: {a: {}}\nfolder: nowhere", "folder: there is no folder"),
        ("command: [x]\narms: {a: {}}\nlauncher: [ssh, host]", "launcher: write {command}"),
        (
            "command: [x]\narms: {a: {}}\nlauncher: [ssh, 'x{arguments}', '{command}']",
            "write it alone",
        ),
        (
            "command: [x]\narms: {a: {commit: HEAD}}\nlauncher: [ssh, '{command}']",
            "launcher: arms have patches or commits, so say with {worktree}",
        ),
        ("command: x\nshell: true\narms: {a: {arguments: [y]}}", 'write "$@" where the arms'),
        ("command: x {out}\nshell: true\narms: {a: {}}", 'write "$MARIN_PROFILE_OUT" for {out}'),
        ("command: [x]\narms: {a: {}}\nworthwhile: 0", "worthwhile: this is a number above 0"),
        ("command: [x, 'a\0b']\narms: {a: {}}", "is no YAML"),
        ('command: [x, "a\\0b"]\narms: {a: {}}', "can hold a NUL"),
        ("command: [x\narms: }", "is no YAML"),
        ("? [a]\n: b", "is no YAML"),
    ],
)
def test_a_plan_that_is_not_sound(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan_in(tmp_path, text)
    assert said in str(refused.value)
    assert str(refused.value).count("\n") == 0
    assert str(refused.value).rstrip().endswith((".", "?"))


def test_bad_plans_start_nothing(tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text("command: [touch, ran]\narms: {a: {patch: none}}\n")
    for arguments in (
        ["plan.yaml", "-o", "o"],
        ["plan.yaml", "-o", "o", "--arm", "b"],
        ["-o", "o", "--arm", "a"],
        ["-o", "o", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a='", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a", "--arm", "a", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a", "--env", "a", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a", "--env", "a:NOT_SET_ANYWHERE", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a", "--commit", "a=HEAD", "--", "touch", "ran"],
        ["-o", "o", "--arm", "a", "--spread", "2", "--", "touch", "ran"],
        ["--arm", "a", "--", "touch", "ran"],
    ):
        assert run(["experiment", *arguments]) == 2, arguments
        said = capfd.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1, said.err
    assert run(["experiment", "nowhere.yaml", "-o", "o"]) == NotFoundError.exit_code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.yaml"]


def test_options_make_the_same_plan_as_a_file(tmp_path: Path, monkeypatch) -> None:
    from marin_profile.cli import experiment

    monkeypatch.setenv("FROM_HERE", "v")
    given: dict[str, Any] = dict.fromkeys(experiment._OF_THE_PLAN) | {
        "arms": ("a=--batch '6 4'", "b"),
        "variables": ("a:X=1=2", "b:FROM_HERE"),
        "patches": (),
        "commits": (),
        "rounds": "5",
        "timeout": "2m",
    }
    monkeypatch.chdir(tmp_path)
    by_options = experiment._plan(("python", "t.py"), given)
    text = (
        "command: [python, t.py]\nrounds: 5\ntimeout: 120\narms:\n"
        "  a: {arguments: [--batch, 6 4], environment: {X: 1=2}}\n"
        "  b: {environment: {FROM_HERE: v}}\n"
    )
    assert by_options == plan_in(tmp_path, text)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"#" * (1 << 20) + b"\n")
    for name in ("binary", "large", ".", "none"):
        with pytest.raises(ProfileError):
            texts_of(tmp_path / name)
