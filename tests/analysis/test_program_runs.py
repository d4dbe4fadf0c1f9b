"""How often programs ran, by hand."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.program_runs import executions_by_name, launches_by_name
from marin_profile.schema import Program


def gpu(kernels: dict[str, int], launched: int, *, ids: tuple[int | None, ...] = (7,)) -> Space:
    """One GPU on which each kernel ran so often, 10 us each; the host launched the program so
    often. `ids`: those of the program, each with all kernels."""
    space = Space()
    device = space.gpu(0)
    at = 0
    for program_id in ids:
        for name, count in kernels.items():
            for _ in range(count):
                device.kernel(name, at, 10, hlo_op=name, module="jit_f", program_id=program_id)
                at += 20
    host = space.host()
    for run in range(launched):
        host.call("jit_f:XLA GPU module", 5 * run, 1)
    return space


def programs(space: Space) -> list[Program]:
    return summary_of(space.analyse()).programs


@pytest.mark.parametrize(
    ("kernels", "launched", "runs"),
    [
        # What ran in a loop of three ran oftener than the program.
        ({"a": 4, "b": 12, "c": 12, "d": 12}, 4, 4),
        # Of 39 and 40 two each: one was lost.
        ({"a": 40, "b": 39, "c": 39, "d": 40}, 40, 40),
        ({"a": 40, "b": 39, "c": 39, "d": 38}, 40, 39),
        # The devices recorded only some of what the host launched.
        ({"a": 5, "b": 5, "c": 10}, 80, 5),
        # All of it in a loop.
        ({"a": 12, "b": 12}, 4, 4),
    ],
)
def test_executions_on_a_gpu(kernels, launched, runs):
    (row,) = programs(gpu(kernels, launched))
    time = 10.0 * sum(kernels.values())
    assert row == Program(name="jit_f", executions=runs, exposed_duration=time)


def test_without_launches_executions_are_not_known():
    space = gpu({"a": 4}, 0)
    assert programs(space) == []
    assert summary_of(space.analyse()).op_groups[0].exposed_by_program == {}


def test_programs_of_one_name_are_not_told_apart():
    assert programs(gpu({"a": 4}, 8, ids=(7, 8))) == []


def test_launches_are_counted_by_name():
    space = gpu({"a": 1}, 2)
    space.planes[-1].event("python", "jit_g:XLA GPU module", 50, 1)
    space.planes[-1].event("python", "jit_g", 60, 1)
    assert launches_by_name(space.timeline()) == {"jit_f": 2, "jit_g": 1}


def test_executions_that_devices_show():
    """Two devices, three executions of f each and one of g on the first; h holds no op."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for run in range(3):
            tpu.module("jit_f(1)", 100 * run, 50, run_id=run).op("fusion.1", 100 * run, 40)
        tpu.module("jit_h(3)", 70, 5, run_id=9)
    space.planes[0].module("jit_g(2)", 170, 20, run_id=8).op("fusion.2", 170, 10)
    assert executions_by_name(space.devices()) == {"jit_f": 6, "jit_g": 1}
    # Steps say what a step costs, so there is no need for programs.
    summary = summary_of(space.analyse())
    assert summary.step_account is not None
    assert summary.programs == []


def test_programs_of_hosts_without_common_steps(tmp_path):
    """Cpu executions, of which the hosts have unlike numbers: 2 x 2 and 2 x 3."""
    parts = []
    for at, runs in enumerate((2, 3)):
        space = Space(f"host-{at}")
        host = space.host()
        for run in range(runs):
            for ordinal in range(2):
                host.cpu_op("dot.1", 100 * run, 30, ordinal=ordinal, run_id=run)
        parts.append(space.analyse(host=f"host-{at}", warmup_steps=0))
    summary = summary_of(*parts)
    assert summary.step_account is None
    assert summary.programs == [Program(name="jit_f", executions=10, exposed_duration=300.0)]
