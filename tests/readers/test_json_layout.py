import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.events.timeline import Op
from marin_profile.readers.json_layout import distinct_ops, line_runs, rows_by_line

LINES = st.lists(st.integers(0, 4), max_size=30)


@settings(deadline=None)
@given(LINES)
def test_runs_of_lines(values: list[int]) -> None:
    first, count = np.zeros(5, np.int64), np.zeros(5, np.int64)
    contiguous = line_runs(np.array(values, np.int32), first, count)
    runs = [value for at, value in enumerate(values) if at == 0 or values[at - 1] != value]
    assert contiguous == (len(runs) == len(set(runs)))
    for line in range(5):
        assert count[line] == values.count(line)
        assert first[line] == (values.index(line) if line in values else 0)


@settings(deadline=None)
@given(LINES)
def test_rows_by_line_is_a_stable_sort(values: list[int]) -> None:
    line = np.array(values, np.int32)
    order = rows_by_line(line, np.bincount(line, minlength=5))
    assert order.tolist() == np.argsort(line, kind="stable").tolist()


def test_equal_ops_become_one() -> None:
    column = np.array([0, 1, 2, 3, 1], np.int32)
    ops = distinct_ops([Op("a"), Op("b"), Op("a"), Op("c")], column)
    assert ops == (Op("a"), Op("b"), Op("c"))
    assert column.tolist() == [0, 1, 0, 2, 1]
