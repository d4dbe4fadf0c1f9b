"""Rounding that keeps sums."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from marin_profile.comparison.exact import apportion, change_of, plain_change

FRACTIONS = st.lists(st.fractions(-1000, 1000, max_denominator=12), max_size=20)


@given(FRACTIONS)
def test_parts_sum_to_the_rounded_sum(parts):
    rounded = apportion(parts)
    assert sum(rounded) == round(sum(parts, Fraction(0)))
    assert all(abs(whole - part) < 1 for whole, part in zip(rounded, parts, strict=True))


def test_whole_parts_stay():
    assert apportion([Fraction(3), Fraction(-1, 2), Fraction(1, 2), Fraction(0)]) == [3, 0, 0, 0]


def test_changes():
    known = change_of(Fraction(2_000_000), Fraction(3_000_000))
    assert (known.before, known.after, known.delta, known.relative) == (2.0, 3.0, 1.0, 0.5)
    new = change_of(None, Fraction(5))
    assert (new.before, new.after, new.delta, new.relative) == (None, 5e-6, 5e-6, None)
    gone = change_of(Fraction(5), None)
    assert (gone.after, gone.delta, gone.relative) == (None, -5e-6, None)
    assert plain_change(None, 5.0).delta is None
    assert plain_change(0.1, 0.3).delta == 0.2
