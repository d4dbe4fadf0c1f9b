"""`marin-profile trace`: what it prints, serves and refuses."""

from __future__ import annotations

import threading
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from builders_capture import leave_capture
from builders_json import event, gz, process, thread, trace
from patience import PATIENCE

Call = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A capture with both files, of one step that begins at 1,000 us."""
    folder = leave_capture(tmp_path)
    (folder / "h.trace.json.gz").write_bytes(
        gz(
            trace(
                process(3),
                thread(3, 1, "Steps"),
                thread(3, 3, "XLA Ops"),
                event("0", "1000", "90", tid="1"),
                event("dot.1", "1000", "80", hlo_category="convolution fusion"),
                named=False,
            )
        )
    )
    return tmp_path


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[bytes]]:
    """Stands in for a browser with Perfetto's page: fetches what a link names. A call waits for
    what it fetched: the server may end before the fetching thread does."""
    fetched: list[bytes] = []
    fetching: list[threading.Thread] = []

    def fetch(link: str) -> None:
        url = parse_qs(urlsplit(link).fragment.partition("?")[2])["url"][0]
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            fetched.append(answer.read())

    def opened(link: str) -> bool:
        fetching.append(threading.Thread(target=fetch, args=[link]))
        fetching[-1].start()
        return True

    def done() -> list[bytes]:
        for one in fetching:
            one.join(PATIENCE)
        return fetched

    monkeypatch.setattr("marin_profile.perfetto.PORT", 0)
    monkeypatch.setattr(webbrowser, "open", opened)
    return done


def test_the_link_leads_to_the_step_and_the_server_ends(
    call: Call, run: Path, browser: Callable[[], list[bytes]]
) -> None:
    result = call("trace", run, "--step", "0", "--open")
    assert result.exit_code == 0
    (link,) = result.stdout.splitlines()
    assert link.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
    assert link.endswith("/h.trace.json.gz&visStart=1000000&visEnd=1080000")
    first, second = result.stderr.splitlines()
    assert first == "note: step 0 on 1 device"
    assert second.startswith("note: serving ")
    (file,) = run.rglob("h.trace.json.gz")
    assert browser() == [file.read_bytes()]


def test_without_a_place_the_whole_trace_is_shown(
    call: Call, run: Path, browser: Callable[[], list[bytes]]
) -> None:
    result = call("trace", run, "--open")
    assert (result.exit_code, len(browser())) == (0, 1)
    assert result.stdout.endswith("/h.trace.json.gz\n")


def test_what_is_not_there(call: Call, run: Path, summary_path: Path) -> None:
    assert call("trace", run, "--step", "9").exit_code == 5
    assert "no op 'dot.9' in the trace; did you mean dot.1?" in (
        call("trace", run, "--op", "dot.9").stderr
    )
    assert call("trace", run, "--host", "x").exit_code == 3
    assert call("trace", summary_path).exit_code == 5


def test_perfetto_opens_no_xplane(call: Call, tmp_path: Path) -> None:
    leave_capture(tmp_path)
    result = call("trace", tmp_path, "--step", "0")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "has no trace JSON beside it, and Perfetto opens no xplane.pb" in result.stderr
    assert "open the xplane.pb in XProf" in result.stderr
