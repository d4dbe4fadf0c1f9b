"""One file, served on this machine to ui.perfetto.dev until it was fetched.

Contract
* Perfetto's page may fetch from no other port of this machine than PORT. Only that page may read
  the answer in a browser, at a path that cannot be guessed; there is no other file.
* A fetch that was broken off does not count. What Perfetto asks beside is refused, and is no error.
* The trace goes from this machine into the page; it is not sent anywhere else.
"""

from __future__ import annotations

import errno
import re
import secrets
import shutil
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.base.storage import base_name, file_size, open_file
from marin_profile.perfetto.places import Place

ORIGIN = "https://ui.perfetto.dev"
ADDRESS, PORT = "127.0.0.1", 9001
_BLOCK = 1 << 20
_SECONDS_OF_SILENCE = 60


class TraceServer:
    """Serves inside its block. `port` 0: any that is free, from which Perfetto does not fetch."""

    def __init__(self, path: str, port: int = PORT) -> None:
        self._fetched = threading.Event()
        plain_name = re.sub(r"[^A-Za-z0-9._-]", "_", base_name(path))
        place = f"/{secrets.token_urlsafe(12)}/{plain_name}"
        size = file_size(path)
        try:
            self._server = _Server((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise UsageError(
                f"Port {port} of this machine is in use, perhaps by another trace or by "
                "trace_processor; end that first, since Perfetto fetches from no other port."
            ) from error
        self._server.serves(path, size, place, self._fetched)
        self.url = f"http://{ADDRESS}:{self._server.server_address[1]}{place}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def link(self, place: Place | None = None) -> str:
        """What opens the trace in Perfetto, at a place in it."""
        seen = f"&visStart={place.start_ns}&visEnd={place.end_ns}" if place is not None else ""
        return f"{ORIGIN}/#!/?url={self.url}{seen}"

    def wait(self, seconds: float | None = None) -> bool:
        """Until the file was fetched; False if it was not in that time."""
        return self._fetched.wait(seconds)

    def __enter__(self) -> TraceServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A thread for each connection: browsers open some that they do not use."""

    daemon_threads = True
    block_on_close = False
    is_sent = False

    def serves(self, path: str, size: int, place: str, fetched: threading.Event) -> None:
        self.path, self.size, self.place, self.fetched = path, size, place, fetched

    def shutdown_request(self, request: Any) -> None:
        """What was sent must have left before this process may end."""
        super().shutdown_request(request)
        if self.is_sent:
            self.fetched.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was broken off is nobody's error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SECONDS_OF_SILENCE

    def do_GET(self) -> None:
        if not self._is_asked_for():
            return
        self._send_headers()
        with open_file(self.server.path) as file:
            shutil.copyfileobj(file, self.wfile, _BLOCK)
        self.wfile.flush()
        self.server.is_sent = True

    def do_HEAD(self) -> None:
        if self._is_asked_for():
            self._send_headers()

    def do_OPTIONS(self) -> None:
        """Browsers ask first whether a page of the web may reach this machine."""
        if not self._is_asked_for():
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def _is_asked_for(self) -> bool:
        """Whether it is the file, asked for by Perfetto's page or by no page at all."""
        origin = self.headers.get("Origin", ORIGIN)
        host = self.headers.get("Host", "")
        here = f"{ADDRESS}:{self.server.server_address[1]}"
        if origin != ORIGIN or host != here:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path != self.server.place:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            return True
        return False

    def _send_headers(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(self.server.size))
        self.end_headers()

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", ORIGIN)
        self.send_header("Vary", "Origin")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """What is asked of it is not worth a line."""
