"""A document as one HTML page.

Contract
* One file that works offline: nothing is loaded, and its policy lets nothing be loaded. Its own
  style and script run by their hashes; no other script, no inline style or handler does.
* All text is escaped (Jinja2's autoescape). Without the script all rows and figures are there;
  with it, marks of charts are reached by the keyboard, and tell their values.
* Rows are many: what a column has in common is said once, and end tags that HTML leaves out are.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from marin_profile.documents.charts import drawn, figures
from marin_profile.documents.model import (
    Bullets,
    Chart,
    Document,
    Paragraph,
    Section,
    Switch,
    Table,
)
from marin_profile.documents.text import runs, unmarked

_PAGE = Path(__file__).parent / "page"


def render(document: Document) -> str:
    css, script = _file("page.css"), _file("page.js")
    page = _environment().get_template("page.html")
    return page.render(
        document=document,
        css=Markup(css),  # our own files
        script=Markup(script),
        policy=(
            f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


@cache
def _file(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined)
    made.filters.update(rich=_rich, bare=unmarked, drawn=drawn, figures=figures)
    kinds = (Paragraph, Bullets, Table, Switch, Section)
    made.tests.update(
        {kind.__name__.lower(): lambda one, kind=kind: isinstance(one, kind) for kind in kinds}
    )
    made.tests["chart"] = lambda one: isinstance(one, Chart)
    return made


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _rich(text: str) -> Markup:
    made = Markup()
    for run in runs(text):
        shown = escape(run.text)
        if run.is_code:
            shown = Markup("<code>{}</code>").format(run.text)
        made += Markup("<strong>{}</strong>").format(shown) if run.is_strong else shown
    return made
