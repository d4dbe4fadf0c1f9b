"""Whole experiments of real child processes, whose captures have known step times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders_experiment import captures, noise, plan, plan_file, step_us
from marin_profile.base.errors import UsageError
from marin_profile.cli import run as run_command
from marin_profile.experiment.journal import read_journal
from marin_profile.experiment.report import JSON_FILE, PAGE_FILE, REPORT_FILE, write_report
from marin_profile.experiment.runner import JOURNAL_FILE, conduct
from patience import running_with, wait_until

OUTPUTS = (JSON_FILE, REPORT_FILE, PAGE_FILE)


def made(plan, output: Path) -> dict:
    write_report(plan, conduct(plan, output), output)
    return json.loads((output / JSON_FILE).read_text())


def lead(output: Path) -> str:
    return next(
        line for line in (output / REPORT_FILE).read_text().splitlines() if line.startswith("**")
    )


def by_name(found: dict) -> dict[str, dict]:
    return {arm["arm"]: arm for arm in found["arms"]}


def test_the_faster_arm_wins_and_is_ranked_first(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "same": 1, "fast": 0.85, "slow": 1.2})
    found = made(plan(scripted, {"same": {}, "fast": {}, "slow": {}}), tmp_path / "o")
    arms = by_name(found)
    assert {name: arm["standing"] for name, arm in arms.items()} == {
        "fast": "wins",
        "same": "no_win",
        "slow": "slower",
    }
    assert [arm["arm"] for arm in found["arms"]] == ["fast", "same", "slow"]
    assert arms["fast"]["effect"] == pytest.approx(-15, abs=0.3)
    assert arms["fast"]["low"] < -15 < arms["fast"]["high"] < 0
    assert arms["slow"]["effect"] == pytest.approx(20, abs=0.4)
    assert arms["fast"]["changed"]["name"] == "jit(f)=>mlp"
    # What is decided runs no more: three rounds decide these.
    assert arms["fast"]["pairs"] == arms["slow"]["pairs"] == 3
    assert arms["fast"]["captures"] == 4
    assert lead(tmp_path / "o").startswith("**fast wins: its typical step is 14.9 % shorter")
    # The control runs in each round; every second round is the other way round.
    order = [line.split()[2] for line in (scripted / "times").read_text().splitlines()[::2]]
    assert order[:8] == [
        *(f"warmup01-{arm}" for arm in ("fast", "same", "control", "slow")),
        *(f"round01-{arm}" for arm in ("control", "same", "fast", "slow")),
    ]
    assert order[8:12] == [f"round02-{arm}" for arm in ("slow", "fast", "same", "control")]


@pytest.mark.slow
def test_failures_are_named_and_end_no_other(tmp_path: Path) -> None:
    scripted = captures(
        tmp_path / "s",
        dict.fromkeys(("control", "bad", "none", "torn", "late", "once"), 1) | {"fast": 0.8},
    )
    arms = {
        "bad": {"arguments": ["--fail"]},
        "hangs": {"arguments": ["--hang"], "timeout": "1.5s"},
        "none": {"arguments": ["--nothing"]},
        "torn": {"arguments": ["--torn"]},
        "gone": {"environment": {"MINE": "1"}, "arguments": ["--fail-in=warmup01"]},
        "late": {"arguments": ["--fail-in=round02"]},
        "fast": {},
    }
    output = tmp_path / "o"
    found = made(plan(scripted, arms), output)
    standings = {arm["arm"]: arm["standing"] for arm in found["arms"]}
    assert standings == {
        **dict.fromkeys(("bad", "hangs", "none", "torn", "gone"), "failed"),
        "late": "no_win",
        "fast": "wins",
    }
    problems = {name: arm["problems"] for name, arm in by_name(found).items()}
    said = "ended with exit code 1; the log ends: ValueError: no such flag"
    assert problems["bad"] == [f"warmup01-bad {said}"]
    assert problems["hangs"] == [
        "warmup01-hangs ran longer than its 1.5 s; the log ends: token None"
    ]
    assert problems["none"] == ["warmup01-none left no profile"]
    assert problems["torn"][0].startswith("warmup01-torn left a profile that cannot be used: ")
    # One failure among good runs costs its round alone.
    assert problems["late"] == [f"round02-late {said}"]
    assert by_name(found)["late"]["pairs"] == found["rounds"] - 1
    assert lead(output).endswith(" bad, gone, hangs, none and 1 more failed.**")
    for problem in ("warmup01-none left no profile.", said):
        assert problem in (output / REPORT_FILE).read_text()


def test_without_a_control_nothing_is_judged(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "a": 1})
    arms = {"control": {"arguments": ["--nothing"]}, "a": {}}
    found = made(plan(scripted, arms, warmup="0"), tmp_path / "o")
    assert found["control"]["problem"] == "left no profile"
    assert lead(tmp_path / "o") == "**Nothing can be judged: the control left no profile.**"
    assert len((scripted / "times").read_text().splitlines()) == 2


def test_the_same_capture_again_is_no_measurement(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "a": 0.5})
    for number in range(2, 9):
        (scripted / f"round0{number}-a.xplane.pb").write_bytes(
            (scripted / "round01-a.xplane.pb").read_bytes()
        )
    found = by_name(made(plan(scripted, {"a": {}}), tmp_path / "o"))["a"]
    assert found["standing"] == "failed"
    assert found["problems"][0] == "round02-a left the very same capture as round01-a did"


# Killed, and gone on with


@pytest.mark.slow
def test_kill_9_in_mid_arm(tmp_path: Path) -> None:
    """Of the whole command line: no two runs at once, nothing measured twice, the same table."""
    factors = {"control": 1, "a": 1, "b": 0.9}
    scripted = captures(tmp_path / "s", factors)
    waits = {"a": {}, "b": {"arguments": ["--wait"]}}
    file = plan_file(tmp_path / "plan.yaml", scripted, waits, folder=str(scripted))
    output = tmp_path / "o"
    line = [sys.executable, "-m", "marin_profile", "experiment", str(file), "-o", str(output)]
    times = scripted / "times"
    runner = subprocess.Popen(line, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: times.exists() and "begins warmup01-b\n" in times.read_text())
    runner.kill()
    # At once, while the arm is still there.
    again = subprocess.Popen(line, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: "begins warmup01-b-2\n" in times.read_text())
    assert len(running_with(str(scripted), "--wait", "experiment_arm.py")) == 1
    again.kill()
    again.wait()
    runner.wait()
    # It ends with the runner, but not at once.
    wait_until(lambda: not running_with(str(scripted), "--wait", "experiment_arm.py"))
    (scripted / "go_on").write_text("")
    assert subprocess.run(line, check=False, capture_output=True).returncode == 0
    rows = [row.split() for row in times.read_text().splitlines()]
    under_way: set[str] = set()
    for _, what, name in rows:
        if what == "begins":
            # Those that were killed never say that they end.
            assert {run for run in under_way if "warmup01-b" not in run} == set()
            under_way.add(name)
        else:
            under_way.remove(name)
    ended = [name for _, what, name in rows if what == "ends"]
    assert len(ended) == len(set(ended))
    assert [one for one in ended if one.startswith("warmup01-b")] == ["warmup01-b-3"]
    # As if it had never been killed; its journal and folders tell of the attempts.
    whole = tmp_path / "whole"
    assert run_command(["experiment", str(file), "-o", str(whole)]) == 0
    for name in (REPORT_FILE, PAGE_FILE):
        assert (output / name).read_text().replace("warmup01-b-3", "warmup01-b") == (
            whole / name
        ).read_text()
    tables = [json.loads((one / JSON_FILE).read_text()) for one in (output, whole)]
    for table in tables:
        for arm in (table["control"], *table["arms"]):
            assert arm.pop("seconds") > 0
    assert tables[0] == tables[1]


def test_same_journal_same_bytes(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "a": 0.9})
    the_plan, output = plan(scripted, {"a": {}}), tmp_path / "o"
    made(the_plan, output)
    before = {name: (output / name).read_bytes() for name in OUTPUTS}
    journal = (output / JOURNAL_FILE).read_bytes()
    made(the_plan, output)
    assert {name: (output / name).read_bytes() for name in OUTPUTS} == before
    assert (output / JOURNAL_FILE).read_bytes() == journal


@pytest.mark.parametrize("cut", [1, 9])
def test_goes_on_from_any_line(tmp_path: Path, cut: int) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "a": 0.9})
    the_plan, output = plan(scripted, {"a": {}}), tmp_path / "o"
    whole = made(the_plan, output)
    journal = output / JOURNAL_FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:cut]) + lines[cut][:20])
    again = made(the_plan, output)
    for found in (whole, again):
        for arm in (found["control"], *found["arms"]):
            arm.pop("seconds")
    assert again == whole


FACTS = {"arms": {"a": {}}, "environment": {"TOKEN": "hush-hush"}}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Captures, and an experiment with them."""
    folder = tmp_path_factory.mktemp("begun")
    scripted = captures(folder / "s", {"control": 1, "a": 0.9})
    conduct(plan(scripted, **FACTS), folder / "o")
    return scripted, folder / "o"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rounds": "7"}, "plan.rounds"),
        ({"arms": {"a": {"arguments": ["--x"]}}}, "plan.arms.a.arguments"),
        ({"arms": {"b": {}}}, "plan.arms.a, plan.arms.b"),
        ({"environment": {"TOKEN": "another-value"}}, "environment_values changed"),
        ({"environment": {"TOKEN": "hush-hush", "X": ""}}, "plan.environment changed"),
    ],
)
def test_a_changed_plan_is_refused(begun: tuple[Path, Path], change: dict, named: str) -> None:
    scripted, output = begun
    journal = (output / JOURNAL_FILE).read_bytes()
    with pytest.raises(UsageError, match="is of another plan") as refused:
        conduct(plan(scripted, **{**FACTS, **change}), output)
    assert named in str(refused.value)
    assert "hush" not in str(refused.value)
    assert (output / JOURNAL_FILE).read_bytes() == journal


# What is shown


def test_no_output_holds_the_value_of_a_variable(tmp_path: Path, capfd) -> None:
    secret = "hush-hush-4711"
    scripted = captures(tmp_path / "s", {"control": 1, "a": 0.9, "bad": 1})
    arms = {
        "a": {"environment": {"TOKEN": secret, "OTHER": f"{secret}/more"}},
        "bad": {"environment": {"TOKEN": secret}, "arguments": ["--fail"]},
    }
    file = plan_file(tmp_path / "plan.yaml", scripted, arms, folder=str(scripted))
    output = tmp_path / "o"
    assert run_command(["experiment", str(file), "-o", str(output), "--dry-run"]) == 0
    assert run_command(["experiment", str(file), "-o", str(output)]) == 1
    said = "".join(capfd.readouterr())
    found = [path for path in output.rglob("*") if path.is_file()]
    assert len(found) > 10
    assert not [path for path in found if secret in path.read_bytes().decode(errors="replace")]
    assert secret not in said
    assert "TOKEN='***'" in said
    assert "TOKEN='***'" in (output / REPORT_FILE).read_text().replace("\\", "")
    assert (output / "runs" / "round01-a" / "log.txt").read_text() == "token ***\n"
    assert json.loads((output / JSON_FILE).read_text())["arms"][0]["environment"] == [
        "OTHER",
        "TOKEN",
    ]


def test_arguments_stay_literal(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "odd": 0.9})
    odd = ["$(touch x)", "; touch x", "`touch x`", "a b", "*", "{outer}", "'\"", ""]
    output = tmp_path / "o"
    conduct(plan(scripted, {"odd": {"arguments": odd}}), output)
    assert not list(tmp_path.rglob("x"))
    head, *records = read_journal(output / JOURNAL_FILE)
    assert head["plan"]["arms"]["odd"]["arguments"] == odd
    [command] = {
        one["command"]
        for one in records
        if one["kind"] == "started" and one["run"]["arm"] == "odd" and one["run"]["round"] == 0
    }
    # What is shown is what ran: a shell makes the same words of it.
    script = command.replace(sys.executable, "printf %s\\\\n", 1)
    words = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert words.split("\n")[-len(odd) - 1 : -1] == odd


def test_another_runner_at_work(tmp_path: Path) -> None:
    from marin_profile.experiment.lock import only_runner

    scripted = captures(tmp_path / "s", {"control": 1, "a": 1})
    with only_runner(tmp_path / "o"), pytest.raises(UsageError, match=f"Process {os.getpid()}"):
        conduct(plan(scripted, {"a": {}}), tmp_path / "o")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    scripted = captures(tmp_path / "s", {"control": 1, "a": 1})
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "mine").write_text("")
    with pytest.raises(UsageError, match="holds mine; name another folder for the experiment"):
        conduct(plan(scripted, {"a": {}}), tmp_path / "o")
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["mine"]


def test_other_work_is_no_win(tmp_path: Path) -> None:
    """Half of the batch takes half of the time."""
    scripted = captures(tmp_path / "s", {"control": 1, "half": 0.5})
    for number in range(1, 9):
        for name, batch in (("control", 64), ("half", 32)):
            run = f"round{number:02}-{name}"
            step_us(scripted, run, batch * (15 + noise(run, 0.05)), batch=batch)
    output = tmp_path / "o"
    [found] = made(plan(scripted, {"half": {}}, warmup="0"), output)["arms"]
    assert found["standing"] == "not_comparable"
    assert lead(output).startswith(
        "**No arm is known to win: the typical step of half is 49.9 % shorter than the control's, "
        "but the two cannot be compared: The 1st dimension, as a rule the batch, of most shapes "
    )
