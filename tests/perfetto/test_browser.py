"""A real browser fetches the trace as Perfetto's page does: from its origin, under its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from documents.conftest import browser  # noqa: F401  # a fixture
from marin_profile.perfetto import TraceServer
from patience import PATIENCE

# What the page's policy lets it fetch from this machine is one port; here, the test's.
PAGE = """<!doctype html><meta http-equiv="Content-Security-Policy"
content="default-src 'self'; connect-src 'self' http://127.0.0.1:PORT"><p>page</p>"""
FETCH = """async url => {
    try {
        const answer = await fetch(url);
        return [answer.status, (await answer.arrayBuffer()).byteLength];
    } catch (error) {
        return String(error);
    }
}"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "host.trace.json.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(100_000))
    return path


def fetched_from(browser: Any, origin: str, server: TraceServer) -> Any:  # noqa: F811
    """By a page of this origin, for which no request leaves the machine. Chrome asks whether it may
    reach this machine: it may."""
    context = browser.new_context()
    try:
        context.grant_permissions(["local-network-access"], origin=origin)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        body = PAGE.replace("PORT", server.url.split(":")[2].split("/")[0])
        page.route(f"{origin}/**", lambda route: route.fulfill(body=body, content_type="text/html"))
        page.goto(f"{origin}/")
        return page.evaluate(FETCH, server.url)
    finally:
        context.close()


def test_perfettos_page_gets_the_file(browser, trace):  # noqa: F811
    with TraceServer(str(trace), port=0) as server:
        assert fetched_from(browser, "https://ui.perfetto.dev", server) == [200, 100_002]
        assert server.wait(PATIENCE)


def test_another_page_does_not(browser, trace):  # noqa: F811
    with TraceServer(str(trace), port=0) as server:
        answer = fetched_from(browser, "https://evil.example", server)
        assert "TypeError" in answer
        assert not server.wait(0)
