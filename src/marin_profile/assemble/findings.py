"""What to try next, from the numbers of the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median_low

from marin_profile import schema
from marin_profile.analysis.advice import rules as advice
from marin_profile.analysis.collectives.bandwidth import payload_bytes
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.host_account import HostAccount, HostCause
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import CPU, GPU, SPARSECORE, TPU
from marin_profile.analysis.program_calls import merge_calls
from marin_profile.analysis.roofline import Peaks, op_rate
from marin_profile.assemble.context import Context, us
from marin_profile.assemble.coverage import is_cut, parts_without_hlo
from marin_profile.assemble.host import occurrence
from marin_profile.events.classify import GROUP_COMPUTE
from marin_profile.events.scopes import COMBINED, RECOMPUTE, numbered_as_one

WIDE_BITS = 32
HBM = "hbm"
# More are summed up by what the rules ask of them: there may be a million.
MOST_OPS = 10_000


def advice_section(
    context: Context,
    step_time: schema.StepTime,
    coverage: schema.Coverage,
    late: tuple[list[schema.Straggler], list[schema.StragglerHost]],
    profiling: schema.Profiling | None,
) -> list[schema.OptimizationCandidate]:
    """`late`: the devices and the hosts with their verdicts."""
    findings = _findings(context, step_time, coverage, late, profiling)
    return [_candidate(one, step_time.mean_period) for one in advice.candidates(findings)]


def _candidate(one: advice.Candidate, mean: float | None) -> schema.OptimizationCandidate:
    rule, found = one.rule, one.found
    has_ceiling = one.share is not None
    return schema.OptimizationCandidate(
        candidate_id=rule.id,
        title=found.title,
        rationale=found.cause,
        why=found.why,
        evidence=[*found.evidence],
        evidence_fields=[*rule.fields],
        suggestions=[*rule.do],
        verify=rule.verify,
        ceiling_share=one.share,
        ceiling_per_step=None if one.share is None or mean is None else one.share * mean,
        ceiling_basis=rule.basis if has_ceiling else None,
        ceiling_of=None if not has_ceiling else advice.STEP if found.also else rule.term,
        certainty=found.certainty if has_ceiling else None,
        occurs=found.occurs,
    )


def _findings(
    context: Context,
    step_time: schema.StepTime,
    coverage: schema.Coverage,
    late: tuple[list[schema.Straggler], list[schema.StragglerHost]],
    profiling: schema.Profiling | None,
) -> advice.Findings:
    ledgers = [context.headline(device) for device in context.main_devices]
    window = sum(ledger.end - ledger.start for ledger in ledgers) or 1
    by_kind = _summed(ledger.exposed_by_kind for ledger in ledgers)
    of_waits = context.collectives.exposed_wait
    waits = {kind: min(value, of_waits.get(kind, 0)) for kind, value in by_kind.items()}
    beyond = context.collectives.exposed_varying
    varying = {
        kind: min(value - waits[kind], beyond.get(kind, 0)) for kind, value in by_kind.items()
    }
    exposed = {kind: value - waits[kind] - varying[kind] for kind, value in by_kind.items()}
    late_hosts, late_devices = _late(context, late, window)
    gaps = [gap for gap in context.gaps if not gap.is_noise]
    gap = min(gaps, key=lambda gap: (-context.gap_time(gap), gap.payload), default=None)
    period = step_time.period or schema.DurationStats(count=0)
    ops = [op for op in context.main_ops if op.facts.group == GROUP_COMPUTE]
    compute = sum(ledger.compute for ledger in ledgers)
    found = advice.Findings(
        basis="device time",
        terms={
            advice.IDLE: sum(ledger.idle for ledger in ledgers) / window,
            advice.WAIT: sum(waits.values()) / window,
            advice.VARYING: sum(varying.values()) / window,
            advice.COMMUNICATION: sum(exposed.values()) / window,
            advice.TRANSFER: sum(ledger.exposed_transfer for ledger in ledgers) / window,
            advice.COMPUTE: compute / window,
        },
        device_kind=context.main_devices[0].kind,
        compute_by_device=_compute_by_device(context),
        late_hosts=late_hosts,
        late_devices=late_devices,
        collectives=_exposed_collectives(context, exposed, varying, window),
        transfers=_exposed_transfers(context, window),
        partly_idle=_partly_idle(context),
        host_idle=_host_idle(context),
        launches_per_step=_per_step(context, lambda one: sum(count for _, count in one.launches)),
        calls_per_step=_calls_per_step(context),
        most_launched=_most_launched(context),
        reads_per_step=_per_step(context, lambda one: one.reads),
        rounds_per_step=_rounds(context),
        keeps_up=all(one.own <= one.length - one.idle for _, one in _accounts(context)),
        most_delayed=None
        if gap is None
        else advice.Gaps(
            before=gap.payload,
            share=context.gap_time(gap) / window,
            longest=context.gap_longest(gap) / window,
            count=context.gap_count(gap),
        ),
        ops=_op_shares(context, ops, compute, window),
        ops_per_step=_ops_per_step(context, ops),
        op_mean_us=_mean_op(context, ops),
        long_op=_long_op(context, step_time.long_op, window),
        step_median_us=period.median,
        step_mean_us=step_time.mean_period,
        step_p90_us=period.p90,
        slow_steps=tuple(map(_slow_steps, step_time.outlier_causes)),
        steps=len(context.steps.steps),
        kept_steps=period.count,
        is_cut=is_cut(context),
        padding=_padding(context),
        hlo_attributed=coverage.hlo_attributed_share,
        scope_attributed=coverage.scope_attributed_share,
        without_hlo=tuple(part.host for part in parts_without_hlo(context)),
        window_to_outside=None if profiling is None else profiling.window_to_outside,
    )
    shared = [part.shared for part in context.parts if part.shared is not None]
    if len(shared) < len(context.parts):
        return found
    length = sum(one.length for one in shared) or 1
    return advice.on_shared_processors(
        found,
        advice.HostTime(
            compute=sum(one.compute for one in shared) / length,
            communication=sum(one.communication for one in shared) / length,
            other=sum(one.other for one in shared) / length,
            idle=sum(one.idle for one in shared) / length,
            ledger_compute=compute / window,
            ledger_communication=sum(by_kind.values()) / window,
        ),
    )


# --- devices, and who is late ---


def _compute_by_device(context: Context) -> tuple[tuple[str, float], ...]:
    rows = []
    for part, device in context.devices:
        ledger = context.headline(device)
        if device.kind != SPARSECORE and ledger.end > ledger.start:
            share = ledger.compute / (ledger.end - ledger.start)
            rows.append((f"{part.host} {device.name}".strip(), share))
    return tuple(rows)


def _late(
    context: Context,
    late: tuple[list[schema.Straggler], list[schema.StragglerHost]],
    window: int,
) -> tuple[advice.Late | None, advice.Late | None]:
    """Hosts that stand out, and devices that do: a host with a device that does is not late itself,
    and no wait is told of both."""
    names = schema.straggler_names(*late)
    devices = {(one.host, one.device) for one in late[0] if one.is_straggler}
    hosts = {one.host for one in late[1] if one.host in names}
    caused: Counter[bool] = Counter()
    members = context.collectives.members
    for at, member in enumerate(members):
        if (member.host, member.device) in devices:
            of_all = context.collectives.exposed_wait_caused.values()
            caused[member.host in hosts] += sum(values[at] for values in of_all)
    late_hosts = tuple(name for name in names if name in hosts)
    late_devices = tuple(name for name in names if name not in hosts)

    def part(late: tuple[str, ...]) -> float:
        of = [one.host in late or f"{one.host} {one.device}".strip() in late for one in members]
        return sum(of) / len(of)

    return (
        advice.Late(late_hosts, caused[True] / window, part(late_hosts)) if late_hosts else None,
        advice.Late(late_devices, caused[False] / window, part(late_devices))
        if late_devices
        else None,
    )


# --- collectives and transfers ---

HAVE_ASYNC_FORM = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"}
)


def _exposed_collectives(
    context: Context, exposed: Mapping[str, int], varying: Mapping[str, int], window: int
) -> tuple[advice.Exposed, ...]:
    """What is exposed of a kind belongs to its ops by their self time."""
    overlapped = _summed(
        context.headline(device).overlapped_by_kind for device in context.main_devices
    )
    groups: dict[tuple[str, str, bool, int | None], list[OpTotals]] = {}
    for op in context.main_ops:
        if exposed.get(op.facts.kind):
            key = op.facts.kind, _scope(op), _blocks(op), _payload(op)
            groups.setdefault(key, []).append(op)
    whole: Counter[str] = Counter()
    for (kind, *_), ops in groups.items():
        whole[kind] += sum(map(context.op_time, ops))
    rows = [
        advice.Exposed(
            kind=kind,
            scope=scope,
            share=exposed[kind] * sum(map(context.op_time, ops)) / whole[kind] / window,
            overlapped=overlapped.get(kind, 0) / window,
            varying=varying[kind] * sum(map(context.op_time, ops)) / whole[kind] / window,
            blocks=blocks,
            bytes_each=payload,
            per_step=_ops_per_step(context, ops),
        )
        for (kind, scope, blocks, payload), ops in groups.items()
        if whole[kind]
    ]
    return tuple(sorted(_alike(rows), key=lambda row: (-row.share, row.kind, row.scope)))


def _alike(rows: Iterable[advice.Exposed]) -> list[advice.Exposed]:
    """One row for each kind, scope and way to run; but small ones apart."""
    found: dict[tuple[str, str, bool, bool], advice.Exposed] = {}
    for row in rows:
        key = row.kind, row.scope, row.blocks, row.is_small
        known = found.get(key)
        found[key] = row if known is None else known.with_(row)
    return list(found.values())


def _scope(op: OpTotals) -> str:
    """Numbered layers are one ("*"); "" for what XLA combined from several."""
    if COMBINED in op.facts.scope:
        return ""
    return numbered_as_one(op.facts.scope)


def _blocks(op: OpTotals) -> bool:
    """A plain op where nothing else can run; a GPU's kernel is plain if its HLO op is."""
    facts = op.facts
    if facts.kind not in HAVE_ASYNC_FORM:
        return False
    if op.device_kind == TPU:
        return not facts.op_class.role
    starts_or_ends = "-start" in facts.hlo_op or "-done" in facts.hlo_op
    return op.device_kind == GPU and bool(facts.hlo_op) and not starts_or_ends


def _payload(op: OpTotals) -> int | None:
    groups = op.facts.replica_groups
    return payload_bytes(op.facts, len(groups[0]) if groups else None)


def _exposed_transfers(context: Context, window: int) -> tuple[tuple[str, str, float], ...]:
    exposed = _summed(context.headline(device).transfer_by_kind for device in context.main_devices)
    rows = [
        (kind, _largest_op(context, kind), value / window)
        for kind, value in exposed.items()
        if value
    ]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))


# --- ops ---


def _op_shares(
    context: Context, ops: Sequence[OpTotals], compute: int, window: int
) -> tuple[advice.OpShare, ...]:
    """Self times of ops that run at once may sum to more than the compute that there is: they then
    count by so much less."""
    times = [context.op_time(op) for op in ops]
    scale = 1 / max(window, window * sum(times) / compute) if compute else 0.0
    rows = sorted(
        (at for at, time in enumerate(times) if time),
        key=lambda at: (-times[at], ops[at].facts.name, ops[at].module),
    )
    shares = (_op_share(ops[at], times[at] * scale, context.peaks) for at in rows)
    largest = list(islice(shares, MOST_OPS))
    rest: dict[advice.OpShare, advice.OpShare] = {}
    for one in shares:
        alike = replace(
            one, name="", share=0.0, least=one.least and 0.0, least_compute=None, flops=None
        )
        known = rest.get(alike)
        rest[alike] = one if known is None else _together(known, one)
    return tuple(sorted((*largest, *rest.values()), key=lambda op: (-op.share, op.name, op.module)))


def _together(a: advice.OpShare, b: advice.OpShare) -> advice.OpShare:
    """Two small ops that are alike, by the larger one's name."""
    if a.least is None or b.least is None:
        return replace(a, share=a.share + b.share, flops=_sum_of_known(a.flops, b.flops))
    return replace(
        a,
        share=a.share + b.share,
        flops=_sum_of_known(a.flops, b.flops),
        least=a.least + b.least,
        least_compute=(a.least_compute or 0.0) + (b.least_compute or 0.0),
    )


def _sum_of_known(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _op_share(op: OpTotals, share: float, peaks: Peaks) -> advice.OpShare:
    facts = op.facts
    rate = op_rate(op, peaks)
    # A CPU's narrow products are no faster.
    is_wide = facts.product.bits >= WIDE_BITS and op.device_kind != CPU
    at_flops = _part(rate.tflops, peaks.teraflops, share)
    # Narrower operands are half as many bytes.
    at_bytes = _part(rate.gbps, peaks.hbm_gigabytes, share / 2 if is_wide else share)
    least = None if at_flops is None or at_bytes is None else max(at_flops, at_bytes)
    return advice.OpShare(
        name=facts.name,
        module=op.module,
        scope=facts.scope,
        share=share,
        least=least,
        least_compute=None if least is None else at_flops,
        flops=None if op.costs.flops is None else op.costs.flops * op.cost_count,
        bound_by=rate.bound_by,
        is_recompute=facts.pass_name == RECOMPUTE,
        is_copy=facts.only_moves,
        in_loop=facts.in_loop,
        is_product=bool(facts.product.bits) or facts.hlo_category == "convolution fusion",
        is_wide=is_wide,
        from_narrow=facts.product.from_narrow,
        is_container=facts.op_class.is_container,
    )


def _part(rate: float | None, peak: float | None, share: float) -> float | None:
    """Of a share, the part that is left at the peak."""
    return None if rate is None or not peak else share * rate / peak


def _ops_per_step(context: Context, ops: Sequence[OpTotals]) -> float | None:
    """Executions on one device; None without whole periods."""
    if not context.in_periods:
        return None
    return sum(op.period_count for op in ops) / (context.periods * len(context.main_devices))


def _mean_op(context: Context, ops: Sequence[OpTotals]) -> float | None:
    count = sum(op.steady_count if context.steady else op.count for op in ops)
    return us(sum(map(context.op_time, ops))) / count if count else None


def _long_op(
    context: Context, long_op: schema.LongOp | None, window: int
) -> tuple[str, int, float] | None:
    if long_op is None:
        return None
    each = us(window) / len(context.main_devices)
    return long_op.name, long_op.steps, min(1.0, long_op.duration / each)


def _padding(context: Context) -> tuple[advice.Padding, ...]:
    """In the devices' main memory; what a small program pads is nothing beside the fullest."""
    rows = [row for part in context.parts for row in part.memory or () if row.space == HBM]
    fullest = max((row.peak for row in rows), default=0)
    padded = {
        row.program_id: advice.Padding(
            row.module or str(row.program_id), row.space, row.padding / fullest
        )
        for row in rows
        if row.padding
    }
    return tuple(sorted(padded.values(), key=lambda one: (-one.share, one.program)))


# --- hosts ---


def _accounts(context: Context) -> list[tuple[HostPart, HostAccount]]:
    accounts = [(part, part.account_of_idle) for part in context.parts]
    return [(part, account) for part, account in accounts if account is not None]


def _partly_idle(context: Context) -> float:
    """Of device time in the accounts' windows."""
    accounts = _accounts(context)
    whole = sum(account.length * part.main_devices for part, account in accounts)
    return sum(account.some_idle for _, account in accounts) / whole if whole else 0.0


def _host_idle(context: Context) -> tuple[advice.HostIdle, ...]:
    """By kind and name, over all hosts that have an account; shares of the hosts' windows. The
    steps are those of the host that it costs most."""
    accounts = _accounts(context)
    whole = sum(account.length for _, account in accounts) or 1
    rows: dict[tuple[str, str], list[tuple[HostPart, HostAccount, list[HostCause]]]] = {}
    for part, account in accounts:
        own: dict[tuple[str, str], list[HostCause]] = {}
        for row in account.causes:
            own.setdefault((row.kind, row.name), []).append(row)
        for key, causes in own.items():
            rows.setdefault(key, []).append((part, account, causes))
    found = []
    for (kind, name), members in sorted(rows.items()):
        part, account, causes = max(members, key=lambda one: sum(row.idle for row in one[2]))
        where = occurrence(part, account, causes)
        place = max(causes, key=lambda row: row.idle).inside
        found.append(
            advice.HostIdle(
                kind=kind,
                name=name,
                place="" if place is None else "inside" if place else "between",
                share=sum(row.idle for _, _, own_rows in members for row in own_rows) / whole,
                count=causes[0].count,
                steps=where.steps,
                step_count=where.count,
                periods=len(account.steps),
                every=where.every,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.share, one.kind, one.name)))


def _per_step(context: Context, counted: Callable[[HostAccount], int]) -> float | None:
    """What is counted a step on one host, the mean over hosts."""
    accounts = [account for _, account in _accounts(context) if account.steps]
    periods = sum(len(account.steps) for account in accounts)
    return sum(map(counted, accounts)) / periods if periods else None


def _calls_per_step(context: Context) -> dict[str, float]:
    """Of programs of one name together, on the devices that run them."""
    calls: Counter[str] = Counter()
    periods: dict[str, int] = {}
    for row in merge_calls(row for part in context.parts for row in part.calls):
        calls[row.name] += row.in_periods
        periods[row.name] = max(periods.get(row.name, 0), row.periods)
    return {name: count / periods[name] for name, count in calls.items() if periods[name]}


def _rounds(context: Context) -> int | None:
    rounds = [count for _, account in _accounts(context) for count in account.rounds]
    return median_low(rounds) if rounds else None


def _most_launched(context: Context) -> tuple[str, ...]:
    accounts = _accounts(context)
    return tuple(name for name, _ in accounts[0][1].launches[:3]) if accounts else ()


def _largest_op(context: Context, kind: str) -> str:
    ops = [op for op in context.main_ops if op.facts.kind == kind]
    return max(ops, key=context.op_time).facts.name


def _slow_steps(cause: schema.OutlierCause) -> advice.CauseOfSlowSteps:
    kind = (cause.cause or "cause not known").replace("_", " ")
    name = f" {cause.cause_name}" if cause.cause_name else ""
    before = f" before {cause.before_op}" if cause.before_op else ""
    return advice.CauseOfSlowSteps(
        cause=f"{kind}{name}{before}",
        count=cause.count,
        excess_us=cause.excess_per_period,
        kind=cause.cause or "",
        name=cause.cause_name or "",
        every=cause.periodicity,
    )


def _summed(maps: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for values in maps:
        total.update(values)
    return dict(total)
