"""What holds of the summary of any XSpace, whatever it says."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import Space
from marin_profile.base.errors import ProfileError
from marin_profile.pipeline import summarize
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown
from marin_profile.schema import ProfileSummary, parse_summary
from strategies_xspace import spaces

pytestmark = pytest.mark.usefixtures("loops")

TERMS = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle")
ROUNDING = 1e-6  # microseconds: one picosecond


def summary_of(space: Space, shuffle: int | None = None) -> ProfileSummary | str:
    """Or what it is refused with. An error that is not declared, or one that a reader stumbled
    over, fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        path = space.write(Path(folder) / "host-0.xplane.pb", shuffle)
        try:
            return summarize(path)
        except ProfileError as error:
            if error.__cause__ is not None:
                raise
            return type(error).__name__


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a JSON value, with the key that they stand under."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{name}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


@settings(max_examples=150)
@given(spaces())
def test_the_summary_of_any_space(space: Space) -> None:
    found = summary_of(space)
    if isinstance(found, str):
        assert found in ("BrokenInputError", "CannotAnswerError")
        return
    for row in found.device_ledger:
        terms = [getattr(row, f"{term}_duration") for term in TERMS]
        assert min(terms) >= 0
        assert sum(terms) == pytest.approx(row.window_duration, abs=5 * ROUNDING, rel=1e-12)
        assert sum(row.exposed_communication_by_kind.values()) == pytest.approx(
            row.exposed_communication_duration, abs=9 * ROUNDING, rel=1e-12
        )
    for op in found.hot_ops:
        assert 0 <= op.exclusive_duration <= op.total_duration + ROUNDING
        assert op.count >= 1
    text = found.to_json()
    for name, value in numbers(json.loads(text)):
        assert math.isfinite(value), name
        if name.rpartition(".")[2].endswith(("share", "share_of_total")):
            assert -1e-9 <= value <= 1 + 1e-9, (name, value)
    assert parse_summary(text).to_json() == text
    assert render_markdown(found)
    assert answer(found, "where does the time go?")


@settings(max_examples=50)
@given(spaces(), st.integers(0, 5))
def test_the_order_in_the_file_does_not_matter(space: Space, seed: int) -> None:
    names = [plane.name for plane in space.planes]
    if len(set(names)) < len(names):
        return  # the first of a name is read
    one, other = summary_of(space), summary_of(space, seed)
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert one.device_ledger == other.device_ledger
    assert one.step_time == other.step_time
