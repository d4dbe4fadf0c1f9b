"""Who runs when: rounds with the control in each, in orders that let a drift cancel.

Contract: deterministic. "turned": every second round runs in the other direction, so that what
drifts from run to run is against an arm as often as for it; every two rounds begin with the next
arm, so that no place is one arm's. "latin": the rounds of a cycle have each arm at each place once;
each cycle is shuffled anew, by the seed. Who no longer runs leaves a gap that the others close.
Rounds below 0 are for warming up.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from marin_profile.experiment.plan import Order


def order_of(
    round_number: int, names: Sequence[str], order: Order, seed: int, running: Collection[str]
) -> tuple[str, ...]:
    """Of the arms that still run; `names` are all, in the plan's order."""
    if order == "turned":
        couple, is_second = divmod(round_number, 2)
        first = couple % len(names)
        whole = [*names[first:], *names[:first]]
        if is_second:
            whole.reverse()
    else:
        cycle, at = divmod(round_number, len(names))
        shuffled = list(names)
        random.Random(f"{seed} {cycle}").shuffle(shuffled)
        whole = shuffled[at:] + shuffled[:at]
    return tuple(name for name in whole if name in running)
