"""Ops: one by one, in groups, by region and by family; their costs."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field, model_validator

from marin_profile.base.units import (
    Bytes,
    Count,
    Devices,
    FlopProxy,
    Flops,
    GigabytesPerSecond,
    Microseconds,
    MicrosecondsPerFlop,
    NamedByKey,
    Ratio,
    Share,
    ShareOfComputeTime,
    TeraflopsPerSecond,
)
from marin_profile.schema.record import Record
from marin_profile.schema.steps import DurationStats

# The name of the row that sums up the op groups that are not listed.
REMAINDER = "(remainder)"


class HotOp(Record):
    """One op (name within a program) over all devices. `exclusive_duration` is self time,
    `exposed_duration` the part that the op owns: the ops of a ledger term sum to the term;
    `per_step_duration` is the self time per kept step and device in the steady window;
    `category` is the kind (compute, all-reduce, host_to_device, ...), `hlo_category` XLA's own.
    `flops` and `bytes_accessed` of one execution, null where not known; `cost_source` is "profile"
    or "hlo". Of several kernels of one HLO op, the one with most self time has the costs.
    `fused_with`: the other scopes that a fusion holds ops of; its own is that of its product, else
    of its largest op."""

    name: str
    canonical_name: str = ""
    category: str
    count: Count
    total_duration: Microseconds
    exclusive_duration: Microseconds
    avg_duration: Microseconds
    shape_signature: str | None = None
    source_file: str | None = None
    tf_op_path: str | None = None
    flop_proxy_per_invocation: FlopProxy | None = Field(
        default=None,
        validation_alias=AliasChoices("flop_proxy_per_invocation", "work_proxy_per_invocation"),
    )
    module: str | None = None
    program_id: str | None = None
    hlo_op: str | None = None
    hlo_category: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    flops: Flops | None = None
    bytes_accessed: Bytes | None = None
    cost_source: str | None = None
    achieved_tflops: TeraflopsPerSecond | None = None
    achieved_gbps: GigabytesPerSecond | None = None
    bound_by: str | None = None
    exposed_duration: Microseconds | None = None
    per_step_duration: Microseconds | None = None
    fused_with: list[str] = []

    @model_validator(mode="before")
    @classmethod
    def _fill_canonical_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("canonical_name") and "name" in data:
            from marin_profile.events.classify import canonical_name

            return {**data, "canonical_name": canonical_name(str(data["name"]))}
        return data


class OpGroup(Record):
    """All ops alike in (canonical name, category, shape, scope, pass). `count` and the durations
    cover the whole capture and all devices; `per_step_duration` as in HotOp. `owned_duration` is
    the part of the step account's windows that belongs to these ops alone: every instant has one
    owner or is idle; `account_count` executions start in them. `exposed_by_program`: the part of
    `exposed_duration` in each of `programs`. The remainder row, if any, is named "(remainder)"."""

    canonical_name: str
    category: str
    shape_signature: str | None = None
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    names: list[str] = []
    num_names: Count
    count: Count
    exclusive_duration: Microseconds
    exposed_duration: Microseconds
    steady_count: Count | None = None
    steady_exclusive_duration: Microseconds | None = None
    per_step_duration: Microseconds | None = None
    account_count: Count | None = None
    owned_duration: Microseconds | None = None
    owned_per_step_duration: Microseconds | None = None
    exposed_by_program: dict[str, Microseconds] = {}


class ProgramOp(Record):
    """One op of a program over all devices; `exposed_duration` as in OpGroup."""

    name: str
    category: str
    scope: str | None = None
    count: Count
    exposed_duration: Microseconds


class Program(Record):
    """A program, by name and id, on the `devices` that it ran on: how often, over all of them, and
    what its ops own (`exposed_duration` as in OpGroup), which is the sum of the four terms and has
    this share of the time of all devices. On GPUs executions are as many as most of its kernels,
    but no more than the host launched, and null where programs share the name. Null where the file
    shows no executions: `call` (one execution on one device, from its first op to its last),
    `idle_duration` (inside executions), `calls_per_step` on a device, the `share_of_steps` that
    call it, and `period`, which is null also where it does not repeat. The last row may be
    "(remainder)"."""

    name: str
    program_id: str | None = None
    executions: Count | None = None
    devices: Devices | None = None
    exposed_duration: Microseconds
    share_of_device_time: Share | None = None
    compute_duration: Microseconds | None = None
    exposed_communication_duration: Microseconds | None = None
    exposed_transfer_duration: Microseconds | None = None
    unattributed_duration: Microseconds | None = None
    idle_duration: Microseconds | None = None
    call: DurationStats | None = None
    period: Microseconds | None = None
    calls_per_step: Ratio | None = None
    share_of_steps: Share | None = None
    top_ops: list[ProgramOp] = []


class Region(Record):
    """A scope path ("a=>b=>leaf"). Inclusive and exclusive are sums of self time over devices.
    `fused_with`: scopes outside of it of which its fusions hold ops too, the three with most of
    its time in such fusions; what each side takes of a fusion is not known."""

    path: str
    depth: int = Field(ge=0)
    count: Count
    inclusive_duration: Microseconds
    exclusive_duration: Microseconds
    inclusive_by_pass: dict[str, Microseconds] | None = None
    fused_with: dict[str, Microseconds] = {}


class RepeatedRegion(Region):
    """Regions that are alike, such as unrolled layers, as one ("a=>layer_*=>leaf"): the sum of
    `members` plain regions, of which `largest` took most and another one least."""

    members: Count
    largest: str
    largest_duration: Microseconds
    smallest_duration: Microseconds


class Loop(Record):
    """A while loop of a program, as scans become, inside of those `around` it. `duration`: self
    time over devices of all ops in it; `iterations` over devices, null where the counts of its ops
    do not agree; per execution of the program, where these are known. `by_scope`: the five scopes
    with most of its time, without the ops' own names ("" for ops without one)."""

    program: str
    program_id: str | None = None
    name: str
    around: list[str] = []
    pass_: str = Field(default="other", alias="pass")
    duration: Microseconds
    iterations: Count | None = None
    iterations_per_execution: Ratio | None = None
    duration_per_iteration: Microseconds | None = None
    by_scope: dict[str, Microseconds] = {}


class SemanticFamily(Record):
    """All ops of one family (attention, matmul, normalisation, copy, ...); `owned_duration` as in
    OpGroup."""

    family: str
    count: Count
    total_duration: Microseconds
    exclusive_duration: Microseconds
    share_of_total: Share
    avg_duration: Microseconds
    avg_exclusive_duration: Microseconds
    example_op: str | None = None
    dominant_shape_signature: str | None = None
    flop_proxy_total: FlopProxy | None = Field(
        default=None, validation_alias=AliasChoices("flop_proxy_total", "work_proxy_total")
    )
    time_per_flop_proxy: MicrosecondsPerFlop | None = Field(
        default=None,
        validation_alias=AliasChoices("time_per_flop_proxy", "normalized_exclusive_per_work"),
    )
    owned_duration: Microseconds | None = None


class RooflineRow(Record):
    """What the compute ops of one program, pass, family or region (`by`) do. `duration` is their
    self time over devices, and what `mfu` and `hfu` count: flops / (duration x peak); flops and
    bytes are those of the ops with known costs; the rest as in Roofline."""

    by: str
    name: str
    flops: Flops | None = None
    bytes_accessed: Bytes | None = None
    duration: Microseconds
    coverage: ShareOfComputeTime | None = None
    achieved_tflops: TeraflopsPerSecond | None = None
    achieved_gbps: GigabytesPerSecond | None = None
    bound_by: str | None = None
    mfu: Share | None = None
    hfu: Share | None = None


class Roofline(Record):
    """`peaks`: teraflops_per_second, hbm_gigabytes_per_second per device; `achieved`: the same two
    over the self time of the ops with known costs, plus operational_intensity (flops/byte);
    `utilization`: shares of the peaks. `coverage`: the share of compute time whose ops have known
    costs; below 1/2 there are no rates, and `bound_by`, `mfu` and `hfu` are null, with the reason.
    `mfu`: flops of a step outside the recompute pass / (mean period x peak x devices); `hfu`: with
    that pass; both are lower bounds where `mfu_is_lower_bound`. Durations are self time over
    devices of all ops that compute or are of unknown kind, and of those that each resource bounds;
    the rest is not known. `by`: the largest rows, if any op has known costs."""

    peaks: dict[str, NamedByKey] = {}
    achieved: dict[str, NamedByKey] = {}
    utilization: dict[str, Share] = {}
    bound_by: str | None = None
    bound_by_unknown_because: str | None = None
    mfu: Share | None = None
    hfu: Share | None = None
    mfu_is_lower_bound: bool | None = None
    mfu_unknown_because: str | None = None
    coverage: ShareOfComputeTime | None = None
    compute_duration: Microseconds | None = None
    compute_bound_duration: Microseconds | None = None
    memory_bound_duration: Microseconds | None = None
    by: list[RooflineRow] = []
