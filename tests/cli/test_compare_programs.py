"""What XLA did differently, as `compare`, `bundle` and `query --before` tell it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders_programs import AFTER, BEFORE, PLAIN, WITH_COPY, leave


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return (
        leave(tmp_path / "before", BEFORE, PLAIN),
        leave(tmp_path / "after", AFTER, WITH_COPY, period=115),
    )


def test_the_command_line(call, sides, tmp_path):
    found = json.loads(call("compare", *sides).stdout)
    assert [row["kind"] for row in found["hlo"]["differences"]] == ["layout_copy"]
    again = json.loads(call("compare", *sides).stdout)  # from the cache
    assert again == found
    summaries = []
    for name, side in zip(("one", "two"), sides, strict=True):
        summaries.append(tmp_path / f"{name}.json")
        call("summarize", "--profile-dir", side, "--output", summaries[-1])
    bare = json.loads(call("compare", *summaries).stdout)
    assert bare["hlo"]["cannot_answer"].startswith("A summary holds no compiled programs")
    assert bare["target"] == found["target"]


def test_a_bundle(call, sides, tmp_path):
    call("bundle", *sides, "--output-dir", tmp_path / "bundle", "--allow-inconclusive")
    page = (tmp_path / "bundle/compare_report.md").read_text(encoding="utf-8")
    assert "XLA: +10.00 us in `mlp`: f32\\[64,64\\] is copied" in page.partition("## ")[0]


@pytest.mark.parametrize(
    ("question", "records"),
    [
        ("Why did the step get slower?", ["difference", "op", "op"]),
        ("Why did copy.1 come?", ["difference"]),
        ("Why is neg slower?", ["op"]),
        ("What of frobnicate?", ["difference", "op", "op"]),
    ],
)
def test_questions(call, sides, question, records):
    asked = call("query", sides[1], "--before", sides[0], "--question", question)
    answer = json.loads(asked.stdout)
    assert (asked.exit_code, answer["query_type"]) == (0, "why_changed")
    assert [row["record"] for row in answer["results"]] == records
    assert ("frobnicate" in question) == ("has a name in the question" in answer.get("note", ""))


def test_a_question_needs_both_sides(call, sides):
    asked = call("query", "--before", sides[0], "--question", "why?")
    assert (asked.exit_code, asked.stderr.count("after")) == (2, 1)
