"""The memory section: rows of several hosts, names and what is not known."""

from __future__ import annotations

from builders_xspace import (
    Space,
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
from marin_profile import schema
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown


def space(size: int | None, host_size: int = 0) -> Space:
    """A parameter of `size` bytes and a temporary of 1,000; and a parameter in host memory."""
    made = Space()
    device = made.tpu(0)
    for step in range(3):
        device.op("mul.2", 100 * step, 60)
    module = hlo_proto(
        computation(
            1,
            2,
            instruction("p.1", "parameter", id=1, op_name="params", shape=shape_proto(11, 2, 25)),
            instruction("mul.2", "multiply", id=2, op_name="jit(step)/jvp(mlp)/mul"),
        )
    )
    if size is None:
        return made.hlo(7, module, module="jit_step")
    plan = buffer_assignment(
        logical_buffer(1, size, instruction=1),
        logical_buffer(2, 1000, instruction=2),
        logical_buffer(3, host_size, instruction=3, space=5),
        allocation(size, 1, parameter=True),
        allocation(1000, 2),
        allocation(host_size, 3, parameter=True, space=5),
        heap_trace(("alloc", 2, 0, "mul.2")),
    )
    return made.hlo(7, module + plan, module="jit_step")


def summary(*spaces: Space) -> schema.ProfileSummary:
    return summary_of(*(one.analyse(host=f"h{at}") for at, one in enumerate(spaces)))


def test_a_row():
    (row,) = summary(space(256)).memory or ()
    assert row == schema.ProgramMemory(
        program_id="7",
        module="jit_step",
        space="hbm",
        peak_size=1256,
        parameter_size=256,
        output_size=0,
        constant_size=0,
        temporary_size=1000,
        padding_size=56,
        instruction="mul.2",
        scope="jit(step)/mlp",
        pass_="forward",
        by_scope=[
            schema.MemoryScope(scope="jit(step)/mlp", pass_="forward", size=1000, count=1),
            schema.MemoryScope(size=256, count=1),
        ],
        buffers=[
            schema.MemoryBuffer(
                kind="temporary",
                instruction="mul.2",
                scope="jit(step)/mlp",
                pass_="forward",
                size=1000,
            ),
            schema.MemoryBuffer(
                kind="parameter",
                instruction="p.1",
                argument="params",
                shape="f32[2,25]",
                size=256,
                padding=56,
            ),
        ],
        buffer_count=2,
        host_count=1,
        donated_size=0,
        donatable_size=0,
    )


def test_hosts_with_equal_plans_are_one_row():
    rows = summary(space(256), space(512), space(256)).memory or ()
    assert [(row.peak_size, row.host_count) for row in rows] == [(1512, 1), (1256, 2)]


def test_without_plans_it_is_not_known():
    without = summary(space(None))
    assert without.memory is None
    assert "## Memory" not in render_markdown(without)
    refusal = answer(without, "peak memory")["cannot_answer"]
    assert refusal["reason"] == "The summary holds no plans of programs' memory."


def test_what_is_asked_of_is_the_devices_own_memory():
    """Host memory is fuller, but says nothing of the device."""
    found = answer(summary(space(256, host_size=10_000)), "how much HBM is used at the peak?")
    kinds = [(row["record"], row["space"], row.get("peak_size")) for row in found["results"]]
    assert kinds == [
        ("program", "host", 10_000),
        ("program", "hbm", 1256),
        ("scope", "hbm", None),
        ("scope", "hbm", None),
        ("buffer", "hbm", None),
        ("buffer", "hbm", None),
    ]


def test_the_report_has_the_peaks_and_what_is_there():
    report = render_markdown(summary(space(256)))
    section = report[report.index("## Memory") :].split("\n## ")[0]
    assert "| `jit_step` | hbm | 1.3 kB | 256 B | 0 B | 0 B | 1.0 kB | `mul.2` |" in section
    assert (
        "At the peak of `jit_step` in hbm, by scope: `jit(step)/mlp` (forward) 1.0 kB (79.6 %), "
        "buffers without one 256 B (20.4 %). 56 B of it is padding." in section.replace("\n", " ")
    )
    assert "| `params` | parameter | `f32[2,25]` |  | 256 B | 20.4 % | 56 B |" in section


def test_a_plan_that_breaks_off_is_a_lower_bound():
    made = space(256)
    content = made.timeline()
    assert content.hlo_memory[7].is_whole
    cut = space(None).hlo(
        8,
        buffer_assignment(
            allocation(64, 1), logical_buffer(1, 64), heap_trace(("alloc", 1)) + b"\x22\x7f"
        ),
    )
    (row,) = summary(cut).memory or ()
    assert (row.peak_size, row.is_complete) == (64, False)
    assert "at least 64 B" in render_markdown(summary(cut))


def test_what_a_scope_would_free():
    """Of 1,256 bytes the mlp holds 1,000."""
    of_it = answer(summary(space(256)), "what would `mlp` free?")
    first, second = of_it["results"]
    assert (first["record"], first["freed_at_most"], first["peak_size"]) == ("of_scope", 1000, 1256)
    assert (first["scopes"], first["share_of_peak"]) == (1, 1000 / 1256)
    assert (second["scope"], second["size"]) == ("jit(step)/mlp", 1000)
    for part in ("jit(step)/mlp", "ML*", "jit(step)=>mlp"):
        found = answer(summary(space(256)), f"how much memory does `{part}` use?")
        assert found["results"][0]["freed_at_most"] == 1000, part
    none = answer(summary(space(256)), "what would `ml` free?")["cannot_answer"]
    assert "called 'ml'" in none["reason"]


def updated(*, donated: bool) -> Space:
    """A state of 256 bytes that becomes an output of its shape, in place or beside it."""
    made = Space()
    device = made.tpu(0)
    for step in range(3):
        device.op("add.2", 100 * step, 60)
    shape = shape_proto(11, 8, 8)
    module = hlo_proto(
        computation(
            1,
            2,
            instruction("p.1", "parameter", id=1, op_name="state", shape=shape),
            instruction("add.2", "add", id=2, op_name="jit(step)/add", shape=shape),
        )
    )
    memory = (
        (allocation(256, 1, 2, parameter=True, output=True),)
        if donated
        else (allocation(256, 1, parameter=True), allocation(256, 2, output=True))
    )
    plan = buffer_assignment(
        logical_buffer(1, 256, instruction=1), logical_buffer(2, 256, instruction=2), *memory
    )
    return made.hlo(7, module + plan, module="jit_step")


def test_what_is_donated_and_what_could_be():
    (row,) = answer(summary(updated(donated=True)), "is donation working?")["results"]
    assert (row["donated_size"], row["donatable_size"]) == (256, 0)
    found = answer(summary(updated(donated=False)), "which inputs of step could be donated?")
    (row,) = found["results"]
    assert (row["donated_size"], row["donatable_size"]) == (0, 256)
    assert row["donatable_arguments"] == ["state"]
    assert "donate_argnums" in found["note"]
    assert "cannot_answer" in answer(summary(space(None)), "is donation working?")
