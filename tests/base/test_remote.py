"""Lists, facts and streams of stores that fail: tried again, whole, or an error that says where."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faulty_files import SHORT, Request, Store, Unavailable, faulty, url
from marin_profile.base import remote
from marin_profile.base.errors import NotFoundError, RemoteError, UsageError
from marin_profile.base.remote import may_pass, shown
from marin_profile.base.remote_stream import LARGEST, SMALLEST, ChangedError
from marin_profile.base.retries import Retries
from marin_profile.base.storage import (
    file_size,
    files_below,
    folders_in,
    open_file,
    read_at_most,
    read_files,
    sha256_of,
)

CONTENT = random.Random(3).randbytes(3 * LARGEST + 12_345)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(remote, "RETRIES", Retries(sleep=waits.append, jitter=random.Random(1)))
    return waits


@pytest.fixture
def store(tmp_path: Path, slept: list[float]) -> Iterator[Store]:
    (tmp_path / "large").write_bytes(CONTENT)
    (tmp_path / "small").write_bytes(b"abc")
    for name in ("a/1", "a/2", "b/c/3"):
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    with faulty(tmp_path) as made:
        yield made


def ranges(store: Store) -> list[int]:
    """The lengths that were asked for."""
    return [
        stop - start
        for what, _, start, stop in store.requests
        if what == "range" and start is not None and stop is not None
    ]


# Streams


def test_blocks_grow_to_a_limit_and_each_byte_is_fetched_once(store):
    with open_file(url("large")) as stream:
        pieces = iter(lambda: stream.read(1000), b"")
        assert b"".join(pieces) == CONTENT
    lengths = ranges(store)
    assert lengths[:3] == [SMALLEST, 2 * SMALLEST, 4 * SMALLEST]
    assert max(lengths) == LARGEST
    assert sum(lengths) == len(CONTENT)


def test_the_next_block_is_fetched_while_one_is_read(store):
    with open_file(url("large")) as stream:
        stream.read(SMALLEST + 1)
    assert len(ranges(store)) == 3


def test_who_seeks_gets_small_blocks(store):
    places = [len(CONTENT) - 10, 5, 2 * LARGEST, LARGEST]
    with open_file(url("large")) as stream:
        for place in places:
            stream.seek(place)
            assert stream.read(10) == CONTENT[place : place + 10]
        assert stream.seek(-4, 2) == len(CONTENT) - 4
        assert stream.read() == CONTENT[-4:]
    assert max(ranges(store)) == SMALLEST


def test_a_fifth_of_all_requests_may_fail(store):
    store.share = 0.2
    for _ in range(5):
        assert sha256_of(url("large")) == sha256_of(str(store.folder / "large"))
    assert store.failed >= 5


def test_a_reset_in_mid_file_is_asked_again_from_there(store, slept):
    with open_file(url("large")) as stream:
        assert stream.read(10) == CONTENT[:10]
        store.next = [lambda: ConnectionResetError(104, "Connection reset by peer")]
        assert stream.read(2 * SMALLEST) == CONTENT[10 : 10 + 2 * SMALLEST]
    asked = [request for request in store.requests if request[0] == "range"]
    assert asked[1] == asked[2] == ("range", asked[0][1], SMALLEST, 3 * SMALLEST)
    assert len(slept) == 1


def test_a_short_answer_is_no_end(store):
    store.next = [None, SHORT, SHORT]
    with open_file(url("large")) as stream:
        assert stream.read(100) == CONTENT[:100]
    store.next = [None, SHORT]
    with open_file(url("small")) as stream:
        assert stream.read() == b"abc"


def test_answers_that_stay_short_are_an_error_that_says_so(store):
    store.next = [None, *[SHORT] * 5]
    with (
        open_file(url("large")) as stream,
        pytest.raises(RemoteError, match=r"32,768 of 65,536 bytes came from 0 on \(try 5 of 5\)"),
    ):
        stream.read(1)


def test_a_store_that_goes_in_mid_file_is_said(store, slept):
    with open_file(url("large")) as stream:
        stream.read(10)
        store.is_gone = True
        with pytest.raises(RemoteError) as raised:
            stream.read(SMALLEST)
    assert raised.value.exit_code == 6
    assert str(raised.value) == (
        "faulty://bucket/large cannot be reached: Connection reset by peer (try 5 of 5); try again "
        "later."
    )
    assert len(slept) == 4


def test_a_file_that_shrinks_or_goes_while_it_is_read(store):
    with open_file(url("large")) as stream:
        stream.read(10)
        (store.folder / "large").write_bytes(CONTENT[:SMALLEST])
        with pytest.raises(ChangedError, match="large was replaced while it was read"):
            stream.read(SMALLEST)
    with open_file(url("large")) as stream:
        stream.seek(5)
        (store.folder / "large").unlink()
        with pytest.raises(NotFoundError, match="bucket/large does not exist"):
            stream.read(10)


def test_a_small_file_is_read_as_it_is_now(store):
    """A note that is written anew between the two requests is not cut to the old one's length."""
    with open_file(url("small")) as stream:
        (store.folder / "small").write_bytes(b"a longer note")
        assert stream.read() == b"a longer note"
    assert read_at_most(url("small"), 100) == b"a longer note"


def test_an_empty_file(store):
    (store.folder / "small").write_bytes(b"")
    with open_file(url("small")) as stream:
        assert stream.read() == b""
    assert ranges(store) == []


# Lists and facts


FILES = [("a/1", 3), ("a/2", 3), ("b/c/3", 5)]


def test_files_below_although_requests_fail(store):
    store.share = 0.3
    assert [files_below(url("run")) for _ in range(20)] == [FILES] * 20
    assert store.failed > 10
    assert folders_in(url("run")) == ["a", "b"]
    assert file_size(url("small")) == 3


def test_a_folder_that_cannot_be_listed_is_an_error_not_left_out(store):
    store.next = [None, None, *[Unavailable] * 5]
    with pytest.raises(
        RemoteError, match=r"run cannot be reached: 503 Service Unavailable \(try 5 of 5\)"
    ):
        files_below(url("run"))


def test_a_folder_that_goes_while_it_is_listed_is_left_out(store):
    def goes(request: Request) -> None:
        if request[:2] == ("list", "bucket/run/b"):
            (store.folder / "run/b/c/3").unlink()
            (store.folder / "run/b/c").rmdir()
            (store.folder / "run/b").rmdir()

    store.hook = goes
    assert files_below(url("run")) == FILES[:2]


def test_a_file_that_comes_while_it_is_listed_does_no_harm(store):
    def comes(request: Request) -> None:
        (store.folder / "run/a/new").write_text("new")

    store.hook = comes
    assert files_below(url("run")) == [*FILES[:2], ("a/new", 3), FILES[2]]


def test_what_is_not_there_or_not_a_folder_is_asked_for_once(store):
    with pytest.raises(NotFoundError, match="run/no does not exist"):
        files_below(url("run/no"))
    with pytest.raises(NotFoundError, match="run/no does not exist"):
        open_file(url("run/no"))
    with pytest.raises(NotFoundError, match="run does not exist, or is not what is asked for"):
        open_file(url("run"))
    with pytest.raises(UsageError, match="small is a file, not a folder"):
        files_below(url("small"))
    assert len(store.requests) == 4


def test_what_is_refused_is_asked_for_once(store):
    store.next = [lambda: PermissionError("Forbidden")]
    with pytest.raises(RemoteError, match="small cannot be read: Forbidden"):
        open_file(url("small"))
    assert len(store.requests) == 1


def test_of_many_files_only_those_that_failed_are_fetched_again(store):
    store.next = [None, Unavailable, None]
    names = ["a/1", "a/2", "b/c/3"]
    assert read_files(url("run"), names) == [name.encode() for name in names]
    assert len(store.requests) == 4
    store.next = [None, *[Unavailable] * 9]
    with pytest.raises(RemoteError, match=r"run cannot be reached: .* \(try 5 of 5\)"):
        read_files(url("run"), names)
    with pytest.raises(NotFoundError):
        read_files(url("run"), ["a/1", "no"])
    assert read_files(url("run"), []) == []


# Errors


class Answer(Exception):
    def __init__(self, status: int | str) -> None:
        self.code = status


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Answer(503), True),
        (Answer("429"), True),
        (Answer(408), True),
        (Answer(500), True),
        (Answer(403), False),
        (Answer("404"), False),
        (Answer(400), False),
        (OSError(16, "Please reduce your request rate."), True),
        (OSError(22, "InvalidRange"), False),
        (TimeoutError(), True),
        (ConnectionRefusedError(111, "refused"), True),
        (FileNotFoundError("x"), False),
        (ValueError("x"), False),
        (Exception("something of a store's own"), True),
        (type("NoCredentialsError", (Exception,), {})(), False),
    ],
)
def test_which_errors_may_pass(error, passes):
    assert may_pass(error) is passes


def test_a_web_server_that_fails_is_not_one_without_the_file():
    for cause, passes in ((Answer(503), True), (Answer(404), False), (TimeoutError(), True)):
        error = FileNotFoundError("http://h/x")
        error.__cause__ = cause
        assert may_pass(error) is passes


def test_secrets_in_urls_are_not_told():
    login = "me:word"
    assert shown(f"https://{login}@host/a?X-Signature=word") == "https://...@host/a?..."
    assert shown("s3://bucket/a?b") == "s3://bucket/a?b"
    assert shown("gs://bucket/a@b") == "gs://bucket/a@b"
    told = f"no 'https://{login}@h/x?y', no"
    assert remote.shown_within(told) == "no 'https://...@h/x?...', no"


def test_what_a_store_s_package_logs_does_not_go_to_stderr(store, monkeypatch):
    """As Python does with warnings of a logger that has no handler, nor one above it."""
    log = logging.getLogger("faulty_files")
    monkeypatch.setattr(log, "handlers", [])
    for _ in range(2):
        files_below(url("run"))
    assert [type(one) for one in log.handlers] == [logging.NullHandler]
