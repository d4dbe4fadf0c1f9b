"""The change of the planned peak by scope, and XLA's rematerialisation, by hand."""

from __future__ import annotations

import pytest

from builders_summary import build_summary, group
from marin_profile.comparison import comparability, compare
from marin_profile.comparison.memory import memory_change
from marin_profile.comparison.renames import Renames
from marin_profile.reports.comparison import render_comparison
from marin_profile.schema import REMAINDER, MemoryScope, ProfileSummary, ProgramMemory
from marin_profile.tracking import track

Scopes = dict[str | None, int]


def program(scopes: Scopes, *, space: str = "hbm", **changes) -> ProgramMemory:
    """Scopes in the forward pass, all temporaries."""
    peak = sum(scopes.values())
    return ProgramMemory(
        program_id="7",
        module="jit_step",
        space=space,
        peak_size=peak,
        parameter_size=0,
        output_size=0,
        constant_size=0,
        temporary_size=peak,
        by_scope=[
            MemoryScope(scope=name, pass_="forward" if name else None, size=size, count=1)
            for name, size in scopes.items()
        ],
        buffers=[],
        buffer_count=len(scopes),
        host_count=1,
    ).model_copy(update=changes)


def of(*programs: ProgramMemory) -> ProfileSummary:
    return build_summary().model_copy(update={"memory": list(programs)})


def change(before: Scopes, after: Scopes, top_k: int = 10, **renames):
    return memory_change(of(program(before)), of(program(after)), top_k, **renames)


def rows(found) -> dict[str | None, tuple[int | None, int | None, int]]:
    return {row.scope: (row.before_size, row.after_size, row.delta_size) for row in found.rows}


def test_the_change_by_scope_sums_to_it():
    found = change({"a/mlp": 700, "a/norm": 100, None: 50}, {"a/mlp": 300, "a/new": 40, None: 50})
    assert (found.before_size, found.after_size, found.delta_size) == (850, 390, -460)
    assert found.relative == pytest.approx(-460 / 850, abs=1e-6)
    assert rows(found) == {
        "a/mlp": (700, 300, -400),
        "a/norm": (100, None, -100),
        "a/new": (None, 40, 40),
    }
    assert (found.others_size, found.total_rows) == (0, 3)
    few = change({"a": 700, "b": 100}, {"a": 300, "c": 40}, top_k=1)
    assert (len(few.rows), few.total_rows, few.others_size) == (1, 3, -60)


def test_what_may_be_in_the_other_sides_rest_is_among_the_others():
    """b may be in the 90 bytes that are not listed after."""
    found = change({"a": 700, "b": 100}, {"a": 500, "c": 30, REMAINDER: 90})
    assert rows(found) == {"a": (700, 500, -200), "c": (None, 30, 30)}
    assert found.others_size == found.delta_size - (-200 + 30) == -10


def test_renamed_scopes_are_one():
    renames = Renames({("jit(g)",): ("jit(f)",), ("jit(g)", "layers"): ("jit(f)", "blocks")})
    found = change(
        {"jit(f)/blocks/up": 10, "jit(f)/x": 5},
        {"jit(g)/layers/up": 30, "jit(g)/x": 5},
        renames=renames,
    )
    assert rows(found) == {"jit(g)/layers/up": (10, 30, 20)}


def test_the_fullest_in_the_devices_memory_is_compared():
    host = program({"a": 9000}, space="host")
    found = memory_change(of(host, program({"a": 10})), of(program({"a": 12})), 10)
    assert (found.space, found.delta_size) == ("hbm", 2)
    assert memory_change(of(host), of(program({"a": 12})), 10) is None
    assert memory_change(build_summary(), of(host), 10) is None


def test_a_plan_that_breaks_off_is_said():
    cut = of(program({"a": 12}, is_complete=False))
    assert not memory_change(of(program({"a": 10})), cut, 10).is_complete
    assert "+2 B (at least: a plan" in render_comparison(compare(of(program({"a": 10})), cut))


def test_the_report_names_scopes_and_sizes():
    report = render_comparison(
        compare(of(program({"a/mlp": 7_000_000})), of(program({"a/mlp": 3_000_000})), top_k=5)
    )
    section = report.partition("## Memory\n")[2]
    assert "in hbm: 7.0 MB before, 3.0 MB after, -4.0 MB." in section
    assert "| `a/mlp` | forward | 7.0 MB | 3.0 MB | -4.0 MB |" in section
    assert "## Memory" not in render_comparison(compare(build_summary(), build_summary()))


def with_ops(*names: str) -> ProfileSummary:
    summary = build_summary()
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    groups = [*summary.op_groups, *(group(name, "compute", 1.0) for name in names)]
    return summary.model_copy(update={"op_groups": groups, "trace_provenance": provenance})


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["fusion.remat"], 1),
        (["fusion.12.remat2", "dot.remat"], 2),
        (["rematted_computation", "remat_fusion", "fusion.1"], 0),
    ],
)
def test_rematerialisation_that_went_on_or_off_is_a_doubt(names, count):
    on = comparability(build_summary(), with_ops(*names)).caveats
    off = comparability(with_ops(*names), build_summary()).caveats
    if not count:
        assert on == off == []
        return
    (one,), (two,) = on, off
    assert (one.about, one.severity) == ("rematerialisation", "note")
    assert "went on" in one.sentence
    assert f"0 before, {count} after" in one.sentence
    assert "went off" in two.sentence
    assert f"{count} before, 0 after" in two.sentence


def test_a_doubt_is_said_beside_the_verdict():
    tracked = track([build_summary()], [with_ops("fusion.1.remat")])
    assert any("rematerialisation went on" in note for note in tracked.caveats)


def test_rematerialisation_on_both_sides_is_none():
    both = with_ops("fusion.1.remat")
    assert comparability(with_ops("fusion.1.remat", "dot.remat"), both).caveats == []
