"""Every function against a plain-Python oracle, and hand-worked values."""

import json
import re
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.readers import json_text
from marin_profile.readers.json_text import BAD, CUT, MAX_DEPTH


def value_end(text: bytes, start: int = 0) -> int:
    """What lies behind the end must not matter: quotes are the worst."""
    return json_text.value_end(text + b'"' * 8, start, len(text))


def decimal(text: str) -> tuple[int, int] | None:
    return json_text.parse_decimal(text.encode())


def integer(text: str) -> int | None:
    return json_text.parse_int(text.encode())


def millionths_of(value: Decimal) -> int:
    with localcontext(prec=100):
        return int(value.scaleb(6).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b'"",', 2),
        (b'"abc" ', 5),
        (rb'"a\"b",', 6),
        (rb'"a\\",', 5),
        (b'"1234567890123456789",', 21),
        (rb'"123456\"90",', 12),
        (b'"abc', CUT),
        (rb'"abc\"', CUT),
        (b'"abc\\', CUT),
        (b"12.5,", 4),
        (b"NaN}", 3),
        (b"-Infinity\n", 9),
        (b"12.5", CUT),
        (b",", BAD),
        (b'12"', BAD),
        (b"{}x", 2),
        (rb'{"a":[1,{"b":"]}\""}],"c":2},', 28),
        (b'{"a":[1,2}', CUT),
        (b"[" * (MAX_DEPTH + 1), BAD),
        (b"", CUT),
    ],
)
def test_where_a_value_ends(text: bytes, end: int) -> None:
    assert value_end(text) == end


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON_VALUES, st.booleans(), st.text(max_size=9))
def test_values_end_where_the_json_module_says(value: object, ascii_only: bool, rest: str) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only) + " " + rest
    _, end = json.JSONDecoder().raw_decode(text)
    raw = text.encode("utf-8", "replace")
    assert value_end(raw) == len(text[:end].encode("utf-8", "replace"))


@settings(deadline=None)
@given(st.binary(max_size=40).map(lambda tail: b'"' + tail))
def test_strings_end_at_the_first_bare_quote(text: bytes) -> None:
    match = re.match(rb'"(?:[^"\\]|\\.)*"', text, re.DOTALL)
    assert value_end(text) == (match.end() if match else CUT)


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_space_is_every_byte_up_to_32(text: bytes) -> None:
    end = len(text) - len(text.lstrip(bytes(range(33))))
    assert json_text.skip_space(text + b"  ", 0, len(text)) == end


@pytest.mark.parametrize(
    ("text", "whole", "millionths"),
    [
        ("0", 0, 0),
        ("7", 7, 0),
        ("12.5", 12, 500_000),
        ('"12.5"', 12, 500_000),
        ('" 12.5 "', 12, 500_000),
        ("1778266702889805.563", 1_778_266_702_889_805, 563_000),
        ("96487413.736328006", 96_487_413, 736_328),
        ("9.9999999999999995e-07", 0, 1),
        ("1e-06", 0, 1),
        ("1E-6", 0, 1),
        ("1.2e+15", 1_200_000_000_000_000, 0),
        ("1.7782667027898e15", 1_778_266_702_789_800, 0),
        ("12345.6789e-2", 123, 456_789),
        ("0.0000005", 0, 0),
        ("0.0000015", 0, 2),
        ("0.00000050000000001", 0, 1),
        ("0.0000004999999999", 0, 0),
        ("0.9999996", 1, 0),
        ("-1.5", -2, 500_000),
        ("-2", -2, 0),
        ("-0.0000001", 0, 0),
        ("+3.25", 3, 250_000),
        ("0e9999999999999999999", 0, 0),
        ("1e-9999999999999999999", 0, 0),
        ("00000000000000000000000000000012.5", 12, 500_000),
        ("0." + "0" * 9999 + "1", 0, 0),
        ("1" + "0" * 9999 + "e-9999", 1, 0),
        ("-.5", -1, 500_000),
        ("5.", 5, 0),
    ],
)
def test_decimal_text(text: str, whole: int, millionths: int) -> None:
    assert decimal(text) == (whole, millionths)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '""',
        ".",
        "-",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1.2.3",
        "12a",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
        "1e5.0",
        "1e40",
        '"abc"',
        "--1",
        "99999999999999999999",
        "9" * 9999,
        "1e999999999",
        "1e9999999999",
        '"1 5"',
    ],
)
def test_what_is_no_number(text: str) -> None:
    assert decimal(text) is None


@settings(deadline=None)
@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**17), max_value=10**17),
    st.booleans(),
)
def test_decimals_are_exact(value: Decimal, scientific: bool) -> None:
    text = f"{value:e}" if scientific else f"{value:f}"
    whole, millionths = decimal(text)
    assert 0 <= millionths < 1_000_000
    assert whole * 1_000_000 + millionths == millionths_of(value)


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e16))
def test_doubles_as_jax_and_python_print_them(value: float) -> None:
    for text in (f"{value:.17g}", repr(value)):
        whole, millionths = decimal(text)
        assert whole * 1_000_000 + millionths == millionths_of(Decimal(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5368709120", 5_368_709_120),
        ('"5368709120"', 5_368_709_120),
        ('"-2053747150"', -2_053_747_150),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775813", 2**63 + 5 - 2**64),
        ("18446744073709551615", -1),
        ("18446744073709551617", 1),
        ("-9223372036854775808", -(2**63)),
        ("1" + "0" * 9999 + "7", 7),
        ("+5", 5),
        ('" 5 "', 5),
    ],
)
def test_integer_text_wraps_at_64_bits(text: str, value: int) -> None:
    assert integer(text) == value


@settings(deadline=None)
@given(st.integers(min_value=-(10**30), max_value=10**30))
def test_integers_wrap_in_twos_complement(value: int) -> None:
    assert integer(str(value)) == (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("text", ["", '""', "-", "1.5", "1e3", "abc", '"32B"', "null"])
def test_what_is_no_integer(text: str) -> None:
    assert integer(text) is None


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        (b'"a"', "a"),
        (b"12.5", "12.5"),
        (b"null", ""),
        (rb'"\u0041\n"', "A\n"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\x"', r"\x"),
        (b'"\xff"', "\ufffd"),
        (b'["a"]', '["a"]'),
    ],
)
def test_the_text_of_a_value(text: bytes, decoded: str) -> None:
    assert json_text.decode(text) == decoded
