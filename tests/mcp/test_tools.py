"""The tools' arguments follow from one declaration; what does not fit it is told in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_profile.base.errors import UsageError
from marin_profile.mcp.roots import Roots
from marin_profile.mcp.tools import TOOLS, Service
from marin_profile.queries import QUERIES
from marin_profile.queries.parameters import DECLARED

BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def service(runs: Path) -> Service:
    return Service(Roots([str(runs)]), None)


def test_a_query_takes_the_declared_parameters() -> None:
    schema = BY_NAME["query"].schema()
    types = {"number": "integer", "text": "string", "flag": "boolean"}
    for name, declared in DECLARED.items():
        told = schema["properties"][name]
        assert (told["type"], told["description"]) == (types[declared.kind], declared.doc)
        assert tuple(told.get("enum", ())) == declared.choices
    own = set(schema["properties"]) - set(DECLARED)
    assert own == {"handle", "name", "cursor"}
    assert schema["required"] == ["handle", "name"]
    assert set(schema["properties"]["name"]["enum"]) == {query.name for query in QUERIES}
    for query in QUERIES:
        line = f"- {query.name}({', '.join(query.takes)}): {query.description}"
        assert line in BY_NAME["query"].description.splitlines()


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"handle": "before"}, "ask needs question."),
    ("compare", {}, "compare needs before and after."),
    ("captures", {"path": "x"}, "captures takes cursor; nothing else."),
    ("ask", {"handle": "before", "question": " "}, "question is a text that is not empty."),
    ("ask", {"handle": 7, "question": "top ops"}, "handle is a text that is not empty."),
    ("ask", {"handle": "before", "question": "x" * 1001}, "question has at most 1,000 characters."),
    ("advice", {"handle": "before", "limit": 0}, "limit is a whole number from 1 on."),
    ("advice", {"handle": "before", "limit": True}, "limit is a whole number from 1 on."),
    ("advice", {"handle": "before", "limit": "3"}, "limit is a whole number from 1 on."),
    ("query", {"handle": "before", "name": "overview", "op": "a"},
     "overview takes no op; its parameters: per."),
    ("query", {"handle": "before", "name": "top_ops", "order": "up"},
     "order is one of most, least, not 'up'."),
    ("query", {"handle": "before", "name": "time_of", "without": "yes"},
     "without is true or false."),
    ("nothing", {}, "There is no such tool; there are: captures, advice, ask, query, compare."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "sentence"), BAD)
def test_what_does_not_fit_is_refused(
    service: Service, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        service.call(name, arguments)
    assert str(refused.value) == sentence


def test_an_unknown_query_is_refused_with_the_known_ones(service: Service) -> None:
    with pytest.raises(UsageError, match="no query 'topops'; the known ones are: overview"):
        service.call("query", {"handle": "before", "name": "topops"})


def test_captures_have_handles_sizes_and_hosts(service: Service, runs: Path) -> None:
    told = json.loads(service.call("captures", {}))
    assert told["units"] == {"size": "byte"}
    after, before = told["results"]
    file = runs / before["path"] / "h.xplane.pb"
    assert before == {
        "handle": service.roots.find("before").handle,
        "path": "before/plugins/profile/2026_01_02_03_04_05",
        "stamp": "2026_01_02_03_04_05",
        "hosts": 1,
        "size": file.stat().st_size,
    }
    assert after["stamp"] == "2026_01_02_04_04_05"


def test_a_comparison_leads_with_the_change_and_its_parts(service: Service) -> None:
    """Of a step of 100 us the op takes 80 us before and 90 us after, and the device idles less."""
    told = json.loads(service.call("compare", {"before": "before", "after": "after"}))
    assert told["comparable"] is True
    assert told["headline"].startswith("A step takes as long as before on each device: 100.00 us")
    assert told["units"]["delta"] == "us per step and device"
    parts = {(row["part"], row["name"]): row["delta"] for row in told["results"]}
    assert parts[("device_time", "compute")] == 10.0
    assert parts[("device_time", "idle")] == -10.0
    [op] = [row for row in told["results"] if row["part"] == "op" and row["delta"] > 0]
    assert (op["before"], op["after"], op["delta"]) == (80.0, 90.0, 10.0)


def test_a_capture_compared_with_itself_is_said_to_be_the_same(service: Service) -> None:
    told = json.loads(service.call("compare", {"before": "after", "after": "after"}))
    assert told["same_capture"] is True
    assert told["headline"].startswith("Same capture")
    assert told["results"] == []


def test_a_page_of_several_roots_names_the_root(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (runs / "after").rename(tmp_path / "more" / "after")
    service = Service(Roots([str(runs), str(tmp_path / "more")]), None)
    told = json.loads(service.call("captures", {}))
    assert [row["root"] for row in told["results"]] == ["runs", "more"]
