"""The step accounts of one side's captures as exact picoseconds per step and device.

Contract: of each capture the parts (owned times and idle and launch) sum to the total, or the
summary is refused. Ops are those of all captures of the side: one that some of them lack takes no
time there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from marin_profile.base.errors import BrokenInputError
from marin_profile.comparison.exact import picoseconds
from marin_profile.comparison.executions import PROGRAM
from marin_profile.comparison.matching import OpTime, op_key
from marin_profile.comparison.noise import Times, mean
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import REMAINDER, OpGroup, ProfileSummary, StepAccount

TERMS = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle", "launch")
PERIODS = "periods"
# Beyond 2**53 ps doubles cannot hold whole picoseconds.
TOLERANCE = Fraction(1, 1_000_000_000)


@dataclass(frozen=True)
class CaptureAccount:
    """`launch`: whether the account's launch counts, which it does where all captures have it."""

    summary: ProfileSummary
    account: StepAccount
    launch: bool

    def per_step(self, microseconds: float) -> Fraction:
        """A sum over devices and steps -> picoseconds per step and device."""
        return Fraction(picoseconds(microseconds), self.divisor)

    @property
    def divisor(self) -> int:
        return self.account.steps * self.account.devices

    @property
    def has_idle(self) -> bool:
        """Executions of a program have none: see `executions`."""
        return self.account.basis != PROGRAM

    @cached_property
    def total(self) -> Fraction:
        return sum((self.term(name) for name in TERMS), Fraction(0))

    def term(self, name: str) -> Fraction:
        value = getattr(self.account, f"{name}_duration")
        if name == "launch" and not self.launch:
            value = 0.0
        return self.per_step(value)

    @cached_property
    def groups(self) -> list[OpGroup]:
        """The op groups that take part in the steps."""
        return [
            group for group in self.summary.op_groups if group.owned_duration or group.account_count
        ]

    @property
    def remainder(self) -> Fraction:
        left_out = [group for group in self.groups if group.canonical_name == REMAINDER]
        return sum(map(self.owned, left_out), Fraction(0))

    def owned(self, group: OpGroup) -> Fraction:
        return self.per_step(group.owned_duration or 0.0)

    def check(self, name: str) -> None:
        """Raises BrokenInputError where owned times do not sum to the account's busy time."""
        busy = self.total - self.term("idle") - self.term("launch")
        owned = sum(map(self.owned, self.groups), Fraction(0))
        if abs(busy - owned) > TOLERANCE * self.total:
            raise BrokenInputError(
                f"The {name} summary's op_groups own {float(owned) / 1e6:.6f} us per step, but its "
                f"step_account has {float(busy) / 1e6:.6f}; summarize the profile again."
            )

    def step_terms(self) -> dict[str, list[float]]:
        """The ledger terms of each whole period, picoseconds per device; empty where the summary
        does not hold them. Idle is what the others leave of the period."""
        terms: dict[str, list[float]] = {name: [] for name in TERMS if name != "launch"}
        for step in self.summary.step_time.steps:
            if not step.kept or step.period is None or step.ledger is None:
                continue
            busy = {
                name: picoseconds(getattr(step.ledger, f"{name}_duration")) / self.account.devices
                for name in terms
                if name != "idle"
            }
            busy["idle"] = picoseconds(step.period) - sum(busy.values())
            for name, value in busy.items():
                terms[name].append(value)
        return terms if terms["idle"] and self.account.basis == PERIODS else {}


@dataclass(frozen=True)
class SideAccount:
    """All captures of one side."""

    captures: tuple[CaptureAccount, ...]

    @property
    def num_captures(self) -> int:
        return len(self.captures)

    def times(self, of: Callable[[CaptureAccount], Fraction]) -> Times:
        return tuple(map(of, self.captures))

    @cached_property
    def totals(self) -> Times:
        return self.times(lambda one: one.total)

    @property
    def total(self) -> Fraction:
        return mean(self.totals)

    def term(self, name: str) -> Times:
        return self.times(lambda one: one.term(name))

    @property
    def remainder(self) -> Times | None:
        left = self.times(lambda one: one.remainder)
        return left if any(left) else None

    @cached_property
    def ops(self) -> list[OpTime]:
        found: dict[tuple[str, ...], list[tuple[int, OpGroup]]] = {}
        for at, one in enumerate(self.captures):
            for group in one.groups:
                if group.canonical_name != REMAINDER:
                    found.setdefault(op_key(group), []).append((at, group))
        return [self._op(found[key]) for key in sorted(found)]

    def _op(self, members: Sequence[tuple[int, OpGroup]]) -> OpTime:
        times = [Fraction(0)] * self.num_captures
        counts = []
        for at, group in members:
            times[at] += self.captures[at].owned(group)
            if group.account_count is not None:
                counts.append(Fraction(group.account_count, self.captures[at].divisor))
        count = sum(counts, Fraction(0)) / self.num_captures if counts else None
        return OpTime(members[0][1], tuple(times), count)


def side_accounts(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> tuple[SideAccount, SideAccount] | str:
    """Both sides, or a sentence on why steps cannot be compared."""
    accounts = []
    for name, side in (("before", before), ("after", after)):
        for at, summary in enumerate(side):
            called = name if len(side) == 1 else f"{name} {at + 1}"
            if summary.step_account is None:
                why = "it holds none" if kept_steps(summary) else "it shows no steps"
                return (
                    f"The {called} summary has no step account ({why}), so there is no cost of a "
                    "step to split; capture whole steps, and summarize with this version."
                )
            accounts.append((called, summary, summary.step_account))
    launch = all(account.launch_duration is not None for _, _, account in accounts)
    made = [CaptureAccount(summary, account, launch) for _, summary, account in accounts]
    for one, (called, _, _) in zip(made, accounts, strict=True):
        one.check(called)
    return SideAccount(tuple(made[: len(before)])), SideAccount(tuple(made[len(before) :]))
