"""The step account of one side as exact picoseconds per step and device.

Contract: the parts (owned times and idle and launch) sum to the total, or the summary is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from marin_profile.base.errors import BrokenInputError
from marin_profile.comparison.exact import picoseconds
from marin_profile.comparison.matching import OpTime
from marin_profile.facts.step_time import kept_steps
from marin_profile.schema import REMAINDER, OpGroup, ProfileSummary, StepAccount

TERMS = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle", "launch")
# Beyond 2**53 ps doubles cannot hold whole picoseconds.
TOLERANCE = Fraction(1, 1_000_000_000)


@dataclass(frozen=True)
class SideAccount:
    """`launch`: whether the account's launch counts, which it does where both sides have it."""

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
    def total(self) -> Fraction:
        return sum((self.term(name) for name in TERMS), Fraction(0))

    def term(self, name: str) -> Fraction:
        value = getattr(self.account, f"{name}_duration")
        if name == "launch" and not self.launch:
            value = 0.0
        return self.per_step(value)

    @property
    def groups(self) -> list[OpGroup]:
        """The op groups that take part in the steps."""
        return [
            group for group in self.summary.op_groups if group.owned_duration or group.account_count
        ]

    @property
    def ops(self) -> list[OpTime]:
        return [
            OpTime(group, self.owned(group))
            for group in self.groups
            if group.canonical_name != REMAINDER
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


def side_accounts(
    before: ProfileSummary, after: ProfileSummary
) -> tuple[SideAccount, SideAccount] | str:
    """Both sides, or a sentence on why steps cannot be compared."""
    for name, summary in (("before", before), ("after", after)):
        if summary.step_account is None:
            why = "it holds none" if kept_steps(summary) else "it shows no steps"
            return (
                f"The {name} summary has no step account ({why}), so there is no cost of a step to "
                "split; capture whole steps, and summarize with this version."
            )
    left, right = before.step_account, after.step_account
    assert left is not None
    assert right is not None
    launch = left.launch_duration is not None and right.launch_duration is not None
    one, two = SideAccount(before, left, launch), SideAccount(after, right, launch)
    one.check("before")
    two.check("after")
    return one, two
