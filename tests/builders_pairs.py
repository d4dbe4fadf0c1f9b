"""A small training program as a synthetic TPU capture, and the ways in which two captures of one
program may differ without any change of its speed.

Per step of 100 us and device, the step's ops in us from its start (a 2 us launch before them):
    embed 10, attention fusion 20, while 12 around mlp fusion 10, all-reduce 15 (5 of it hidden by
    the fusion that follows it on the second lane), 7 for a copy from the host, norm twice 2; the
    rest is idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from builders_xspace import Space, Tpu, summary_of
from marin_profile.analysis.host import analyse_host
from marin_profile.schema import ProfileSummary

PERIOD = 100


@dataclass(frozen=True)
class Work:
    """One op of a step; `number` is its place in the program, which compilers renumber."""

    name: str
    number: int
    start: float
    length: float
    category: str = "loop fusion"
    scope: str = ""
    shape: str = "f32[8,128]{1,0}"
    line: str = "XLA Ops"


PROGRAM = (
    Work("fusion", 1, 2, 10, scope="jit(step)/embed/gather"),
    Work("fusion", 2, 12, 20, "convolution fusion", "jit(step)/jvp(layers)/attention/dot_general"),
    Work("while", 1, 33, 12, "while", "jit(step)/jvp(layers)/mlp/while"),
    Work("fusion", 3, 34, 10, "convolution fusion", "jit(step)/jvp(layers)/mlp/dot_general"),
    Work("all-reduce", 1, 50, 15, "all-reduce", "jit(step)/transpose(jvp(layers))/mlp/psum"),
    Work("fusion", 4, 60, 5, scope="jit(step)/adam/mul", line="XLA Ops#2"),
    Work("copy-start", 1, 70, 1, "copy-start", shape="(f32[8]{0:S(5)}, f32[8]{0}, u32[])"),
    Work("copy-done", 1, 71, 6, "copy-done"),
    Work("rsqrt", 5, 80, 2, scope="jit(step)/jvp(layers)/norm/rsqrt"),
    Work("rsqrt", 6, 85, 2, scope="jit(step)/jvp(layers)/norm/rsqrt"),
)


def capture(
    program: Iterable[Work] = PROGRAM,
    *,
    steps: int = 5,
    devices: int = 2,
    period: float | Sequence[float] = PERIOD,
    launch: float = 2,
    module: str = "jit_step(7)",
    renumber: Callable[[int], int] = lambda number: number,
    shuffle: int | None = None,
    warmup_steps: int = 1,
    first: float = 0,
    on_device: Mapping[int, Iterable[Work]] | None = None,
) -> ProfileSummary:
    """All devices but the first start a microsecond late. `period`: of every step, or of each.
    `on_device`: what devices do that do not do the same."""
    periods = [period] * steps if isinstance(period, int | float) else list(period)
    starts = [0.0, *accumulate(periods)][: len(periods)]
    space = Space()
    everywhere = list(program)
    for ordinal in range(devices):
        tpu = space.tpu(ordinal)
        program = list((on_device or {}).get(ordinal, everywhere))
        for step, start in enumerate(starts):
            begin = first + min(ordinal, 1) + start
            longest = max(work.start + work.length for work in program)
            tpu.module(module, begin + 2 - launch, longest - 2 + launch + 1, run_id=step)
            for work in program:
                _add(tpu, work, begin, renumber)
    return summary_of(analyse_host(space.timeline(shuffle), "", warmup_steps=warmup_steps))


def _add(tpu: Tpu, work: Work, begin: float, renumber: Callable[[int], int]) -> None:
    tpu.op(
        f"{work.name}.{renumber(work.number)}",
        begin + work.start,
        work.length,
        category=work.category,
        scope=work.scope,
        shape=work.shape,
        line=work.line,
    )


def with_work(*added: Work) -> tuple[Work, ...]:
    return (*PROGRAM, *added)


def without(name: str, number: int) -> tuple[Work, ...]:
    return tuple(work for work in PROGRAM if (work.name, work.number) != (name, number))


def changed(name: str, number: int, /, **changes: object) -> tuple[Work, ...]:
    """The program with one op changed."""
    found = tuple(
        replace(work, **changes) if (work.name, work.number) == (name, number) else work  # type: ignore[arg-type]
        for work in PROGRAM
    )
    assert found != PROGRAM
    return found
