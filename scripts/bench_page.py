"""How large pages are, and how long they take from a click to sorted rows that are laid out.

Two reports: one of 5,000 ops, with scopes and shapes as real ones have, and one of 1,000 devices.
Milliseconds in Chromium, from the click on a column's head until the layout of the page is known
(forced at once); the median and the largest over all columns, each sorted both ways, --repeat
times. The same for a search, and how long the page takes to load. Needs Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

CLICKS = """
([heading, repeat]) => {
  const section = [...document.querySelectorAll("section")]
    .find((one) => one.querySelector("h2")?.textContent === heading);
  const boxes = [...section.querySelectorAll("div.table")]
    .filter((one) => one.querySelector("input[type=search]") && !one.closest("details"));
  const box = boxes[0], times = { sort: [], search: [] };
  const laidOut = (kind, act) => {
    const start = performance.now();
    act();
    document.documentElement.getBoundingClientRect();
    box.querySelector("tbody").getBoundingClientRect();
    times[kind].push(performance.now() - start);
  };
  const search = box.querySelector("input[type=search]");
  for (let turn = 0; turn < repeat; turn++) {
    for (const head of box.querySelectorAll("th button")) {
      laidOut("sort", () => head.click());
      laidOut("sort", () => head.click());
    }
    for (const wanted of ["1", "12", "123", ""]) {
      laidOut("search", () => {
        search.value = wanted;
        search.dispatchEvent(new Event("input"));
      });
    }
  }
  return times;
}
"""
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=5)


def bench_page(options: argparse.Namespace) -> None:
    from playwright.sync_api import sync_playwright

    from marin_profile.reports.report import render_html

    pages = (
        (f"{options.rows:,} ops", "Top ops", _of_ops(options.rows)),
        (f"{options.devices:,} devices", "Device time", _of_devices(options.devices)),
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, heading, summary in pages:
            path = Path(folder) / "page.html"
            text = render_html(summary)
            path.write_text(text, encoding="utf-8")
            page = browser.new_page()
            page.goto(path.as_uri())
            times = page.evaluate(CLICKS, [heading, options.repeat])
            print(
                f"{name}: {len(text.encode()) / 1e6:.2f} MB, loaded in "
                f"{page.evaluate(LOADED):.0f} ms; sorted: {_told(times['sort'])}; searched: "
                f"{_told(times['search'])}"
            )
            page.close()
        browser.close()


def _told(times: list[float]) -> str:
    return f"median {statistics.median(times):.1f} ms, largest {max(times):.1f} ms"


def _of_ops(count: int) -> Any:
    from builders_summary import build_summary, hot_op

    ops = [
        hot_op(
            f"fusion.{at}",
            float(count - at),
            count=8 + at % 5,
            shape_signature=f"bf16[8,{128 * (1 + at % 7)}]",
            tf_op_path=f"jit(step)/jvp(transformer)/layers_{at % 48}/mlp/dot_general",
            **{"pass": ("forward", "backward", "recompute")[at % 3]},
        )
        for at in range(count)
    ]
    return build_summary(hot_ops=ops)


def _of_devices(count: int) -> Any:
    from builders_summary import build_summary, ledger

    rows = [
        ledger(
            f"/device:TPU:{at % 8}", host=f"host-{at // 8:03}", window=window, scale=4 + at / 100
        )
        for window in ("steady", "capture")
        for at in range(count)
    ]
    return build_summary(device_ledger=rows)
