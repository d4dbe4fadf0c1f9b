"""Column operations against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.base import columns
from marin_profile.base.columns import counts_of, is_sorted, rows_with, sum_by, unique_pairs

INTEGERS = st.integers(-(2**62), 2**62)
BIG = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])


@settings(deadline=None)
@given(st.lists(INTEGERS, max_size=20))
def test_is_sorted(values):
    assert is_sorted(np.array(values, np.int64)) == (values == sorted(values))
    assert is_sorted(np.array(sorted(values), np.int64))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-(2**53) - 1, 2**53 + 1)), max_size=30))
def test_sum_by_is_exact(rows):
    index = np.array([group for group, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.int64)
    expected = [sum(value for group, value in rows if group == at) for at in range(7)]
    assert sum_by(index, values, 7).tolist() == expected


def test_sum_by_beyond_a_doubles_precision():
    values = np.array([2**60, 1, 1], np.int64)
    assert sum_by(np.zeros(3, np.int64), values, 2).tolist() == [2**60 + 2, 0]


@settings(deadline=None)
@given(st.lists(st.tuples(INTEGERS | BIG, INTEGERS | BIG), max_size=30))
def test_unique_pairs(rows):
    first = np.array([a for a, _ in rows], np.int64)
    second = np.array([b for _, b in rows], np.int64)
    firsts, seconds, index = unique_pairs(first, second)
    expected = sorted(set(rows))
    assert list(zip(firsts.tolist(), seconds.tolist(), strict=True)) == expected
    assert [expected[at] for at in index.tolist()] == rows


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=20), st.sets(st.integers(0, 5)))
def test_counts_and_rows_of_a_short_column(values, wanted):
    index = np.array(values, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_AT_ONCE", 3)
        assert counts_of(index, 6).tolist() == [values.count(value) for value in range(6)]
    expected = [at for at, value in enumerate(values) if value in wanted]
    assert rows_with(index, sorted(wanted), 6).tolist() == expected
