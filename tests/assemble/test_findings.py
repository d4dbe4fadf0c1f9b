"""What the advice is given: every figure by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_xspace import Space, summarize_spaces
from marin_profile.analysis.advice import rules as advice
from marin_profile.analysis.advice.rules import Exposed, Findings, Gaps, Late, OpShare

ALL_4 = "replica_groups={{0,1,2,3}}"
ALL_REDUCE = f"%all-reduce.3 = f32[1024]{{0}} all-reduce(f32[1024]{{0}} %p), {ALL_4}"
MUL = ("jit(train)", "mlp", "mul")
AGAIN = "jit(train)/transpose(jvp(mlp))/rematted_computation/dot:"


def copy(number: int, source: str) -> tuple[str, str]:
    """Start and end of a copy into main memory, from host memory or from on-chip memory."""
    shapes = f"f32[8]{{0}}, f32[8]{{0{source}}}, u32[]"
    return (
        f"%copy-start.{number} = ({shapes}) copy-start(f32[8]{{0{source}}} %p)",
        f"%copy-done.{number} = f32[8]{{0}} copy-done(({shapes}) %copy-start.{number})",
    )


def job() -> Space:
    """Four devices, four steps of 1000 us, of which the first, 2000 us longer, is no kept one.
    TPU:3 recomputes for 100 us more than the others, which wait for it in their all-reduce; idle
    are 120 us before add.7."""
    space = Space()
    copies = {5: copy(5, ":S(5)"), 6: copy(6, ":S(1)")}
    for ordinal in range(4):
        tpu = space.tpu(ordinal)
        late = 100 if ordinal == 3 else 0
        for step in range(4):
            more = 2_000 if step == 0 else 0
            at = 1_000 * step + (0 if step == 0 else 2_000)
            tpu.step(step, at, 990 + more).module("jit_train(7)", at, 1_000 + more, run_id=step)
            tpu.op("fusion.1", at, 300, category="loop fusion", scope="jit(train)/jvp(mlp)/mul:")
            tpu.op("dot.2", at + 300, 200 + late + more, category="convolution", scope=AGAIN)
            at += more
            tpu.op("all-reduce.3", at + 500 + late, 140 - late, category="all-reduce",
                   long_name=ALL_REDUCE)  # fmt: skip
            for number, begin, length in ((5, 640, 60), (6, 700, 20)):
                start, done = copies[number]
                tpu.op(f"copy-start.{number}", at + begin, 1, category="copy-start",
                       long_name=start)  # fmt: skip
                tpu.op(f"copy-done.{number}", at + begin + 1, length - 1, category="copy-done",
                       long_name=done)  # fmt: skip
            tpu.op("add.7", at + 840, 160, category="loop fusion")
    return space


def findings_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *spaces: Space) -> Findings:
    taken: list[Findings] = []

    def take(found: Findings) -> list[advice.Candidate]:
        taken.append(found)
        return []

    monkeypatch.setattr(advice, "candidates", take)
    summarize_spaces(tmp_path, *spaces)
    (found,) = taken
    return found


def test_every_figure_by_hand(tmp_path, monkeypatch):
    """Windows are 3000 us on each of four devices; op time is 880 us of each step and device."""
    window = 4 * 3_000
    found = findings_of(tmp_path, monkeypatch, job())
    # In a step three devices wait 100 us; the all-reduce itself takes 40 us on each.
    on_wire = pytest.approx(3 * 4 * 40 / window)
    assert found == Findings(
        basis="device time",
        terms={
            "idle": 3 * 4 * 120 / window,
            "wait": 3 * 3 * 100 / window,
            "varying": 0.0,
            "exposed_communication": on_wire,
            "exposed_transfer": 3 * 4 * 80 / window,
            "compute": 3 * (3 * 660 + 760) / window,
        },
        device_kind="tpu",
        compute_by_device=tuple(
            (f"host-0 /device:TPU:{at}", (760 if at == 3 else 660) / 1_000) for at in range(4)
        ),
        late_hosts=None,
        late_devices=Late(("host-0 /device:TPU:3",), 3 * 3 * 100 / window, 1 / 4),
        # A plain op on the line of compute, of 4 KiB, once a step.
        collectives=(Exposed("all-reduce", "", on_wire, 0.0, True, 4_096, 1.0),),
        transfers=(
            ("host_to_device", "copy-done.5", 3 * 4 * 60 / window),
            ("on_chip", "copy-done.6", 3 * 4 * 20 / window),
        ),
        # The file holds no event of the host.
        partly_idle=0.0,
        host_idle=(),
        launches_per_step=None,
        calls_per_step={"jit_train": 1.0},
        most_launched=(),
        reads_per_step=None,
        rounds_per_step=None,
        keeps_up=True,
        most_delayed=Gaps(
            before="add.7", share=3 * 4 * 120 / window, longest=4 * 120 / window, count=12
        ),
        # In all of the capture dot.2 takes longer: in the first step 2,300 us on TPU:3.
        ops=(
            OpShare("fusion.1", "jit_train", MUL, pytest.approx(3 * 4 * 300 / window)),
            OpShare(
                "dot.2",
                "jit_train",
                ("jit(train)", "mlp", "dot"),
                pytest.approx(3 * (3 * 200 + 300) / window),
                is_recompute=True,
            ),
            OpShare("add.7", "jit_train", (), pytest.approx(3 * 4 * 160 / window)),
        ),
        ops_per_step=3.0,
        op_mean_us=pytest.approx((3 * 660 + 760) / 12),
        long_op=("dot.2", 2, 2_300 / 3_000),
        step_median_us=1_000.0,
        step_mean_us=1_000.0,
        step_p90_us=1_000.0,
        slow_steps=(),
        steps=4,
        kept_steps=2,
        is_cut=False,
        padding=(),
        hlo_attributed=1.0,
        # All but the all-reduce, the copies and add.7, in all of the capture.
        scope_attributed=pytest.approx(
            (4 * 4 * 500 + 4 * 100 + 4 * 2_000) / (4 * 4 * 880 + 4 * 2_000)
        ),
        without_hlo=(),
        window_to_outside=None,
    )


def test_without_a_straggler_all_exposed_communication_counts(tmp_path, monkeypatch):
    """Two kept steps of 100 us, each idle for 4 us after its marker; the window ends with the last
    op, 94 us after the second marker. The all-gather of 30 us is hidden for 20, the all-reduce of
    20 us is exposed."""
    space = Space()
    gpu, host = space.gpu(0), space.host()
    for step in range(3):
        at = 100 * step
        host.marker(step, at, 5)
        for place, (name, begin, length, stream) in enumerate(
            (
                ("gemm", 0, 40, 16),
                ("ncclDevKernel_AllGather_RING", 20, 30, 20),
                ("ncclDevKernel_AllReduce_Sum", 70, 20, 20),
            )
        ):
            ids = {"correlation_id": 3 * step + place}
            host.call("cuLaunchKernel", at + place, 1, **ids)
            gpu.kernel(name, at + 4 + begin, length, stream=f"Stream #{stream}(Kernel)", **ids)
    found = findings_of(tmp_path, monkeypatch, space)
    window = 194
    assert (found.late_hosts, found.late_devices, found.terms["wait"]) == (None, None, 0.0)
    assert found.terms["exposed_communication"] == 2 * (10 + 20) / window
    assert [(one.kind, one.share, one.overlapped, one.blocks) for one in found.collectives] == [
        ("all-reduce", 2 * 20 / window, 0.0, False),
        ("all-gather", 2 * 10 / window, 2 * 20 / window, False),
    ]
    # Idle are 20 us before each all-reduce, 4 and 10 before the first and the second gemm.
    assert found.terms["idle"] == (2 * 20 + 4 + 10) / window
    assert found.most_delayed is not None
    assert found.most_delayed.before == "ncclDevKernel_AllReduce_Sum"
    assert (found.most_delayed.share, found.most_delayed.count) == (2 * 20 / window, 2)
    assert (found.terms["exposed_transfer"], found.transfers) == (0.0, ())
    assert [(one.name, one.share) for one in found.ops] == [
        ("gemm", pytest.approx(2 * 40 / window))
    ]
    assert (found.step_median_us, found.step_mean_us, found.kept_steps) == (100.0, 100.0, 1)
    assert found.without_hlo == ("host-0",)


def test_what_the_host_did_while_its_devices_idled(tmp_path, monkeypatch):
    """Steps of 1000 us, of which four are kept and three are whole periods: 200 us in the loader,
    in step 3 500; two launches of 50 us, the first of which begins after the second; 500 us of
    work; two reads 10 us apart."""
    space = Space()
    host = space.host()
    at = 0
    for step in range(5):
        load = 500 if step == 3 else 200
        host.marker(step, at, load + 800).call("load_batch", at, load)
        host.call("PjitFunction(f)", at + load, 50).call("PjitFunction(g)", at + load + 50, 50)
        host.call("Execute", at + load + 10, 5, run_id=step)
        host.cpu_op("fusion", at + load + 100, 500, run_id=step)
        for read in (610, 660):
            host.call("np.asarray(jax.Array)", at + load + read, 40)
        at += load + 800
    found = findings_of(tmp_path, monkeypatch, space)
    length = 3_300
    loader, *others = found.host_idle
    assert (loader.kind, loader.name, loader.place) == ("host_event", "load_batch", "inside")
    assert (loader.share, loader.count) == (900 / length, 3)
    assert (loader.steps, loader.step_count, loader.periods, loader.every) == ((), 3, 3, None)
    assert [(one.kind, one.share) for one in others] == [
        ("untraced", 3 * 110 / length),
        ("device_read", 3 * 80 / length),
        ("dispatch", 3 * 60 / length),
        ("queued", 3 * 50 / length),
    ]
    assert (found.launches_per_step, found.most_launched) == (2.0, ("f", "g"))
    assert (found.reads_per_step, found.partly_idle) == (2.0, 0.0)
