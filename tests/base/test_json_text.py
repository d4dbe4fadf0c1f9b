"""JSON of others: numbers, depth and damage are refused by name."""

from __future__ import annotations

import pytest

from marin_profile.base.json_text import read_json


def test_what_is_sound_is_read() -> None:
    text = '{"a": [0, -1.5, 1e30, 1e-30, true, null, "NaN 1e999"], "é": {"b": 0.0}}'
    a = [0, -1.5, 1e30, 1e-30, True, None, "NaN 1e999"]
    assert read_json(text.encode()) == {"a": a, "é": {"b": 0.0}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": [1, {"b": NaN}]}', "a.1.b: nan is no number"),
        (b'{"a": -Infinity}', "a: -inf is no number"),
        (b'{"a": 1e999}', "a: inf is no number"),
        (b'{"a": 1.1e30}', "a: 1.1e+30 is no number"),
        (b'{"a": -9e-31}', "a: -9e-31 is no number"),
        (b'{"a": ' + b"9" * 31 + b"}", r"a: 1e\+31 is no number"),
        (b'{"a": ' + b"9" * 400 + b"}", "a: an integer beyond all floats is no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a: "),
        (b"1e40", r"the top level: 1e\+40"),
        (b'{"\\u001b[2J": 1e40}', r"^\\x1b\[2J: "),
        (b"[" * 101 + b"]" * 101, "nested more than 100 deep"),
        (b"[" * 200_000, "nested more than 100 deep"),
        (b'{"a": 1,}', r"torn or damaged, not JSON \(line 1, column 9\)"),
        (b'["\\ud800"]', "torn or damaged, not JSON"),
        (b'["\xff"]', "no UTF-8"),
        (b"", "torn or damaged"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_not_is_refused_in_one_clause(text: bytes, why: str) -> None:
    why = why if "\\" in why else why.replace("+", r"\+")
    with pytest.raises(ValueError, match=why) as caught:
        read_json(text)
    assert len(str(caught.value)) < 120
