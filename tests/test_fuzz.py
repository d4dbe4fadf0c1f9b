"""A short seeded round of scripts/fuzz.py: damaged input ends as promised, whatever the damage."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from fuzz import KINDS, MOVED, Input, Result, Round, Summarizer, inputs, samples

from marin_profile.readers import xplane

MADE = ("made.xplane", "made.json", "made.json.gz")


def test_a_short_round(tmp_path):
    """No crash; more rounds, real profiles and the limits of time and memory: `make fuzz`."""
    summarizer, found = Summarizer(tmp_path), Round()
    for batch in islice(inputs(MADE, kinds=(), seed=1), 12):
        for one in batch:
            found.add(one, summarizer.result(one))

    assert found.never == 0, found.failures
    assert found.formats == ["trace.json", "trace.json.gz", "xplane.pb"]


def test_how_many_inputs_there_are():
    batches = list(inputs(("made.xplane", "made.json"), (), seed=1, each=2, silence=5))
    asked = Counter((one.sample, one.kind) for batch in batches for one in batch)
    assert asked["made.xplane", "one byte"] == asked["made.json", "one byte"] == 5
    assert {count for (_, kind), count in asked.items() if kind != "one byte"} == {2}


def test_silence_is_what_moved_and_was_not_said():
    found = Round()
    one = Input("made.json", "one byte", 1)
    for outcome, moved in (("same", False), ("said", False), ("said", True), ("exit 4", False)):
        found.add(one, Result(outcome, moved=moved))
    assert not found.failed
    found.add(one, Result(MOVED, moved=True))
    assert found.silence("trace.json") == {"inputs": 5, "refused": 1, "moved": 2, "unsaid": 1}
    assert found.silent_share("trace.json") == 1 / 3
    assert found.failed
    assert found.failures == [(one, Result(MOVED, moved=True))]


def test_an_index_beyond_an_array_is_no_refusal(tmp_path, monkeypatch):
    """With bounds checks compiled code raises it, and readers refuse the file for it."""

    def look(stream, *, path):
        raise IndexError("index is out of bounds")

    summarizer = Summarizer(tmp_path)
    summarizer.sound(samples()["made.xplane"])
    monkeypatch.setattr(xplane, "read_xplane", look)
    result = summarizer.result(Input("made.xplane", "one byte", 1))
    assert result.outcome == "bounds"
    assert "index is out of bounds" in result.detail


@pytest.mark.parametrize("name", MADE)
def test_an_input_is_the_same_every_time(name):
    for kind in KINDS[samples()[name].suffix]:
        once, again = (Input(name, kind, 3).content() for _ in range(2))
        assert once == again
