"""What the compiled loop takes, what it leaves, and its numbers and hashes against plain ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders_json as build
from marin_profile.base.jit import COMPILED, PLAIN, forced
from marin_profile.readers import json_loop
from marin_profile.readers.json_events import Events
from marin_profile.readers.json_loop import UsualEvents, hash_of
from marin_profile.readers.json_text import parse_decimal, parse_int

# What lies behind the end must not matter: quotes are the worst.
BEHIND = b'"' * 8


def by_the_loop(text: bytes) -> tuple[Events, int]:
    """What the compiled loop takes, and where it stops."""
    events = Events()
    buffer = np.frombuffer(bytearray(text + BEHIND), np.uint8)
    with forced(COMPILED):
        return events, UsualEvents().read(buffer, 0, len(text), events)


USUAL = build.event("f", "1.5", "9.9999999999999995e-07", run_id="-2053747139", source="a.py:1")


def test_the_loop_takes_what_is_usual_with_its_texts() -> None:
    text = f"{USUAL},{build.event('g', hlo_op='x')} , {build.event('f', ph='C')},{USUAL}]".encode()
    events, at = by_the_loop(text)
    assert at == len(text) - 1
    assert [op.name for op in events.ops] == ["f", "g"]
    assert (events.ops[0].source, events.ops[1].hlo_op) == ("a.py:1", "x")
    assert events.op.tolist() == [0, 1, 0]
    assert events.duration.tolist() == [0, 1_000_000, 0]
    assert (events.id_rows[2].tolist(), events.id_values[2].tolist()) == ([0, 2], [-2053747139] * 2)
    assert (events.num_objects, events.num_complete) == (4, 3)


@pytest.mark.parametrize(
    "unusual",
    [
        "{}",
        build.thread(),
        build.event(ts=None),
        build.event(dur=None),
        build.event(ts='"1"'),
        build.event(ts="1e+03"),
        build.event(ts="NaN"),
        build.event(ts="1234567890123456789"),
        build.event(ts="-"),
        build.event(ts="1e-"),
        build.event(ts="1e-1000"),
        build.event(dur="-1"),
        build.event(dur="4600000000001"),
        build.event(pid="1.0"),
        build.event(tid='" 1"'),
        build.event(run_id="x"),
        build.event(run_id=[1]),
        build.event(**{"External id": 5}),
        build.event(ph="XX"),
        USUAL.replace("1.5", "1.5.2"),
        USUAL.replace('"f"', '"f'),
        USUAL[:-1],
        USUAL[:-2],
        USUAL.replace('"ph"', "ph"),
        USUAL.replace(":", " ", 1),
        "7",
    ],
)
def test_the_loop_stops_before_what_is_unusual(unusual: str) -> None:
    for behind in ("]", "," + USUAL + "]", ""):
        events, at = by_the_loop(f"{USUAL}, {unusual}{behind}".encode())
        assert (at, events.num_rows) == (len(USUAL) + 2, 1)


DECIMALS = st.from_regex(r"-?[0-9]{0,19}(\.[0-9]{0,12})?(e-?[0-9]{1,3})?", fullmatch=True)


@settings(deadline=None, max_examples=300)
@given(DECIMALS | st.floats(-1e16, 1e16).map(lambda value: f"{value:.17g}"))
def test_numbers_of_the_loop_are_those_of_the_plain_form(text: str) -> None:
    raw = text.encode()
    buffer = np.frombuffer(bytearray(raw + BEHIND), np.uint8)
    with forced(COMPILED):
        whole, millionths, ok = json_loop._decimal(buffer, 0, len(raw))
        integer, is_one = json_loop._integer(buffer, 0, len(raw))
    if ok:
        assert (whole, millionths) == parse_decimal(raw)
    elif (value := parse_decimal(raw)) is not None:
        # What it leaves: many digits, and exponents that make a number greater.
        assert len(text.strip("-")) > 17 or "e" in text or value == (0, 0)
    assert (integer if is_one else None) == parse_int(raw)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_the_hash_of_a_span(text: bytes) -> None:
    buffer = np.frombuffer(bytearray(text + BEHIND), np.uint8)
    first, second = json_loop._P1, json_loop._P2
    with forced(COMPILED):
        found = json_loop._hash_span(buffer, 0, len(text), first, second)
    assert found == hash_of(text, int(first), int(second))


def test_hashes_do_not_meet() -> None:
    texts = [f"fusion.{at}".encode() for at in range(20_000)]
    texts += [b"\0" * length for length in range(100)]
    pairs = [hash_of(text, int(json_loop._P1), int(json_loop._P2)) for text in texts]
    first, second = zip(*pairs, strict=True)
    assert len(set(first)) == len(set(second)) == len(texts)


@pytest.mark.parametrize("key", [*json_loop._OWN, *json_loop._ARGS, "x", "", "pids"])
@pytest.mark.parametrize("level", [0, 1])
def test_a_known_key_counts_at_its_level(key: str, level: int) -> None:
    own = {key: at for at, key in enumerate(json_loop._OWN)}
    args = {key: len(own) + at for at, key in enumerate(json_loop._ARGS)}
    known = json_loop._known_keys()
    first, second = hash_of(key.encode(), int(json_loop._P1), level)
    with forced(COMPILED):
        row = json_loop._find(known, np.uint64(first), np.uint64(second))
    assert int(known[row, 2]) - 1 == (own, args)[level].get(key, -1)


def test_the_plain_form_takes_nothing() -> None:
    events = Events()
    buffer = np.frombuffer(bytearray(USUAL.encode() + BEHIND), np.uint8)
    with forced(PLAIN):
        assert UsualEvents().read(buffer, 0, len(USUAL), events) == 0
    assert events.num_rows == 0
