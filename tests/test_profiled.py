"""`marin_profile.profile` around loops of several kinds, in a child process (profiled_loops.py)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE

LOOPS = Path(__file__).with_name("profiled_loops.py")

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]


@dataclass(frozen=True)
class Loops:
    folder: Path
    results: dict[str, Any]
    shown: str


@pytest.fixture(scope="module")
def loops(tmp_path_factory) -> Loops:
    folder = tmp_path_factory.mktemp("profiled")
    command = [sys.executable, str(LOOPS), str(folder)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert child.returncode == 0, child.stderr[-3000:]
    return Loops(folder, json.loads((folder / "results.json").read_text()), child.stdout)


def test_a_plain_loop_is_answered(loops):
    plain = loops.results["plain"]
    assert plain["source"] == "module"
    assert plain["steps"] == [None] * 6
    assert loops.results["ops"] == 6
    assert loops.results["asked"] == 1
    assert loops.results["opened"]
    assert loops.results["rows"] >= 6
    assert plain["log"] == []


def test_inside_the_block_nothing_is_waited_for(loops):
    is_done, text, result = loops.results["inside"]
    assert (is_done, result) == (False, None)
    assert text.endswith("not summarised yet>")


def test_a_loop_of_flax(loops):
    flax = loops.results["flax"]
    if flax is None:
        pytest.skip("flax is not installed")
    assert len(flax["steps"]) == 5


def test_a_loop_with_markers(loops):
    maxtext = loops.results["maxtext"]
    assert (maxtext["source"], maxtext["steps"]) == ("annotation", [10, 11, 12, 13, 14])


def test_answers_are_shown_once_each(loops):
    """Also what nobody waited for; not where it was not wanted, nor where the block raised."""
    shown = loops.shown
    for name in ("plain", "flax", "at_exit"):
        if loops.results.get(name, {}) is None:
            continue
        assert shown.count(f"Ask:     marin-profile query {loops.folder / name}/") == 1
    for name in ("maxtext", "raising", "kept"):
        assert f"query {loops.folder / name}/" not in shown
    assert " ".join(loops.results["plain"]["answer"].split()) in " ".join(shown.split())


def test_a_notebook_shows_the_answer(loops):
    plain = loops.results["plain"]
    assert plain["repr"].startswith("<Profile /")
    assert ", most in " in plain["repr"]
    assert plain["html"].startswith("<p>")
    assert loops.results["off"]["html"] is None


def test_what_the_block_raises_passes_and_is_summarised(loops):
    assert loops.results["raised"] == "'mine'"
    assert loops.results["raising"]["answer"] is not None


def test_nothing_that_fails_reaches_the_loop(loops):
    for name, line in (
        ("in_a_file", "profile lost: "),
        ("busy", "not profiled: another profiler is running in this process"),
        ("lost", "not summarised: "),
    ):
        found = loops.results[name]
        assert found["answer"] is None
        assert any(line in logged for logged in found["log"]), found
        assert found["html"] is None
    assert loops.results["busy"]["repr"] == "<Profiled: not profiled>"
    for name in ("lost", "in_a_file"):
        assert loops.results[name]["repr"].endswith("not summarised>")
    for name in ("off", "kept"):
        assert loops.results[name]["answer"] is None
        assert loops.results[name]["log"] == []
    assert list(loops.folder.glob("kept/plugins/profile/*/*.xplane.pb"))


def test_naming_it_imports_no_jax():
    code = "import sys, marin_profile\nassert 'jax' not in sys.modules and marin_profile.__all__\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
