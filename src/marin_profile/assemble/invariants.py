"""What must hold between the figures of a summary, checked at the end of every one.

Contract: a check takes the merged parts and the summary made of them, and tells what contradicts
it. The first contradiction ends the summary with an InternalError that names the invariant, the
figures and the files, so that no wrong number is given. Times are exact picoseconds where the parts
have them. The ledgers check themselves as they are made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from marin_profile import schema
from marin_profile.analysis.advice import rules as advice
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.assemble.context import CaptureFacts, Context
from marin_profile.base.errors import InternalError
from marin_profile.base.units import unit_in

Check = Callable[[Context, schema.ProfileSummary], Iterator[str]]
# Shares are quotients of floats.
ROUNDING = 1e-9
CLOCKS_APART = 10**10  # picoseconds


def self_time_is_part_of_the_whole(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    for op in context.ops:
        if not 0 <= op.exclusive <= op.total:
            yield f"op {op.facts.name}: self time {op.exclusive} ps of {op.total} ps"
        if not 0 <= op.steady_exclusive <= op.exclusive:
            yield f"op {op.facts.name}: {op.steady_exclusive} ps steady of {op.exclusive} ps"


def ops_own_what_the_ledgers_hold(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    owned: Counter[bool] = Counter()
    held: Counter[bool] = Counter()
    for op in context.ops:
        owned[op.device_kind == SPARSECORE] += op.exposed
    for _, device in context.devices:
        ledger = device.capture
        held[device.kind == SPARSECORE] += ledger.end - ledger.start - ledger.idle
    if owned != held:
        yield f"ops own {sorted(owned.items())} ps, devices are busy for {sorted(held.items())} ps"


def devices_work_while_the_profile_runs(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    """Readers leave out what is outside, see `readers.plausible`. Devices have clocks of their own,
    so that only lengths can be compared, and not closely."""
    for part, device in context.devices:
        ledger = device.capture
        if not 0 <= ledger.end - ledger.start <= 2 * part.span_ps + CLOCKS_APART:
            length = ledger.end - ledger.start
            yield f"{part.host} {device.name}: {length} ps in a profile of {part.span_ps} ps"


def causes_sum_to_the_idle_time(context: Context, summary: schema.ProfileSummary) -> Iterator[str]:
    for part in context.parts:
        account = part.account_of_idle
        if account is None:
            continue
        total = sum(row.idle for row in account.causes)
        if total != account.idle or not 0 <= account.idle <= account.length:
            yield f"host {part.host}: {total} ps of {account.idle} ps idle in {account.length} ps"


def steps_are_inside_their_series(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    for part in context.parts:
        steps = part.steps
        wrong = steps.present & (steps.end < steps.start)
        if wrong.any():
            yield f"host {part.host}: {int(wrong.sum())} steps end before they begin"


def advice_claims_no_more_than_there_is(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    """Of all of the time, hence of the mean step; and of every term of device time. Where devices
    share processors, claims are of the time of their hosts, which has other terms."""
    whole = sum(one.ceiling_share or 0.0 for one in summary.optimization_candidates)
    if whole > 1.0 + ROUNDING:
        yield f"advice claims {whole} of the time"
    if all(part.shared is not None for part in context.parts):
        return
    ledgers = [context.headline(device) for device in context.main_devices]
    window = sum(ledger.end - ledger.start for ledger in ledgers)
    there = {
        advice.IDLE: sum(ledger.idle for ledger in ledgers),
        advice.COMMUNICATION: sum(ledger.exposed_communication for ledger in ledgers),
        advice.TRANSFER: sum(ledger.exposed_transfer for ledger in ledgers),
        advice.COMPUTE: sum(ledger.compute for ledger in ledgers),
    }
    claimed = dict.fromkeys(there, 0.0)
    for one in summary.optimization_candidates:
        if one.ceiling_share is not None and one.ceiling_of not in (None, advice.STEP):
            # Waits for the last, and what varies, are parts of exposed communication.
            is_part = one.ceiling_of in (advice.WAIT, advice.VARYING)
            claimed[advice.COMMUNICATION if is_part else one.ceiling_of] += one.ceiling_share
    for term, share in claimed.items():
        if share * window > there[term] + ROUNDING * window:
            yield f"advice claims {share} of device time of {term}: {there[term]} of {window} ps"


def what_is_alive_sums_to_the_peak(
    context: Context, summary: schema.ProfileSummary
) -> Iterator[str]:
    for row in summary.memory or ():
        kinds = row.parameter_size + row.output_size + row.constant_size + row.temporary_size
        scopes = sum(scope.size for scope in row.by_scope)
        if not kinds == scopes == row.peak_size:
            yield f"program {row.program_id}, {row.space}: {kinds}, {scopes} of {row.peak_size} B"


def shares_are_within_0_and_1(context: Context, summary: schema.ProfileSummary) -> Iterator[str]:
    for path, value in _shares(summary, ""):
        if not -ROUNDING <= value <= 1.0 + ROUNDING:
            yield f"{path} is {value}"


INVARIANTS: tuple[tuple[str, Check], ...] = (
    ("self time is part of the whole", self_time_is_part_of_the_whole),
    ("ops own what the ledgers hold", ops_own_what_the_ledgers_hold),
    ("devices work while the profile runs", devices_work_while_the_profile_runs),
    ("causes sum to the idle time", causes_sum_to_the_idle_time),
    ("steps end after they begin", steps_are_inside_their_series),
    ("what is alive sums to the peak", what_is_alive_sums_to_the_peak),
    ("advice claims no more than there is", advice_claims_no_more_than_there_is),
    ("shares are within 0 and 1", shares_are_within_0_and_1),
)


def check(context: Context, facts: CaptureFacts, summary: schema.ProfileSummary) -> None:
    for name, holds in INVARIANTS:
        found = next(holds(context, summary), None)
        if found is not None:
            files = ", ".join(f"{file.name} ({file.sha256[:12]})" for file in facts.files)
            raise InternalError(name, f"{found}; {files}; marin-profile {facts.tool_version}")


def _shares(record: BaseModel, path: str) -> Iterator[tuple[str, float]]:
    """Every field that is a share, at any depth, with its path."""
    own, below = _fields(type(record))
    for name in own:
        value = getattr(record, name)
        values = value.values() if isinstance(value, dict) else [value]
        for one in values:
            if one is not None:
                yield f"{path}{name}", one
    for name in below:
        value = getattr(record, name)
        rows = value if isinstance(value, list) else [] if value is None else [value]
        for at, row in enumerate(rows):
            yield from _shares(row, f"{path}{name}[{at}].")


@cache
def _fields(record: type[BaseModel]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the fields that are shares, and of those with shares somewhere below."""
    hints = get_type_hints(record, include_extras=True)
    names = [name for name in record.model_fields if name in hints]
    own = tuple(name for name in names if (unit_in(hints[name]) or "").startswith("share of"))
    return own, tuple(name for name in names if any(map(_has_shares, _records_in(hints[name]))))


def _has_shares(record: type[BaseModel]) -> bool:
    return any(_fields(record))


def _records_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for part in get_args(annotation) for one in _records_in(part)]
