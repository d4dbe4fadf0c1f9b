"""Members and ends of objects, by hand and against the json module."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.readers.json_objects import find_event, read_object
from marin_profile.readers.json_text import BAD, CUT

# What lies behind the end must not matter: quotes are the worst.
BEHIND = b'"' * 8


def read(text: bytes):
    return read_object(text + BEHIND, 0, len(text))


def test_members_in_any_order_and_layout() -> None:
    text = b"""{ "args" : { "name" : "arg" , "other":[{"ph":"Z"}], "run_id":"7" } ,
        "name":"own", "dur" : 2.5 ,\t"ph":"X"\r\n} """
    end, own, args = read(text)
    assert end == len(text) - 1
    assert own == {b"name": b'"own"', b"dur": b"2.5", b"ph": b'"X"'}
    assert args == {b"name": b'"arg"', b"other": b'[{"ph":"Z"}]', b"run_id": b'"7"'}


def test_the_last_of_two_values_counts_and_two_args_are_one() -> None:
    text = rb'{"a":1,"a":[2],"args":{"x":1,"y":{"args":{}}},"args":{"x":3},"args":"\"","b\n":NaN}'
    end, own, args = read(text)
    assert end == len(text)
    assert own == {b"a": b"[2]", b"args": rb'"\""', rb"b\n": b"NaN"}
    assert args == {b"x": b"3", b"y": b'{"args":{}}'}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (b"{}", 2),
        (b"{ \0}", 4),
        (b'{"args":{}}', 11),
        (b'{"args":{ } ,"ph":"X"}', 22),
        (b'{"args":"none"}', 15),
        (b'{"other":{"args":{}}}', 21),
        (b"{", CUT),
        (b'{"ph', CUT),
        (b'{"ph"', CUT),
        (b'{"ph":', CUT),
        (b'{"ph":1', CUT),
        (b'{"ph":"X', CUT),
        (b'{"ph":"X"', CUT),
        (b'{"ph":"X",', CUT),
        (b'{"args":{', CUT),
        (b'{"args":{"a":1}', CUT),
        (b'{"a":[{"b":1}', CUT),
        (b'{"name":"a"b"}', BAD),
        (b'{"ph":"X",}', BAD),
        (b'{"ph":"X" "pid":3}', BAD),
        (b'{"ph":"X",{"ph":"X"}', BAD),
        (b'{"args":{"a":1,{"ph":"X"}', BAD),
        (b'{"args":{},}', BAD),
        (b'{"ph" "X"}', BAD),
        (b'{"ph":}', BAD),
        (b'{"ph":1"}', BAD),
        (b"{ph:1}", BAD),
        (b'{"a":' + b"[" * 65 + b"}", BAD),
    ],
)
def test_where_an_object_ends(text: bytes, outcome: int) -> None:
    assert read(text).end == outcome


VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["ph", "args", "name", "args"]) | st.text(max_size=3)


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from([None, 1]))
def test_members_as_the_json_module_reads_them(data: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(data, indent=indent).encode()
    end, own, args = read(text)
    assert end == len(text)
    found: dict[str, Any] = {
        json.loads(b'"' + key + b'"'): json.loads(value) for key, value in own.items()
    }
    if args is not None:
        found["args"] = {json.loads(b'"' + k + b'"'): json.loads(v) for k, v in args.items()}
    assert found == data


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        (b'x"},{"ph":"X"},', False, (4, True)),
        (b'x"},  {"ph":"X"},', False, (6, True)),
        (b'x"},' + b" " * 500 + b'{"ph":"X"},', False, (504, True)),
        (b'x"' + b" " * 500 + b'{"ph":"X"},', False, (513, False)),
        (b"  " + b'{"ph":"X"},', False, (2, True)),
        (b'"args":{"a":1}},{"ph":"X"}', False, (16, True)),
        (b'"l":[{"a":1}],{"ph":"X"}', False, (14, True)),
        (b'"args":{"ph":1}', False, (15, False)),
        (b'x,{"ph":"X",', False, (2, False)),
        (b"x,{", False, (2, False)),
        (b"x,{ ", True, (4, False)),
        (b'x,{"ph":"X",{"ph":"X"}', False, (12, True)),
        (b'x,{"ph":"X"', True, (11, False)),
        (b"", True, (0, False)),
    ],
)
def test_the_next_event_after_damage(text: bytes, final: bool, expected: tuple[int, bool]) -> None:
    assert find_event(text + BEHIND, 0, len(text), final=final) == expected
