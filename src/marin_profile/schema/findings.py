"""Idle time by what ended it, and what to try next."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.schema.record import Record


class GapBeforeOp(Record):
    """Idle time that ends at `name` (= payload_op); `marker_op` is the op that ended it. account_*:
    the part in the step account's windows."""

    name: str
    count: Count
    total_gap_duration: Microseconds
    max_gap_duration: Microseconds
    avg_gap_duration: Microseconds
    payload_op: str | None = None
    marker_op: str | None = None
    account_count: Count | None = None
    account_gap_duration: Microseconds | None = None


class GapRegionContext(Record):
    """The gaps before one op whose payload stands in one region ("(no scope)": in none)."""

    op_name: str
    region_path: str
    count: Count
    total_gap_duration: Microseconds
    avg_gap_duration: Microseconds


class OptimizationCandidate(Record):
    """One thing to try, with the numbers that speak for it: `rationale` is the cause, `why` the
    one line of evidence to show, `evidence_fields` where in this summary the evidence stands,
    `verify` what shows afterwards that it helped. `ceiling_share` of device time is the most
    that it can save, `ceiling_per_step` that share of the mean step, got as `ceiling_basis`
    says; it is a part of `ceiling_of` ("idle", "wait", "varying", "exposed_communication",
    "exposed_transfer", "compute", or "step", of all of them; where devices share processors, of
    their hosts' time), and no time is claimed by two candidates. Null: it saves no time itself.
    `certainty`: "known" where the cause of that time is seen, else "at most". `occurs`:
    "one-off" or "recurring", null where that is not known."""

    candidate_id: str
    title: str
    rationale: str
    why: str | None = None
    evidence: list[str]
    evidence_fields: list[str] = []
    suggestions: list[str]
    verify: str | None = None
    ceiling_share: Share | None = None
    ceiling_per_step: Microseconds | None = None
    ceiling_basis: str | None = None
    ceiling_of: str | None = None
    certainty: str | None = None
    occurs: str | None = None
