"""The server of one trace, asked over HTTP as browsers do."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.perfetto import PORT, Place, TraceServer
from patience import PATIENCE

ORIGIN = "https://ui.perfetto.dev"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a b&c#.trace.json.gz"
    path.write_bytes(b"\x1f\x8bnot really" * 1000)
    return path


@pytest.fixture
def server(path: Path) -> Iterator[TraceServer]:
    with TraceServer(str(path), port=0) as server:
        yield server


def ask(
    server: TraceServer, method: str = "GET", path: str | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=PATIENCE)
    try:
        connection.request(method, path or url.path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_the_link_opens_the_file_at_the_place(server):
    link = urlsplit(server.link(Place(5_100_000, 5_153_001, "")))
    assert (link.scheme, link.netloc, link.path) == ("https", "ui.perfetto.dev", "/")
    route, _, query = link.fragment.partition("?")
    assert route == "!/"
    assert parse_qs(query, strict_parsing=True) == {
        "url": [server.url],
        "visStart": ["5100000"],
        "visEnd": ["5153001"],
    }
    assert server.url.startswith("http://127.0.0.1:")
    assert server.url.endswith("/a_b_c_.trace.json.gz")
    assert server.link() == f"https://ui.perfetto.dev/#!/?url={server.url}"
    assert PORT == 9001


def test_the_file_is_fetched_once_by_the_page(server, path):
    status, body, headers = ask(server, Origin=ORIGIN)
    assert (status, body) == (200, path.read_bytes())
    assert headers["Access-Control-Allow-Origin"] == ORIGIN
    assert headers["Content-Length"] == str(len(body))
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Encoding"] is None
    assert server.wait(PATIENCE)


def test_what_browsers_ask_before(server):
    status, body, headers = ask(
        server,
        "OPTIONS",
        Origin=ORIGIN,
        **{"Access-Control-Request-Private-Network": "true"},
    )
    assert (status, body) == (204, b"")
    assert headers["Access-Control-Allow-Origin"] == ORIGIN
    assert headers["Access-Control-Allow-Private-Network"] == "true"
    assert ask(server, "HEAD", Origin=ORIGIN)[0] == 200
    assert ask(server, "POST", "/status", Origin=ORIGIN)[0] == 501
    assert not server.wait(0)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    ("asked", "headers", "status"),
    [
        ("/", {}, 404),
        ("/a_b_c_.trace.json.gz", {}, 404),
        ("/../../etc/passwd", {}, 404),
        (None, {"Origin": "https://evil.example"}, 403),
        (None, {"Origin": "null"}, 403),
        (None, {"Host": "evil.example:9001"}, 403),
    ],
)
def test_others_get_nothing(server, method, asked, headers, status):
    answer, body, got = ask(server, method, asked, **headers)
    assert answer == status
    assert b"not really" not in body
    assert got["Access-Control-Allow-Origin"] in (None, ORIGIN)
    assert not server.wait(0)


def test_a_fetch_that_is_broken_off_does_not_count(tmp_path):
    large = tmp_path / "large.trace.json.gz"
    with large.open("wb") as file:
        file.truncate(64 << 20)
    with TraceServer(str(large), port=0) as server:
        url = urlsplit(server.url)
        with socket.create_connection((url.hostname, url.port), timeout=PATIENCE) as connection:
            connection.sendall(f"GET {url.path} HTTP/1.0\r\nHost: {url.netloc}\r\n\r\n".encode())
            assert connection.recv(10) == b"HTTP/1.0 2"
        # A connection that asks nothing holds nobody up.
        with socket.create_connection((url.hostname, url.port), timeout=PATIENCE):
            assert not server.wait(0)
            assert len(ask(server)[1]) == 64 << 20
        assert server.wait(PATIENCE)


def test_a_port_that_is_taken(server, path):
    taken = urlsplit(server.url).port
    with pytest.raises(UsageError, match=f"Port {taken} of this machine is in use"):
        TraceServer(str(path), port=taken)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(NotFoundError):
        TraceServer(str(tmp_path / "none.json"), port=0)
