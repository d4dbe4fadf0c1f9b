"""Devices and hosts that changed otherwise than the others; figures by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders_summary import STEPS as BUILT_STEPS
from builders_summary import build_summary, ledger, straggler
from builders_xspace import Space, summary_of
from marin_profile.comparison import compare
from marin_profile.comparison.devices import device_changes
from marin_profile.comparison.model import DeviceChange
from marin_profile.reports.comparison import comparison_headline, render_comparison
from marin_profile.reports.devices import device_sentence
from marin_profile.schema import Collective, ProfileSummary

STEPS = 5
WIRE = 10
REST = 22
USUAL = 28.0


def training(
    computes: Sequence[Sequence[float]],
    *,
    hosts: Sequence[str] = ("host-0", "host-1", "host-2", "host-3"),
    late: Mapping[int, float] | None = None,
    collective: bool = True,
    copies: Mapping[int, float] | None = None,
    steps: int = STEPS,
) -> ProfileSummary:
    """Per host and device how long it computes in a step, in us: then it waits in an all-reduce,
    which takes 10 us from when the last one arrives; 22 us later the next step begins. `late`: by
    the device's number over all hosts, how long it idles between its first us and the rest;
    `copies`: how long it waits for a copy to the host before the all-reduce."""
    late, copies = late or {}, copies or {}
    places = [(host, at) for host, own in enumerate(computes) for at in range(len(own))]
    arrives = [
        computes[host][at] + late.get(number, 0) + copies.get(number, 0)
        for number, (host, at) in enumerate(places)
    ]
    everyone = ",".join(map(str, range(len(places))))
    text = f"%all-reduce.1 = f32[8] all-reduce(f32[8] %p), replica_groups={{{{{everyone}}}}}"
    spaces = [Space(host) for host in hosts[: len(computes)]]
    end = max(arrives) + (WIRE if collective else 0)
    for number, (host, at) in enumerate(places):
        tpu = spaces[host].tpu(at)
        for step in range(steps):
            begin = step * (end + REST)
            tpu.step(step, begin, end)
            tpu.module("jit_step(7)", begin, end, run_id=step)
            tpu.op("fusion.1", begin, 1, category="loop fusion")
            rest = begin + 1 + late.get(number, 0)
            tpu.op("fusion.2", rest, computes[host][at] - 1, category="loop fusion")
            if number in copies:
                tpu.op("infeed.1", begin + arrives[number] - copies[number], copies[number],
                       category="infeed")  # fmt: skip
            if collective:
                arrive = begin + arrives[number]
                tpu.op("all-reduce.1", arrive, end - arrives[number], category="all-reduce",
                       long_name=text)  # fmt: skip
    parts = [
        space.analyse(host=host if len(computes) > 1 else "")
        for space, host in zip(spaces, hosts, strict=False)
    ]
    return summary_of(*parts)


def found(before: ProfileSummary, after: ProfileSummary) -> list[DeviceChange]:
    return device_changes([before], [after])


def another(summary: ProfileSummary) -> ProfileSummary:
    """As the summary of other bytes."""
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    return summary.model_copy(update={"trace_provenance": provenance})


FOUR = training([[USUAL] * 4])


def test_one_device_fifteen_percent_slower():
    """28 us become 32.2; the others wait 4.2 us longer in the all-reduce, and the step grows by
    as much. A step of the window: (3 x 60 + 38) / 4 = 54.5 us; 0.6745 x 4.2 / 0.545 = 5.198."""
    comparison = compare(FOUR, another(training([[USUAL, USUAL, USUAL, 32.2]])))
    (row,) = comparison.devices
    assert (row.host, row.device, row.term) == ("", "/device:TPU:3", "compute")
    assert (row.before, row.after, row.delta, row.relative) == (28.0, 32.2, 4.2, 0.15)
    assert (row.beyond_others, row.z) == (4.2, 5.197982)
    assert row.wait_caused is not None
    assert (row.wait_caused.before, row.wait_caused.after, row.wait_caused.delta) == (0.0, 4.2, 4.2)
    assert row.terms["exposed_communication"].delta == 0.0
    assert comparison.target is not None
    assert comparison.target.delta == 4.2
    assert comparison_headline(comparison).endswith(
        " One device accounts for it: TPU:3 computes 15.0 % longer (+4.20 us a step); the others "
        "wait 4.20 us longer for it."
    )
    text = render_comparison(comparison)
    cells = "compute | 28.00 us | 32.20 us | +4.20 us | +4.20 us | 0 us | 4.20 us |"
    assert f"| `TPU:3` | {cells}" in text


def test_a_device_that_recovered():
    comparison = compare(training([[USUAL, 40.0, USUAL, USUAL]]), another(FOUR))
    (row,) = comparison.devices
    assert device_sentence(row) == (
        "TPU:1 computes 30.0 % less (-12.00 us a step); the others wait 12.00 us less for it"
    )
    assert "One device accounts for it: TPU:1" in comparison_headline(comparison)


@pytest.mark.parametrize("collective", [True, False])
def test_a_change_that_all_share_is_no_row(collective):
    slower = training([[USUAL + 9] * 4], collective=collective)
    assert found(training([[USUAL] * 4], collective=collective), slower) == []
    assert found(FOUR, FOUR) == []


def test_a_device_that_does_not_change_with_the_others_stands_out():
    (row,) = found(FOUR, training([[38.0, 38.0, 38.0, 28.0]]))
    assert (row.device, row.delta, row.beyond_others) == ("/device:TPU:3", 0.0, -10.0)


def test_without_collectives_the_others_idle_and_stand_not_out():
    before = training([[USUAL] * 4], collective=False)
    (row,) = found(before, training([[USUAL, USUAL, USUAL, 34.0]], collective=False))
    assert (row.device, row.term, row.delta) == ("/device:TPU:3", "compute", 6.0)
    assert row.wait_caused is None
    assert device_sentence(row) == "TPU:3 computes 21.4 % longer (+6.00 us a step)"
    two = training([[USUAL] * 2], collective=False)
    (row,) = found(two, training([[USUAL, 34.0]], collective=False))
    assert (row.device, row.term, row.z) == ("/device:TPU:1", "compute", None)


@pytest.mark.parametrize(("other", "is_row"), [(3.6, True), (2.8, False)])
def test_a_score_of_three_and_a_half(other, is_row):
    """The scale is 1 % of 54.5 us: 3.5 x 0.545 / 0.6745 = 2.828."""
    assert bool(found(FOUR, training([[USUAL, USUAL, USUAL + other, USUAL]]))) is is_row


def test_the_spread_is_the_scale_where_it_is_larger():
    """Changes 0, 2, 4, 6, 12 about 4: MAD 2, z = 0.6745 x 8 / 2 = 2.698. With 15: 3.71."""
    five = training([[USUAL] * 5])
    changes = [0.0, 2.0, 4.0, 6.0]
    assert found(five, training([[USUAL + more for more in (*changes, 12.0)]])) == []
    (row,) = found(five, training([[USUAL + more for more in (*changes, 15.0)]]))
    assert (row.device, row.beyond_others, row.z) == ("/device:TPU:4", 11.0, 3.70975)


@pytest.mark.parametrize(("more", "is_row"), [(2.74, True), (2.7, False)])
def test_of_two_one_must_change_by_five_percent_more(more, is_row):
    """5 % of 54.5 us are 2.725."""
    two = training([[USUAL] * 2])
    rows = found(two, training([[USUAL, USUAL + more]]))
    assert [row.device for row in rows] == (["/device:TPU:1"] if is_row else [])
    faster = found(two, training([[USUAL - more, USUAL]]))
    assert [row.device for row in faster] == (["/device:TPU:0"] if is_row else [])


def test_a_device_that_idles_before_its_work_makes_the_others_wait():
    (row,) = found(FOUR, training([[USUAL] * 4], late={2: 7.0}))
    assert (row.device, row.term, row.delta) == ("/device:TPU:2", "idle", 7.0)
    assert row.wait_caused is not None
    assert row.wait_caused.delta == 7.0


def test_a_device_that_waits_for_transfers():
    (row,) = found(FOUR, training([[USUAL] * 4], copies={1: 5.0}))
    assert (row.device, row.term, row.before, row.delta) == (
        "/device:TPU:1", "exposed_transfer", 0.0, 5.0,
    )  # fmt: skip
    assert device_sentence(row) == (
        "TPU:1 waits for transfers longer (+5.00 us a step); the others wait 5.00 us longer for it"
    )


# --- by hand-made ledgers: four steps of 1,000 us ------------------------------------------------


def made(term: str, *mores: float, waits: Sequence[float] = (), **changes: Any) -> ProfileSummary:
    """Per device what a step takes more of the term, at the cost of idle time, and how long the
    device waits in exposed communication, which some collectives allow to know."""
    rows = []
    for at, more in enumerate(mores):
        row = ledger(f"/device:TPU:{at}")
        name = f"{term}_duration"
        taken = {"idle_duration": row.idle_duration - BUILT_STEPS * more}
        rows.append(row.model_copy(update=taken | {name: getattr(row, name) + BUILT_STEPS * more}))
    values: dict[str, Any] = {
        "device_ledger": rows,
        "collectives": [],
        "stragglers": [
            straggler(f"/device:TPU:{at}", "host0", late=False, exposed_wait=BUILT_STEPS * wait)
            for at, wait in enumerate(waits)
        ],
        "list_basis": {"stragglers": "steady"},
    }
    return build_summary(**(values | changes))


def test_a_score_of_exactly_three_and_a_half_does_not_stand_out():
    """About 0: MAD 67.45 us, 3.5 x 67.45 / 0.6745 = 350."""
    even = made("compute", *[0.0] * 5)
    assert found(even, made("compute", -67.45, 0.0, 67.45, -350.0, 0.0)) == []
    (row,) = found(even, made("compute", -67.45, 0.0, 67.45, -350.1, 0.0))
    assert (row.device, row.beyond_others, row.z) == ("/device:TPU:3", -350.1, -3.501)


def test_exactly_five_percent_of_a_step_of_two_do_not_stand_out():
    """Of changes of 30 and 80 us the larger is 50 beyond the other."""
    even = made("compute", 0.0, 0.0)
    assert found(even, made("compute", 30.0, 80.0)) == []
    (row,) = found(even, made("compute", 30.0, 80.1))
    assert (row.device, row.delta, row.beyond_others) == ("/device:TPU:1", 80.1, 50.1)


COMMUNICATION = "exposed_communication"


def test_communication_counts_without_its_waits():
    """All wait 30 us longer but one, whose communication takes 90 us longer by itself."""
    before = made(COMMUNICATION, *[0.0] * 4, waits=[10.0] * 4)
    after = made(COMMUNICATION, 30.0, 90.0, 30.0, 30.0, waits=[40.0, 10.0, 40.0, 40.0])
    (row,) = found(before, after)
    assert (row.device, row.term) == ("/device:TPU:1", COMMUNICATION)
    assert (row.before, row.after, row.delta) == (190.0, 280.0, 90.0)
    assert row.terms[COMMUNICATION].delta == 90.0
    assert device_sentence(row) == (
        "host0 TPU:1 communicates, its waits for others aside, 47.4 % longer (+90.00 us a step)"
    )
    only_waits = made(COMMUNICATION, 30.0, 0.0, 30.0, 30.0, waits=[40.0, 10.0, 40.0, 40.0])
    assert COMMUNICATION not in {row.term for row in found(before, only_waits)}


@pytest.mark.parametrize(
    "changes",
    [
        {"list_basis": {"stragglers": "capture"}},
        {"list_basis": {}},
        {"collectives": [Collective(collective="all-reduce", count=1, duration=1.0,
                                    exposed_duration=1.0, overlapped_duration=0.0)]},
        {"collectives": [Collective(collective="all-reduce", count=1, duration=1.0,
                                    exposed_duration=1.0, overlapped_duration=0.0,
                                    wait_duration=0.5, wait_is_lower_bound=True)]},
    ],
)  # fmt: skip
def test_communication_is_not_judged_where_its_waits_are_not_known(changes):
    sides = [made(COMMUNICATION, *own, **changes) for own in ([0.0] * 3, (0.0, 90.0, 0.0))]
    # All that is seen is that it idles less.
    assert {row.term for row in found(*sides)} == {"idle"}


def test_where_waits_are_known_collectives_do_not_hinder():
    row = Collective(
        collective="all-reduce",
        count=1,
        duration=1.0,
        exposed_duration=1.0,
        overlapped_duration=0.0,
        wait_duration=0.0,
    )
    sides = [made(COMMUNICATION, *own, collectives=[row]) for own in ([0.0] * 3, (0.0, 90.0, 0.0))]
    assert [one.term for one in found(*sides)] == [COMMUNICATION]


# --- hosts -------------------------------------------------------------------------------------


def test_a_slow_host_is_one_row_and_its_devices_none():
    """Of two hosts of four, all devices of one compute 8 us longer."""
    before = training([[USUAL] * 4] * 2)
    (row,) = found(before, training([[USUAL] * 4, [36.0] * 4]))
    assert (row.host, row.device, row.term) == ("host-1", None, "compute")
    assert (row.before, row.after, row.beyond_others, row.z) == (28.0, 36.0, 8.0, None)
    assert row.wait_caused is not None
    assert row.wait_caused.delta == 8.0
    assert device_sentence(row) == (
        "host host-1 computes 28.6 % longer (+8.00 us a step); devices of other hosts wait 8.00 us "
        "longer for it"
    )


def test_a_slow_device_does_not_make_its_host_slow():
    before = training([[USUAL] * 2] * 3)
    (row,) = found(before, training([[USUAL] * 2, [USUAL, 36.0], [USUAL] * 2]))
    assert (row.host, row.device, row.delta) == ("host-1", "/device:TPU:1", 8.0)


def test_a_device_slower_than_its_slow_host():
    """Of three hosts one computes 8 us longer, one of its devices 20: 12 more than its host."""
    before = training([[USUAL] * 4] * 3)
    rows = found(before, training([[36.0, 36.0, 48.0, 36.0], [USUAL] * 4, [USUAL] * 4]))
    assert [(row.host, row.device, row.beyond_others) for row in rows] == [
        ("host-0", "/device:TPU:2", 12.0),
        ("host-0", None, 8.0),
    ]
    assert rows[1].after == 39.0


def test_two_hosts_that_change_by_as_much_either_way():
    before = training([[36.0] * 2, [USUAL] * 2])
    rows = found(before, training([[USUAL] * 2, [36.0] * 2]))
    assert [(row.host, row.device, row.delta) for row in rows] == [
        ("host-0", None, -8.0),
        ("host-1", None, 8.0),
    ]


def test_hosts_of_one_device_are_devices():
    before = training([[USUAL]] * 3)
    (row,) = found(before, training([[USUAL], [36.0], [USUAL]]))
    assert (row.host, row.device) == ("host-1", "/device:TPU:0")


def test_hosts_that_are_called_otherwise_go_by_order():
    before = training([[USUAL] * 2] * 2, hosts=("w-9", "w-10"))
    (row,) = found(before, training([[USUAL] * 2, [36.0] * 2], hosts=("v-2", "v-11")))
    assert (row.host, row.before, row.after) == ("v-11", 28.0, 36.0)
    some = training([[USUAL] * 2, [36.0] * 2], hosts=("w-10", "v-2"))
    (row,) = found(before, some)
    assert (row.host, row.before, row.after) == ("v-2", 28.0, 36.0)
    assert found(before, training([[USUAL] * 2] * 3, hosts=("a", "b", "c"))) == []


def test_hosts_go_by_order_in_several_captures_too():
    """Of hosts (a, b) and (c, d), then (e, f): b, d and f are one."""
    before = [training([[USUAL] * 2] * 2, hosts=names) for names in (("a", "b"), ("c", "d"))]
    after = [training([[USUAL] * 2, [36.0] * 2], hosts=names) for names in (("g", "h"), ("e", "f"))]
    (row,) = device_changes(before, after)
    assert (row.host, row.before, row.after) == ("f", 28.0, 36.0)


def test_hosts_that_one_side_lacks_are_left_out():
    """Of hosts a, b and c, after which only b and c are left, c is slower."""
    before = training([[USUAL] * 2] * 3, hosts=("a", "b", "c"))
    (row,) = found(before, training([[USUAL] * 2, [36.0] * 2], hosts=("b", "c")))
    assert (row.host, row.before, row.after) == ("c", 28.0, 36.0)


# --- several captures, and what is not there ----------------------------------------------------


def test_one_of_several_causes_does_not_account_for_the_change():
    """All compute 20 us longer, one of them 8 more: of 28 us, 8 are its own."""
    comparison = compare(FOUR, another(training([[48.0, 48.0, 48.0, 56.0]])))
    assert [row.beyond_others for row in comparison.devices] == [8.0]
    assert "accounts for it" not in comparison_headline(comparison)
    assert "## Devices that changed otherwise" in render_comparison(comparison)
    alike = compare(FOUR, another(training([[48.0] * 4])))
    assert "## Devices that changed otherwise" not in render_comparison(alike)


def test_captures_of_a_side_are_averaged():
    """30 and 34.4 us are 32.2 on average."""
    after = [training([[USUAL, USUAL, USUAL, own]]) for own in (30.0, 34.4)]
    (row,) = device_changes([FOUR, FOUR], after)
    assert (row.before, row.after) == (28.0, 32.2)
    assert row.wait_caused is not None
    assert row.wait_caused.after == 4.2


def test_other_numbers_of_steps_change_nothing():
    assert found(FOUR, training([[USUAL] * 4], steps=9)) == []
    (row,) = found(FOUR, training([[USUAL, USUAL, USUAL, 32.2]], steps=9))
    assert (row.delta, row.wait_caused and row.wait_caused.delta) == (4.2, 4.2)


def test_only_devices_of_both_sides_are_compared():
    (row,) = found(FOUR, training([[USUAL, USUAL, 36.0, USUAL, 90.0]]))
    assert (row.device, row.delta) == ("/device:TPU:2", 8.0)
    assert found(training([[USUAL]]), training([[USUAL, 90.0]])) == []


def test_without_steps_nothing_is_known_of_devices():
    assert found(FOUR, FOUR.model_copy(update={"device_ledger": []})) == []
