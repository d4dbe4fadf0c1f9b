"""What captures without steps are compared by: executions of one program, else whole captures.

Contract: on a common basis each summary has a step account, and its ops own their part of it, so
that all that is said of steps is said of executions, or of captures.
* A program is compared if all captures know its executions, and it has at least half of the op time
  of each; its cost is the time that its ops own. Idle time is in no execution.
* A whole capture is one step of each device, from its first op to its last; compared only where
  there are no steps, not where a summary of another version lacks the account of its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from marin_profile.comparison.model import Basis
from marin_profile.events.classify import (
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
    kind_group,
)
from marin_profile.facts.device_time import ledger_rows
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import CAPTURE, REMAINDER, OpGroup, ProfileSummary, StepAccount
from marin_profile.schema.device_time import LEDGER_TERMS

PROGRAM = "program"
LEAST_SHARE = 0.5
# What ops own beside what the ledgers have, by the rounding of sums.
TOLERANCE = 1e-9
TERM_OF_GROUP = {
    GROUP_COMPUTE: "compute",
    GROUP_COMMUNICATION: "exposed_communication",
    GROUP_TRANSFER: "exposed_transfer",
    GROUP_UNKNOWN: "unattributed",
}


@dataclass(frozen=True)
class OnOneBasis:
    """The summaries as they are to be compared; `basis` is None where steps are."""

    before: list[ProfileSummary]
    after: list[ProfileSummary]
    basis: Basis | None = None

    @property
    def unit(self) -> str:
        if self.basis is None:
            return "step and device"
        return "execution" if self.basis.kind == PROGRAM else "capture and device"


def on_one_basis(before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]) -> OnOneBasis:
    """As they are also where there is nothing to compare by."""
    captures = [*before, *after]
    if all(summary.step_account is not None for summary in captures):
        return OnOneBasis([*before], [*after])
    name = common_program(captures)
    if name is not None:
        made = [_per_execution(summary, name) for summary in captures]
        runs = [_executions(summary, name) for summary in captures]
        counts = sum(runs[: len(before)]), sum(runs[len(before) :])
        shares = [_shares(summary)[name] for summary in captures]
        basis = Basis(
            kind=PROGRAM,
            program=name,
            before_executions=counts[0],
            after_executions=counts[1],
            sentence=(
                f"{_why(captures)}: compared per execution of {name} ({counts[0]:,} before, "
                f"{counts[1]:,} after, over all devices), by op time alone, of which it has at "
                f"least {min(shares):.0%}."
            ),
        )
    elif all(_has_whole_capture(summary) for summary in captures):
        made = [_whole_capture(summary) for summary in captures]
        basis = Basis(
            kind=CAPTURE,
            sentence=(
                f"{_why(captures)}: compared over the whole captures, from a device's first op to "
                "its last, which may hold different amounts of work."
            ),
        )
    else:
        return OnOneBasis([*before], [*after])
    return OnOneBasis(made[: len(before)], made[len(before) :], basis)


def _why(captures: Sequence[ProfileSummary]) -> str:
    if all(kept_steps(summary) for summary in captures):
        return "No step account on both sides"
    if any(kept_steps(summary) for summary in captures):
        return "No steps on both sides"
    return "No steps"


# --- executions of a program ---------------------------------------------------------------------


def common_program(captures: Sequence[ProfileSummary]) -> str | None:
    """The program to compare by, of two halves the first by name; None where there is none."""
    known = [_shares(summary) for summary in captures]
    names = [
        name
        for name, share in known[0].items()
        if all(one.get(name, 0.0) >= LEAST_SHARE for one in known)
    ]
    return min(names, default=None)


def _shares(summary: ProfileSummary) -> dict[str, float]:
    """Of the op time, that of each program whose executions are known."""
    whole = sum(group.exposed_duration for group in summary.op_groups)
    if summary.step_account is not None or not whole:
        return {}
    names = Counter(row.name for row in summary.programs)
    return {
        row.name: row.exposed_duration / whole
        for row in summary.programs
        if row.executions is not None and names[row.name] == 1 and row.name != REMAINDER
    }


def _executions(summary: ProfileSummary, name: str) -> int:
    return next(row.executions for row in summary.programs if row.name == name) or 0


def _per_execution(summary: ProfileSummary, name: str) -> ProfileSummary:
    """An execution is a step of one device."""
    groups = [_of_program(group, name) for group in summary.op_groups]
    terms = dict.fromkeys(LEDGER_TERMS, 0.0)
    by_kind: dict[str, dict[str, float]] = {"exposed_communication": {}, "exposed_transfer": {}}
    for group in groups:
        owned = group.owned_duration or 0.0
        term = TERM_OF_GROUP[kind_group(group.category)]
        terms[term] += owned
        if term in by_kind and owned:
            kinds = by_kind[term]
            kinds[group.category] = kinds.get(group.category, 0.0) + owned
    account = _account(
        PROGRAM,
        summary,
        terms,
        steps=_executions(summary, name),
        devices=1,
        exposed_communication_by_kind=by_kind["exposed_communication"],
        exposed_transfer_by_kind=by_kind["exposed_transfer"],
    )
    return summary.model_copy(update={"op_groups": groups, "step_account": account})


def _of_program(group: OpGroup, name: str) -> OpGroup:
    """Of a group in several programs it is not known how many of its executions are this one's."""
    alone = list(group.exposed_by_program) == [name]
    return group.model_copy(
        update={
            "owned_duration": group.exposed_by_program.get(name),
            "account_count": group.count if alone else None,
        }
    )


# --- whole captures ------------------------------------------------------------------------------


def _has_whole_capture(summary: ProfileSummary) -> bool:
    """A summary that shows steps but has no account of them is of another version; so is one whose
    ops do not own what its ledgers have."""
    rows = ledger_rows(summary, CAPTURE)
    if not rows or (summary.step_account is None and kept_steps(summary)):
        return False
    busy = sum(row.window_duration - row.idle_duration for row in rows)
    owned = sum(group.exposed_duration for group in summary.op_groups)
    return abs(busy - owned) <= TOLERANCE * sum(row.window_duration for row in rows)


def _whole_capture(summary: ProfileSummary) -> ProfileSummary:
    rows = ledger_rows(summary, CAPTURE)
    kinds = (
        "exposed_communication_by_kind",
        "overlapped_communication_by_kind",
        "exposed_transfer_by_kind",
    )
    account = _account(
        CAPTURE,
        summary,
        {name: sum(getattr(row, f"{name}_duration") for row in rows) for name in LEDGER_TERMS},
        steps=1,
        devices=sum(row.devices for row in rows),
        **{name: _added(getattr(row, name) for row in rows) for name in kinds},
    )
    groups = [
        group.model_copy(
            update={"owned_duration": group.exposed_duration, "account_count": group.count}
        )
        for group in summary.op_groups
    ]
    gaps = [
        gap.model_copy(
            update={"account_count": gap.count, "account_gap_duration": gap.total_gap_duration}
        )
        for gap in summary.gap_before_ops
    ]
    return summary.model_copy(
        update={"op_groups": groups, "gap_before_ops": gaps, "step_account": account}
    )


def _added(maps: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for one in maps:
        total.update(one)
    return dict(total)


def _account(
    basis: str,
    summary: ProfileSummary,
    terms: Mapping[str, float],
    *,
    steps: int,
    devices: int,
    **by_kind: dict[str, float],
) -> StepAccount:
    kinds = sorted({row.kind for row in ledger_rows(summary, CAPTURE)})
    return StepAccount(
        basis=basis,
        device_kind=", ".join(kinds),
        devices=devices,
        steps=steps,
        total_duration=sum(
            value for name, value in terms.items() if name != "overlapped_communication"
        ),
        **{f"{name}_duration": value for name, value in terms.items()},
        **by_kind,
    )
