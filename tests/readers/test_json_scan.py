"""Every function against a plain-Python oracle, and hand-worked values."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders_json as build
from marin_profile.readers import json_scan
from marin_profile.readers.json_scan import (
    ARG_NAME,
    ARRAY_CLOSED,
    BAD,
    CUT,
    DURATION,
    FIRST_ID_COLUMN,
    FIRST_REASON,
    FRACTION_PS,
    HAS,
    ID_KEYS,
    LINE,
    METAS,
    NAME,
    NEW_OPS,
    NUM_COLUMNS,
    NUM_COUNTS,
    NUM_FIELDS,
    NUM_META_COLUMNS,
    NUM_OP_FIELDS,
    OP,
    OP_KEYS,
    REASONS,
    ROOM_FULL,
    ROWS,
    WHOLE_US,
)

KNOWN = json_scan.known_keys()
MASK = 2**64 - 1


def buffer(text: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(text + b'"' * 8), np.uint8)


class Scan:
    """One call of `scan_json_events` on a text, with room for `size` objects."""

    def __init__(self, text: bytes, size: int = 64) -> None:
        self.text = text
        self.columns = np.zeros((NUM_COLUMNS, size), np.int64)
        self.new_ops = np.zeros((size, NUM_OP_FIELDS, 2), np.int64)
        self.metas = np.zeros((size, NUM_META_COLUMNS), np.int64)
        self.counts = np.zeros(NUM_COUNTS, np.int64)
        self.lines = json_scan.new_table(64)
        self.ops = json_scan.new_table(64)
        self.at, self.outcome = json_scan.scan_json_events(
            buffer(text),
            0,
            len(text),
            KNOWN,
            np.zeros((NUM_FIELDS, 2), np.int64),
            self.lines,
            self.ops,
            self.columns,
            self.new_ops,
            self.metas,
            self.counts,
        )

    def column(self, which: int) -> list[int]:
        return self.columns[which, : self.counts[ROWS]].tolist()

    def dropped(self) -> dict[str, int]:
        counts = self.counts[FIRST_REASON:].tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}

    def span(self, span: np.ndarray) -> bytes:
        return self.text[span[0] : span[1]]


def plain_mix(a: int, b: int, word: int) -> tuple[int, int]:
    a = ((a ^ word) * int(json_scan.P1)) & MASK
    b = ((b + word) * int(json_scan.P2)) & MASK
    return a ^ (a >> 32), b ^ (b >> 29)


def plain_hash(text: bytes, a: int, b: int) -> tuple[int, int]:
    a, b = plain_mix(a, b, len(text))
    for at in range(0, len(text), 8):
        a, b = plain_mix(a, b, int.from_bytes(text[at : at + 8], "little"))
    return a, b


def hash_of(text: bytes) -> tuple[int, int]:
    return json_scan.hash_span(buffer(text), 0, len(text), json_scan.P1, json_scan.P2)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_hash_of_a_span(text: bytes) -> None:
    assert hash_of(text) == plain_hash(text, int(json_scan.P1), int(json_scan.P2))


def test_hashes_do_not_meet() -> None:
    texts = [f"fusion.{at}".encode() for at in range(20_000)]
    texts += [b"\0" * length for length in range(100)]
    first, second = zip(*map(hash_of, texts), strict=True)
    assert len(set(first)) == len(set(second)) == len(texts)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, MASK)), max_size=30)


@settings(deadline=None)
@given(PAIRS)
def test_table_numbers_entries_like_a_dict(pairs: list[tuple[int, int]]) -> None:
    table = json_scan.new_table(32)
    expected: dict[tuple[int, int], int] = {}
    for a, b in pairs:
        index = json_scan.intern(table, np.uint64(a), np.uint64(b), len(expected))
        assert index == expected.setdefault((a, b), len(expected))
    bigger = json_scan.new_table(64)
    json_scan.copy_entries(table, bigger)
    for (a, b), index in expected.items():
        for copy in (table, bigger):
            row = json_scan.find_row(copy, np.uint64(a), np.uint64(b))
            assert copy[row].tolist() == [a, b, index + 1]


@pytest.mark.parametrize("key", json_scan.EVENT_KEYS + ID_KEYS + OP_KEYS + ("x", "", "pids"))
@pytest.mark.parametrize("level", [0, 1])
def test_field_of_a_key(key: str, level: int) -> None:
    own = {key: at for at, key in enumerate(json_scan.EVENT_KEYS)} | {"name": NAME}
    args = {key: json_scan.FIRST_ID + at for at, key in enumerate(ID_KEYS)}
    args |= {key: NAME + 1 + at for at, key in enumerate(OP_KEYS)}
    text = key.encode()
    field = json_scan.field_of(KNOWN, buffer(text), 0, len(text), level)
    assert field == (own, args)[level].get(key, -1)


def read_object(text: bytes) -> tuple[int, np.ndarray]:
    spans = np.zeros((NUM_FIELDS, 2), np.int64)
    return json_scan.read_object(buffer(text), 0, len(text), KNOWN, spans), spans


def test_fields_of_an_object_in_any_order_and_layout() -> None:
    text = b"""{ "args" : { "name" : "arg" , "other":[{"ph":"Z"}], "run_id":"7" } ,
        "name":"own", "dur" : 2.5 ,\t"ph":"X"\r\n} """
    end, spans = read_object(text)
    assert end == len(text) - 1
    found = {at: text[a:b] for at, (a, b) in enumerate(spans.tolist()) if a >= 0 and b > a}
    assert found[NAME] == b'"own"'
    assert found[ARG_NAME] == b'"arg"'
    assert found[json_scan.DUR] == b"2.5"
    assert found[json_scan.PH] == b'"X"'
    assert found[json_scan.FIRST_ID + ID_KEYS.index("run_id")] == b'"7"'
    assert spans[json_scan.TS, 0] == -1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (b"{}", 2),
        (b'{"args":{}}', 11),
        (b'{"args":{ } ,"ph":"X"}', 22),
        (b'{"args":"none"}', 15),
        (b"{", CUT),
        (b'{"ph', CUT),
        (b'{"ph"', CUT),
        (b'{"ph":', CUT),
        (b'{"ph":"X"', CUT),
        (b'{"ph":"X",', CUT),
        (b'{"args":{', CUT),
        (b'{"args":{"a":1}', CUT),
        (b'{"name":"a"b"}', BAD),
        (b'{"ph":"X",}', BAD),
        (b'{"ph":"X" "pid":3}', BAD),
        (b'{"ph":"X",{"ph":"X"}', BAD),
        (b'{"args":{"a":1,{"ph":"X"}', BAD),
        (b'{"ph" "X"}', BAD),
        (b'{"ph":}', BAD),
        (b"{ph:1}", BAD),
    ],
)
def test_where_an_object_ends(text: bytes, outcome: int) -> None:
    assert read_object(text)[0] == outcome


NAMES = st.sampled_from(["f", "g", "", 'quote"', "back\\slash", "\0", "é", "x" * 50])
NUMBERS = st.integers(-5, 10**15) | st.decimals(0, 10**12, places=9).map(float)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXiMC"), "pid": st.integers(0, 3), "tid": st.integers(-1, 2**40)},
    optional={
        "ts": NUMBERS,
        "dur": NUMBERS,
        "name": NAMES,
        "args": st.dictionaries(
            st.sampled_from((*ID_KEYS, "long_name", "other")),
            NAMES | st.integers(-(2**63), 2**63 - 1).map(str),
        ),
    },
)


def plain_scan(events: list[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    """Rows (track, op, ps, duration, ids) and what was dropped."""
    rows, dropped = [], dict.fromkeys(REASONS, 0)
    for event in events:
        has_text = "name" in event or "args" in event
        if event["ph"] != "X" and not (event["ph"] == "i" and has_text):
            continue
        duration = Decimal(str(event.get("dur", 0))) if event["ph"] == "X" else Decimal(0)
        if "ts" not in event:
            dropped["missing_timestamp"] += 1
        elif event["ph"] == "X" and "dur" not in event:
            dropped["missing_duration"] += 1
        elif duration > json_scan.MAX_SPAN_US:
            dropped["bad_duration"] += 1
        elif duration < 0:
            dropped["negative_duration"] += 1
        else:
            ps = round(duration * 10**6)
            args = event.get("args", {})
            ids = {key: int(args[key]) for key in ID_KEYS if args.get(key, "").strip("-").isdigit()}
            rows.append(
                (
                    (event["pid"], event["tid"]),
                    (event.get("name"), args.get("long_name")),
                    round(Decimal(str(event["ts"])) * 10**6),
                    0 if ps == 1 else ps,
                    ids,
                )
            )
    return rows, {reason: count for reason, count in dropped.items() if count}


@settings(deadline=None)
@given(st.lists(EVENTS, max_size=12), st.sampled_from([None, 1]))
def test_events_as_the_json_module_reads_them(
    events: list[dict[str, Any]], indent: int | None
) -> None:
    rows, dropped = plain_scan(events)
    scan = Scan(json.dumps(events, indent=indent).encode()[1:])
    assert scan.outcome == ARRAY_CLOSED
    assert scan.at == len(scan.text)
    assert scan.dropped() == dropped
    whole, fraction = scan.column(WHOLE_US), scan.column(FRACTION_PS)
    assert [w * 10**6 + f for w, f in zip(whole, fraction, strict=True)] == [r[2] for r in rows]
    assert scan.column(DURATION) == [row[3] for row in rows]
    for column, at in ((LINE, 0), (OP, 1)):
        seen: dict[Any, int] = {}
        expected = [seen.setdefault(row[at], len(seen)) for row in rows]
        assert scan.column(column) == expected
    for at, key in enumerate(ID_KEYS):
        has = [bool(bits >> at & 1) for bits in scan.column(HAS)]
        values = scan.column(FIRST_ID_COLUMN + at)
        assert has == [key in row[4] for row in rows]
        assert [v for v, h in zip(values, has, strict=True) if h] == [
            row[4][key] for row in rows if key in row[4]
        ]


def test_spans_of_new_ops_and_names_of_tracks() -> None:
    text = ",".join(
        [build.thread(3, 9, "line"), build.event("f", source="a.py:1"), build.event("f"), "{}]"]
    )
    scan = Scan(text.encode())
    assert scan.counts[METAS] == 1
    assert scan.metas[0, :2].tolist() == [3, 9]
    assert scan.span(scan.metas[0, 2:4]) == b'"thread_name"'
    assert scan.span(scan.metas[0, 4:6]) == b'"line"'
    assert scan.counts[NEW_OPS] == 2
    assert scan.span(scan.new_ops[0, 0]) == b'"f"'
    assert scan.span(scan.new_ops[0, 1 + OP_KEYS.index("source")]) == b'"a.py:1"'
    assert scan.new_ops[1, 1 + OP_KEYS.index("source"), 0] == -1


def test_a_full_chunk_stops_the_scan_and_it_can_go_on() -> None:
    text = ",".join([build.event("a"), build.event("b"), build.event("c")]) + "]"
    scan = Scan(text.encode(), size=2)
    assert scan.outcome == ROOM_FULL
    rest = Scan(text.encode()[scan.at :])
    assert (rest.outcome, rest.counts[ROWS]) == (ARRAY_CLOSED, 1)


def test_the_scan_stops_before_a_cut_or_damaged_object() -> None:
    good = build.event("a")
    for tail, outcome in ((good[:-4], CUT), ("", CUT), ('{"a":"b"c"}', BAD), ("5,", BAD)):
        scan = Scan(f"{good}, {tail}".encode())
        assert (scan.outcome, scan.at, scan.counts[ROWS]) == (outcome, len(good) + 2, 1)


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        (b'x"},{"ph":"X"},', False, (4, True)),
        (b'x"},  {"ph":"X"},', False, (6, True)),
        (b'"args":{"a":1}},{"ph":"X"}', False, (16, True)),
        (b'"l":[{"a":1}],{"ph":"X"}', False, (14, True)),
        (b'"args":{"ph":1}', False, (15, False)),
        (b'x,{"ph":"X",', False, (2, False)),
        (b'x,{"ph":"X",{"ph":"X"}', False, (12, True)),
        (b'x,{"ph":"X"', True, (11, False)),
        (b"", True, (0, False)),
    ],
)
def test_the_next_event_after_damage(text: bytes, final: bool, expected: tuple[int, bool]) -> None:
    spans = np.zeros((NUM_FIELDS, 2), np.int64)
    assert json_scan.find_event(buffer(text), 0, len(text), final, KNOWN, spans) == expected
