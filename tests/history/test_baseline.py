"""The latest level against a pinned one."""

from __future__ import annotations

import math

import pytest

from builders_summary import build_summary
from marin_profile.base.errors import NotFoundError
from marin_profile.history import History, HistoryRecord, record_of
from marin_profile.history.baseline import Baseline
from marin_profile.history.findings import findings_of

SUMMARY = build_summary()
BASE, HEAD = "ba5e" + "0" * 36, "4ead" + "0" * 36


def point(day: int, median: float, label: str = "main", sha: str = BASE) -> HistoryRecord:
    values = {
        "time": f"2026-01-{day:02}T00:00:00.000000Z",
        "trace_sha256": f"{day:064x}",
        "git_sha": sha,
        "median": median,
    }
    return record_of(SUMMARY, label=label).model_copy(update=values)


def records(base: list[float], head: list[float], label: str = "main") -> list[HistoryRecord]:
    return [
        *(point(day, median) for day, median in enumerate(base, 1)),
        *(point(day, median, label, HEAD) for day, median in enumerate(head, len(base) + 1)),
    ]


def compared(found: list[HistoryRecord], baseline: str, label: str = "main") -> Baseline | None:
    groups = findings_of(History(tuple(found)), baseline=baseline).groups
    [one] = [one for one in groups if one.group.configuration.label == label]
    return one.trends[0].baseline


SLOWER = records([1000.0, 1010.0, 990.0, 1000.0], [1067.0, 1077.0, 1057.0])


@pytest.mark.parametrize(
    "name", ["ba5e", BASE, "1..4", "2026-01-01..2026-01-04", "2026-01-01..2026-01-04T00:00"]
)
def test_what_names_the_baseline(name: str) -> None:
    found = compared(SLOWER, name)
    assert found is not None
    assert (found.num_records, found.num_later) == (4, 3)
    assert math.exp(found.level) == pytest.approx(1000.0, rel=1e-4)
    assert found.log_shift == pytest.approx(math.log(1.067), abs=1e-4)
    assert found.is_slower
    assert found.interval is not None
    low, high = found.interval
    assert low < math.log(1.067) < high
    assert low > math.log(1.03)


def test_the_interval_by_hand() -> None:
    base, later = [0.0, 0.01, 0.02, 0.03], [0.10, 0.12]
    found = compared(
        records([math.exp(7 + x) for x in base], [math.exp(7 + x) for x in later]), "ba5e"
    )
    assert found is not None
    assert found.interval is not None
    assert found.log_shift == pytest.approx(0.095)
    # About their means -1.5, -0.5, 0.5, 1.5 and -1, 1 (in 0.01): products 0.75 - 0.25 + 0.75 - 1,
    # squares 7, r = 0.25 / 7. Six values about two means leave none: phi is the prior, 0.5.
    # Means of four and two vary as 1 + 2 (3/4 x 0.5 + 1/2 x 0.25 + 1/4 x 0.125) = 2.0625 and 1.5.
    one, two = 5e-4 / 3 * 2.0625 / 4, 2e-4 * 1.5 / 2
    freedom = (one + two) ** 2 / (one**2 / 3 + two**2)
    assert freedom == pytest.approx(2.23, abs=0.01)
    half = (found.interval[1] - found.interval[0]) / 2
    # t(0.975) is 4.303 with two degrees and 3.182 with three.
    assert 3.182 < half / math.sqrt(one + two) < 4.303
    # Two records a side can be no slowdown.
    assert not found.is_slower


def test_a_label_is_the_baseline_of_the_like_configuration() -> None:
    found = records([1000.0, 1010.0, 990.0, 1000.0], [1067.0, 1077.0, 1057.0], "pull 7")
    of_heads = compared(found, "main", "pull 7")
    assert of_heads is not None
    assert (of_heads.num_records, of_heads.num_later, of_heads.is_slower) == (4, 3, True)
    of_itself = compared(found, "main", "main")
    assert of_itself is not None
    assert (of_itself.num_later, of_itself.log_shift, of_itself.is_slower) == (0, None, False)
    elsewhere = [one.model_copy(update={"num_devices": 8}) for one in found[4:]]
    assert compared([*found[:4], *elsewhere], "main", "pull 7") is None


def test_only_the_records_since_the_last_change_are_compared() -> None:
    head = [1200.0 + at % 2 for at in range(6)] + [1000.0 + at % 2 for at in range(6)]
    found = compared(records([1000.0 + at % 2 for at in range(6)], head), "ba5e")
    assert found is not None
    assert (found.num_records, found.num_later, found.is_slower) == (6, 6, False)
    assert found.log_shift == pytest.approx(0, abs=1e-3)


def test_a_faster_level_is_below() -> None:
    found = compared(records([1000.0, 1001.0, 999.0, 1000.0], [900.0, 901.0, 899.0]), "ba5e")
    assert found is not None
    assert found.log_shift == pytest.approx(math.log(0.9), abs=1e-3)
    assert not found.is_slower


@pytest.mark.parametrize(("head", "slower"), [(1009.0, False), (1012.0, True)])
def test_less_than_a_per_cent_is_not_slower(head: float, slower: bool) -> None:
    found = compared(records([1000.0] * 6, [head] * 6), "ba5e")
    assert found is not None
    assert found.is_slower is slower


def test_one_record_a_side_has_no_interval() -> None:
    found = compared(records([1000.0], [1100.0]), "ba5e")
    assert found is not None
    assert (found.num_records, found.num_later, found.interval, found.p) == (1, 1, None, None)


def test_what_is_no_baseline() -> None:
    for name in ("nobody", "ba5", "1ead"):
        with pytest.raises(NotFoundError, match=f"No record has the label or commit {name}"):
            compared(SLOWER, name)
    assert compared(SLOWER, "100..200") is None
