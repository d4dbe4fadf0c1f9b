"""Events of an array in both forms of the loop, against a plain oracle of the json module."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders_json as build
from marin_profile.base.jit import COMPILED, forced
from marin_profile.readers.json_events import MAX_SPAN_US, Events
from marin_profile.readers.json_loop import UsualEvents
from marin_profile.readers.json_scan import ARRAY_CLOSED, ROOM_FULL, read_objects
from marin_profile.readers.json_text import BAD, CUT
from marin_profile.readers.op_stats import EVENT_NUMBERS, OP_STATS

# What lies behind the end must not matter: quotes are the worst.
BEHIND = b'"' * 8


def plainly(text: bytes) -> Events:
    events = Events()
    _, outcome = read_objects(text + BEHIND, 0, len(text), 100, events)
    assert outcome == ARRAY_CLOSED
    return events


def in_turns(text: bytes) -> Events:
    """The compiled loop takes what it can, the plain form the next object, and so on."""
    events, usual, at, outcome = Events(), UsualEvents(), 0, ROOM_FULL
    buffer = np.frombuffer(bytearray(text + BEHIND), np.uint8)
    while outcome == ROOM_FULL:
        with forced(COMPILED):
            at = usual.read(buffer, at, len(text), events)
        at, outcome = read_objects(buffer.data, at, len(text), 1, events)
    assert outcome == ARRAY_CLOSED
    return events


def rows(events: Events) -> list[tuple[Any, ...]]:
    """(track, op, ps, duration, numbers) of each row."""
    found: list[tuple[Any, ...]] = []
    for at in range(events.num_rows):
        numbers = {
            key: column[list(own).index(at)]
            for key, own, column in zip(
                EVENT_NUMBERS, events.id_rows, events.id_values, strict=True
            )
            if at in own
        }
        op = events.ops[events.op[at]]
        start = events.whole_us[at] * 10**6 + events.fraction_ps[at]
        track = events.tracks[events.line[at]]
        found.append((track, (op.name, op.long_name), start, events.duration[at], numbers))
    return found


NAMES = st.sampled_from(["f", "g", "", 'quote"', "back\\slash", "\0", "é", "x" * 50])
NUMBERS = st.integers(-5, 10**15) | st.decimals(0, 10**12, places=9).map(float)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXiC"), "pid": st.integers(0, 3), "tid": st.integers(-1, 2**40)},
    optional={
        "ts": NUMBERS,
        "dur": NUMBERS,
        "name": NAMES,
        "args": st.dictionaries(
            st.sampled_from((*EVENT_NUMBERS, "long_name", "other")),
            NAMES | st.integers(-(2**63), 2**63 - 1).map(str),
        ),
    },
)


def oracle(events: list[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    """Rows as `rows` gives them, and what was dropped."""
    found, dropped = (
        [],
        dict.fromkeys(
            ("missing_timestamp", "missing_duration", "bad_duration", "negative_duration"), 0
        ),
    )
    for event in events:
        has_text = "name" in event or "args" in event
        if event["ph"] != "X" and not (event["ph"] == "i" and has_text):
            continue
        duration = Decimal(str(event.get("dur", 0))) if event["ph"] == "X" else Decimal(0)
        if "ts" not in event:
            dropped["missing_timestamp"] += 1
        elif event["ph"] == "X" and "dur" not in event:
            dropped["missing_duration"] += 1
        elif duration > MAX_SPAN_US:
            dropped["bad_duration"] += 1
        elif duration < 0:
            dropped["negative_duration"] += 1
        else:
            ps = round(duration * 10**6)
            args = event.get("args", {})
            numbers = {
                key: int(args[key])
                for key in EVENT_NUMBERS
                if args.get(key, "").strip("-").isdigit()
            }
            found.append(
                (
                    (event["pid"], event["tid"]),
                    (event.get("name", ""), args.get("long_name", "")),
                    round(Decimal(str(event["ts"])) * 10**6),
                    0 if ps == 1 else ps,
                    numbers,
                )
            )
    return found, {reason: count for reason, count in dropped.items() if count}


@pytest.mark.parametrize("read", [plainly, in_turns])
@settings(deadline=None)
@given(st.lists(EVENTS, max_size=12), st.sampled_from([None, 1]))
def test_events_as_the_json_module_reads_them(
    read: Callable[[bytes], Events], events: list[dict[str, Any]], indent: int | None
) -> None:
    expected, dropped = oracle(events)
    found = read(json.dumps(events, indent=indent).encode()[1:])
    assert rows(found) == expected
    assert +found.dropped == dropped
    assert found.num_objects == len(events)
    assert found.num_complete == sum(event["ph"] == "X" for event in events)


def test_names_of_tracks_and_what_a_chunk_ends_with() -> None:
    good = build.event("a")
    text = ",".join([build.thread(3, 9, "line"), good, good, "{}]"]).encode()
    events = Events()
    at, outcome = read_objects(text, 0, len(text), 2, events)
    assert (outcome, events.num_rows, events.threads) == (ROOM_FULL, 1, {(3, 9): "line"})
    assert read_objects(text, at, len(text), 9, events) == (len(text), ARRAY_CLOSED)
    for tail, outcome in ((good[:-4], CUT), ("", CUT), ('{"a":"b"c"}', BAD), ("5,", BAD)):
        events, text = Events(), f"{good}, {tail}".encode()
        assert read_objects(text, 0, len(text), 9, events) == (len(good) + 2, outcome)
        assert events.num_rows == 1


def test_texts_of_an_op_are_all_that_describe_one() -> None:
    stats = {key: f"{at}" for at, key in enumerate(OP_STATS)}
    for read in (plainly, in_turns):
        (op,) = read((build.event("n", **stats) + "]").encode()).ops
        assert (op.name, op.long_name, op.memcpy_details) == ("n", "0", "12")
        assert (op.flops, op.program_id, op.scope_hints) == (9, 3, ("5", "6"))
