"""What a notebook shows of a capture: the answer, doubts, and what to try first.

Contract: no name of the capture is markup; it stands there as text. Charts are left out.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from marin_profile.documents import markdown
from marin_profile.documents.model import Block, Bullets, Paragraph
from marin_profile.documents.text import runs
from marin_profile.reports.report import lead
from marin_profile.schema import ProfileSummary


def as_markdown(summary: ProfileSummary) -> str:
    return markdown.render_blocks(lead(summary))


def as_html(summary: ProfileSummary) -> str:
    return "".join(_html(lead(summary)))


def _html(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(text):
                yield f"<p>{_inline(text)}</p>"
            case Bullets(items, numbered):
                tag = "ol" if numbered else "ul"
                rows = "".join(f"<li>{_inline(item)}</li>" for item, _ in items)
                yield f"<{tag}>{rows}</{tag}>"


def _inline(text: str) -> str:
    return "".join(
        f"<code>{html.escape(run.text)}</code>" if run.is_code else html.escape(run.text)
        for run in runs(text)
    )
