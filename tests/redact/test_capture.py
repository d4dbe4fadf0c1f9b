"""Copies of a capture's files: names, formats, order, and what is left out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from builders_xspace import STAMP, Space
from marin_profile.base.errors import BrokenInputError, UsageError
from marin_profile.pipeline import summarize
from marin_profile.readers.json_stream import WINDOW
from marin_profile.redact import Redactor, capture_host_names, redact_capture, redact_summary

REDACTOR = Redactor(users=("alice",), hosts=("tw003",))

STACK = 'File "a.py":1\n\tin f\\g é\n'
STACK_MASK = 'xxxx "x.xx":x\n\txx x\\x xx\n'


def events(home: str, stack: str, count: int = 3) -> str:
    """Every character of the window's border is reached by events of odd lengths."""
    rows = [
        {"name": f"fusion.{index}", "args": {"source": f"/home/{home}/m.py", "source_stack": stack}}
        for index in range(count)
    ]
    return json.dumps({"traceEvents": rows}, separators=(",", ":"), ensure_ascii=False)


@pytest.fixture
def into(tmp_path) -> Path:
    return tmp_path / "into"


@pytest.mark.parametrize("count", [1, 3 * WINDOW // 200])
def test_trace_json_is_masked_across_windows(tmp_path, into, count):
    file = tmp_path / "tw003.trace.json.gz"
    file.write_bytes(gzip.compress(events("carol", STACK, count).encode()))
    (copy,) = redact_capture([file], into, REDACTOR)
    assert copy == into / "axxxx.trace.json.gz"
    assert gzip.decompress(copy.read_bytes()).decode() == events("xxxxx", STACK_MASK, count)
    assert copy.read_bytes()[4:8] == bytes(4), "no time stands in the file"


def test_plain_json_stays_plain_and_escapes_stay_valid(tmp_path, into):
    file = tmp_path / "tw003.trace.json"
    file.write_text(json.dumps({"source_stack": STACK}))
    (copy,) = redact_capture([file], into, REDACTOR)
    assert json.loads(copy.read_text()) == {"source_stack": STACK_MASK.replace("xx\n", "x\n")}


def test_every_kind_of_file_and_nothing_else(tmp_path, into):
    space = Space("tw003")
    space.tpu(0).op("a", 0, 1, source="/home/carol/m.py")
    content = space.encode()
    made = {
        "tw003.xplane.pb": content,
        "alice.xplane.pb": gzip.compress(content),
        "perfetto_trace.json.gz": gzip.compress(b'{"traceEvents": []}'),
        "profile_context.json": b'{"run_id": "alice-7", "trigger": "of alice"}',
        "notes of alice.txt": b"alice",
        "profile_summary.json": b"{}",
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    copies = redact_capture([tmp_path / name for name in made], into, REDACTOR)
    names = ["axxxx.xplane.pb", "xxxxx.xplane.pb", "perfetto_trace.json.gz", "profile_context.json"]
    assert [copy.name for copy in copies] == names
    assert sorted(path.name for path in into.iterdir()) == sorted(names)
    masked = content.replace(b"tw003", b"axxxx").replace(b"carol", b"xxxxx")
    assert copies[0].read_bytes() == gzip.decompress(copies[1].read_bytes()) == masked
    assert json.loads(copies[3].read_text()) == {"run_id": "alice-7", "trigger": "of xxxxx"}
    assert (tmp_path / "tw003.xplane.pb").read_bytes() == content, "the original stays"


def test_masking_copies_again_changes_nothing(tmp_path, into):
    file = tmp_path / "tw003.trace.json.gz"
    file.write_bytes(gzip.compress(events("carol", STACK).encode()))
    first = redact_capture([file], into, REDACTOR)
    again = redact_capture(first, into / "again", REDACTOR)
    assert [copy.name for copy in again] == [copy.name for copy in first]
    assert again[0].read_bytes() == first[0].read_bytes()


def test_copies_that_would_share_a_name(tmp_path, into):
    files = [tmp_path / folder / "tw003.xplane.pb" for folder in ("a", "b")]
    for file in files:
        Space("tw003").write(file)
    with pytest.raises(UsageError, match=r"axxxx\.xplane\.pb"):
        redact_capture(files, into, REDACTOR)


def test_a_damaged_file_leaves_no_copy(tmp_path, into):
    file = tmp_path / "tw003.trace.json.gz"
    file.write_bytes(gzip.compress(events("carol", STACK, 99).encode())[:-9])
    with pytest.raises(BrokenInputError, match="cut or damaged"):
        redact_capture([file], into, REDACTOR)
    assert list(into.iterdir()) == []


def test_an_empty_file_is_copied(tmp_path, into):
    file = tmp_path / "tw003.xplane.pb"
    file.touch()
    (copy,) = redact_capture([file], into, REDACTOR)
    assert copy.read_bytes() == b""


def test_hosts_are_those_of_names_and_contents(tmp_path):
    Space("node7.corp").write(tmp_path / "node7.xplane.pb")
    for name in ("other.trace.json.gz", "perfetto_trace.json.gz", "profile_context.json"):
        (tmp_path / name).touch()
    assert capture_host_names(tmp_path.iterdir()) == ["node7", "node7.corp", "other"]


def test_several_hosts_stay_apart_and_in_order(tmp_path, into):
    below = ("plugins", "profile", STAMP)
    hosts = [f"pod-w-{worker}" for worker in (2, 10, 11)]
    files = []
    for index, host in enumerate(hosts):
        space = Space(f"{host}.corp")
        tpu = space.tpu(0)
        for step in range(3):
            tpu.step(step, 100 * step, 90)
            tpu.op("fusion.1", 100 * step, 50 + index, source="/home/carol/m.py:3")
        files.append(space.write(tmp_path.joinpath("original", *below, f"{host}.xplane.pb")))
    redactor = Redactor(hosts=tuple(capture_host_names(files)))
    redact_capture(files, into.joinpath(*below), redactor)
    before, after = summarize(tmp_path / "original"), summarize(into)

    def without_digests(text: str) -> list[str]:
        return [line for line in text.splitlines() if "sha256" not in line]

    expected = redact_summary(before, redactor)
    assert [row.host for row in after.hosts] == ["bxx-w-10", "bxx-w-11", "bxx-w-2"]
    assert without_digests(after.to_json()) == without_digests(expected.to_json())
