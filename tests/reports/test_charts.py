"""Charts of summaries and comparisons: their values, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders_pairs import PROGRAM, Work, capture
from builders_summary import HOT_OPS, build_summary, region, uneven_steps
from marin_profile.comparison import compare
from marin_profile.documents.model import Block, Icicle, Roofline, Switch, Waterfall
from marin_profile.documents.text import unmarked
from marin_profile.reports.charts import step_series
from marin_profile.reports.comparison import comparison_report
from marin_profile.reports.report_charts import memory_bars, region_icicle, roofline_chart
from marin_profile.schema import MemoryScope, ProgramMemory

WHOLE = 7440.0  # the self time of all ops


def views(**changes) -> dict[str, Icicle]:
    [switch] = region_icicle(build_summary(**changes))
    assert isinstance(switch, Switch)
    return dict(switch.views)


def cells(one: Icicle) -> list[tuple[str, int, float, float]]:
    return [(cell.name, cell.depth, cell.start, cell.width) for cell in one.cells]


def test_the_icicle_of_all_passes():
    assert cells(views()["all passes"]) == [
        ("jit(step)", 0, 0.0, 1.0),
        ("mlp", 1, 0.0, pytest.approx(2400 / WHOLE)),
        ("dot_general", 2, 0.0, pytest.approx(2400 / WHOLE)),
        ("attention", 1, pytest.approx(2400 / WHOLE), pytest.approx(1600 / WHOLE)),
    ]


def test_the_icicle_of_a_pass_is_as_wide_as_the_pass():
    """Forward: 2,880 us, of which mlp has 2,400; attention is in the backward pass alone."""
    found = views()
    assert list(found) == ["all passes", "backward", "forward", "other"]
    forward = found["forward"]
    assert cells(forward)[:2] == [
        ("jit(step)", 0, 0.0, 1.0),
        ("mlp", 1, 0.0, pytest.approx(2400 / 2880)),
    ]
    assert "attention" not in [cell.name for cell in forward.cells]
    assert forward.cells[1].text == "jit(step)=>mlp: 2.40 ms, 32.3 % of op time, forward pass"
    assert "forward pass: 2.88 ms, 38.7 % of op time" in forward.title


def test_what_has_no_scope_is_a_cell_and_what_cannot_be_seen_is_none():
    """440 us of 7,440 have no scope; 10 us are less than a five-hundredth."""
    regions = [region("step", 7000.0, 6990.0), region("step=>tiny", 10.0, 10.0)]
    [(name, only)] = views(hierarchical_regions=regions).items()
    assert name == "all passes"
    assert cells(only) == [
        ("step", 0, 0.0, pytest.approx(7000 / WHOLE)),
        ("(no scope)", 0, pytest.approx(7000 / WHOLE), pytest.approx(440 / WHOLE)),
    ]
    assert region_icicle(build_summary(hierarchical_regions=[])) == []


def test_no_cell_leaves_the_one_above_it():
    for one in views().values():
        above: dict[int, tuple[float, float]] = {-1: (0.0, 1.0)}
        for cell in one.cells:
            start, end = above[cell.depth - 1]
            assert start - 1e-9 <= cell.start
            assert cell.start + cell.width <= end + 1e-9
            above[cell.depth] = (cell.start, cell.start + cell.width)


def test_outliers_stand_out_among_the_steps():
    [series] = step_series(build_summary(step_time=uneven_steps()))
    assert [value for _, value, _ in series.points] == [1000.0, 3000.0, 1000.0, 1000.0]
    assert series.marked == {1}
    assert series.notes == ("", "an outlier: host event", "", "")


def program(**changes) -> ProgramMemory:
    values = {
        "program_id": "1",
        "module": "jit_step",
        "space": "hbm",
        "peak_size": 1_000_000,
        "parameter_size": 600_000,
        "output_size": 100_000,
        "constant_size": 0,
        "temporary_size": 300_000,
        "by_scope": [
            MemoryScope(size=750_000, count=2),
            MemoryScope(scope="layers", size=250_000, count=3, **{"pass": "backward"}),
        ],
        "buffers": [],
        "buffer_count": 0,
        "host_count": 1,
    }
    return ProgramMemory(**(values | changes))


def test_memory_at_the_peak_by_kind_and_by_scope():
    kinds, scopes = memory_bars(program())
    assert kinds.rows == (("hbm", (0.6, 0.1, 0.0, 0.3)),)
    assert kinds.texts[0][0] == "600.0 kB (60.0 %)"
    assert scopes.rows == (
        ("buffers without a scope", (0.75,)),
        ("layers (backward)", (0.25,)),
    )
    assert unmarked(scopes.title) == "Alive at the peak of jit_step, 1.0 MB, by scope"
    [only] = memory_bars(program(by_scope=[], is_complete=False))
    assert "at least 1.0 MB" in only.title
    assert memory_bars(program(peak_size=0)) == []


def test_ops_with_costs_stand_below_the_roof():
    """918 TFLOP/s and 1,638 GB/s meet at 560.4 FLOP/byte; 2,000,000 of 4,096 bytes are 488.3."""
    [chart] = roofline_chart(build_summary())
    assert isinstance(chart, Roofline)
    assert (chart.peak, chart.ridge) == (918.0, pytest.approx(560.44, abs=0.01))
    assert chart.points == (
        (
            "fusion.7",
            2_000_000 / 4096,
            120.5,
            2400 / WHOLE,
            "fusion.7: 120.50 TFLOP/s at 488.3 FLOP/byte, bound by compute; 32.3 % of op time",
        ),
    )
    assert chart.title.startswith("1 of 5 top ops, those with known costs")


def test_without_costs_or_peaks_there_is_no_roofline():
    assert roofline_chart(build_summary(hot_ops=HOT_OPS[1:])) == []
    assert roofline_chart(build_summary(roofline=None)) == []
    bare = build_summary().roofline
    assert bare is not None
    assert roofline_chart(build_summary(roofline=bare.model_copy(update={"peaks": {}}))) == []


def waterfalls(blocks: tuple[Block, ...]) -> list[Waterfall]:
    return [block for block in blocks if isinstance(block, Waterfall)]


def test_waterfalls_sum_to_the_change_of_the_step():
    """mlp's fusion and all behind it are 4 us later, a new op takes 7, the step 13 us longer."""
    works = [
        replace(work, length=work.length + 4) if work.start == 12 else work for work in PROGRAM
    ]
    works = [replace(work, start=work.start + 4) if work.start > 12 else work for work in works]
    works.append(Work("all-reduce", 9, 94, 7, "all-reduce", "jit(step)/psum"))
    after = capture(works, period=113)
    provenance = after.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    found = compare(capture(), after.model_copy(update={"trace_provenance": provenance}))
    document = comparison_report(found)
    drawn = waterfalls(document.lead)
    for section in document.sections:
        drawn += waterfalls(section.blocks)
    assert len(waterfalls(document.lead)) == 1
    assert len(drawn) >= 3
    for one in drawn:
        assert sum(delta for _, delta, _ in one.rows) == pytest.approx(13.0, abs=1e-6)
        assert one.total == ("change of a step", 13.0, "+13.00 us")
