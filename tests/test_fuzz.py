"""A short seeded round of scripts/fuzz.py: damaged input ends as promised, whatever the damage."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from fuzz import KINDS, Input, Round, Summarizer, inputs, samples

MADE = ("made.xplane", "made.json", "made.json.gz")


def test_a_short_round(tmp_path):
    """No crash; more rounds, real profiles and the limits of time and memory: `make fuzz`."""
    summarizer, found = Summarizer(tmp_path), Round()
    for batch in islice(inputs(MADE, kinds=(), seed=1), 12):
        for one in batch:
            found.add(one, summarizer.result(one))

    assert found.never == 0, found.failures
    assert found.formats == ["trace.json", "trace.json.gz", "xplane.pb"]


@pytest.mark.parametrize("name", MADE)
def test_an_input_is_the_same_every_time(name):
    for kind in KINDS[samples()[name].suffix]:
        once, again = (Input(name, kind, 3).content() for _ in range(2))
        assert once == again
