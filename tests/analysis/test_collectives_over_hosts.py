"""Instances over hosts, wire time, waits and who causes them; all figures by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from builders_xspace import (
    US,
    Space,
    collectives_of,
    computation,
    hlo_proto,
    instruction,
    summarize_spaces,
)
from marin_profile.analysis.collectives import matching
from marin_profile.analysis.collectives.waits import CollectiveTotals, bandwidth
from marin_profile.capture.sources import resolve
from marin_profile.pipeline import SummarizeOptions, read_host, summarize, summarize_capture
from marin_profile.pipeline.host_parts import decode_host, encode_host
from marin_profile.schema import straggler_names

ALL_8 = "replica_groups={{0,1,2,3,4,5,6,7}}"
BYTES = 4_000_012  # f32[1000003]


def text(name: str, groups: str, kind: str = "all-reduce", shape: str = "f32[1000003]{0}") -> str:
    return f"%{name} = {shape} {kind}({shape} %p), {groups}"


def host(
    stays: Mapping[int, Sequence[Sequence[float]]],
    *,
    groups: str = ALL_8,
    offset: int = 0,
    length: Mapping[int, int] | None = None,
    numbered: bool = True,
    modules: bool = True,
) -> Space:
    """stays[step][device]: how long each device of this host is in the step's all-reduces. A step
    of 1000 us (or `length`): a fusion, then the all-reduces; all devices leave the last one 100 us
    before the step's end, the one before it 200 us earlier. `offset` moves the host's clock."""
    space = Space()
    devices = len(next(iter(stays.values())))
    tpus = [space.tpu(ordinal) for ordinal in range(devices)]
    at = offset
    for step, by_device in stays.items():
        long = (length or {}).get(step, 1000)
        for tpu, own in zip(tpus, by_device, strict=True):
            if numbered:
                tpu.step(step, at, long - 50)
            if modules:
                tpu.module("jit_step(7)", at, long - 50, run_id=step if numbered else None)
            own = own if isinstance(own, (list, tuple)) else [own]
            ends = [at + long - 100 - 200 * left for left in reversed(range(len(own)))]
            tpu.op("fusion.1", at, ends[0] - own[0] - at, category="loop fusion")
            for stay, end in zip(own, ends, strict=True):
                tpu.op("all-reduce.1", end - stay, stay, category="all-reduce",
                       long_name=text("all-reduce.1", groups))  # fmt: skip
        at += long
    return space


def row(*spaces: Space) -> CollectiveTotals:
    (found,) = collectives_of(*spaces).rows
    return found


FAST, SLOW = (207, 205, 211, 203), (13, 11, 12, 17)
"""One instance: wire 11 us, the fast host waits 826 - 44 = 782, the slow one 53 - 44 = 9."""


def slow_host_job(**changes) -> tuple[Space, Space]:
    return tuple(
        host(dict.fromkeys((10, 11, 12), stays), offset=offset, **changes)
        for stays, offset in ((FAST, 0), (SLOW, 77_000))
    )


def test_a_slow_host_is_no_slow_network():
    found = row(*slow_host_job())
    assert (found.count, found.instances, found.groups, found.members_seen) == (24, 3, 1, 8)
    assert found.duration == 3 * 879 * US
    assert found.wire == 3 * 8 * 11 * US
    assert (found.wait, found.wait_is_lower_bound) == (3 * 791 * US, False)
    algorithm, bus = bandwidth(found)
    assert algorithm == pytest.approx(BYTES / 11e-6 / 1e9, rel=1e-12)
    assert bus == pytest.approx(algorithm * 1.75, rel=1e-12)
    assert not found.wire_is_upper_bound


def test_the_slow_host_is_named_with_what_it_costs(tmp_path):
    summary = summarize_spaces(tmp_path, *slow_host_job())
    slow, fast = summary.straggler_hosts
    # Two of three steps are kept.
    assert (slow.host, slow.is_straggler, slow.devices, slow.z) == ("host-1", True, 4, None)
    assert (slow.wait_caused, slow.delay_per_step, slow.wait) == (2 * 782, 782 / 4, 2 * 9)
    assert (fast.host, fast.is_straggler, fast.wait_caused, fast.wait) == ("host-0", False, 0, 1564)
    assert {one.host for one in summary.stragglers if one.is_straggler} == {"host-1"}
    assert {one.host for one in summary.stragglers if not one.is_straggler} == {"host-0"}
    assert straggler_names(summary.stragglers, summary.straggler_hosts) == ["host-1"]
    first = summary.stragglers[0]
    assert (first.device, first.host, first.arrived_last) == ("/device:TPU:1", "host-1", 2)
    # Its own host's devices wait 2 + 1 + 6 for it.
    assert (first.wait, first.wait_caused, first.exposed_wait_caused) == (0, 2 * 791, 2 * 791)
    assert first.delay_per_step == 3
    waits = {(one.host, one.device[-1]): one.wait for one in summary.stragglers}
    assert waits["host-0", "2"] == 2 * 200
    assert waits["host-1", "3"] == 2 * 6


def test_advice_takes_the_wait_for_the_slow_host_off_communication(tmp_path):
    """Of 2 x 879 us exposed, 2 x 791 are waiting; eight devices have windows of 1900 us: 1.2 % is
    left, and the rest is the slow host's."""
    summary = summarize_spaces(tmp_path, *slow_host_job())
    assert summary.collectives[0].exposed_duration == 3 * 879
    window = sum(row.window_duration for row in summary.device_ledger if row.window == "steady")
    assert window == 8 * 1900
    (found,) = [
        one
        for one in summary.optimization_candidates
        if one.candidate_id in ("straggler", "straggler-host", "exposed-communication")
    ]
    assert found.title == "Find out why host-1 arrives late"
    assert found.evidence[0] == f"wait for host-1: {100 * 2 * 791 / window:.1f} % of device time"


def test_one_slow_device_is_named_alone(tmp_path):
    """TPU:2 of host-1 comes 300 us after all others."""
    stays = ((310, 311, 312, 313), (314, 315, 10, 316))
    spaces = [host(dict.fromkeys(range(4), own)) for own in stays]
    summary = summarize_spaces(tmp_path, *spaces)
    first = summary.stragglers[0]
    assert [one for one in summary.stragglers if one.is_straggler and not one.with_its_host] == [
        first
    ]
    assert straggler_names(summary.stragglers, summary.straggler_hosts) == ["host-1 /device:TPU:2"]
    assert (first.host, first.device, first.arrived_last) == ("host-1", "/device:TPU:2", 3)
    # Three kept steps; its host's devices wait 304, 305 and 306, those of host-0 1206 together.
    assert first.wait_caused == 3 * (304 + 305 + 306 + 1206)
    assert first.delay_per_step == pytest.approx(305)
    assert [one.is_straggler for one in summary.straggler_hosts] == [True, False]


def test_hosts_of_one_device_each(tmp_path):
    """host-2 comes 300 us after the others: the delay is what one of the two others waits."""
    spaces = [host(dict.fromkeys(range(3), (stay,)), groups="replica_groups={{0,1,2}}")
              for stay in (310, 316, 10)]  # fmt: skip
    summary = summarize_spaces(tmp_path, *spaces)
    late = summary.stragglers[0]
    assert (late.host, late.is_straggler, late.delay_per_step) == ("host-2", True, (300 + 306) / 2)
    assert summary.straggler_hosts[0].delay_per_step == (300 + 306) / 2
    assert [one.is_straggler for one in summary.straggler_hosts] == [True, False, False]


def test_evenly_spread_causes_make_no_straggler(tmp_path):
    """Each device is last once."""
    stays = {
        step: [10 if step % 4 == device else 200 + device for device in range(4)]
        for step in range(9)
    }
    groups = "replica_groups={{0,1,2,3}}"
    summary = summarize_spaces(tmp_path, host(stays, groups=groups))
    assert [one.arrived_last for one in summary.stragglers] == [2, 2, 2, 2]
    assert not any(one.is_straggler for one in summary.stragglers)
    assert summary.straggler_hosts == []
    # Of 8 kept steps each device waits in 6: 190 + its number.
    assert sum(one.wait for one in summary.stragglers) == 6 * (4 * 190 + 6)


@pytest.mark.parametrize(("late", "is_straggler"), [(40, False), (47, False), (48, True)])
def test_of_two_devices_one_must_cost_5_percent(tmp_path, late, is_straggler):
    """The kept steps make a window of 1900 us, to the end of the last op."""
    stays = dict.fromkeys(range(3), (10 + late, 10))
    summary = summarize_spaces(tmp_path, host(stays, groups="replica_groups={{0,1}}"))
    first, second = summary.stragglers
    assert (first.device, first.is_straggler) == ("/device:TPU:1", is_straggler)
    assert first.delay_per_step == late
    assert (second.is_straggler, second.delay_per_step, second.z) == (False, 0, None)


def test_windows_that_open_one_execution_apart_match_by_step_number():
    """Wire times are 10, 20, 30, 40, 50 us in steps 10 to 14; the second host opens at 11."""
    first = {step: [(step - 9) * 10 + 1, (step - 9) * 10 + 3] for step in range(10, 14)}
    second = {step: [(step - 9) * 10, (step - 9) * 10 + 7] for step in range(11, 15)}
    found = row(
        host(first, groups="replica_groups={{0,1,2,3}}"),
        host(second, groups="replica_groups={{0,1,2,3}}", offset=500),
    )
    assert (found.instances, found.count, found.members_seen) == (5, 16, 4)
    # Steps 11, 12, 13 are whole: 4 x (20 + 30 + 40); of steps 10 and 14 two members are known.
    assert found.wire == 4 * 90 * US
    assert found.wait == (3 * (1 + 3 + 0 + 7) + 2 + 7) * US
    assert found.wait_is_lower_bound
    assert bandwidth(found)[0] == pytest.approx(3 * BYTES / 90e-6 / 1e9)


LENGTHS = {0: 1000, 1: 1370, 2: 1100, 3: 1510, 4: 1230, 5: 1000, 6: 1440}


def unnumbered(
    first: range, second: range, *, length: Mapping[int, int] = LENGTHS, **changes
) -> tuple[Space, Space]:
    """Wire time of step s: 10 (s + 1) us; the hosts take turns in being late by 100 us."""

    def stays(steps: range, mine: int) -> dict[int, list[int]]:
        late = {step: 100 * (step % 2 == mine) for step in steps}
        return {step: [10 * (step + 1) + late[step]] * 2 for step in steps}

    groups = "replica_groups={{0,1,2,3}}"
    return tuple(
        host(
            stays(steps, mine),
            groups=groups,
            offset=offset,
            length=length,
            numbered=False,
            **changes,
        )
        for mine, (steps, offset) in enumerate(((first, 0), (second, 40_000)))
    )


@pytest.mark.parametrize("modules", [True, False])
def test_without_step_numbers_sequences_are_aligned(modules):
    """Both have six executions, and five are the same: 1 to 5."""
    found = row(*unnumbered(range(6), range(1, 7), modules=modules))
    assert (found.instances, found.members_seen) == (7, 4)
    assert found.wire == 4 * (20 + 30 + 40 + 50 + 60) * US
    # In each common step two devices wait 100 us; alone, nobody is known to wait.
    assert (found.wait, found.wait_is_lower_bound) == (5 * 200 * US, True)


@pytest.mark.parametrize("modules", [True, False])
def test_sequences_of_equal_windows_meet_whole(modules):
    found = row(*unnumbered(range(7), range(7), modules=modules))
    assert (found.instances, found.wait, found.wait_is_lower_bound) == (7, 7 * 200 * US, False)
    assert bandwidth(found)[0] == pytest.approx(7 * BYTES / 280e-6 / 1e9)


def test_ends_are_aligned_not_starts():
    """Stays of up to 170 us differ more than the lengths of steps."""
    length = {0: 1000, 1: 1003, 2: 1001, 3: 1007, 4: 1002, 5: 1005, 6: 1000}
    found = row(*unnumbered(range(6), range(1, 7), length=length, modules=False))
    assert (found.instances, found.wait) == (7, 5 * 200 * US)


def test_steps_are_aligned_by_their_collectives_not_by_what_follows():
    """The second host opens one step later; what follows the last collectives, by which the steps'
    ends differ more than by their lengths, is alike in the first steps, in the second ones, ..."""
    length = {0: 1000, 1: 1003, 2: 1001, 3: 1007, 4: 1002, 5: 1005, 6: 1000}
    spaces = unnumbered(range(6), range(1, 7), length=length)
    for space in spaces:
        for tpu in space.planes:
            ends = [
                (event.start_ps + event.duration_ps) // US
                for event in tpu.lines["XLA Ops"].events[1::2]
            ]
            for end, own in zip(ends, (80, 5, 60, 10, 90, 20), strict=True):
                tpu.op("fusion.9", end, own, category="loop fusion")
    found = row(*spaces)
    assert (found.instances, found.wait) == (7, 5 * 200 * US)


def test_between_steps_and_before_the_first_one():
    """An evaluation between the first two steps meets on both hosts; what ran before the first step
    is not known to be the same."""

    def space(offset: int, *stays: float) -> Space:
        made = Space()
        tpu = made.tpu(0)
        for step in range(3):
            tpu.step(step, offset + 1000 * step, 500).op("fusion.1", offset + 1000 * step, 500)
        for name, end, stay in zip(("before.1", "eval.1", "after.1"), (-100, 900, 2900), stays,
                                   strict=True):  # fmt: skip
            tpu.op(name, offset + end - stay, stay, category="all-reduce",
                   long_name=text(name, "replica_groups={{0,1}}"))  # fmt: skip
        return made

    found = row(space(400, 10, 20, 30), space(7_000, 14, 25, 37))
    assert (found.instances, found.wait, found.wait_is_lower_bound) == (4, (5 + 7) * US, True)
    assert found.wire == 2 * (20 + 30) * US


def test_before_the_first_step_is_not_between_two():
    """One host runs it before step 0, the other after it."""

    def space(end: int) -> Space:
        made = Space()
        tpu = made.tpu(0)
        for step in range(2):
            tpu.step(step, 1000 + 1000 * step, 500).op("fusion.1", 1000 + 1000 * step, 500)
        tpu.op("x.1", end - 20, 20, category="all-reduce",
               long_name=text("x.1", "replica_groups={{0,1}}"))  # fmt: skip
        return made

    for first, second in ((900, 1900), (1900, 900)):
        found = row(space(first), space(second))
        assert (found.instances, found.members_seen, found.wire) == (2, 1, None)


def once_between(at: int, *, between: float) -> Space:
    """Steps 0, 1 and 2 of 500 us at 0, 1000 and 2000; the all-reduce ends `between` after `at`."""
    made = Space()
    tpu = made.tpu(0)
    for step in range(3):
        tpu.step(step, 1000 * step, 500).op("fusion.1", 1000 * step, 400)
    tpu.op("x.1", at + between - 20, 20, category="all-reduce",
           long_name=text("x.1", "replica_groups={{0,1}}"))  # fmt: skip
    return made


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("other", [0, 1, 2])
def test_in_a_step_is_not_after_one(step, other):
    """Each place is another one, and meets itself only."""
    inside, after = 450, 700
    for first, second in ((inside, inside), (inside, after), (after, after)):
        found = row(
            once_between(1000 * step, between=first), once_between(1000 * other, between=second)
        )
        meet = step == other and first == second
        assert found.instances == (1 if meet else 2)
        assert found.wire == (2 * 20 * US if meet else None)


@pytest.mark.parametrize("other", [450, 700])
def test_before_the_first_step_is_not_in_it_nor_after_it(other):
    before, second = once_between(0, between=-100), once_between(0, between=other)
    for spaces in ((before, second), (second, before)):
        assert (row(*spaces).instances, row(*spaces).wire) == (2, None)


def test_once_in_a_step_is_not_twice_before_it():
    first, second = once_between(1000, between=450), once_between(0, between=700)
    second.planes[0].op("x.1", 800, 20, category="all-reduce",
                        long_name=text("x.1", "replica_groups={{0,1}}"))  # fmt: skip
    assert (row(first, second).instances, row(first, second).wire) == (3, None)


def test_a_host_whose_steps_cannot_be_aligned_meets_nobody():
    """Hosts of one step each before and after one of three; by sequence one step fits nowhere."""
    groups = "replica_groups={{0,1,2}}"
    one, three = ({0: (30,)}, dict.fromkeys(range(3), (20,)))
    spaces = [host(stays, groups=groups, numbered=False) for stays in (one, three, one)]
    found = row(*spaces)
    assert (found.instances, found.members_seen, found.wait) == (1 + 3 + 1, 1, None)


def test_hosts_that_cannot_be_aligned_do_not_meet_each_other_either():
    """Both differ from the third, and from each other, in rhythm."""
    groups = "replica_groups={{0,1,2}}"
    rhythms = (
        {0: 1000, 1: 3000, 2: 700, 3: 5000},
        {0: 4000, 1: 600, 2: 6000, 3: 900},
        LENGTHS,
    )
    spaces = [
        host(dict.fromkeys(range(count), (20,)), groups=groups, numbered=False, length=length)
        for count, length in zip((4, 4, 7), rhythms, strict=True)
    ]
    found = row(*spaces)
    assert (found.instances, found.members_seen, found.wait) == (4 + 4 + 7, 1, None)


def test_before_the_first_step_is_not_between_two_of_a_host_that_opened_earlier():
    """By sequence, for only one has numbers, the second host opens a step earlier than the first:
    what the first runs before its first step need not be what the second runs there."""

    def space(steps: range, lone: float, *, numbered: bool) -> Space:
        stays = dict.fromkeys(steps, (10,))
        made = host(stays, groups="replica_groups={{0,1}}", length=LENGTHS, numbered=numbered,
                    modules=not numbered)  # fmt: skip
        made.planes[0].op("x.1", lone, 20, category="all-reduce",
                          long_name=text("x.1", "replica_groups={{0,1}}"))  # fmt: skip
        return made

    found = row(
        space(range(1, 7), -300, numbered=False), space(range(6), LENGTHS[0] - 20, numbered=True)
    )
    # Steps 1 to 5 meet; step 0, step 6 and x.1 on either host do not.
    assert (found.instances, found.wire) == (7 + 2, 5 * 2 * 10 * US)


def test_sequences_that_do_not_fit_are_not_matched():
    """The second host runs at another rhythm."""
    groups = "replica_groups={{0,1,2,3}}"
    first = host({s: [20, 50] for s in range(6)}, groups=groups, numbered=False)
    other = {0: 3000, 1: 700, 2: 5200, 3: 900, 4: 4100, 5: 800}
    second = host({s: [20, 90] for s in range(6)}, groups=groups, numbered=False, length=other)
    found = row(first, second)
    assert (found.instances, found.members_seen) == (12, 2)
    assert (found.wait, found.wait_is_lower_bound) == (6 * (30 + 70) * US, True)
    assert bandwidth(found) == (None, None)


def test_the_window_has_its_first_instant_and_not_its_last():
    """From 600, where the second step starts, to 2300, where the fourth one ends."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(4):
            tpu.step(step, 600 * step, 500).op("fusion.1", 600 * step, 500)
        for at, stay in ((590, 5), (600, 5), (2290, 5), (2300, 5)):
            tpu.op("x.1", at, stay, category="all-reduce",
                   long_name=text("x.1", "replica_groups={{0,1}}"))  # fmt: skip
    merged = collectives_of(space)
    assert merged.rows[0].instances == 4
    assert [one.instances for one in merged.members] == [2, 2]


def test_members_that_were_not_captured():
    """One host of two: the waits among its devices are known, what they all waited is not."""
    merged = collectives_of(host(dict.fromkeys(range(3), FAST)))
    (found,) = merged.rows
    assert (found.members_seen, found.group_size, found.instances) == (4, 8, 3)
    assert (found.wait, found.wait_is_lower_bound) == (3 * (4 + 2 + 8) * US, True)
    assert bandwidth(found) == (None, None)
    assert found.wire is None
    assert [one.wait_caused for one in merged.members] == [0, 0, 0, 0]
    assert [one.wait // US for one in merged.members] == [8, 4, 16, 0]


def test_groups_of_two_across_hosts_run_at_once():
    """{0,4} takes 30 and 12, {1,5} 9 and 41, {2,6} 5 and 5, {3,7} 100 and 1."""
    groups = "replica_groups=[4,2]<=[2,4]T(1,0)"
    merged = collectives_of(
        host(dict.fromkeys(range(3), (30, 9, 5, 100)), groups=groups),
        host(dict.fromkeys(range(3), (12, 41, 5, 1)), groups=groups),
    )
    (found,) = merged.rows
    assert (found.group_size, found.groups, found.instances, found.members_seen) == (2, 4, 12, 2)
    assert found.wire == 3 * 2 * (12 + 9 + 5 + 1) * US
    assert found.wait == 3 * (18 + 32 + 0 + 99) * US
    algorithm, bus = bandwidth(found)
    assert algorithm == pytest.approx(4 * BYTES / 27e-6 / 1e9)
    assert bus == pytest.approx(algorithm)
    caused = {(one.host, one.device[-1]): one.wait_caused // US for one in merged.members}
    assert caused["host-1", "0"] == 2 * 18
    assert caused["host-0", "1"] == 2 * 32
    assert caused["host-1", "3"] == 2 * 99
    assert sum(caused.values()) == 2 * (18 + 32 + 99)


def test_each_host_may_run_a_program_of_its_own():
    """A group of four on each of two hosts is two groups, not one of eight."""
    groups = "replica_groups={{0,1,2,3}}"
    spaces = [host(dict.fromkeys(range(2), own), groups=groups) for own in (FAST, SLOW)]
    found = row(*spaces)
    assert (found.groups, found.instances, found.members_seen) == (2, 4, 4)
    assert (found.wire, found.wait) == (2 * 4 * (203 + 11) * US, 2 * (14 + 9) * US)


def test_repeated_in_a_step_matched_by_occurrence():
    """Two all-reduces a step: wire 5 and 50."""
    first = {step: [(5, 50), (8, 60)] for step in range(2)}
    second = {step: [(25, 53), (7, 71)] for step in range(2)}
    found = row(
        host(first, groups="replica_groups={{0,1,2,3}}"),
        host(second, groups="replica_groups={{0,1,2,3}}", offset=9_000),
    )
    assert (found.instances, found.wire) == (4, 2 * 4 * 55 * US)
    assert found.wait == 2 * (3 + 20 + 2 + 10 + 3 + 21) * US


@pytest.mark.parametrize("cells", [1, 3, 8])
def test_large_tables_are_built_in_parts(monkeypatch, cells):
    """Four ops on two hosts; each host has four executions of each."""

    def space(offset: int, stay: int) -> Space:
        made = Space()
        tpu = made.tpu(0)
        for step in range(4):
            tpu.step(step, offset + 1000 * step, 900)
            for op in range(4):
                end = offset + 1000 * step + 200 * (op + 1)
                name, shape = f"x.{op}", f"f32[{op + 1}]"
                long_name = text(name, "replica_groups={{0,1}}", shape=shape)
                tpu.op(name, end - stay - op, stay + op, category="all-reduce", long_name=long_name)
        return made

    spaces = (space(0, 50), space(700, 20))
    whole = row(*spaces)
    assert (whole.instances, whole.payload) == (16, 2 * 4 * 4 * (1 + 2 + 3 + 4))
    assert (whole.wire, whole.wait) == (2 * 4 * (20 + 21 + 22 + 23) * US, 16 * 30 * US)
    monkeypatch.setattr(matching, "_MOST_CELLS", cells)
    assert row(*spaces) == whole


def test_a_step_that_one_host_has_in_part_is_not_matched():
    first = {0: [(5, 50), (8, 60)], 1: [(5, 50), (8, 60)]}
    second = {0: [(50,), (60,)], 1: [(6, 51), (9, 61)]}
    found = row(
        host(first, groups="replica_groups={{0,1,2,3}}"),
        host(second, groups="replica_groups={{0,1,2,3}}"),
    )
    assert found.wire == 4 * (5 + 50) * US
    # In step 0 each host's devices meet among themselves.
    assert found.wait == (3 + 1 + 4 + 10 + 1 + 11 + 3 + 10 + 10) * US
    assert (found.members_seen, found.wait_is_lower_bound) == (4, True)


def test_two_programs_with_an_op_of_one_name():
    """Ids differ between hosts and two programs hold the op: nobody knows which is which."""

    def space(*programs: int | None) -> Space:
        made = Space()
        tpu = made.tpu(0)
        for number, program in enumerate(programs):
            if program is None:
                continue
            tpu.op("all-reduce.1", 100 * number, 10 * (number + 1), program_id=program,
                   long_name=text("all-reduce.1", "replica_groups={{0,1}}"))  # fmt: skip
        return made

    same = row(space(3, 4, 3, 4), space(3, 4, 3, 4))
    assert (same.instances, same.wait) == (4, 0)
    other = row(space(3, 4, 3, 4), space(5, 6, 5, 6))
    assert (other.instances, other.members_seen, other.wait) == (8, 1, None)
    # One host ran one of the two only.
    both, only = space(3, 4, 3, 4), space(3, None, 3)
    for some in (row(both, only), row(only, both)):
        assert (some.instances, some.members_seen, some.wire) == (6, 1, None)
    one_each = row(space(3, 3, 3), space(5, 5, 5))
    assert (one_each.instances, one_each.wait) == (3, 0)


def test_a_device_of_a_host_that_opens_an_execution_later():
    """Without steps: the third has the last three of four; all are 30 us in it, the third 10."""
    space = Space()
    for ordinal, first in enumerate((0, 0, 1)):
        tpu = space.tpu(ordinal)
        stay = 10 if first else 30
        for at in range(first, 4):
            tpu.op("x.1", 1000 * at + 30 - stay, stay, category="all-reduce",
                   long_name=text("x.1", "replica_groups={{0,1,2}}"))  # fmt: skip
    found = row(space)
    assert (found.instances, found.members_seen) == (4, 3)
    assert (found.wire, found.wait) == (3 * 3 * 10 * US, 3 * 2 * 20 * US)


def test_devices_of_a_host_with_as_many_executions_meet_in_their_order():
    """Without steps: two have four each, though one of them ends each time half a period after the
    other; the third has the last three."""
    space = Space()
    for first, late in ((0, 0), (0, 500), (1, 0)):
        tpu = space.tpu(len(space.planes))
        for at in range(first, 4):
            tpu.op("x.1", 1000 * at + late, 950, category="all-reduce",
                   long_name=text("x.1", "replica_groups={{0,1,2}}"))  # fmt: skip
    found = row(space)
    assert (found.instances, found.members_seen, found.wire) == (4, 3, 3 * 3 * 950 * US)


def test_a_device_that_fits_none_of_its_host_stands_alone():
    """Without steps: two devices run it at 0, 1000, ..., the third three times at odd times."""
    space = Space()
    for at in ((0, 1000, 2000, 3000), (10, 1010, 2010, 3010), (500, 540, 2700)):
        tpu = space.tpu(len(space.planes))
        for start in at:
            tpu.op("x.1", start, 100, category="all-reduce",
                   long_name=text("x.1", "replica_groups={{0,1,2}}"))  # fmt: skip
    found = row(space)
    assert (found.instances, found.members_seen, found.wire) == (4 + 3, 2, None)
    assert (found.wait, found.wait_is_lower_bound) == (0, True)


# --- start and done ----------------------------------------------------------------------------


def pair(tpu, at: float, *, compute: float, wait: float, groups: str, name: str = "all-gather"):
    """start 1 us, compute beside it, then the done waits."""
    start = f"%{name}-start.1 = (f32[100]{{0}}, f32[400]{{0}}) {name}-start(f32[100]{{0}} %p), "
    done = f"%{name}-done.1 = f32[400]{{0}} {name}-done((f32[100], f32[400]) %{name}-start.1)"
    tpu.op(f"{name}-start.1", at, 1, long_name=start + groups)
    tpu.op("fusion.1", at + 1, compute, category="loop fusion")
    tpu.op(f"{name}-done.1", at + 1 + compute, wait, long_name=done)


def test_of_pairs_the_wire_time_is_an_upper_bound_and_the_done_waits():
    """Spans 1 + 60 + 39, 1 + 60 + 19, 1 + 59 + 25, 1 + 50 + 34."""
    space = Space()
    for ordinal, (compute, wait) in enumerate(((60, 39), (60, 19), (59, 25), (50, 34))):
        tpu = space.tpu(ordinal)
        pair(tpu, 100 - 1 - compute - wait, compute=compute, wait=wait,
             groups="replica_groups={{0,1,2,3}}")  # fmt: skip
    found = row(space)
    assert (found.count, found.instances, found.group_size) == (4, 1, 4)
    assert found.duration == (100 + 80 + 85 + 85) * US
    assert (found.wire, found.wire_is_upper_bound) == (4 * 80 * US, True)
    assert found.wait == (20 + 0 + 6 + 15) * US
    assert found.exposed == (4 + 39 + 19 + 25 + 34) * US
    assert found.overlapped == (60 + 60 + 59 + 50) * US
    assert found.payload == 4 * 1600


def test_a_done_without_a_shape_takes_the_bytes_of_its_start():
    """The done's text was cut before its shape; the start gathers 1,600 bytes."""
    space = Space()
    groups = "replica_groups={{0,1}}"
    text = f"%all-gather-start.1 = (f32[200]{{0}}, f32[400]{{0}}) all-gather-start(%p), {groups}"
    done = "%all-gather-done.1 = all-gather-done(%all-gather-start.1)"
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        tpu.op("all-gather-start.1", 100, 1, long_name=text)
        tpu.op("all-gather-done.1", 101, 20, long_name=done)
    found = row(space)
    assert (found.kind, found.count, found.instances) == ("all-gather", 2, 1)
    assert found.payload == 2 * 1600


def test_a_pair_that_the_window_cut_is_no_wire_time():
    """The second device's window opens between start and done."""
    space = Space()
    groups = "replica_groups={{0,1}}"
    for ordinal in (0, 1):
        tpu = space.tpu(ordinal)
        pair(tpu, 0, compute=50, wait=20 + ordinal, groups=groups)
        pair(tpu, 100, compute=50, wait=30 - ordinal, groups=groups)
    line = space.planes[1].lines["XLA Ops"]
    del line.events[0]
    found = row(space)
    assert (found.count, found.instances) == (4, 2)
    assert found.duration == (71 + 21 + 81 + 80) * US
    assert found.wire == 2 * 80 * US
    assert found.wait == (1 + 1) * US
    assert found.payload == 4 * 1600


def test_half_a_pair_may_lie_after_the_other_device_s_whole():
    """In flight at 0-26; the second device's done, whose start was cut off, waits at 41-44."""
    space = Space()
    groups = "replica_groups={{0,1}}"
    pair(space.tpu(0), 0, compute=20, wait=5, groups=groups)
    pair(space.tpu(1), 0, compute=40, wait=3, groups=groups)
    del space.planes[1].lines["XLA Ops"].events[0]
    found = row(space)
    assert (found.instances, found.members_seen, found.wire) == (1, 2, None)
    assert (found.wait, found.wait_is_lower_bound) == (2 * US, False)


@pytest.mark.parametrize("half", ["start", "done"])
def test_half_a_pair_on_the_async_line_is_one_instance(half):
    """The async line shows 0-95; the op line the start 0-1, or the done 60-100."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 1, 59, category="loop fusion")
    if half == "start":
        tpu.op("all-gather-start.3", 0, 1, category="all-gather-start")
    else:
        tpu.op("all-gather-done.3", 60, 40, category="all-gather-done")
    tpu.async_op("all-gather-start.3", 0, 95)
    found = row(space)
    assert (found.kind, found.count) == ("all-gather", 1)
    assert found.duration == (95 if half == "start" else 100) * US
    assert found.exposed == (1 if half == "start" else 40) * US


def test_several_halves_in_flight_count_once_each():
    """In flight at 0-90 and 50-140; the dones come later, at 150 and 160."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("fusion.1", 0, 150, category="loop fusion")
    for at in (0, 50):
        tpu.async_op("all-gather-start.3", at, 90)
    for at in (150, 160):
        tpu.op("all-gather-done.3", at, 5, category="all-gather-done")
    found = row(space)
    assert (found.count, found.duration) == (2, (155 + 115) * US)


# --- permutes ----------------------------------------------------------------------------------


def test_permutes_are_pairs_of_source_and_target():
    """A chain 0 -> 1 -> 2 -> 3: stays of 40, 10, 60 and 55 us. Pairs take 10, 10, 55; 0 and 2 wait
    for 1, 3 for nobody (2 stays longer)."""
    space = Space()
    pairs = "source_target_pairs={{0,1},{1,2},{2,3}}"
    for ordinal, stay in enumerate((40, 10, 60, 55)):
        long_name = text("collective-permute.1", pairs, "collective-permute")
        space.tpu(ordinal).op("collective-permute.1", 100 - stay, stay, long_name=long_name)
    merged = collectives_of(space)
    (found,) = merged.rows
    assert (found.kind, found.group_size, found.count) == ("collective-permute", None, 4)
    assert (found.instances, found.groups, found.members_seen) == (3, 3, 2)
    assert found.wait == (30 + 50) * US
    algorithm, bus = bandwidth(found)
    assert algorithm == bus == pytest.approx(3 * BYTES / 75e-6 / 1e9)
    assert [one.wait_caused // US for one in merged.members] == [0, 80, 0, 0]
    assert [one.instances for one in merged.members] == [1, 1, 1, 1]


def test_permutes_across_hosts_and_with_members_missing():
    pairs = "source_target_pairs={{0,2},{1,3},{2,0},{3,1}}"
    first, second = host({0: (30, 12)}, groups=pairs), host({0: (10, 19)}, groups=pairs)
    for space in (first, second):
        for plane in space.planes:
            plane._metadata = {
                (name.replace("all-reduce", "collective-permute"),
                 display.replace("all-reduce", "collective-permute"),
                 stats.replace(b"all-reduce", b"collective-permute")): key
                for (name, display, stats), key in plane._metadata.items()
            }  # fmt: skip
    found = row(first, second)
    assert (found.instances, found.wait) == (4, (20 + 7) * US)
    alone = row(first)
    assert (alone.instances, alone.members_seen, alone.wait) == (None, None, None)
    assert bandwidth(alone) == (None, None)


# --- through files and processes ---------------------------------------------------------------


def test_parts_of_hosts_go_through_bytes(tmp_path):
    """What the process that merges gets from the others gives the same summary."""
    whole = summarize_spaces(tmp_path, *slow_host_job())
    capture, _ = resolve(profile_dir=str(tmp_path))
    made = {"tool_version": "1", "warmup_steps": 1}
    known = {
        file.path: decode_host(encode_host(read_host(file, SummarizeOptions()), **made), **made)
        for file in capture.hosts
    }
    assert summarize_capture(capture, known=known) == whole
    assert whole.straggler_hosts[0].is_straggler


def test_windows_one_execution_apart_through_the_pipeline(tmp_path):
    """Steps 10 and 14 are not shared; the collectives in them still count, as executions of which
    half the members are missing."""
    first = {step: [(step - 9) * 10 + 1, (step - 9) * 10 + 3] for step in range(10, 14)}
    second = {step: [(step - 9) * 10, (step - 9) * 10 + 7] for step in range(11, 15)}
    groups = "replica_groups={{0,1,2,3}}"
    summary = summarize_spaces(
        tmp_path, host(first, groups=groups), host(second, groups=groups, offset=500)
    )
    (found,) = summary.collectives
    assert (found.instances, found.count, found.members_seen) == (5, 16, 4)
    assert found.algorithm_gbps == pytest.approx(3 * BYTES / 90e-6 / 1e9)
    assert (found.wait_duration, found.wait_is_lower_bound) == (3 * 11 + 2 + 7, True)
    # Of the shared steps 11, 12 and 13 two are kept.
    assert [one.instances for one in summary.stragglers] == [2, 2, 2, 2]


def test_the_order_of_hosts_is_that_of_their_numbers(tmp_path):
    """host-2 comes before host-10: groups of two neighbours are on one host each."""
    below = tmp_path / "plugins" / "profile" / "2026_01_02_03_04_05"
    groups = "replica_groups={{0,3},{1,2}}"
    for name, stays in (("host-10", (5, 9)), ("host-2", (30, 20))):
        host(dict.fromkeys(range(2), stays), groups=groups).write(below / f"{name}.xplane.pb")
    (found,) = summarize(tmp_path).collectives
    # {0,3} is 30 and 9, {1,2} is 20 and 5.
    assert found.wait_duration == 2 * (21 + 15)


# --- beside compute ----------------------------------------------------------------------------


def test_only_exposed_wait_counts_against_communication(tmp_path):
    """NCCL kernels of 100 and 30 us on a stream of their own; compute hides 60 of the first and
    all of the second."""
    space = Space()
    space.hlo(
        7, hlo_proto(computation(1, 1, instruction("ar", "all-reduce", id=1, groups=[[0, 1]])))
    )
    for ordinal, (stay, hidden) in enumerate(((100, 60), (30, 30))):
        gpu = space.gpu(ordinal)
        gpu.kernel("ncclDevKernel_AllReduce_Sum_f32", 200 - stay, stay, stream="Stream #2",
                   hlo_op="ar", module="jit_f", program_id=7)  # fmt: skip
        gpu.kernel("gemm", 200 - stay, hidden, stream="Stream #1")
    summary = summarize_spaces(tmp_path, space)
    (found,) = summary.collectives
    assert (found.exposed_duration, found.overlapped_duration) == (40, 90)
    assert found.wait_duration == 70
    late, punctual = summary.stragglers
    assert (late.wait_caused, late.exposed_wait_caused) == (70, 40)
    assert (punctual.wait, punctual.exposed_wait) == (70, 40)
    exposed = sum(row.exposed_communication_duration for row in summary.device_ledger)
    assert exposed == 40
