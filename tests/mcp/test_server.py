"""The protocol, through the SDK's own client: in this process, and with a child process once."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from builders_capture import leave_capture
from builders_xspace import Space
from marin_profile import answer, summarize
from marin_profile.mcp.pages import MOST_CHARACTERS
from marin_profile.mcp.roots import Roots
from marin_profile.mcp.tools import TOOL_NAMES, Service
from marin_profile.queries import Parameters, run_query

pytest.importorskip("mcp.server", reason="mcp is not installed (extra: mcp)")

from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from marin_profile.mcp.server import server_of

QUESTIONS = [
    "Where does my step time go?",
    "How long does a step take?",
    "Is communication or compute dominating, and what is the worst collective?",
    "How idle is each device?",
    "What are the top 5 ops?",
    "What are the top 10 ops by exclusive time?",
    "What are the top 5 all-reduce ops?",
    "Which collectives take the most time?",
    "How fast are host transfers?",
    "Which device is slow, and how long do the others wait for it?",
    "How many launches are there per step?",
    "Did anything recompile?",
    "What does the host do while the devices are idle?",
    "How much HBM is used at the peak, and by what?",
    "Is donation working?",
    "Which programs ran, and how often?",
    "How much time is not communication?",
    "Which gaps are the largest?",
    "Which regions take the most time?",
    "Which families of ops take the most time?",
    "How much time does the backward pass take?",
    "Is it compute bound or memory bound?",
    "What should we try next?",
    "What if communication were free?",
    "How much device time has no op?",
]


def asked(service: Service, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    """The results of calls by one client; each fits, whole."""

    async def ask() -> list[CallToolResult]:
        async with Client(server_of(service)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    results = anyio.run(ask)
    assert all(size(result) <= MOST_CHARACTERS for result in results)
    return results


def size(result: CallToolResult) -> int:
    """The whole result, also where every character beyond ASCII is written as an escape."""
    return len(json.dumps(result.model_dump(mode="json", by_alias=True)))


def told(result: CallToolResult) -> Any:
    [content] = result.content
    assert not result.is_error, content
    assert result.structured_content is None
    return json.loads(content.text)


def all_pages(service: Service, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer with the rows and units of all its pages."""
    [result] = asked(service, (name, arguments))
    page = told(result)
    rows, units = page["results"], page.get("units", {})
    while "cursor" in page:
        [result] = asked(service, (name, {**arguments, "cursor": page["cursor"]}))
        page = told(result)
        rows += page["results"]
        units |= page["units"]
    assert len(rows) == page["total"]
    return {**page, "results": rows, "units": units}


def written(value: Any) -> Any:
    """As JSON of the library has it, without nulls: worked out here once more."""
    if isinstance(value, dict):
        return {name: written(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [written(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def assert_is(page: dict[str, Any], answered: dict[str, Any]) -> None:
    """The page says all that the answer does, and no field without its unit."""
    if "cannot_answer" in answered:
        assert page["cannot_answer"] == written(answered["cannot_answer"])
        assert (page["results"], page["total"]) == ([], 0)
        return
    assert page["results"] == written(answered["results"])
    assert page["units"].items() <= answered["units"].items()
    present = {name for row in page["results"] for name in row}
    assert present & set(answered["units"]) <= set(page["units"])
    for name in ("query_type", "basis", "total_matched", "note", "read_as", "per"):
        assert page.get(name) == written(answered.get(name))


@pytest.fixture
def service(runs: Path) -> Service:
    return Service(Roots([str(runs)]), None)


def test_the_tools_are_few_short_and_read_only(service: Service) -> None:
    async def listed() -> Any:
        async with Client(server_of(service)) as client:
            return await client.list_tools()

    found = anyio.run(listed)
    assert len(json.dumps(found.model_dump(mode="json", by_alias=True))) <= 12_000
    assert [tool.name for tool in found.tools] == list(TOOL_NAMES)
    for tool in found.tools:
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.destructive_hint is False


def test_every_tool_answers_of_a_built_capture(service: Service, runs: Path) -> None:
    captures, advice, ask, query, compare = asked(
        service,
        ("captures", {}),
        ("advice", {"handle": "before"}),
        ("ask", {"handle": "before", "question": "top 3 ops"}),
        ("query", {"handle": "before", "name": "top_ops", "limit": 1}),
        ("compare", {"before": "before", "after": "after"}),
    )
    summary = summarize(str(runs / "before"))
    assert told(captures)["returned"] == 2
    assert told(advice)["headline"].startswith("Step 100.00 us")
    assert_is(told(advice), run_query(summary, "optimization_candidates"))
    assert_is(told(ask), answer(summary, "top 3 ops"))
    assert told(ask)["results"][0]["avg_duration"] == 80.0
    assert told(ask)["units"]["avg_duration"] == "us"
    assert_is(told(query), run_query(summary, "top_ops", Parameters(limit=1)))
    assert told(compare)["comparable"] is True


@pytest.mark.parametrize("trace", ["cpu_8dev", "tpu_v6e_4dev"])
def test_answers_of_real_captures_are_the_librarys(traces: Path, trace: str) -> None:
    service = Service(Roots([str(traces)]), None)
    summary = summarize(str(traces / trace))
    results = asked(service, *(("ask", {"handle": trace, "question": one}) for one in QUESTIONS))
    assert statistics.median(map(size, results)) <= 2000
    for question in QUESTIONS:
        page = all_pages(service, "ask", {"handle": trace, "question": question})
        assert page["handle"] == service.roots.find(trace).handle
        assert_is(page, answer(summary, question))
    for name, given in (
        ("top_ops", {"limit": 40}),
        ("hierarchical_regions", {"limit": 100}),
        ("device_ledger", {"order": "least", "by": "compute"}),
        ("optimization_candidates", {}),
    ):
        page = all_pages(service, "query", {"handle": trace, "name": name, **given})
        assert_is(page, run_query(summary, name, Parameters(**given)))


def test_hostile_names_are_data(tmp_path: Path) -> None:
    """Tags, escapes and text turned around come back as they are in the profile, escaped."""
    name = '<script>alert(1)</script>\x1b[2J\u202egnp."\\'
    made = Space("h")
    tpu = made.tpu(0)
    for step in range(3):
        tpu.step(step, 100 * step, 99).module("jit_step(7)", 100 * step, 80, run_id=step)
        tpu.op(name, 100 * step, 80, category="convolution fusion")
    folder = leave_capture(tmp_path / "runs")
    made.write(folder / "h.xplane.pb")
    service = Service(Roots([str(tmp_path / "runs")]), None)
    summary = summarize(str(folder))
    [result] = asked(service, ("query", {"handle": ".", "name": "top_ops"}))
    [content] = result.content
    assert content.text.isascii()
    assert content.text.isprintable()
    assert_is(told(result), run_query(summary, "top_ops"))
    assert "<script>" in told(result)["results"][0]["name"]
    assert "\u202e" in told(result)["results"][0]["name"]


HOSTILE = ["../..", "/etc/passwd", "file:///etc/passwd", "a\0b", "\x1b[2J", "\ud800", "x" * 9000]


@pytest.mark.parametrize("handle", HOSTILE, ids=map(ascii, range(len(HOSTILE))))
def test_errors_are_a_sentence_without_places(service: Service, runs: Path, handle: str) -> None:
    results = [
        *asked(service, ("advice", {"handle": handle})),
        *asked(service, ("compare", {"before": "before", "after": handle})),
    ]
    for result in results:
        [content] = result.content
        assert result.is_error
        assert content.text.endswith(".")
        assert content.text.isprintable()
        assert str(runs.parent) not in content.text
        assert "Traceback" not in content.text


def test_a_damaged_capture_is_a_tools_error(service: Service, runs: Path) -> None:
    [file] = (runs / "before").rglob("*.xplane.pb")
    file.write_bytes(b"\xff" * 100)
    broken, fine = asked(
        service,
        ("advice", {"handle": "before"}),
        ("advice", {"handle": "after"}),
    )
    assert broken.is_error
    assert str(runs.parent) not in broken.content[0].text
    assert "before/plugins/profile" in broken.content[0].text
    assert told(fine)["headline"].startswith("Step 100.00 us")


def test_a_defect_is_a_tools_error_too(
    service: Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("/a/place")

    monkeypatch.setattr(service.roots, "captures", fail)
    [result] = asked(service, ("captures", {}))
    assert result.is_error
    assert result.content[0].text == "ZeroDivisionError: this is a defect of marin-profile."
    assert "/a/place" in capfd.readouterr().err


def test_a_child_process_speaks_it_on_stdout(runs: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "marin_profile", "mcp", "--root", str(runs)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    async def ask() -> list[CallToolResult]:
        child = StdioServerParameters(command=command[0], args=command[1:], env=environment)
        with anyio.fail_after(120):
            async with Client(stdio_client(child)) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOL_NAMES)
                return [
                    await client.call_tool("ask", {"handle": "before", "question": "top 3 ops"}),
                    await client.call_tool("ask", {"handle": "../x", "question": "top 3 ops"}),
                ]

    fine, refused = anyio.run(ask)
    assert_is(told(fine), answer(summarize(str(runs / "before")), "top 3 ops"))
    assert refused.is_error
    # Without a client: it ends with its input, and nothing but the protocol is on stdout.
    done = subprocess.run(
        command, input="no message\n", capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())


def test_an_interrupt_ends_it_at_once(runs: Path) -> None:
    command = [sys.executable, "-m", "marin_profile", "mcp", "--root", str(runs)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["id"] == 1
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == -signal.SIGINT
