"""Every loop in its three forms, on drawn inputs: they give the same, and no loop is left out.

The forms are compiled, plain, and interpreted: a loop's own code run by Python, as where numba is
told to compile nothing. A loop that the case of its module does not reach, in at least LEAST of its
lines, fails.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders_json
import marin_profile
from builders_xspace import Space, double, fixed32, message, number
from marin_profile.base.errors import ProfileError
from marin_profile.base.jit import COMPILED, PLAIN, Loop, forced
from marin_profile.pipeline import summarize
from marin_profile.readers import json_loop, json_scan
from marin_profile.redact import Redactor
from marin_profile.redact.xplane import host_names, mask_xspace
from plain_values import plain
from strategies_xspace import spaces

PACKAGE = Path(marin_profile.__file__).parent
LEAST = 3 / 4
# What a Loop keeps of its forms.
KEPT = ("compiled", "inner", "plain")

Value = Any


def all_loops() -> dict[str, list[Loop]]:
    """By the module that owns them."""
    found: dict[str, list[Loop]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "marin_profile.base.jit" not in path.read_text():
            continue
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        module = importlib.import_module(".".join(("marin_profile", *parts)))
        for value in vars(module).values():
            if isinstance(value, Loop) and value.__module__ == module.__name__:
                found.setdefault(".".join(parts), []).append(value)
    return found


LOOPS = all_loops()


# --- what is drawn, and what comes of it ---------------------------------------------------------


BYTES = st.integers(0, 255) | st.sampled_from(b'{}[]",:\\-.e0 \x80\xff')


@st.composite
def damaged(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """One in two as it is; the others with a few bytes set, and some cut."""
    content = bytearray(draw(contents))
    if content and draw(st.booleans()):
        places = st.integers(0, len(content) - 1)
        for at, value in draw(st.lists(st.tuples(places, BYTES), max_size=4)):
            content[at] = value
        if draw(st.booleans()):
            del content[draw(places) :]
    return bytes(content)


# Fields of the numbers that an event and a line know, and of others; of wire types that fit or not.
ODD = st.one_of(
    st.builds(number, st.integers(1, 12), st.integers(-3, 9) | st.integers(-(2**63), 2**63 - 1)),
    st.builds(message, st.integers(1, 12), st.binary(max_size=3)),
    st.builds(double, st.integers(1, 12), st.just(0.5)),
    st.builds(fixed32, st.integers(1, 12), st.just(7)),
)
ODD_EVENTS = st.lists(ODD | st.lists(ODD, max_size=3).map(b"".join).map(partial(message, 4)))
ODD_LINES = st.lists(ODD | ODD_EVENTS.map(b"".join).map(partial(message, 4)), max_size=5)


# What a field that no plane has may hold: a text, a message, neither.
UNKNOWN = st.sampled_from((b"by alice", message(2, message(3, "alice")), b"\0 alice \xff"))
ALLOCATOR = ("bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use")


@st.composite
def crowded(draw: st.DrawFn) -> bytes:
    """A space, with source stacks, flows between host threads, allocations, more ops and names than
    the tables of a loop begin with, and fields that nobody writes."""
    space: Space = draw(spaces())
    if draw(st.booleans()):
        tpu = space.tpu(7)
        for index in range(draw(st.sampled_from([80, 3]))):
            stack = f"/home/alice/train.py:{index}\n"
            start = 7 * index % 60  # not drawn: of so many draws hypothesis gives up
            tpu.event("XLA Ops", f"op.{index}", start, 40, shared={"source_stack": stack})
            tpu.event("Other", "x", start, 1, source_stack=stack, **{f"stat {index}": 1.5})
    if draw(st.integers(0, 3)):
        host = space.host().marker(0, 0, 40).marker(1, 50, 40)
        host.call("linkage", 10, 1, _pt=1, _p=0).call("Execute", 30, 1, line="pool", run_id=0)
        host.call("linkage", 20, draw(st.integers(1, 40)), line="main/1", _ct=1, _c=0)
        for run_id in range(draw(st.integers(1, 12))):
            line = draw(st.sampled_from(["python", "main/1", "main/2"]))
            flow = draw(st.integers(0, 2))
            ends = {"_pt": 1, "_p": flow} if draw(st.booleans()) else {"_ct": 1, "_c": flow}
            host.call("linkage", draw(st.integers(0, 90)), 9, line=line, **ends)
            host.call("Execute", draw(st.integers(0, 90)), 1, line="pool", run_id=run_id)
            sizes = dict.fromkeys(ALLOCATOR, draw(st.integers(0, 9)))
            host.call("MemoryAllocation", draw(st.integers(0, 90)), 0, line="pool", **sizes)
    odd = [message(3, b"".join(draw(ODD_LINES))) for _ in range(draw(st.integers(0, 2)))]
    odd += [message(9, one) for one in draw(st.lists(UNKNOWN, min_size=1, max_size=3))]
    return space.encode() + message(1, message(2, "/device:TPU:9") + b"".join(odd))


REDACTOR = Redactor(users=("alice",), hosts=("host-0",))


def of_xspace(content: bytes) -> Value:
    buffer = np.frombuffer(content, np.uint8).copy()
    names = host_names(buffer)
    mask_xspace(buffer, REDACTOR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host-0.xplane.pb"
        path.write_bytes(content)
        try:
            summary = summarize(path).to_json()
        except ProfileError as error:
            summary = str(error).replace(folder, "")
    return names, buffer.tobytes(), summary


WORDS = st.text(max_size=6) | st.sampled_from(("", "f", "ü" * 9, '"', "\\", "\0", "{[", "a" * 40))
DIGITS = st.integers(-(10**30), 10**30).map(str)
DECIMALS = st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,9}([eE][+-]?[0-9]{0,3})?", fullmatch=True)
SCIENTIFIC = st.builds(
    "{}.{}e{}".format, st.integers(0, 10**12), st.integers(0, 10**12), st.integers(-14, 22)
)
NUMBERS = DIGITS | DECIMALS | SCIENTIFIC | st.floats(0, 1e16).map(repr)
TEXTS = NUMBERS | NUMBERS.map(lambda text: f'"{text}"') | st.sampled_from(("null", "[1,{}]", '"x"'))
ARGS = st.dictionaries(
    st.sampled_from(
        (
            "run_id",
            "correlation_id",
            "_p",
            "_ct",
            "long_name",
            "device_offset_ps",
            "device_duration_ps",
            "other",
        )
    ),
    TEXTS | WORDS.map(json.dumps),
    max_size=5,
)
PHASES = st.sampled_from(("X", "X", "X", "i", "M", "C", "")).map(json.dumps)
OPTIONAL = {
    "pid": st.sampled_from(("3", "4", '"5"', "+6", "x")),
    "tid": st.sampled_from(("3", "-1", "1e3", str(2**70))),
    "ts": TEXTS,
    "dur": TEXTS,
    "name": WORDS.map(json.dumps) | st.just(json.dumps("thread_name")),
    "args": ARGS,
}
BLANKS = st.sampled_from(("", "", " ", "\n\t "))


@st.composite
def objects(draw: st.DrawFn) -> str:
    parts = draw(st.fixed_dictionaries({"ph": PHASES}, optional=OPTIONAL))
    blank = draw(BLANKS)
    texts = {
        key: f"{{{','.join(f'{json.dumps(k)}:{v}' for k, v in value.items())}}}"
        if isinstance(value, dict)
        else value
        for key, value in parts.items()
    }
    return f"{{{f',{blank}'.join(f'{json.dumps(key)}:{blank}{texts[key]}' for key in texts)}}}"


FEW_OR_MANY = st.sampled_from((0, 0, 0, 30))


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    events = draw(st.lists(objects(), max_size=8))
    events += [builders_json.event(f"op.{at}", tid=str(at)) for at in range(draw(FEW_OR_MANY))]
    return builders_json.trace(*events)


def of_json(content: bytes) -> Value:
    """With tables that are soon too small, so that they grow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_loop, "CHUNK", 8)
        patch.setattr(json_scan, "CHUNK", 8)
        patch.setattr(json_loop, "FIRST_TABLE", 32)
        try:
            return plain(builders_json.read(content))
        except ProfileError as error:
            return str(error)


@dataclass(frozen=True)
class Case:
    drawn: st.SearchStrategy[bytes]
    run: Callable[[bytes], Value]
    examples: int


CASES = {
    "json": Case(damaged(traces()), of_json, 200),
    "xspace": Case(damaged(crowded()), of_xspace, 60),
}


def case_of(module: str) -> str:
    return "json" if "json" in module else "xspace"


# --- the forms -----------------------------------------------------------------------------------


@contextmanager
def interpreted() -> Iterator[None]:
    loops = [loop for own in LOOPS.values() for loop in own]
    kept = [{name: vars(loop).pop(name) for name in KEPT if name in vars(loop)} for loop in loops]
    with pytest.MonkeyPatch.context() as patch, forced(COMPILED), np.errstate(over="ignore"):
        patch.setattr(numba.config, "DISABLE_JIT", 1)
        try:
            yield
        finally:
            for loop, forms in zip(loops, kept, strict=True):
                for name in KEPT:
                    vars(loop).pop(name, None)
                vars(loop).update(forms)


@contextmanager
def traced(codes: set[CodeType], reached: set[tuple[CodeType, int]]) -> Iterator[None]:
    """Collects which lines of `codes` run."""

    def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        reached.add((frame.f_code, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return line if frame.f_code in codes else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def lines_of(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line and line > code.co_firstlineno}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(CASES))
def test_all_forms_give_the_same_and_no_loop_is_left_out(name: str) -> None:
    case = CASES[name]
    loops = {
        loop._function.__code__: f"{module}.{loop.__name__}"
        for module, own in LOOPS.items()
        for loop in own
        if case_of(module) == name
    }
    reached: set[tuple[CodeType, int]] = set()

    @settings(max_examples=case.examples, suppress_health_check=[*HealthCheck])
    @given(case.drawn)
    def check(content: bytes) -> None:
        with interpreted(), traced(set(loops), reached):
            expected = case.run(content)
        for form in (PLAIN, COMPILED):
            with forced(form):
                assert case.run(content) == expected, form

    check()
    missed = {}
    for code, title in loops.items():
        lines = lines_of(code)
        left = sorted(lines - {line for one, line in reached if one is code})
        if len(left) > (1 - LEAST) * len(lines):
            missed[title] = left
    assert not missed, missed
