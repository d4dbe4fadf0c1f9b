"""Which device or host changed otherwise than the others, and how much longer they wait for it.

Contract
* Times are per step, of the steady windows, the mean over a side's captures; only devices that all
  captures have are compared. Hosts go by name; those whose names differ, by their order.
* Of each term of the ledger the devices' changes are compared: one stands out by a modified z-score
  of more than 3.5 (0.6745 x (change - median) / max(MAD, 1 % of a step)), of two the one that
  changed more, by more than 5 % of a step. A change that all share makes no row.
* Waiting for others is no device's own change: exposed communication counts without its waits, and
  not at all where these are not known.
* A host stands out by what at least half of its devices share; they do not stand out with it. Who
  stands out in one term is left out of the later ones, which may only mirror it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median, median_low
from typing import TypeVar

from marin_profile.base.text import natural_order
from marin_profile.comparison.exact import change_of, microseconds, picoseconds
from marin_profile.comparison.model import Change, DeviceChange
from marin_profile.facts.device_time import SPARSE_CORE, left_out_of, single_devices
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import STEADY, DeviceLedger, ProfileSummary

# Who computes longer idles or waits less, so that work is judged first.
TERMS = ("compute", "exposed_transfer", "unattributed", "exposed_communication", "idle")
COMMUNICATION = "exposed_communication"
# Without waiting for others; only where that is known.
OWN_COMMUNICATION = "own_communication"
STANDS_OUT = Fraction(7, 2)
NORMAL = Fraction(6745, 10_000)
FLOOR = Fraction(1, 100)
OF_TWO = Fraction(1, 20)

Device = tuple[str, str]
K = TypeVar("K")
Times = Mapping[str, Fraction]


@dataclass(frozen=True)
class _Side:
    """Picoseconds per step of each device, and what another device waits for it or its host."""

    terms: Mapping[Device, Times]
    waits: Mapping[Device, Fraction]
    host_waits: Mapping[str, Fraction]


@dataclass(frozen=True)
class _Judged:
    beyond: Fraction
    z: Fraction | None
    stands_out: bool


def device_changes(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> list[DeviceChange]:
    """The largest first. None without steps on both sides, of a single device, and where not all
    devices have rows: those that have are the ones that stand out."""
    captures = [*before, *after]
    if any(left_out_of(summary, "device_ledger") for summary in captures):
        return []
    names = _host_names(captures)
    read = [_read(summary, known) for summary, known in zip(captures, names, strict=True)]
    one, two = _mean(read[: len(before)]), _mean(read[len(before) :])
    devices = sorted(
        one.terms.keys() & two.terms.keys(), key=lambda at: (at[0], natural_order(at[1]))
    )
    if len(devices) < 2:
        return []
    step = _mean_of([one.terms[device][name] for device in devices for name in TERMS]) * len(TERMS)
    rows: list[DeviceChange] = []
    for term in TERMS:
        changes = _changes(one, two, devices, term)
        late = [] if changes is None else _late(changes, step)
        for host, device, judged in late:
            members = [at for at in devices if at[0] == host and device in (at[1], None)]
            rows.append(_row(one, two, members, term, judged, device))
        explained = {(host, device) for host, device, _ in late}
        devices = [at for at in devices if explained.isdisjoint((at, (at[0], None)))]
    return sorted(
        rows,
        key=lambda row: (
            -abs(row.beyond_others),
            row.host,
            row.device is not None,
            natural_order(row.device or ""),
        ),
    )


def _changes(
    one: _Side, two: _Side, devices: Sequence[Device], term: str
) -> dict[Device, Fraction] | None:
    name = OWN_COMMUNICATION if term == COMMUNICATION else term
    if any(name not in side.terms[device] for side in (one, two) for device in devices):
        return None
    return {device: two.terms[device][name] - one.terms[device][name] for device in devices}


def _late(
    changes: Mapping[Device, Fraction], step: Fraction
) -> list[tuple[str, str | None, _Judged]]:
    """Hosts that stand out, and devices that do beyond what is their host's."""
    by_host: dict[str, list[Fraction]] = {}
    for (host, _), change in changes.items():
        by_host.setdefault(host, []).append(change)
    shared: dict[str, Fraction] = {}
    if len(by_host) < len(changes):  # else hosts are devices
        middle = median(changes.values())
        shared = {host: _near_median(own, middle) for host, own in by_host.items()}
    found: list[tuple[str, str | None, _Judged]] = [
        (host, None, judged)
        for host, judged in zip(shared, _judge(list(shared.values()), step), strict=True)
        if judged.stands_out
    ]
    of_host = {host: shared[host] for host, _, _ in found}
    others = [change for (host, _), change in changes.items() if host not in of_host]
    usual = median(others) if others else Fraction(0)
    beyond = [
        change - of_host[host] + usual if host in of_host else change
        for (host, _), change in changes.items()
    ]
    for (host, device), judged in zip(changes, _judge(beyond, step), strict=True):
        if judged.stands_out:
            found.append((host, device, judged))
    return found


def _near_median(changes: Sequence[Fraction], middle: Fraction) -> Fraction:
    distance = median_low(abs(change - middle) for change in changes)
    return next(change for change in sorted(changes) if abs(change - middle) == distance)


def _judge(changes: Sequence[Fraction], step: Fraction) -> list[_Judged]:
    if len(changes) < 2:
        return [_Judged(Fraction(0), None, False) for _ in changes]
    if len(changes) == 2:
        larger = max(changes, key=abs)
        apart = abs(changes[0] - changes[1]) > OF_TWO * step
        return [
            _Judged(change - other, None, apart and abs(change) == abs(larger))
            for change, other in zip(changes, reversed(changes), strict=True)
        ]
    middle = median(changes)
    scale = max(median(abs(change - middle) for change in changes), FLOOR * step)
    scores = [NORMAL * (change - middle) / scale if scale else Fraction(0) for change in changes]
    return [
        _Judged(change - middle, score, abs(score) > STANDS_OUT)
        for change, score in zip(changes, scores, strict=True)
    ]


def _row(
    one: _Side,
    two: _Side,
    devices: Sequence[Device],
    term: str,
    judged: _Judged,
    device: str | None,
) -> DeviceChange:
    """Of one device, or of a host's devices their mean."""
    host = devices[0][0]
    if device is None:
        waits = one.host_waits.get(host), two.host_waits.get(host)
    else:
        waits = one.waits.get(devices[0]), two.waits.get(devices[0])

    def change(name: str) -> Change:
        return change_of(
            _mean_of([one.terms[at][name] for at in devices]),
            _mean_of([two.terms[at][name] for at in devices]),
        )

    return DeviceChange(
        host=host,
        device=device,
        term=term,
        beyond_others=microseconds(judged.beyond),
        z=None if judged.z is None else round(float(judged.z), 6),
        terms={name: change(name) for name in TERMS},
        wait_caused=None if None in waits else change_of(*waits),
        **dict(change(OWN_COMMUNICATION if term == COMMUNICATION else term)),
    )


# --- reading -----------------------------------------------------------------------------------


def _host_names(captures: Sequence[ProfileSummary]) -> list[dict[str, str]]:
    """Per capture its hosts' names in the last capture; those with names of their own by order."""
    hosts = [_hosts(summary) for summary in captures]
    common = set(hosts[-1]).intersection(*hosts)
    found = []
    for own in hosts:
        other = [[host for host in side if host not in common] for side in (own, hosts[-1])]
        pairs = zip(*other, strict=True) if len(other[0]) == len(other[1]) else ()
        found.append({host: host for host in common} | dict(pairs))
    return found


def _hosts(summary: ProfileSummary) -> list[str]:
    return sorted({row.host for row in _rows(summary)}, key=natural_order)


def _rows(summary: ProfileSummary) -> list[DeviceLedger]:
    return [row for row in single_devices(summary, STEADY) if row.kind != SPARSE_CORE]


def _read(summary: ProfileSummary, names: Mapping[str, str]) -> _Side:
    steps = kept_steps(summary)
    if not steps:
        return _Side({}, {}, {})
    late = {(names[one.host], one.device): one for one in summary.stragglers if one.host in names}
    terms: dict[Device, dict[str, Fraction]] = {}
    for row in _rows(summary):
        if row.host not in names:
            continue
        device = (names[row.host], row.device)
        terms[device] = {
            name: Fraction(picoseconds(getattr(row, f"{name}_duration")), steps) for name in TERMS
        }
        if _waits_are_known(summary):
            wait = picoseconds(late[device].exposed_wait) if device in late else 0
            own = terms[device][COMMUNICATION] - Fraction(wait, steps)
            terms[device][OWN_COMMUNICATION] = own
    return _Side(
        terms,
        {
            device: Fraction(picoseconds(one.delay_per_step))
            for device, one in late.items()
            if one.delay_per_step is not None
        },
        {
            names[host.host]: Fraction(picoseconds(host.delay_per_step))
            for host in summary.straggler_hosts
            if host.delay_per_step is not None and host.host in names
        },
    )


def _waits_are_known(summary: ProfileSummary) -> bool:
    return summary.list_basis.get("stragglers") == STEADY and all(
        row.wait_duration is not None and not row.wait_is_lower_bound for row in summary.collectives
    )


def _mean(captures: Sequence[_Side]) -> _Side:
    """Over captures, of what all of them have."""
    terms = [one.terms for one in captures]
    return _Side(
        {
            device: _means([side[device] for side in terms])
            for device in set(terms[0]).intersection(*terms)
        },
        _means([one.waits for one in captures]),
        _means([one.host_waits for one in captures]),
    )


def _means(captures: Sequence[Mapping[K, Fraction]]) -> dict[K, Fraction]:
    return {
        key: _mean_of([one[key] for one in captures])
        for key in set(captures[0]).intersection(*captures)
    }


def _mean_of(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)
