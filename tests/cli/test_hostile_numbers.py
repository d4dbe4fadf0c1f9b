"""Summaries whose numbers no profile can have: each verb answers or refuses in one sentence, and
never prints what is no number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary

Call = Callable[..., Any]
Place = tuple[str | int, ...]

# Within what the loader takes: zero, negative, as large and as small as it may be, off by one.
ODD = (0, -1, 10**30, -(10**30), 1e30, 1e-30, -1e-30)
# Outside, or of another type.
REFUSED = ("NaN", "-Infinity", "1e31", "1e-31", "9" * 400, '"1"', "true", "[1]", "{}")
NO_NUMBER = re.compile(r"(?<![\w.-])-?(?:nan|inf|infinity)(?!\w)", re.IGNORECASE)
QUESTIONS = ("top 5 ops", "step time", "where does the time go", "collectives", "gaps", "roofline")


def numbers(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*place, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from numbers(item, (*place, at))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def changed(data: Any, place: Place, value: Any) -> Any:
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copy


def summary() -> Any:
    return json.loads(build_summary().to_json())


PLACES = list(numbers(summary()))


def answers(folder: Path, call: Call) -> Iterator[tuple[str, Any]]:
    odd, sound = folder / "odd.json", folder / "sound.json"
    history = ("history", "--history", folder / "h.jsonl")
    (folder / "h.jsonl").unlink(missing_ok=True)
    yield "report", call("report", "--summary", odd)
    yield "doctor", call("doctor", odd)
    for one, two in ((odd, sound), (sound, odd)):
        sides = ("--before", one, "--after", two)
        yield "compare", call("compare", *sides)
        yield "compare md", call("compare", *sides, "--format", "md")
        yield "track", call("track", *sides, "--allow-inconclusive")
    for question in QUESTIONS:
        yield question, call("query", "--summary", odd, "--question", question)
    assert call(*history, "--add", sound, "--label", "x").exit_code == 0
    yield "add", call(*history, "--add", odd, "--label", "x")
    yield "history", call(*history, "--output", folder / "h.json")


def check(folder: Path, call: Call, places: list[Place]) -> list[str]:
    (folder / "sound.json").write_text(json.dumps(summary() | {"source_path": "other"}))
    wrong = []
    for number, place in enumerate(places):
        value = ODD[number % len(ODD)]
        (folder / "odd.json").write_text(json.dumps(changed(summary(), place, value)))
        for verb, result in answers(folder, call):
            said = result.stdout + result.stderr
            if result.exit_code not in (0, 1, 4, 5) or "defect" in said or NO_NUMBER.search(said):
                last = said.strip().splitlines()[-1][:160]
                wrong.append(f"{place} = {value}: {verb}: {result.exit_code}: {last}")
                break
    return wrong


def test_odd_numbers_give_an_answer_or_a_sentence(tmp_path: Path, call: Call) -> None:
    assert check(tmp_path, call, PLACES[::5]) == []


@pytest.mark.long
@pytest.mark.parametrize("shift", range(len(ODD)))
def test_every_number_odd(tmp_path: Path, call: Call, shift: int) -> None:
    places = [*PLACES]
    turned = [place for at in range(len(ODD)) for place in places[at :: len(ODD)]]
    assert check(tmp_path, call, turned[shift:] + turned[:shift]) == []


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: value[:9])
def test_what_is_no_number_is_refused_by_every_verb(tmp_path: Path, call: Call, value: str) -> None:
    text = json.dumps(changed(summary(), ("step_time", "all_steps", "mean"), "HERE"))
    (tmp_path / "odd.json").write_text(text.replace('"HERE"', value))
    (tmp_path / "sound.json").write_text(json.dumps(summary()))
    for verb, result in answers(tmp_path, call):
        if verb == "history":
            continue  # of what is sound
        assert (result.exit_code, result.stdout) == (4, ""), verb
        assert "odd.json is no profile_summary.v1: step_time.all_steps.mean: " in result.stderr
        assert result.stderr.count("\n") == 1
