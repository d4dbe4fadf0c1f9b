"""Write docs/schema.md and docs/queries.md from the code that they describe.

Usage: python scripts/make_docs.py [--check]

--check writes nothing and fails if a page is not what the code says.
"""

from __future__ import annotations

import sys
import typing
from pathlib import Path

from marin_profile.base.units import unit_in
from marin_profile.queries import list_queries
from marin_profile.schema import ProfileSummary, Record

DOCS = Path(__file__).parent.parent / "docs"

SCHEMA_INTRODUCTION = """\
*Generated from the models by `scripts/make_docs.py`; `marin-profile schema` prints JSON Schema.*
Null means that the file does not say; fields without a unit are no quantities. Unknown fields
survive a read-write round trip.""".splitlines()

QUERIES_INTRODUCTION = """\
*Generated from the registry by `scripts/make_docs.py`; `marin-profile query --list` prints it.*

A question is words; the router looks at whole words, takes a number, an op name (exact, then an
unambiguous part, else the candidates are listed) and kinds out of it, and picks one query or says
which ones it knows (exit 2). An answer is JSON: `query_type`, `basis`, `units`, `results`,
`returned`, `total_matched`, `truncated`, or `query_type` and `cannot_answer` with the reason and
what would help (exit 5).""".splitlines()


def main() -> int:
    pages = {"schema.md": schema_page(), "queries.md": queries_page()}
    stale = [name for name, text in pages.items() if _read(DOCS / name) != text]
    if "--check" in sys.argv[1:]:
        if stale:
            print(f"stale: {', '.join(stale)}; run python scripts/make_docs.py")
        return 1 if stale else 0
    for name, text in pages.items():
        (DOCS / name).write_text(text)
    return 0


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def schema_page() -> str:
    lines = [
        "# What does every field of `profile_summary.v1` mean?",
        "",
        *SCHEMA_INTRODUCTION,
        "",
    ]
    for model in _models(ProfileSummary):
        lines += [f"## {model.__name__}", ""]
        text = (model.__doc__ or "").strip()
        if text and text != (Record.__doc__ or "").strip():
            lines += [" ".join(text.split()), ""]
        lines += ["| field | type | unit |", "|---|---|---|"]
        annotations = typing.get_type_hints(model, include_extras=True)
        for name, field in model.model_fields.items():
            unit = unit_in(annotations[name]) or ""
            lines.append(f"| `{field.alias or name}` | {_type_name(field.annotation)} | {unit} |")
        lines.append("")
    return "\n".join(lines)


def _models(root: type[Record]) -> list[type[Record]]:
    """The root and every model below it, in order of first mention."""
    found = [root]
    for model in found:
        for field in model.model_fields.values():
            for inner in _records_in(field.annotation):
                if inner not in found:
                    found.append(inner)
    return found


def _records_in(annotation: object) -> list[type[Record]]:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return [annotation]
    return [record for part in typing.get_args(annotation) for record in _records_in(part)]


def _type_name(annotation: object) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_name(parts[0])
    if origin is list:
        return f"list of {_type_name(parts[0])}"
    if origin is dict:
        return f"map of {_type_name(parts[0])} to {_type_name(parts[1])}"
    if parts:
        return " or ".join("null" if part is type(None) else _type_name(part) for part in parts)
    return getattr(annotation, "__name__", str(annotation).replace("typing.", ""))


def queries_page() -> str:
    lines = [
        "# Which questions can be asked?",
        "",
        *QUERIES_INTRODUCTION,
        "",
        "| query | answers | for example |",
        "|---|---|---|",
    ]
    for query in list_queries():
        cells = (f"`{query['name']}`", query["description"], query["example"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
