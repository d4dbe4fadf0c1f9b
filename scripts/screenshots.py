"""Take the pictures of docs/images: the first screen of the terminal and of the page.

Usage: python scripts/screenshots.py [NAME ...]

The captures are those of MARIN_PROFILE_TRACES; needs Chromium on the PATH. A NAME is that of a
capture ("tpu_v6e_4dev"); default: all.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from marin_profile import summarize
from marin_profile.reports.report import render_html
from marin_profile.reports.screen import render_screen
from marin_profile.schema import ProfileSummary

IMAGES = Path(__file__).parent.parent / "docs" / "images"
CAPTURES = ("tpu_v6e_4dev", "tpu_vllm_serving")
COLUMNS = 100
PAGE_SIZE = {"width": 1000, "height": 720}

# As a terminal shows the parts that have a style.
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #17171c; color: #d8d8de; }
pre { margin: 0; padding: 16px; display: inline-block;
  font: 14px/1.35 "DejaVu Sans Mono", monospace; }
.headline, .advice { font-weight: bold; color: #ffffff; } .doubt { color: #e0b04c; }
.compute { color: #5bb381; } .exposed_communication { color: #ef7b6d; }
.exposed_transfer { color: #c58be0; } .idle, .next { color: #8a8a96; }
</style><pre>"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    traces = Path(os.environ["MARIN_PROFILE_TRACES"])
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport=PAGE_SIZE)
        for name in sys.argv[1:] or CAPTURES:
            summary = summarize(traces / name)
            shown = Path(folder) / "shown.html"
            shown.write_text(terminal(summary, name), encoding="utf-8")
            tab.goto(shown.as_uri())
            keep(tab.locator("pre").screenshot(), f"{name}_terminal.png")
            shown.write_text(render_html(summary), encoding="utf-8")
            tab.goto(shown.as_uri())
            keep(tab.screenshot(), f"{name}_page.png")
        browser.close()


def terminal(summary: ProfileSummary, name: str) -> str:
    """The screen, with a span for each part that has a style."""
    text = render_screen(
        summary, name, width=COLUMNS, style=lambda part, text: f"\x02{part}\x03{text}\x04"
    )
    marked = re.sub("\x02(.*?)\x03", r'<span class="\1">', html.escape(text)).replace(
        "\x04", "</span>"
    )
    return f"{TERMINAL}<b>$ marin-profile {html.escape(name)}</b>\n\n{marked}</pre>"


def keep(picture: Any, name: str) -> None:
    (IMAGES / name).write_bytes(picture)
    print(f"{IMAGES / name}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
