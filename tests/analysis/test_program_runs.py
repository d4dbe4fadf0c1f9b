"""How often programs ran, by hand."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.program_runs import launches_by_name


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


def programs(space: Space) -> list[tuple[str, int | None, float]]:
    rows = summary_of(space.analyse()).programs
    return [(row.name, row.executions, row.exposed_duration) for row in rows]


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
    assert programs(gpu(kernels, launched)) == [("jit_f", runs, 10.0 * sum(kernels.values()))]


def test_without_launches_executions_are_not_known():
    space = gpu({"a": 4}, 0)
    assert programs(space) == [("jit_f", None, 40.0)]
    assert summary_of(space.analyse()).op_groups[0].exposed_by_program == {}


def test_programs_of_one_name_are_not_told_apart():
    assert programs(gpu({"a": 4}, 8, ids=(7, 8))) == [("jit_f", None, 40.0)] * 2


def test_launches_are_counted_by_name():
    space = gpu({"a": 1}, 2)
    space.planes[-1].event("python", "jit_g:XLA GPU module", 50, 1)
    space.planes[-1].event("python", "jit_g", 60, 1)
    assert launches_by_name(space.timeline()) == {"jit_f": 2, "jit_g": 1}


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
    (row,) = summary.programs
    assert (row.name, row.executions, row.exposed_duration) == ("jit_f", 10, 300.0)
