"""An XSpace masked in place: whole texts are found whatever stands beside them."""

from __future__ import annotations

import numpy as np
import pytest

from builders_xspace import (
    Ref,
    Space,
    computation,
    hlo_proto,
    instruction,
    message,
    number,
    packed,
    read_bytes,
)
from marin_profile.readers.hlo import read_hlo_proto
from marin_profile.redact import Redactor
from marin_profile.redact.xplane import host_names, mask_xspace

pytestmark = pytest.mark.usefixtures("loops")

REDACTOR = Redactor(users=("alice",), hosts=("tw003",))


def masked(content: bytes, redactor: Redactor = REDACTOR) -> bytes:
    buffer = np.frombuffer(content, np.uint8).copy()
    mask_xspace(buffer, redactor)
    assert len(buffer) == len(content)
    once = buffer.tobytes()
    mask_xspace(buffer, redactor)
    assert buffer.tobytes() == once
    return once


def test_a_name_at_the_end_of_a_text_is_masked_and_the_next_field_is_not():
    """Field 6 of a plane starts with the byte "2", a text of 97 bytes with an "a"."""
    space = Space("tw003")
    before = "a" * 91
    space.plane("/device:TPU:0 /home/bert", owner="tw003", home="/home/bert", last="tw003")
    space.plane(f"alice{before}x", first="alice " + before)
    content = masked(space.encode())
    expected = Space("axxxx")
    expected.plane("/device:TPU:0 /home/xxxx", owner="axxxx", home="/home/xxxx", last="axxxx")
    expected.plane(f"alice{before}x", first="xxxxx " + before)
    assert content == expected.encode()


def test_events_metadata_and_lines():
    def space(home: str, user: str) -> Space:
        made = Space()
        tpu = made.tpu(0, note=user)
        tpu.op("fusion.1", 0, 5, source=f"/home/{home}/m.py:3", scope=f"jit(f)/{user}/add")
        tpu.op("fusion.2", 5, 5, long_name=f"%fusion.2 source_file=/home/{home}", kept=user)
        tpu.line("XLA Ops", display_name=f"of {user}")
        return made

    assert masked(space("carol", "alice").encode()) == space("xxxxx", "xxxxx").encode()


STACK = "/srv/models/train.py:12:3\n<embedded 'é'>:4\n"
STACK_MASK = "/xxx/xxxxxx/xxxxx.xx:xx:x\n<xxxxxxxx 'xx'>:x\n"


def test_source_stacks_lose_their_words():
    def space(stack: str, ref: str) -> Space:
        made = Space()
        tpu = made.tpu(0)
        shared = {"source": Ref("train.py:12"), "source_stack": Ref("train.py:12")}
        tpu.event("XLA Ops", "a", 0, 1, shared={"source": "train.py:12", "source_stack": stack})
        tpu.event("XLA Ops", "b", 1, 1, shared={"source_stack": Ref(ref)})
        tpu.event("XLA Ops", "c", 2, 1, shared=shared)
        tpu.event("XLA Ops", "d", 3, 1, source_stack=stack)
        return made

    before = space(STACK, STACK.replace("12", "13"))
    after = space(STACK_MASK, STACK_MASK)
    assert masked(before.encode()) == after.encode()


def hlo(home: str, frame: str, function: str) -> bytes:
    """Two instructions with source files, a backend config, and a table of stack frames."""
    metadata = message(2, "jit(f)/add") + message(3, f"/home/{home}") + number(4, 12)
    add = instruction("add.1", "add", id=1) + message(7, metadata)
    call = instruction("call.2", "custom-call", id=2) + message(43, f'{{"f":"/home/{home}/k"}}')
    numbers = packed(1, [47, 104, 111, 109])
    module = message(1, "jit_f") + message(3, computation(1, 1, add, call)) + message(7, numbers)
    table = message(1, frame) + message(2, function) + message(3, number(1, 1) + number(2, 1))
    return message(1, module + message(17, table))


def test_hlo_protos_are_masked_inside():
    def space(*facts: str) -> bytes:
        return Space().hlo(7, hlo(*facts)).encode()

    content = masked(space("carol", "/srv/m.py", "f"))
    assert content == space("xxxxx", "/xxx/x.xx", "x")


def test_a_masked_hlo_proto_gives_the_same():
    proto = hlo_proto(computation(1, 1, instruction("add.1", "add", id=1, op_name="jit(f)/add")))
    content = masked(Space("tw003").hlo(7, proto).encode())
    assert read_bytes(content).hlo == {
        7: read_hlo_proto(np.frombuffer(proto, np.uint8), 0, len(proto))
    }


def test_a_cut_file_is_masked_to_its_end():
    space = Space()
    space.tpu(0).op("a", 0, 1, source="/home/carol/m.py")
    whole = space.encode()
    end = whole.index(b"carol") + 5
    for cut in (end, end + 3, len(whole) - 1):
        assert masked(whole[:cut]) == whole[:cut].replace(b"carol", b"xxxxx")


def test_texts_across_blocks(monkeypatch):
    monkeypatch.setattr("marin_profile.redact.xplane._BLOCK", 7)
    space = Space("tw003")
    space.tpu(0).op("a", 0, 1, source="/home/carol/alice.py")
    content = masked(space.encode())
    assert b"/home/xxxxx/xxxxx.py" in content
    assert content.endswith(b"axxxx")


def test_hosts_named_inside():
    space = Space("tw003.corp")
    space.tpu(0)
    assert host_names(np.frombuffer(space.encode(), np.uint8)) == ["tw003.corp"]
