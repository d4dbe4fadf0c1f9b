"""What axe-core says of the pages, on a light screen and a dark phone.

It has a context of its own: to get in, it must be let past the pages' policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders_pairs import PROGRAM, Work, capture, with_work
from builders_summary import build_summary, hot_op, step_time, uneven_steps
from marin_profile.comparison import compare
from marin_profile.documents import html
from marin_profile.history import History, record_of
from marin_profile.history.document import history_document
from marin_profile.history.findings import findings_of
from marin_profile.reports.comparison import render_comparison_html
from marin_profile.reports.report import render_html
from marin_profile.schema import MemoryScope, ProgramMemory


def report() -> str:
    """With every chart, and tables that are paged."""
    ops = [
        hot_op(
            f"fusion.{at}", float(at), flops=at * 10**9, bytes_accessed=10**7, achieved_tflops=9.5
        )
        for at in range(1, 101)
    ]
    memory = ProgramMemory(
        program_id="1",
        module="jit_step",
        space="hbm",
        peak_size=100,
        parameter_size=60,
        output_size=10,
        constant_size=0,
        temporary_size=30,
        by_scope=[MemoryScope(size=60, count=2), MemoryScope(scope="mlp", size=40, count=3)],
        buffers=[],
        buffer_count=0,
        host_count=1,
    )
    return render_html(build_summary(hot_ops=ops, memory=[memory], step_time=uneven_steps()))


def comparison() -> str:
    after = capture(
        with_work(Work("all-reduce", 9, 90, 7, "all-reduce", "jit(step)/psum")), period=107
    )
    provenance = after.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    return render_comparison_html(
        compare(capture(PROGRAM), after.model_copy(update={"trace_provenance": provenance}))
    )


def history() -> str:
    records = tuple(
        record_of(build_summary(step_time=step_time()), label="small").model_copy(
            update={
                "time": f"2026-01-{at + 1:02}T00:00:00.000000Z",
                "trace_sha256": f"{at:064x}",
                "median": 1000.0 + at % 2 + (60.0 if at >= 6 else 0.0),
            }
        )
        for at in range(15)
    )
    return html.render(history_document(findings_of(History(records, ("line 3 is torn",)))))


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(bypass_csp=True)
    yield made
    made.close()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
@pytest.mark.parametrize("made", [report, comparison, history])
def test_nothing_serious_bars_anybody(
    context: Any, tmp_path: Path, made: Any, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "page.html"
    path.write_text(made(), encoding="utf-8")
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(path.as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    found = Axe().run(page).response
    page.close()
    assert len(found["passes"]) > 10
    serious = [
        (one["id"], node["html"])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
    assert serious == []
