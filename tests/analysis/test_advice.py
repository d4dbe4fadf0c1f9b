"""Every rule by a profile that fires it, and one that just does not; what rules claim, by hand.

The profiles are of steps of 1000 us, so that 10 us a step are 1 %.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, get_args

import pytest

from builders_capture import context
from builders_xspace import (
    Space,
    Tpu,
    allocation,
    buffer_assignment,
    computation,
    heap_trace,
    hlo_proto,
    instruction,
    logical_buffer,
    shape_proto,
    summary_of,
)
from marin_profile.analysis.advice import rules as advice
from marin_profile.analysis.advice.model import FIRST, LAST, RANKED, UNCAUSED
from marin_profile.analysis.advice.rules import (
    RULES,
    Candidate,
    CauseOfSlowSteps,
    Exposed,
    Findings,
    Gaps,
    HostIdle,
    HostTime,
    Late,
    OpShare,
    Rule,
    candidates,
    on_shared_processors,
)
from marin_profile.assemble import CaptureFacts, SourceFile, assemble
from marin_profile.queries import list_queries
from marin_profile.schema import OptimizationCandidate, ProfileSummary, Record

STEP = 1_000
STEPS = 13  # the first is warm-up
PEAKS = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}


class Op(NamedTuple):
    """An op of a step; `flops` and `bytes` as parts of what the peaks allow in its time."""

    name: str
    length: float
    category: str = "loop fusion"
    scope: str = "jit(f)/block/mul:"
    text: str = ""
    shape: str = ""
    flops: float | None = None
    bytes: float | None = None


def put(tpu: Tpu, op: Op, at: float) -> float:
    """Peaks are 1e8 flops and 1e6 bytes in a microsecond."""
    tpu.op(
        op.name,
        at,
        op.length,
        category=op.category,
        scope=op.scope,
        long_name=op.text,
        shape=op.shape,
        flops=None if op.flops is None else round(op.flops * op.length * 1e8),
        bytes_accessed=None if op.bytes is None else round(op.bytes * op.length * 1e6),
    )
    return at + op.length


def product(length: float) -> Op:
    """As good as it can be: compute bound at 95 % of the peak."""
    category, scope = "convolution fusion", "jit(f)/layer/dot:"
    return Op("fusion.1", length, category, scope, flops=0.95, bytes=0.2)


Parts = Callable[[int, int], Sequence[Op]]


def tpu_job(
    parts: Parts | Sequence[Op],
    *,
    devices: int = 1,
    fill: bool = True,
    period: Callable[[int], float] = lambda step: STEP,
    steps: int = STEPS,
) -> Space:
    """Each step runs `parts` (of a step and device) one after the other, then a good product for
    the rest of it, or with fill=False nothing."""
    space = Space("host")
    for ordinal in range(devices):
        tpu = space.tpu(ordinal, **PEAKS)
        begin = 0.0
        for step in range(steps):
            length = period(step)
            at = begin
            tpu.step(step, begin, length).module("jit_f(7)", begin, length, run_id=step)
            for op in parts(step, ordinal) if callable(parts) else parts:
                at = put(tpu, op, at)
            rest = begin + length - at
            if fill:
                put(tpu, product(rest), at)
            else:
                put(tpu, product(length - 10 - (at - begin)), at)
            begin += length
    return space


def clean() -> Space:
    return tpu_job([])


def one(name: str, length: float, **facts: object) -> Space:
    return tpu_job([Op(name, length, **facts)])  # type: ignore[arg-type]


# --- the host ---


def host_job(*events: tuple[str, float], launch: float = 5, calls: int = 1) -> Space:
    """The host's events, then `calls` launches of `launch` us together, then the devices' work."""
    space = Space("host")
    host = space.host()
    for step in range(STEPS):
        begin = at = float(STEP * step)
        host.marker(step, begin, STEP)
        for name, length in events:
            if name:
                host.call(name, at, length)
            at += length
        for call in range(calls):
            host.call("PjitFunction(f)", at + call * launch / calls, launch / calls)
        host.call("Execute", at + launch - 1, 0.5, run_id=step)
        at += launch
        host.cpu_op("fusion", at, begin + STEP - at, run_id=step)
    return space


def compiling(length: float) -> Space:
    space = Space("host")
    host = space.host()
    for step in range(STEPS):
        at = STEP * step
        host.marker(step, at, STEP)
        host.call("PjitFunction(f)", at, length + 5)
        host.call("backend_compile", at + 1, length - 2)
        host.call("Execute", at + length + 3, 1, run_id=step)
        host.cpu_op("fusion", at + length + 5, STEP - length - 5, run_id=step)
    return space


def between_ops(idle: float) -> Space:
    """Two ops of one program with `idle` us between them."""
    space = Space("host")
    host = space.host()
    for step in range(STEPS):
        at = STEP * step
        host.marker(step, at, STEP).call("PjitFunction(f)", at, 5)
        host.call("Execute", at + 2, 1, run_id=step)
        # As long a gap before each of ten ops is before none of them much.
        for number in range(11):
            begin = at + 5 + number * (idle / 10 + 80)
            host.cpu_op(f"fusion.{number}", begin, 80, run_id=step)
    return space


def apart(idle: float) -> Space:
    """Of two devices the second idles while the first works, for twice `idle`: the mean is that."""
    space = Space("host")
    host = space.host()
    devices = [space.tpu(ordinal, **PEAKS) for ordinal in range(2)]
    for step in range(STEPS):
        at = STEP * step
        host.marker(step, at, STEP).call("PjitFunction(f)", at, 5)
        host.call("Execute", at + 2, 1, run_id=step)
        for tpu, length in zip(devices, (995, 995 - 2 * idle), strict=True):
            tpu.step(step, at, STEP).module("jit_f(7)", at + 5, length, run_id=step)
            put(tpu, product(length), at + 5)
    return space


def kernels(gap: float, length: float = 5) -> Space:
    """A GPU's 100 kernels a step, launched by one program with a gap before each."""
    space = Space("host")
    host, gpu = space.host(), space.gpu(0)
    space.hlo(7, hlo_proto(computation(1, 1, instruction("fusion", "fusion", id=1))))
    for step in range(STEPS):
        begin = STEP * step
        host.marker(step, begin, STEP)
        host.call("PjitFunction(f)", begin, STEP - 1)
        for at in range(100):
            correlation = 100 * step + at
            start = begin + at * (gap + length)
            host.call("cuLaunchKernel", start, 0.5, correlation_id=correlation)
            gpu.kernel("fusion", start + gap, length, correlation=correlation, hlo_op="fusion",
                       module="jit_f", program_id=7, scope="jit(f)/block/mul")  # fmt: skip
        rest = begin + 100 * (gap + length)
        host.call("cuLaunchKernel", rest, 0.5, correlation_id=100_000 + step)
        gpu.kernel("gemm", rest, begin + STEP - rest, correlation=100_000 + step, hlo_op="dot",
                   module="jit_f", program_id=7, scope="jit(f)/layer/dot")  # fmt: skip
    return space


# --- collectives ---

GROUPS = "replica_groups={{0,1,2,3}}"


def all_reduce(length: float, elements: int = 1 << 20, number: int = 3) -> Op:
    shape = f"f32[{elements}]{{0}}"
    text = f"%all-reduce.{number} = {shape} all-reduce({shape} %p), {GROUPS}"
    return Op(f"all-reduce.{number}", length, "all-reduce", "jit(f)/grads/psum:", text)


def asynchronous(length: float) -> list[Op]:
    shape = "f32[1048576]{0}"
    start = f"%all-reduce-start.3 = {shape} all-reduce-start({shape} %p), {GROUPS}"
    done = f"%all-reduce-done.3 = {shape} all-reduce-done({shape} %all-reduce-start.3)"
    scope = "jit(f)/grads/psum:"
    return [
        Op("all-reduce-start.3", 1, "all-reduce-start", scope, start),
        Op("all-reduce-done.3", length, "all-reduce-done", scope, done),
    ]


def late(by: Callable[[int, int], float]) -> Space:
    """Four devices compute, meet in an all-reduce of 10 us, and compute again. by: how much longer
    a device computes before it than the fastest does, of a step and device."""

    def parts(step: int, ordinal: int) -> list[Op]:
        most = max(by(step, device) for device in range(4))
        own = by(step, ordinal)
        return [product(300 + own), all_reduce(10 + most - own), product(300 - own)]

    return tpu_job(parts, devices=4)


def varying(by: float) -> Space:
    """The all-reduce takes 10 us, in every second step `by` us more on all devices."""

    def parts(step: int, ordinal: int) -> list[Op]:
        return [product(300), all_reduce(10 + (by if step % 2 else 0))]

    return tpu_job(parts, devices=4)


def heavy(by: float) -> Space:
    """Two of four devices compute longer, in turn a microsecond more than one another; what the
    others wait is `by` for half of the devices."""

    def parts(step: int, ordinal: int) -> list[Op]:
        own = by + (step % 2 == ordinal % 2) if ordinal >= 2 else 0
        return [product(300 + own), all_reduce(10 + by + 1 - own)]

    return tpu_job(parts, devices=4)


def late_host(by: float) -> ProfileSummary:
    """Two hosts of four devices each, those of the second late by about as much as each other."""
    parts = []
    for number in range(2):
        space = Space(f"host-{number}")
        for ordinal in range(4):
            tpu = space.tpu(ordinal, **PEAKS)
            groups = "replica_groups={{0,1,2,3,4,5,6,7}}"
            text = f"%all-reduce.3 = f32[1048576]{{0}} all-reduce(f32[1048576]{{0}} %p), {groups}"
            own = number * (by + ordinal) + ordinal
            for step in range(STEPS):
                at = STEP * step
                tpu.step(step, at, STEP).module("jit_f(7)", at, STEP, run_id=step)
                put(tpu, product(300 + own), at)
                put(tpu, Op("all-reduce.3", by + 20 - own, "all-reduce", text=text), at + 300 + own)
                put(tpu, product(680 - by), at + 320 + by)
        parts.append(space.analyse(host=f"host-{number}"))
    return summary_of(*parts)


# --- transfers ---


def moved(source: str, length: float) -> list[Op]:
    shapes = f"f32[8]{{0}}, f32[8]{{0{source}}}, u32[]"
    start = f"%copy-start.5 = ({shapes}) copy-start(f32[8]{{0{source}}} %p)"
    done = f"%copy-done.5 = f32[8]{{0}} copy-done(({shapes}) %copy-start.5)"
    return [
        Op("copy-start.5", 1, "copy-start", text=start),
        Op("copy-done.5", length, "copy-done", text=done),
    ]


def offloaded(length: float) -> list[Op]:
    thread = 'async_execution_thread="sparsecore"'
    start = (
        "%gather-start = ((bf16[64,8], s32[4]), bf16[4,8], u32[]) async-start(%p0, %p1), "
        f"{thread}, calls=%gather"
    )
    done = "%gather-done = bf16[4,8] async-done(%gather-start)"
    return [
        Op("gather-start", 1, "async-start", text=start),
        Op("gather-done", length, "async-done", text=done),
    ]


# --- steps, and the capture ---


def evaluating(length: float) -> Space:
    """Every third step runs another program for `length` us more."""
    space = Space("host")
    tpu = space.tpu(0, **PEAKS)
    begin = 0.0
    for step in range(25):
        extra = length if step % 6 == 5 else 0
        tpu.step(step, begin, STEP + extra)
        tpu.module("jit_f(7)", begin, STEP, run_id=2 * step)
        put(tpu, product(STEP), begin)
        if extra:
            tpu.module("jit_eval(9)", begin + STEP, extra, run_id=2 * step + 1)
            put(tpu, Op("fusion.9", extra, scope="jit(eval)/mul:"), begin + STEP)
        begin += STEP + extra
    return space


def slower(length: float) -> Space:
    """Every third step computes for `length` us more."""
    return tpu_job([], period=lambda step: STEP + (length if step % 3 == 2 else 0))


def stalled(length: float) -> Space:
    """Before one op there is a gap of 1 us, and of `length` once; nothing is on the host."""
    return gapped(lambda step: length if step == 6 else 1)


def gapped(gap: Callable[[int], float]) -> Space:
    space = Space("host")
    tpu = space.tpu(0, **PEAKS)
    begin = 0.0
    for step in range(STEPS):
        idle = gap(step)
        tpu.step(step, begin, STEP + idle).module("jit_f(7)", begin, STEP + idle, run_id=step)
        put(tpu, product(STEP / 2), begin)
        put(tpu, product(STEP / 2)._replace(name="fusion.2"), begin + STEP / 2 + idle)
        begin += STEP + idle
    return space


def long_op(milliseconds: float) -> Space:
    """Markers of 56 ms, and after two with work a kernel that lasts so long."""
    space = Space("host")
    host, gpu = space.host(), space.gpu(0)
    for number in range(32):
        host.marker(number, 56_000 * number, 50_000, name="decode")
    for index in range(21):
        at = 1_000 + 600 * index if index < 20 else 60_000
        launched = 200 + 10 * index if index < 20 else 56_100
        length = 500 if index < 20 else 1_000 * milliseconds
        host.call("hipLaunchKernel", launched, 5, line="pjrt", correlation_id=index)
        gpu.kernel("Cijk.kd", at, length, correlation=index, hlo_op="custom-call.1")
    return space


def cut(is_cut: bool) -> ProfileSummary:
    return summary_of(dataclasses.replace(clean().analyse(), truncated=is_cut))


def profiled(ratio: float) -> ProfileSummary:
    """Beside a training that saw the profiled steps take `ratio` times the others."""
    known = context()
    judged = dataclasses.replace(known.judgement, window_to_outside=ratio)
    file = SourceFile(host="", name="0.xplane.pb", sha256=f"{0:064}", reason="made up")
    facts = CaptureFacts(
        "made/up",
        (file,),
        (),
        tool_version="0",
        jax_version="",
        contexts=(dataclasses.replace(known, judgement=judged),),
    )
    return assemble([clean().analyse()], facts, hot_op_limit=25, breakdown_mode="device_ledger")


def kernels_with_hlo(known: float) -> Space:
    """Kernel time of which a part names its HLO op."""
    space = Space("host")
    space.hlo(7, hlo_proto(computation(1, 1, instruction("fusion", "fusion", id=1))))
    gpu = space.gpu(0)
    gpu.kernel("known", 0, known, hlo_op="fusion", module="jit_f", program_id=7)
    gpu.kernel("other", known, 1000 - known)
    return space


def protos(there: bool) -> Space:
    space = host_job()
    if there:
        space.hlo(7, hlo_proto(computation(1, 1, instruction("fusion", "fusion", id=1))))
    return space


def padded(size: int) -> Space:
    """An argument of 1024 B by its shape that takes `size`."""
    space = clean()
    shape = shape_proto(11, 16, 16)
    program = hlo_proto(
        computation(1, 1, instruction("p", "parameter", id=1, shape=shape, parameter=0))
    )
    plan = buffer_assignment(
        logical_buffer(1, size, instruction=1), allocation(size, 1, parameter=True), heap_trace()
    )
    return space.hlo(7, program + plan)


# --- the table ---

Profile = Space | ProfileSummary
TEXT_F32 = "%fusion.8 = f32[8,8]{1,0} convolution(f32[8,8]{1,0} %a, bf16[8,8]{1,0} %b)"
TEXT_BF16 = "%fusion.8 = f32[8,8]{1,0} convolution(bf16[8,8]{1,0} %a, bf16[8,8]{1,0} %b)"
AGAIN = "jit(f)/transpose(jvp(mlp))/rematted_computation/mul:"
LOOP = "jit(f)/while/body/copy:"
FEW, MANY = 1 << 14, (1 << 14) + 1  # float32: 64 KiB and more


def many(count: int, elements: int) -> Space:
    return tpu_job([all_reduce(3, elements, number) for number in range(count)])


def wide(length: float, text: str = TEXT_F32) -> Space:
    """At half of the peak's flops."""
    facts = {"category": "convolution fusion", "text": text, "flops": 0.5, "bytes": 0.1}
    return one("fusion.8", length, **facts)


CASES: dict[str, tuple[Callable[[], Profile], Callable[[], Profile]]] = {
    "op-longer-than-steps": (lambda: long_op(1_732), lambda: long_op(100)),
    "capture-cut": (lambda: cut(True), lambda: cut(False)),
    "profiler-distortion": (lambda: profiled(1.1), lambda: profiled(1.09)),
    "compile-in-window": (lambda: compiling(60), lambda: compiling(40)),
    "input-bound": (lambda: host_job(("load_batch", 51)), lambda: host_job(("load_batch", 49))),
    "checkpoint-pause": (
        lambda: host_job(("save_checkpoint", 51)),
        lambda: host_job(("save_checkpoint", 49)),
    ),
    "evaluation-pause": (
        lambda: host_job(("evaluate", 51)),
        lambda: host_job(("evaluate", 49)),
    ),
    "logging-pause": (
        lambda: host_job(("log_metrics", 51)),
        lambda: host_job(("log_metrics", 49)),
    ),
    "host-event": (lambda: host_job(("prepare", 51)), lambda: host_job(("prepare", 49))),
    "untraced-python": (lambda: host_job(("", 101)), lambda: host_job(("", 99))),
    "device-reads": (
        # With the launch of 5 us.
        lambda: host_job(("np.asarray(jax.Array)", 46)),
        lambda: host_job(("np.asarray(jax.Array)", 44)),
    ),
    "device-writes": (
        lambda: host_job(("batched_device_put", 51)),
        lambda: host_job(("batched_device_put", 49)),
    ),
    "small-kernels": (lambda: kernels(0.51), lambda: kernels(0.49)),
    "dispatch-bound": (
        lambda: host_job(launch=60, calls=5),
        lambda: host_job(launch=60, calls=4),
    ),
    "dispatch-late": (lambda: host_job(launch=51), lambda: host_job(launch=49)),
    "straggler": (
        lambda: late(lambda step, device: 60 if device == 3 else 0),
        lambda: late(lambda step, device: 50 if device == 3 else 0),
    ),
    "straggler-host": (lambda: late_host(100), lambda: late_host(10)),
    "small-collectives": (lambda: many(8, FEW), lambda: many(8, MANY)),
    "blocking-collectives": (
        lambda: tpu_job([all_reduce(50)]),
        lambda: tpu_job([all_reduce(49)]),
    ),
    "exposed-communication": (
        lambda: tpu_job(asynchronous(100)),
        lambda: tpu_job(asynchronous(98)),
    ),
    "compute-imbalance": (lambda: heavy(110), lambda: heavy(90)),
    "uneven-arrival": (
        lambda: late(lambda step, device: 150 if step % 4 == device else 0),
        lambda: late(lambda step, device: 120 if step % 4 == device else 0),
    ),
    "varying-collectives": (lambda: varying(220), lambda: varying(180)),
    "exposed-host-transfer": (
        lambda: tpu_job(moved(":S(5)", 50)),
        lambda: tpu_job(moved(":S(5)", 48)),
    ),
    "exposed-feed": (
        lambda: one("infeed.1", 50, category="infeed"),
        lambda: one("infeed.1", 49, category="infeed"),
    ),
    "sparse-core-wait": (lambda: tpu_job(offloaded(50)), lambda: tpu_job(offloaded(48))),
    "exposed-device-wait": (
        lambda: tpu_job(moved(":S(1)", 50)),
        lambda: tpu_job(moved(":S(1)", 48)),
    ),
    "idle-devices": (lambda: gapped(lambda step: 251), lambda: gapped(lambda step: 249)),
    "one-long-gap": (lambda: stalled(700), lambda: stalled(600)),
    "gap-before-op": (lambda: gapped(lambda step: 53), lambda: gapped(lambda step: 52)),
    "other-program": (lambda: evaluating(200), lambda: evaluating(115)),
    "loop-copies": (
        lambda: one("copy.4", 101, category="copy", scope=LOOP),
        lambda: one("copy.4", 99, category="copy", scope=LOOP),
    ),
    "layout-copies": (
        lambda: one("transpose.4", 101, category="data formatting"),
        lambda: one("transpose.4", 99, category="data formatting"),
    ),
    "wide-products": (lambda: wide(101), lambda: wide(99)),
    "thin-products": (
        lambda: one("fusion.8", 56, category="convolution fusion", flops=0.1, bytes=0.9),
        lambda: one("fusion.8", 55, category="convolution fusion", flops=0.1, bytes=0.9),
    ),
    "far-from-peaks": (
        lambda: one("gather.8", 63, flops=0.1, bytes=0.2),
        lambda: one("gather.8", 62, flops=0.1, bytes=0.2),
    ),
    "memory-bound-region": (
        lambda: one("fusion.8", 106, flops=0.05, bytes=0.9),
        lambda: one("fusion.8", 105, flops=0.05, bytes=0.9),
    ),
    "dominant-region": (lambda: one("fusion.8", 120), lambda: one("fusion.8", 60)),
    "recompute": (
        lambda: one("fusion.8", 51, scope=AGAIN),
        lambda: one("fusion.8", 49, scope=AGAIN),
    ),
    "gaps-between-ops": (lambda: between_ops(101), lambda: between_ops(99)),
    "devices-idle-apart": (lambda: apart(201), lambda: apart(199)),
    "uneven-steps": (lambda: slower(65), lambda: slower(55)),
    "capture-too-short": (lambda: tpu_job([], steps=4), lambda: tpu_job([], steps=5)),
    "no-steps": (lambda: unmarked(), clean),
    "low-attribution": (lambda: kernels_with_hlo(899), lambda: kernels_with_hlo(900)),
    "no-hlo-protos": (lambda: protos(False), lambda: protos(True)),
    "missing-scopes": (
        lambda: one("fusion.8", 501, scope=""),
        lambda: one("fusion.8", 500, scope=""),
    ),
    "memory-padding": (lambda: padded(1138), lambda: padded(1137)),
}


def unmarked() -> Space:
    space = Space("host")
    put(space.tpu(0, **PEAKS), product(1000), 0)
    return space


def advice_of(profile: Profile) -> list[OptimizationCandidate]:
    made = profile if isinstance(profile, ProfileSummary) else summary_of(profile.analyse())
    return made.optimization_candidates


def ids(profile: Profile) -> list[str]:
    return [one.candidate_id for one in advice_of(profile)]


def test_every_rule_has_its_profiles():
    assert sorted(CASES) == sorted(rule.id for rule in RULES)
    assert len(CASES) >= 25


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_fires_on_its_profile_and_not_just_below_its_threshold(rule: Rule):
    fires, barely_not = CASES[rule.id]
    found = next((one for one in advice_of(fires()) if one.candidate_id == rule.id), None)
    assert found is not None
    assert found.title
    assert found.rationale
    assert found.why in found.evidence
    assert found.suggestions
    assert found.verify
    assert found.evidence_fields
    assert (found.ceiling_share is None) == (rule.term is None)
    assert rule.id not in ids(barely_not())


def test_nothing_is_said_of_a_clean_profile():
    assert ids(clean()) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_a_rule_says_of_itself(rule: Rule):
    assert (rule.term is None) == (rule.basis == "")
    assert rule.term is None or rule.term in (*advice.TERMS, advice.STEP)
    # What claims no time stands first or last.
    assert (rule.term is None) == (rule.place in (FIRST, LAST))
    assert rule.place in (FIRST, RANKED, UNCAUSED, LAST)
    assert rule.when
    assert rule.do


def test_queries_that_verify_are_queries():
    told = [rule.verify for rule in RULES] + [text for rule in RULES for text in rule.do]
    named = {name for text in told for name in re.findall(r"query (\w+)", text)}
    assert named <= {query["name"] for query in list_queries()}


def test_fields_of_the_evidence_are_fields_of_the_summary():
    names = {name for rule in RULES for field in rule.fields for name in _names(field)}
    known = _known_names()
    assert names <= known, sorted(names - known)


def _names(field: str) -> set[str]:
    """ "host_activity[].causes[cause=compile]" -> its three names."""
    return set(re.findall(r"\w+", re.sub(r"=\w+", "", field)))


def _known_names(model: object = ProfileSummary) -> set[str]:
    if not (isinstance(model, type) and issubclass(model, Record)):
        return set().union(*map(_known_names, get_args(model)))
    fields = model.model_fields.items()
    own = {field.alias or name for name, field in fields}
    return own.union(*(_known_names(field.annotation) for _, field in fields))


# --- what rules claim, and in which order they stand ---

CALM = Findings(
    basis="device time",
    terms=dict.fromkeys(advice.TERMS, 0.0),
    device_kind="tpu",
    compute_by_device=(),
    late_hosts=None,
    late_devices=None,
    collectives=(),
    transfers=(),
    partly_idle=0.0,
    host_idle=(),
    calls_per_step={},
    launches_per_step=None,
    most_launched=(),
    reads_per_step=None,
    rounds_per_step=None,
    keeps_up=True,
    most_delayed=None,
    ops=(),
    ops_per_step=None,
    op_mean_us=None,
    long_op=None,
    step_median_us=100.0,
    step_mean_us=100.0,
    step_p90_us=101.0,
    slow_steps=(),
    steps=12,
    kept_steps=10,
    is_cut=False,
    padding=(),
    hlo_attributed=1.0,
    scope_attributed=1.0,
    without_hlo=(),
    window_to_outside=None,
)


def found(*, terms: dict[str, float], **changes: object) -> list[Candidate]:
    every = {**CALM.terms, **terms}
    return candidates(dataclasses.replace(CALM, terms=every, **changes))


def claims(**changes: object) -> list[tuple[str, object]]:
    return [
        (one.rule.id, None if one.share is None else pytest.approx(one.share))
        for one in found(**changes)  # type: ignore[arg-type]
    ]


def again(share: float) -> OpShare:
    return OpShare("fusion.1", "jit_f", ("jit(f)", "mlp", "mul"), share, is_recompute=True)


def exposed(share: float) -> Exposed:
    return Exposed("all-reduce", "jit(f)/psum", share, 0.1)


def test_the_largest_share_comes_first_and_bounds_count_half():
    assert claims(
        terms={"idle": 0.25, "exposed_communication": 0.4, "compute": 0.35},
        collectives=(exposed(0.4),),
        ops=(again(0.3),),
    ) == [("recompute", 0.3), ("exposed-communication", 0.4), ("idle-devices", 0.25)]


def test_waits_that_nobody_causes_come_behind_causes_and_before_what_saves_nothing():
    assert claims(
        terms={"wait": 0.5, "varying": 0.1, "idle": 0.3, "compute": 0.06},
        ops=(again(0.06),),
        partly_idle=0.3,
        kept_steps=1,
    ) == [
        ("recompute", 0.06),
        ("uneven-arrival", 0.5),
        ("devices-idle-apart", 0.3),
        ("varying-collectives", 0.1),
        ("capture-too-short", None),
    ]


def test_what_changes_the_reading_of_everything_comes_first():
    ops = (again(0.6),)
    assert claims(terms={"compute": 0.6}, ops=ops, is_cut=True)[0] == ("capture-cut", None)


def test_no_more_is_claimed_of_a_term_than_there_is():
    """Causes on the host are given of their own windows, which may be shorter: of 0.5 idle the
    loader takes 0.3, and 0.2 is left of what compiles."""
    causes = (
        HostIdle("host_event", "load", "inside", 0.3, 3),
        HostIdle("compile", "f", "inside", 0.3, 3),
    )
    assert claims(terms={"idle": 0.5}, host_idle=causes) == [
        ("compile-in-window", 0.3),
        ("input-bound", 0.2),
    ]


def test_a_claim_that_is_mostly_others_is_not_made():
    """Of 0.45 idle the compiler takes 0.3; of what loads half is left, or just not."""

    def said(loads: float) -> list[tuple[str, object]]:
        causes = (
            HostIdle("host_event", "load", "inside", loads, 3),
            HostIdle("compile", "f", "inside", 0.3, 3),
        )
        return claims(terms={"idle": 0.45}, host_idle=causes)

    assert said(0.29) == [("compile-in-window", 0.3), ("input-bound", 0.15)]
    assert said(0.31) == [("compile-in-window", 0.3)]


def test_nothing_is_said_where_nothing_is_left():
    cause = HostIdle("host_event", "load", "inside", 0.3, 3)
    assert claims(terms={"idle": 0.0}, host_idle=(cause,)) == []


def test_an_op_is_claimed_once():
    """Recomputed copies in a loop are recompute; products of float32 that memory bounds are wide.
    A wide one needs half of its time at the peaks."""
    ops = (
        dataclasses.replace(again(0.2), is_copy=True, in_loop=True),
        OpShare("dot.1", "jit_f", (), 0.3, 0.15, 0.1, "memory", is_product=True, is_wide=True),
        OpShare("copy.1", "jit_f", (), 0.1, is_copy=True),
    )
    assert claims(terms={"compute": 0.6}, ops=ops) == [
        ("recompute", 0.2),
        ("wide-products", 0.15),
        ("layout-copies", 0.1),
    ]


def test_each_kind_and_scope_of_exposed_collectives_is_one_finding():
    rows = (
        exposed(0.3),
        dataclasses.replace(exposed(0.05), scope="jit(f)/other"),
        dataclasses.replace(exposed(0.01), kind="all-gather"),
    )
    one, other = found(terms={"exposed_communication": 0.36, "wait": 0.07}, collectives=rows)
    assert (one.found.title, one.share) == ("Hide or shrink all-reduce in jit(f)/psum", 0.3)
    assert (other.found.title, other.share) == ("Hide or shrink all-reduce in jit(f)/other", 0.05)
    assert one.found.evidence[0] == "all-reduce in jit(f)/psum: 30.0 % of device time exposed"
    assert one.found.why == "all-reduce beside compute: 10.0 % of device time"
    assert one.found.evidence[-1] == "not included: waiting for the last to arrive, 7.0 %"


def test_small_and_blocking_collectives_that_are_too_few_count_with_the_others():
    rows = (
        dataclasses.replace(exposed(0.06), bytes_each=8.0, per_step=7.0),
        dataclasses.replace(exposed(0.04), blocks=True),
        dataclasses.replace(exposed(0.02), scope="jit(f)/more"),
    )
    terms = {"exposed_communication": 0.12}
    assert claims(terms=terms, collectives=rows) == [
        ("exposed-communication", 0.06),
        ("exposed-communication", 0.04),
        ("exposed-communication", 0.02),
    ]
    more = (dataclasses.replace(rows[0], per_step=8.0), *rows[1:])
    assert claims(terms=terms, collectives=more) == [("small-collectives", 0.06)]


def test_idle_time_in_waits_is_nothing_that_the_host_does():
    cause = HostIdle("device_wait", "", "inside", 0.3, 0)
    assert claims(terms={"idle": 0.3}, host_idle=(cause,)) == [("idle-devices", 0.3)]


@pytest.mark.parametrize(
    ("between", "idle", "expected"),
    [
        (0.1, 0.1, [("gaps-between-ops", 0.1)]),
        (0.0999, 0.0999, []),
        (0.3, 0.51, [("gaps-between-ops", 0.3), ("idle-devices", 0.21)]),
        (0.3, 0.4999, [("gaps-between-ops", 0.3)]),
    ],
)
def test_idle_time_between_the_ops_of_a_program_is_apart(between, idle, expected):
    cause = HostIdle("on_device", "", "inside", between, 0)
    assert claims(terms={"idle": idle}, host_idle=(cause,)) == expected


def test_gaps_before_one_op_are_told_before_those_between_all():
    cause = HostIdle("on_device", "", "inside", 0.19, 0)
    gap = Gaps("dot.1", share=0.08, longest=0.01, count=9)
    assert claims(terms={"idle": 0.19}, host_idle=(cause,), most_delayed=gap) == [
        ("gaps-between-ops", 0.11),
        ("gap-before-op", 0.08),
    ]


def test_a_bound_counts_half_of_what_is_known():
    """25 % of collectives at most, and 13 % that the loader costs."""
    loader = (HostIdle("host_event", "load", "inside", 0.13, 3),)
    terms = {"idle": 0.13, "exposed_communication": 0.5}
    known, bound = ("input-bound", 0.13), ("exposed-communication", 0.25)
    assert claims(terms=terms, host_idle=loader, collectives=(exposed(0.25),)) == [known, bound]
    known, bound = ("input-bound", 0.13), ("exposed-communication", 0.27)
    assert claims(terms=terms, host_idle=loader, collectives=(exposed(0.27),)) == [bound, known]


def test_devices_that_share_processors_wait_for_them():
    """Half of the host's time some device computes, 2 of 10 all that have work communicate. The
    ledgers, of which waits and idling beside others are most, show 10 % compute; 6 of its 10 % are
    in the op. Of 30 % exposed communication 20 are waits, and 4 vary."""
    op = OpShare("dot.1", "jit_f", (), 0.06, 0.03, 0.01)
    ledger = dict.fromkeys(advice.TERMS, 0.0)
    made = on_shared_processors(
        dataclasses.replace(
            CALM,
            terms={
                **ledger,
                "idle": 0.6,
                "wait": 0.2,
                "varying": 0.04,
                "exposed_communication": 0.06,
                "compute": 0.1,
            },
            collectives=(exposed(0.06),),
            partly_idle=0.3,
            most_delayed=Gaps("dot.1", share=0.2, longest=0.02, count=5),
            ops=(op,),
        ),
        HostTime(
            compute=0.5,
            communication=0.2,
            other=0.0,
            idle=0.3,
            ledger_compute=0.1,
            ledger_communication=0.3,
        ),
    )
    assert made == dataclasses.replace(
        CALM,
        basis="host time",
        shares_processors=True,
        terms={
            **ledger,
            "idle": 0.3,
            "varying": pytest.approx(0.08),
            "exposed_communication": pytest.approx(0.12),
            "compute": 0.5,
        },
        collectives=(exposed(pytest.approx(0.12)),),
        most_delayed=Gaps("dot.1", share=0.1, longest=0.01, count=5),
        ops=(
            OpShare(
                "dot.1", "jit_f", (), pytest.approx(0.3), pytest.approx(0.15), pytest.approx(0.05)
            ),
        ),
    )


def test_time_that_a_straggler_costs_is_no_compute_of_all():
    late = dataclasses.replace(
        CALM,
        terms={**CALM.terms, "wait": 0.3, "idle": 0.2, "compute": 0.5},
        late_hosts=Late(("host-1",), 0.25),
        ops=(again(0.1),),
    )
    time = HostTime(0.8, 0.0, 0.0, 0.2, ledger_compute=0.5, ledger_communication=0.3)
    made = on_shared_processors(late, time)
    assert made.terms["wait"] == 0.25
    assert made.ops[0].share == pytest.approx(0.1 * (0.8 - 0.25) / 0.5)
    assert sum(made.terms.values()) == pytest.approx(1.0)
    assert sum(one.share or 0.0 for one in candidates(made)) <= 1.0


def test_few_launches_are_late_not_too_many():
    cause = HostIdle("dispatch", "", "inside", 0.1, 12, (), 12, 12)

    def said(share: float, per_step: float | None, **changes: object) -> list[str]:
        one = dataclasses.replace(cause, share=share, **changes)
        terms = {"idle": share}
        made = found(terms=terms, host_idle=(one,), launches_per_step=per_step)
        return [candidate.rule.id for candidate in made]

    assert said(0.1, 4.9) == ["dispatch-late"]
    assert said(0.1, 5.0) == ["dispatch-bound"]
    assert said(0.5, 2.0) == ["dispatch-bound"]
    assert said(0.5, 1.9) == ["dispatch-late"]
    assert said(0.1, None, count=4, periods=0) == ["dispatch-late"]
    assert said(0.1, None, count=5, periods=0) == ["dispatch-bound"]


def test_many_reads_are_one_finding_with_the_launches_that_they_hold_up():
    causes = (
        HostIdle("dispatch", "", "inside", 0.06, 70),
        HostIdle("device_read", "np.asarray", "inside", 0.03, 400),
    )
    busy = {"terms": {"idle": 0.5}, "partly_idle": 0.4, "host_idle": causes}
    assert claims(reads_per_step=20.0, **busy) == [("device-reads", 0.49)]
    assert claims(reads_per_step=19.9, **busy) == [
        ("dispatch-bound", 0.06),
        ("devices-idle-apart", 0.4),
    ]


def test_a_host_that_waits_and_launches_in_turn_reads_too_often():
    """Also where no event is a read. All is saved if the host is faster than the devices."""
    causes = (
        HostIdle("dispatch", "", "inside", 0.06, 70),
        HostIdle("device_wait", "Await", "inside", 0.05, 70),
        HostIdle("queued", "", "inside", 0.04, 0),
    )
    busy = {"terms": {"idle": 0.15}, "host_idle": causes, "launches_per_step": 2.0}
    made = found(rounds_per_step=2, **busy)
    assert [(one.rule.id, one.share, one.found.certainty) for one in made] == [
        ("device-reads", pytest.approx(0.15), "known")
    ]
    (slow,) = found(rounds_per_step=2, keeps_up=False, **busy)
    assert slow.found.certainty == "at most"
    assert claims(rounds_per_step=1, **busy) == [("dispatch-late", pytest.approx(0.15))]
    assert claims(rounds_per_step=0, **busy) == [("dispatch-late", pytest.approx(0.1))]


def test_a_read_in_every_step_and_the_launch_behind_it_are_one_cause():
    causes = (
        HostIdle("dispatch", "", "inside", 0.06, 12, (), 12, 12),
        HostIdle("device_read", "np.asarray", "inside", 0.07, 12, (), 12, 12),
    )
    said = {"terms": {"idle": 0.13}, "host_idle": causes, "reads_per_step": 1.0}
    assert claims(rounds_per_step=1, launches_per_step=1.0, **said) == [
        ("device-reads", pytest.approx(0.13))
    ]
    assert found(rounds_per_step=1, launches_per_step=1.0, **said)[0].found.certainty == "known"
    (bound,) = found(rounds_per_step=1, launches_per_step=1.0, keeps_up=False, **said)
    assert bound.found.certainty == "at most"
    apart = [("device-reads", 0.07), ("dispatch-bound", 0.06)]
    assert claims(rounds_per_step=1, launches_per_step=5.0, **said) == apart
    assert claims(rounds_per_step=0, launches_per_step=5.0, **said) == apart


def test_without_a_straggler_the_step_is_shorter_by_what_each_of_the_others_waits():
    """One of two devices computes 0.4 longer; the other waits 0.36: 0.18 of both's time."""
    late = Late(("host /device:TPU:1",), 0.18, 0.5)
    compute = (("host /device:TPU:0", 0.5), ("host /device:TPU:1", 0.9))
    terms = {"wait": 0.18, "compute": 0.7}
    assert claims(terms=terms, late_devices=late, compute_by_device=compute) == [
        ("straggler", pytest.approx(0.36))
    ]
    # What it idles longer is not told to be its own.
    alike = (compute[0], ("host /device:TPU:1", 0.52))
    assert claims(terms=terms, late_devices=late, compute_by_device=alike) == [
        ("straggler", pytest.approx(0.19))
    ]


def in_turn(wait: float) -> Space:
    """Two programs a step, each launched (10 us) when the host has seen the end of the last: `wait`
    us after it."""
    space = Space("host")
    host = space.host()
    for step in range(STEPS):
        host.marker(step, STEP * step, STEP)
        for number in range(2):
            at, run_id = STEP * step + 500 * number, 2 * step + number
            host.call("PjitFunction(f)", at, 10)
            host.call("Buffer::Await", at + 12, 1, _pt=0, _p=run_id)
            host.call("Buffer::Await", at + 499, 1, _ct=0, _c=run_id)
            host.cpu_op("fusion", at + 10, 490 - wait, run_id=run_id, module="jit_f")
    return space


def test_waiting_and_launching_in_turn_is_found_in_a_profile():
    """In a step 2 x 10 us in launches and 2 x `wait`; a window begins and ends with work, so that
    it lacks one of these gaps."""
    (reads,) = (one for one in advice_of(in_turn(16)) if one.candidate_id == "device-reads")
    assert (reads.ceiling_share, reads.certainty) == (pytest.approx(0.052, rel=0.05), "known")
    assert "device-reads" not in ids(in_turn(14))


def test_what_is_launched_and_has_not_begun_is_the_cost_of_launches():
    causes = (
        HostIdle("queued", "", "inside", 0.04, 0, (), 12, 12),
        HostIdle("dispatch", "", "inside", 0.01, 70, (), 12, 12),
    )
    idle = {"terms": {"idle": 0.05}, "host_idle": causes}
    (one,) = found(launches_per_step=33.0, **idle)
    assert (one.rule.id, one.share) == ("dispatch-bound", pytest.approx(0.05))
    assert claims(launches_per_step=33.0, terms={"idle": 0.05}, host_idle=causes[:1]) == []


def test_a_cause_in_some_steps_names_them_and_a_one_off_is_never_called_recurring():
    """Every fifth step is recurring, one of twelve is not."""

    def said(**changes: object) -> tuple[str, str | None]:
        cause = HostIdle("host_event", "save", "inside", 0.4, 5, (4, 9, 14, 19, 24), 5, 24, 5)
        cause = dataclasses.replace(cause, **changes)
        (one,) = found(terms={"idle": 0.4}, host_idle=(cause,))
        return one.found.evidence[1], one.found.occurs

    assert said() == ("in 5 of 24 steps (4, 9, 14, 19, 24), every 5 steps", "recurring")
    one_off = {"steps": (7,), "step_count": 1, "every": None}
    assert said(**one_off) == ("in 1 of 24 steps (7), one-off", "one-off")
    some = {"steps": (3, 7), "step_count": 2, "every": None}
    assert said(**some) == ("in 2 of 24 steps (3, 7)", None)
    most = {"steps": tuple(range(13)), "step_count": 13, "every": None}
    assert said(**most) == ("in 13 of 24 steps (0, 1, 2, 3, 4, 5, 6, 7, ...)", "recurring")
    assert said(steps=(), step_count=24, every=None) == ("in 24 of 24 steps", "recurring")
    assert said(steps=(), step_count=0, every=None, periods=0) == ("5 times in the capture", None)


@pytest.mark.parametrize("idle", [0.1, 0.3])
def test_one_stall_is_never_called_recurring(idle):
    """99 gaps of a microsecond and one long one."""
    gaps = Gaps("fusion", 0.08, 0.079, 100)
    (one,) = found(terms={"idle": idle}, most_delayed=gaps)
    words = " ".join((one.found.title, one.found.cause, *one.found.evidence, *one.rule.do))
    assert "again" not in words
    assert "recurring" not in words
    assert "the longest gap alone: 7.9 % of device time" in words
    assert one.found.occurs in (None, "one-off")


@pytest.mark.parametrize("devices", [1, 4])
def test_a_stall_of_all_devices_at_once_is_one(devices):
    """Steps of 100 us with a gap of 1 us before the fusion; in some all wait 90 us longer."""

    def said(stalls: int) -> list[str]:
        space = Space()
        for ordinal in range(devices):
            tpu = space.tpu(ordinal)
            at = 0
            for step in range(12):
                wait = 91 if 3 <= step < 3 + stalls else 1
                tpu.module("jit_step(7)", at, wait + 100, run_id=step)
                tpu.op("copy.1", at, 10, category="copy")
                tpu.op("fusion.1", at + 10 + wait, 89, category="loop fusion")
                at += wait + 99
        return [name for name in ids(space) if "gap" in name]

    assert said(1) == ["one-long-gap"]
    assert said(2) == ["gap-before-op"]


def test_slow_steps_that_run_another_program_are_that_programs():
    """Of 125 us 25 are beyond the typical step; its ops compute for 15 %, and what is left of the
    20 % is in proportion of the 40 % that are idle or collectives: an eighth of each."""
    slow = (CauseOfSlowSteps("program jit_eval", 4, 25.0, "program", "jit_eval", 4),)
    evaluation = OpShare("fusion.9", "jit_eval", (), 0.15)
    one, *others = found(
        terms={"compute": 0.6, "idle": 0.24, "exposed_communication": 0.16},
        step_mean_us=125.0,
        slow_steps=slow,
        ops=(evaluation,),
        collectives=(exposed(0.16),),
    )
    assert (one.rule.id, one.found.certainty) == ("other-program", "known")
    assert one.share == pytest.approx(0.2)
    assert [(other.rule.id, other.share) for other in others] == [
        ("idle-devices", pytest.approx(0.24 * 7 / 8)),
        ("exposed-communication", pytest.approx(0.16 * 7 / 8)),
    ]
    assert one.found.title == "Run jit_eval less often, or apart from the steps"
    assert one.found.why == "program jit_eval: 4 steps, every 4 steps, 25.0 us of the mean step"


def test_slow_steps_with_a_cause_on_the_host_are_told_once():
    cause = HostIdle("compile", "step", "inside", 0.17, 1, (3,), 1, 12)
    assert claims(terms={"idle": 0.2}, step_mean_us=125.0, host_idle=(cause,)) == [
        ("compile-in-window", 0.17)
    ]


def test_slow_steps_without_a_cause_claim_no_time():
    """The mean of 125 us is 100 us and a fifth of 125 beyond it."""
    slow = tuple(CauseOfSlowSteps(f"cause {at}", at, 10.0 - at) for at in range(1, 5))
    (one,) = found(terms={}, step_mean_us=125.0, slow_steps=slow)
    assert one.share is None
    assert one.found.evidence == (
        "step period: typical (median) 100.0 us, mean 125.0 us, p90 101.0 us over 10 steps",
        "cause 1: 1 step, 9.0 us of the mean step",
        "cause 2: 2 steps, 8.0 us of the mean step",
        "cause 3: 3 steps, 7.0 us of the mean step",
    )


def test_a_host_and_a_device_that_are_late_are_two_findings():
    assert claims(
        terms={"wait": 0.35},
        late_hosts=Late(("host-1",), 0.2),
        late_devices=Late(("host-2 /device:TPU:3",), 0.1),
    ) == [("straggler-host", 0.2), ("straggler", 0.1)]


def test_products_of_cpus_are_not_called_wide():
    """Of what the op computes, since it takes all of the time."""
    space = Space("host")
    shape = shape_proto(11, 8, 8)
    dot = instruction("dot", "dot", id=2, shape=shape, operands=(1, 1), contracting=(1,),
                      op_name="jit(f)/mlp/dot")  # fmt: skip
    factor = instruction("p", "parameter", id=1, shape=shape, parameter=0)
    space.hlo(7, hlo_proto(computation(1, 2, factor, dot)))
    host = space.host()
    for step in range(STEPS):
        host.marker(step, STEP * step, STEP)
        host.cpu_op("dot", STEP * step, STEP, run_id=step, program_id=7)
    assert ids(space) == ["dominant-region"]


def test_ops_that_are_too_few_for_a_rule_are_left_to_the_others():
    """A copy of 9 % inside a region of 16."""
    region = ("jit(f)", "mlp", "mul")
    ops = (
        OpShare("fusion.1", "jit_f", region, 0.07),
        OpShare("copy.1", "jit_f", region, 0.09, is_copy=True),
    )
    assert claims(terms={"compute": 1.0}, ops=ops) == [("dominant-region", 0.16)]
    more = (ops[0], dataclasses.replace(ops[1], share=0.1))
    assert claims(terms={"compute": 1.0}, ops=more) == [("layout-copies", 0.1)]


def titles(ops: tuple[OpShare, ...]) -> list[tuple[str, float]]:
    rows = found(terms={"compute": 1.0}, ops=ops)
    return [(row.found.title, pytest.approx(row.share)) for row in rows]


def scoped(path: str, share: float, name: str = "fusion.1") -> OpShare:
    return OpShare(name, "jit_f", tuple(path.split("/")), share)


def test_a_region_is_named_as_far_as_one_part_of_it_stands_out():
    """30 % in a region beside layers of 16, 12 and 10 %: a third of all, and half as much again as
    the next. Its ops are primitives of 15 and 15 %, which are no regions."""
    layers = tuple(scoped(f"jit(f)/layer_{at}/add", (0.16, 0.12, 0.1)[at]) for at in range(3))
    own = (scoped("jit(f)/softmax/exp", 0.15), scoped("jit(f)/softmax/log", 0.15, "fusion.2"))
    assert titles((*layers, *own)) == [("Optimise jit(f)/softmax first", 0.3)]
    # Of 22 % the next one is more than two thirds, and 22 of 60 % are not most.
    less = (scoped("jit(f)/softmax/exp", 0.22), *layers)
    assert titles(less) == [("Optimise fusion.1 in jit(f)/softmax first", 0.22)]


def test_kernels_right_below_the_program_are_regions_of_it():
    """64 calls of one kernel, each an op of its own: 32 % together; linear layers take 21 %."""
    kernel = tuple(scoped("jit(f)/attention_kernel", 0.005, f"kernel.{at}") for at in range(64))
    linear = tuple(scoped("jit(f)/linear/matmul", 0.005, f"matmul.{at}") for at in range(42))
    assert titles((*kernel, *linear)) == [("Optimise jit(f)/attention_kernel first", 0.32)]


def test_what_loops_take_themselves_is_no_op_to_optimise():
    """Half a step is between the ops of a loop's body, of which none takes a tenth."""
    loop = dataclasses.replace(scoped("jit(f)/while", 0.5, "while.1"), is_container=True)
    body = tuple(scoped(f"jit(f)/part_{at}/add", 0.08, f"add.{at}") for at in range(3))
    assert titles((loop, *body)) == []
    more = (*body, scoped("jit(f)/part_3/dot_general", 0.11, "dot.1"))
    assert titles((loop, *more)) == [("Optimise dot.1 in jit(f)/part_3 first", 0.11)]


def test_a_graph_is_no_op_to_optimise():
    """90 of 100 us in a graph, of which a kernel on its stream covers 20 and another stream 10."""
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("CudaGraphExec:7", 0, 90).kernel("inner", 10, 20).kernel("gemm", 90, 10)
    gpu.kernel("fusion", 40, 10, stream="Stream #17(Kernel)")
    summary = summary_of(space.analyse())
    (row,) = summary.device_ledger
    assert (row.compute_duration, row.unattributed_duration) == (40, 60)
    assert {op.name: (op.category, op.exclusive_duration) for op in summary.hot_ops} == {
        "CudaGraphExec:7": ("unknown", 70),
        "inner": ("compute", 20),
        "gemm": ("compute", 10),
        "fusion": ("compute", 10),
    }
    told = " ".join(one.title for one in summary.optimization_candidates)
    assert "CudaGraphExec" not in told
    reasons = {op.name: op.reason for op in summary.coverage.unattributed_ops}
    assert reasons["CudaGraphExec:7"] == "command buffer (CudaGraphExec:7)"
    assert reasons["gemm"] == "the event names no HLO op"


@pytest.mark.parametrize("name", list(CASES))
def test_ceilings_never_exceed_the_step(name):
    summary = CASES[name][0]()
    made = summary if isinstance(summary, ProfileSummary) else summary_of(summary.analyse())
    ceilings = [one.ceiling_per_step or 0.0 for one in made.optimization_candidates]
    assert sum(ceilings) <= (made.step_time.mean_period or 0.0) * (1 + 1e-9)


def test_text_holds_no_number_that_the_evidence_does_not():
    for name, (fires, _) in CASES.items():
        one = next(one for one in advice_of(fires()) if one.candidate_id == name)
        shown = " ".join(one.evidence)
        for number in re.findall(r"(?<![\w.])\d+", f"{one.title} {one.rationale}"):
            assert number in shown, name


@pytest.mark.parametrize("seed", range(50))
def test_claims_of_any_figures_stay_within_their_terms(seed: int) -> None:
    """Figures that contradict each other too, as those of several windows do."""
    draw = random.Random(seed)

    def share() -> float:
        return draw.choice((0.0, 0.02, 0.1, draw.random()))

    whole = [draw.random() for _ in advice.TERMS]
    terms = {name: part / sum(whole) for name, part in zip(advice.TERMS, whole, strict=True)}
    kinds = ("compile", "dispatch", "device_read", "untraced", "host_event", "on_device")
    names = ("load", "save", "eval", "log", "other")
    made = found(
        terms=terms,
        device_kind=draw.choice(("tpu", "gpu", "cpu")),
        compute_by_device=tuple((f"d{at}", share()) for at in range(3)),
        late_hosts=draw.choice((None, Late(("h",), share()))),
        late_devices=draw.choice((None, Late(("d",), share()))),
        collectives=tuple(
            Exposed("all-reduce", f"s{at}", share(), share(), draw.random() < 0.5, share() * 1e5, 9)
            for at in range(4)
        ),
        transfers=tuple((kind, "op", share()) for kind in ("on_chip", "sparsecore", "infeed")),
        partly_idle=share(),
        host_idle=tuple(
            HostIdle(draw.choice(kinds), draw.choice(names), "inside", share(), 3, (), 3, 9)
            for _ in range(4)
        ),
        reads_per_step=draw.choice((None, 1.0, 30.0)),
        launches_per_step=draw.choice((None, 1.0, 30.0)),
        most_delayed=draw.choice((None, Gaps("op", share(), share(), 3))),
        ops=tuple(
            OpShare(
                f"op.{at}",
                draw.choice(("jit_f", "jit_eval")),
                ("jit(f)", draw.choice("ab"), "mul"),
                share(),
                bound_by=draw.choice((None, "memory", "compute")),
                is_recompute=draw.random() < 0.2,
                is_copy=draw.random() < 0.2,
                is_product=draw.random() < 0.5,
            )
            for at in range(9)
        ),
        ops_per_step=200.0,
        op_mean_us=5.0,
        step_mean_us=125.0,
        slow_steps=(CauseOfSlowSteps("eval", 3, 125 * share(), "program", "jit_eval"),),
    )
    claimed = dict.fromkeys((*advice.TERMS, advice.STEP), 0.0)
    for one in made:
        if one.share is not None:
            assert one.rule.term is not None
            assert 0 < one.share <= (one.found.share or 0.0) + 1e-12
            claimed[one.rule.term] += one.share
    assert all(claimed[term] <= terms[term] + 1e-9 for term in advice.TERMS)
    assert sum(claimed.values()) <= 1 + 1e-9


# --- what stands out among products, what goes with launches, regions and collectives ---


def paced(name: str, share: float, flops: int, region: str = "mlp") -> OpShare:
    return OpShare(name, "jit_f", ("jit(f)", region, name), share, flops=flops, is_product=True)


def test_products_as_fast_as_the_others_do_not_stand_out():
    """0.4 of 0.6 of the products' time for 2 of 3 of their flops; at half of that rate 0.2 of it is
    beyond."""

    def said(flops: int) -> list[tuple[str, object]]:
        ops = (
            *(paced(f"dot.{at}", 0.2, flops) for at in range(2)),
            *(paced(f"dot.{at + 2}", 0.1, 100, region) for at, region in enumerate("ab")),
        )
        return claims(terms={"compute": 1.0}, ops=ops)

    assert said(200) == []
    # 0.4 less 0.6 x 100 / 300.
    assert said(50) == [("dominant-region", 0.4)]


def test_a_large_region_and_a_large_op_stand_out_whatever_they_compute():
    small = paced("dot.1", 0.1, 100, "a")
    one = paced("dot.2", 0.26, 260)
    assert claims(terms={"compute": 1.0}, ops=(one, small)) == [("dominant-region", 0.26)]
    under = paced("dot.2", 0.24, 240)
    assert claims(terms={"compute": 1.0}, ops=(under, small)) == []
    three = tuple(paced(f"dot.{at}", 0.17, 170) for at in range(3, 6))
    assert claims(terms={"compute": 1.0}, ops=(*three, small)) == [
        ("dominant-region", pytest.approx(0.51))
    ]


def test_collectives_go_with_their_region_unless_they_are_an_advice_themselves():
    op = OpShare("fusion.1", "jit_f", ("jit(f)", "layer_3", "combine", "mul"), 0.3)
    inside = Exposed("all-gather", "jit(f)/layer_*/combine/gather", 0.08, 0.0)
    beside = Exposed("all-reduce", "jit(f)/layer_*/combined/psum", 0.01, 0.0)
    terms = {"compute": 0.3, "exposed_communication": 0.09}
    (one,) = found(terms=terms, ops=(op,), collectives=(inside, beside))
    assert one.share == pytest.approx(0.38)
    assert "its collectives: 8.0 % exposed" in one.found.evidence
    larger = dataclasses.replace(inside, share=0.2)
    terms["exposed_communication"] = 0.2
    assert claims(terms=terms, ops=(op,), collectives=(larger,)) == [
        ("dominant-region", pytest.approx(0.3)),
        ("exposed-communication", 0.2),
    ]


def test_what_varies_of_collectives_goes_with_them_but_does_not_count():
    row = dataclasses.replace(exposed(0.2), varying=0.1)
    terms = {"exposed_communication": 0.2, "varying": 0.1, "compute": 0.12}
    assert claims(terms=terms, collectives=(row,), ops=(again(0.12),)) == [
        ("recompute", 0.12),
        ("exposed-communication", pytest.approx(0.3)),
    ]


def test_where_devices_share_processors_hiding_a_collective_counts_little():
    terms = {"exposed_communication": 0.3, "compute": 0.08}
    alone = {"terms": terms, "collectives": (exposed(0.3),), "ops": (again(0.08),)}
    assert claims(**alone)[0] == ("exposed-communication", 0.3)
    assert claims(**alone, shares_processors=True)[0] == ("recompute", 0.08)


def test_a_straggler_on_shared_processors_computes_longer():
    """The others wait 0.4 of their time each for it: half of that it must compute beyond them."""

    def late(own: float) -> object:
        made = on_shared_processors(
            dataclasses.replace(
                CALM,
                terms={**CALM.terms, "wait": 0.3, "compute": 0.5},
                late_devices=Late(("host /device:CPU:1",), 0.3, 0.25),
                compute_by_device=(
                    ("host /device:CPU:0", 0.3),
                    ("host /device:CPU:1", own),
                    ("host /device:CPU:10", 0.3),
                ),
            ),
            HostTime(0.8, 0.0, 0.0, 0.2, ledger_compute=0.5, ledger_communication=0.3),
        )
        return made.late_devices

    assert late(0.51) == Late(("host /device:CPU:1",), pytest.approx(0.4), 0.0)
    assert late(0.49) is None


def launched(idle: float, work: float, **changes: object) -> Candidate:
    """100 launches a step, 10 of them of one small program."""
    ops = (OpShare("mul.1", "jit_mul", ("jit(mul)", "mul"), work),)
    cause = HostIdle("dispatch", "", "inside", idle, 1200, (), 12, 12)
    every = {
        "terms": {"idle": idle, "compute": 0.5},
        "host_idle": (cause,),
        "launches_per_step": 100.0,
        "calls_per_step": {"jit_mul": 10.0},
        "ops": ops,
    }
    return found(**{**every, **changes})[0]  # type: ignore[arg-type]


def test_the_work_of_small_programs_goes_with_their_launches():
    """Each launch leaves 0.003 idle: ten calls of less than 0.03 each are small."""
    one = launched(0.3, 0.2)
    assert (one.rule.id, one.share) == ("dispatch-bound", pytest.approx(0.5))
    assert one.found.certainty == "at most"
    assert "work of the small programs: 20.0 % of device time" in one.found.evidence
    little = launched(0.3, 0.1)
    assert (little.share, little.found.certainty) == (pytest.approx(0.4), "known")
    large = launched(0.3, 0.31, terms={"idle": 0.3, "compute": 0.9})
    assert (large.share, large.found.certainty) == (0.3, "known")
    few = launched(0.3, 0.2, calls_per_step={"jit_mul": 4.9})
    assert (few.share, few.found.certainty) == (0.3, "known")


def test_a_little_python_around_launches_is_theirs():
    """From 10 % on it has an advice of its own."""

    def said(untraced: float) -> list[tuple[str, object]]:
        causes = (
            HostIdle("untraced", "", "inside", untraced, 0, (), 12, 12),
            HostIdle("dispatch", "", "inside", 0.03, 12, (), 12, 12),
        )
        return claims(terms={"idle": untraced + 0.03}, host_idle=causes, launches_per_step=1.0)

    assert said(0.09) == [("dispatch-late", pytest.approx(0.12))]
    assert said(0.10) == [("untraced-python", pytest.approx(0.10))]


def test_gaps_that_small_causes_explain_are_no_advice():
    """Of 0.12 idle, 0.04 each are of causes too small for advice; 0.04 or 0.06 of none."""

    def said(beyond: float) -> list[tuple[str, object]]:
        causes = (
            HostIdle("device_write", "put", "inside", 0.04, 12, (), 12, 12),
            HostIdle("host_event", "prepare", "inside", 0.04, 12, (), 12, 12),
        )
        gap = Gaps("fusion.1", share=0.08 + beyond, longest=0.01, count=12)
        return claims(terms={"idle": 0.08 + beyond}, host_idle=causes, most_delayed=gap)

    assert said(0.04) == []
    assert said(0.06) == [("gap-before-op", pytest.approx(0.06))]
