"""Who makes the others wait; delays and scores by hand."""

from __future__ import annotations

import pytest

from marin_profile.analysis.collectives.stragglers import judge_devices, judge_hosts
from marin_profile.analysis.collectives.waits import MemberWaits


def member(host: str, device: str, *, caused: int, on_host: int = 0, wait: int = 0) -> MemberWaits:
    """`caused`: the wait of devices on all hosts; `on_host`: of its own."""
    return MemberWaits(
        host=host,
        device=device,
        instances=1,
        arrived_last=0,
        wait=wait,
        exposed_wait=0,
        wait_caused=caused,
        caused_on_host=on_host,
        exposed_wait_caused=0,
    )


def one_each(*caused: int) -> list[MemberWaits]:
    """Hosts of one device."""
    return [member(f"host-{at}", "TPU:0", caused=own) for at, own in enumerate(caused)]


@pytest.mark.parametrize(("most", "is_straggler"), [(14_000, False), (14_002, True)])
def test_a_score_of_three_and_a_half_does_not_stand_out(most, is_straggler):
    """Two others wait half of it each. No spread, so 1 % of the window is the scale: 0.6745 x 7000
    / 1349 = 3.5."""
    found = judge_hosts(one_each(0, 0, most), 134_900)
    assert [one.verdict.is_straggler for one in found] == [False, False, is_straggler]
    assert [one.verdict.delay for one in found] == [0, 0, most / 2]
    assert [one.verdict.z for one in found] == [0, 0, 0.6745 * (most / 2) / 1349]


def test_the_spread_is_the_scale_where_it_is_larger():
    """Delays 0, 1000, 2000, 4000, 9000 about 2000: 2000, 1000, 0, 2000, 7000; their median 2000."""
    found = judge_hosts(one_each(0, 4000, 8000, 16_000, 36_000), 100)
    assert [one.verdict.z for one in found] == [
        0.6745 * (delay - 2000) / 2000 for delay in (0, 1000, 2000, 4000, 9000)
    ]
    assert not any(one.verdict.is_straggler for one in found)


def test_nothing_waits_in_a_window_of_no_length():
    found = judge_hosts(one_each(0, 0, 0), 0)
    assert [(one.verdict.z, one.verdict.is_straggler) for one in found] == [(0, False)] * 3


@pytest.mark.parametrize(("more", "is_straggler"), [(50, False), (51, True)])
def test_one_of_two_must_lie_above_the_other_by_five_percent(more, is_straggler):
    first, second = judge_hosts(one_each(7 + more, 7), 1000)
    assert (first.verdict.is_straggler, first.verdict.delay) == (is_straggler, 7 + more)
    assert (second.verdict.is_straggler, second.verdict.delay) == (False, 7)
    assert first.verdict.z is second.verdict.z is None
    # As devices: each has the one of the other host to wait for it.
    devices = judge_devices(one_each(7 + more, 7), [], 1000)
    assert [one.delay for one in devices] == [7 + more, 7]


def test_a_host_delays_the_devices_of_others_and_a_device_those_of_its_own():
    """Hosts of 3, 2 and 1 devices. Host a causes 600 - 100 of waits on 3 other devices, b 95 - 15
    on 4, c 40 on 5."""
    members = [
        member("a", "0", caused=500, on_host=90, wait=3),
        member("a", "1", caused=100, on_host=10, wait=5),
        member("a", "2", caused=0),
        member("b", "0", caused=75, on_host=11, wait=7),
        member("b", "1", caused=20, on_host=4),
        member("c", "0", caused=40, wait=1),
    ]
    hosts = judge_hosts(members, 100)
    assert [(one.host, one.devices, one.wait, one.wait_caused) for one in hosts] == [
        ("a", 3, 8, 500),
        ("b", 2, 7, 80),
        ("c", 1, 1, 40),
    ]
    assert [one.verdict.delay for one in hosts] == [500 / 3, 80 / 4, 40 / 5]
    assert [one.verdict.is_straggler for one in hosts] == [True, False, False]
    devices = judge_devices(members, hosts, 100)
    # The only device of a host is waited for by the five of the others.
    assert [one.delay for one in devices] == [90 / 2, 10 / 2, 0, 11, 4, 40 / 5]
    # Above 6.5 by a spread of 3.5: TPU 0 of host a stands out of its own.
    assert [one.z for one in devices] == pytest.approx(
        [0.6745 * (delay - 6.5) / 3.5 for delay in (45, 5, 0, 11, 4, 8)]
    )
    assert [(one.is_straggler, one.with_its_host) for one in devices] == [
        (True, False),
        (True, True),
        (True, True),
        (False, False),
        (False, False),
        (False, False),
    ]


def test_of_one_host_nothing_is_said_and_of_its_devices_their_own():
    members = [member("a", str(at), caused=own, on_host=own) for at, own in enumerate((0, 0, 40))]
    assert judge_hosts(members, 100) == []
    devices = judge_devices(members, [], 100)
    assert [(one.delay, one.is_straggler) for one in devices] == [
        (0, False),
        (0, False),
        (20, True),
    ]


def test_nobody_waits_for_the_only_device():
    (only,) = judge_devices([member("a", "0", caused=0)], [], 100)
    assert (only.delay, only.is_straggler, only.z) == (None, False, None)
    assert judge_devices([], [], 100) == []
