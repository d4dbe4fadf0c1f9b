"""Which capture this is."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.clocks import ClockCheck
from marin_profile.assemble.identity import _clock, digest, most_common


def test_the_digest_of_several_files():
    assert digest([]) is None
    assert digest(["a"]) == digest(["a", "a"]) == "a"
    assert digest(["b", "a", "b"]) == hashlib.sha256(b"a\nb").hexdigest()


def test_the_commonest_come_first_then_by_name():
    assert most_common([Counter(a=1, b=2), Counter(a=2, c=2), Counter()]) == ["a", "b", "c"]
    names = [f"{at:02}" for at in range(30)]
    assert most_common([Counter(names)]) == names[:20]
    assert most_common([Counter(names)], 3) == names[:3]


def test_hardware():
    space = Space()
    space.tpu(0, device_type_string="TPU v5").op("f", 0, 1)
    assert summary_of(space.analyse()).run_metadata.hardware_type == "TPU v5"
    space.tpu(1, device_type_string="TPU v4").op("f", 0, 1)
    assert summary_of(space.analyse()).run_metadata.hardware_type == "TPU v4, TPU v5"
    unnamed = Space()
    unnamed.tpu(0).op("f", 0, 1)
    assert summary_of(unnamed.analyse()).run_metadata.hardware_type is None
    cpu = Space()
    cpu.host().cpu_op("f", 0, 1, run_id=1)
    assert summary_of(cpu.analyse()).run_metadata.hardware_type == "cpu"


def test_the_overview_sums_over_hosts():
    """Two hosts: of two lines with three events in all, and of one with one."""
    one, other = Space(), Space()
    one.gpu(0).kernel("k", 10, 5).kernel("k", 30, 5)
    one.host().call("f", 0, 5)
    other.gpu(0).kernel("k", 0, 50)
    found = summary_of(one.analyse(host="a"), other.analyse(host="b")).trace_overview
    assert (found.num_events_total, found.num_complete_events) == (4, 4)
    assert (found.num_processes, found.num_threads) == (3, 3)
    assert (found.profile_start_ts, found.profile_end_ts) == (0, 50)
    assert not found.suspected_truncation


def test_when_the_profile_began_and_ended():
    spaces = []
    for begin, end in ((20, 40), (10, 30)):
        space = Space().environment(begin * 10**9, end * 10**9)
        space.gpu(0).kernel("k", 0, 5)
        spaces.append(space)
    hosts = [space.analyse(host=str(at)) for at, space in enumerate(spaces)]
    summary = summary_of(*hosts)
    assert summary.generated_at_utc == "1970-01-01T00:00:10.000000Z"
    assert (summary.capture.start, summary.capture.stop) == (
        "1970-01-01T00:00:10.000000Z",
        "1970-01-01T00:00:40.000000Z",
    )


@pytest.mark.parametrize(
    ("least", "most", "offset", "limit"),
    [(3, 7, 3, 7), (3, None, 3, None), (-7, -3, -3, -7), (None, -3, -3, None), (5, 3, None, None)],
)
def test_the_limit_of_a_clocks_offset_is_on_its_side(least, most, offset, limit):
    low, high = (None if one is None else one * US for one in (least, most))
    found = _clock(ClockCheck(9, 2, 4 * US, low, high, "k began before its launch"))
    assert found == {
        "clock_offset": offset,
        "clock_offset_limit": limit,
        "clock_uncertainty": 4,
        "clock_conflicts": 2,
    }


@pytest.mark.parametrize(("compared", "conflicts"), [(9, 0), (1, 0), (0, None)])
def test_clocks_that_agree_have_no_offset(compared, conflicts):
    found = _clock(ClockCheck(compared, 0, 0, -5 * US, 7 * US, ""))
    assert found == {
        "clock_offset": None,
        "clock_offset_limit": None,
        "clock_uncertainty": None,
        "clock_conflicts": conflicts,
    }
