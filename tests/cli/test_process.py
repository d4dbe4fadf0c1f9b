"""The command line as a process: errors, exit codes, pipes, start-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import marin_profile.cli.query
from marin_profile.base.errors import RemoteError
from marin_profile.cli import VERBS

Call = Callable[..., Any]
COMMAND = [sys.executable, "-m", "marin_profile"]


def test_without_a_verb_the_help_is_shown(call: Call) -> None:
    result = call()
    assert (result.exit_code, result.stdout) == (2, "")
    assert all(verb in result.stderr for verb in VERBS)


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(call: Call, verb: str) -> None:
    result = call(*verb.split(), "--help")
    assert result.exit_code == 0
    assert "--debug" in result.stdout


def test_version(call: Call) -> None:
    assert call("--version").stdout.startswith("marin-profile ")


@pytest.mark.parametrize(
    "arguments", [("--no-such-option",), ("report", "--no-such-option"), ("schema", "--x", "y")]
)
def test_usage_errors_are_one_sentence_with_a_hint(call: Call, arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: No such ")
    assert "--help'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_option_that_no_query_takes_is_a_usage_error(call: Call) -> None:
    result = call("query", "--no-such-option")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: A question in words takes no --no-such-option; --name QUERY takes some.\n"
    )


def test_what_is_no_verb_is_looked_for_as_a_profile(call: Call) -> None:
    result = call("no-such-verb")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: There is no no-such-verb; ")


def test_debug_shows_the_traceback_wherever_it_stands(call: Call, tmp_path: Path) -> None:
    missing = ("report", "--summary", tmp_path / "no.json")
    plain = call(*missing)
    assert (plain.exit_code, plain.stderr.count("\n")) == (3, 1)
    for arguments in (("--debug", *missing), (*missing, "--debug")):
        result = call(*arguments)
        assert result.exit_code == 3
        assert "Traceback" in result.stderr
        assert result.stderr.endswith(plain.stderr)


def _raising(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "exit_code", "sentence"),
    [
        (ValueError("odd\nvalue"), 1, "error: ValueError: odd value (this is a defect; --debug"),
        (ZeroDivisionError(), 1, "error: ZeroDivisionError (this is a defect;"),
        (MemoryError(), 1, "error: Out of memory"),
        (RemoteError("The server is down."), 6, "error: The server is down."),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_goes_wrong_inside(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    exit_code: int,
    sentence: str,
) -> None:
    monkeypatch.setattr(marin_profile.cli.query.command, "callback", _raising(error))
    result = call("query", "--list")
    assert result.exit_code == exit_code
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1


def test_a_closed_pipe_is_quiet(summary_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "report", "--summary", str(summary_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0


def test_an_interrupt_exits_130(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never.json")
    # What runs in the background of a shell is started with the signal ignored.
    code = (
        "import signal; from marin_profile.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"main(['report', '--summary', {str(tmp_path / 'never.json')!r}])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The reader has opened the pipe, so it is inside the verb.
    writer = os.open(tmp_path / "never.json", os.O_WRONLY)
    try:
        # Python notices a signal that comes just before a system call blocks only with the next.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
    finally:
        os.close(writer)
    assert process.stderr is not None
    assert (process.returncode, process.stderr.read()) == (130, "interrupted\n")


HEAVY = ("numpy", "numba", "fsspec", "isal", "jax", "levanter", "wandb", "pyarrow", "rich")


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--summary", "SUMMARY", "--question", "top 3 all-reduce ops"],
        ["report", "--summary", "SUMMARY"],
        ["doctor", "SUMMARY"],
        ["query", "--list"],
        ["--help"],
        ["schema"],
        ["captures", "PROFILE"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_views_start_without_heavy_imports(
    arguments: list[str], summary_path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "plugins/profile/2026_01_02_03_04_05"
    folder.mkdir(parents=True)
    (folder / "h.xplane.pb").write_bytes(b"x")
    places = {"SUMMARY": str(summary_path), "PROFILE": str(tmp_path)}
    code = (
        "import json, sys; from marin_profile.cli import run\n"
        f"code = run({[places.get(item, item) for item in arguments]!r})\n"
        f"json.dump([code, [name for name in {HEAVY!r} if name in sys.modules]], sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stderr) == [0, []]


def test_the_package_loads_its_names_on_first_use() -> None:
    code = (
        "import sys, marin_profile as m\n"
        "assert 'pydantic' not in sys.modules\n"
        "assert not set(m.__all__) - set(dir(m))\n"
        "for name in m.__all__: getattr(m, name)\n"
        "try: m.nothing\n"
        "except AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "module 'marin_profile' has no attribute 'nothing'\n"
