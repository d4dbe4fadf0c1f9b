"""What the step would take if one thing were different, by a replay of the capture."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share
from marin_profile.schema.record import Record


class WhatIfChange(Record):
    """One change of the mean step. `change`: "communication" (`name`: a kind of collective, null
    for all of it), "host_gaps", "device" (with its `host`), "op", "scope" or "pass"; `target`:
    "removed", "average", "halved" or "roofline"; its own time is multiplied by `factor`. `saving`
    where the host follows its devices, `saving_at_least` where it launches no earlier than it did;
    `certainty` is "known" where the two agree, else "at_most"."""

    change: str
    target: str
    name: str | None = None
    host: str | None = None
    factor: Ratio
    step_then: Microseconds
    saving: Microseconds
    saving_at_least: Microseconds
    saving_share: Share
    certainty: str


class WhatIf(Record):
    """`step_now`: the mean period over `whole_periods`, as measured; `replayed_step`: by a replay
    of the capture as it is, off by `replay_error` of the step. Savings are between two replays.
    `chance`: two captures with as many steps as this one differ by so much with nothing changed (95
    %, by the spread of the periods), so that what is measured lies between `saving_at_least` less
    it and `saving` plus it; null where the periods are too few."""

    step_now: Microseconds | None = None
    replayed_step: Microseconds | None = None
    replay_error: Share | None = None
    whole_periods: Count | None = None
    chance: Microseconds | None = None
    changes: list[WhatIfChange] = []
    reason: str | None = None
