"""A folder behind HTTP on 127.0.0.1: `with web_server(folder) as server: server.url`.

Contract
* Folders are lists of links; files have a size, an ETag and a time, and parts if `parts`.
* `share` of the requests fail, drawn with a seed, in turn: a 503, an answer that is cut in the
  middle (of HEAD: a 503), a connection that is reset. `paths`: what was asked for, "GET /a/b".
* Files of the name `refused` are forbidden.
"""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote


@dataclass
class Server:
    folder: Path
    parts: bool = True
    share: float = 0.0
    url: str = ""
    refused: str = ""
    paths: list[str] = field(default_factory=list)
    failed: int = 0
    draw: random.Random = field(default_factory=lambda: random.Random(7))

    def fault(self) -> int | None:
        if self.draw.random() >= self.share:
            return None
        self.failed += 1
        return self.failed % 3


@contextmanager
def web_server(folder: Path, **settings: Any) -> Iterator[Server]:
    server = Server(folder, **settings)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(server)) as http:
        http.daemon_threads = True
        http.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            http.shutdown()


def _handler_of(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(has_body=False)

        def do_GET(self) -> None:
            self._answer(has_body=True)

        def _answer(self, *, has_body: bool) -> None:
            server.paths.append(f"{self.command} {self.path}")
            fault = server.fault()
            if fault == 0:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                return
            if fault == 1 or (fault == 2 and not has_body):
                self._send(503, b"", {}, has_body)
                return
            path = server.folder / unquote(self.path.partition("?")[0]).lstrip("/")
            if path.name == server.refused:
                self._send(403, b"", {}, has_body)
            elif path.is_dir():
                self._send(200, _links(path), {"Content-Type": "text/html"}, has_body)
            elif path.is_file():
                self._send_file(path, has_body, is_cut=fault == 2)
            else:
                self._send(404, b"", {}, has_body)

        def _send_file(self, path: Path, has_body: bool, is_cut: bool) -> None:
            content, found = path.read_bytes(), path.stat()
            headers = {
                "ETag": f'"{found.st_mtime_ns:x}-{found.st_size:x}"',
                "Last-Modified": formatdate(found.st_mtime, usegmt=True),
            }
            code = 200
            wanted = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if wanted and server.parts:
                start, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
                headers["Content-Range"] = f"bytes {start}-{last}/{len(content)}"
                code, content = 206, content[start : last + 1]
            self._send(code, content, headers, has_body, is_cut)

        def _send(
            self,
            code: int,
            body: bytes,
            headers: dict[str, str],
            has_body: bool,
            is_cut: bool = False,
        ) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if has_body:
                self.wfile.write(body[: len(body) // 2] if is_cut else body)
            if is_cut:
                self.close_connection = True

    return Handler


def _links(folder: Path) -> bytes:
    names = [f"{path.name}/" if path.is_dir() else path.name for path in sorted(folder.iterdir())]
    rows = "".join(f'<li><a href="{quote(name)}">{name}</a></li>' for name in names)
    return f'<a href="?C=N">Name</a><a href="../">up</a><ul>{rows}</ul>'.encode()
