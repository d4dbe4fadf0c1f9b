"""An object store on 127.0.0.1, spoken to by s3fs: `with s3_store(monkeypatch) as store:` then
`s3://bucket/...`, also from other processes.

Contract
* `store.share` of the requests fail, drawn with a seed, in turn: a 503, a body that is cut in the
  middle. What is asked for below a path in `store.slow` waits so many seconds.
* `store.paths`: what was asked for, "GET /bucket/a".
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest


@dataclass
class Store:
    """A WSGI application before that of the store."""

    application: Any
    share: float = 0.0
    slow: dict[str, float] = field(default_factory=dict)
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    failed: int = 0
    paths: list[str] = field(default_factory=list)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        self.paths.append(f"{environ['REQUEST_METHOD']} {path}")
        time.sleep(max((self.slow[below] for below in self.slow if below in path), default=0.0))
        if self.draw.random() >= self.share:
            return self.application(environ, start)
        self.failed += 1
        if self.failed % 2:
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Less, please.</Message></Error>"]
        body = b"".join(self.application(environ, start))
        return [body[: len(body) // 2]]

    def fetched(self, ending: str) -> list[str]:
        """The paths of files whose content was asked for, each once."""
        asked = [path.removeprefix("GET ") for path in self.paths if path.startswith("GET ")]
        return sorted({path for path in asked if path.endswith(ending)})


@contextmanager
def s3_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    import s3fs

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with _server() as (store, address):
        for name, value in (
            ("AWS_ACCESS_KEY_ID", "nobody"),
            ("AWS_SECRET_ACCESS_KEY", "nothing"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", address),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("NO_PROXY", "127.0.0.1"),
        ):
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem(skip_instance_cache=True).makedirs("bucket", exist_ok=True)
        try:
            yield store
        finally:
            s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def _server() -> Iterator[tuple[Store, str]]:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    store = Store(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    # What an earlier store of this process held is still there.
    urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()
    store.paths.clear()
    try:
        yield store, address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def upload(folder: Path, url: str) -> None:
    """All files below the folder."""
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).put(str(folder), url, recursive=True)
