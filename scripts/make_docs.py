"""Write the pages of docs/ that are what the code says: schema, queries, advice, commands,
architecture.

Usage: python scripts/make_docs.py [--check]

--check writes nothing and fails if a page is not what the code says.
"""

from __future__ import annotations

import ast
import sys
import tomllib
import typing
from pathlib import Path

import click

from marin_profile.analysis.advice.rules import RULES
from marin_profile.base.units import unit_in
from marin_profile.cli import VERBS, cli
from marin_profile.queries import list_queries
from marin_profile.queries.parameters import DECLARED
from marin_profile.schema import ProfileSummary, Record

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "marin_profile"

SCHEMA_INTRODUCTION = """\
*Generated from the models by `scripts/make_docs.py`; `marin-profile schema` prints JSON Schema,
with the units.*
Null means that the file does not say; fields without a unit are no quantities. Unknown fields
survive a read-write round trip.""".splitlines()

QUERIES_INTRODUCTION = """\
*Generated from the registry by `scripts/make_docs.py`; `marin-profile query --list` prints it.*

A question is words. The router takes out of it what has a name in the capture (programs, families,
spans of the host, ops, scopes: exact, then an unambiguous part, then with a letter or two
mistyped), kinds, passes, devices, steps, "not", "least", "per step" and a number of rows, and picks
one query that takes all of it. An answer is JSON: `query_type`, `basis`, `units`, `results`,
`returned`, `total_matched`, `truncated`, where asked for `per` (the unit, and the fields in it),
and `read_as` for what was read otherwise than it was typed.

Or it is `query_type` and `cannot_answer` with the reason and what would help (exit 5): a name,
device, step, pass or word that is not known, a unit that is not known, or something that the query
cannot be narrowed to. Nothing of a question is left out in silence. Where no query fits,
`query_type` is null; the refusal names the nearest queries and the first advice.

`marin-profile query runs/mine "top 5 ops"` asks in words; `--name top_ops --limit 3 --kind
all-reduce` asks a query by its name with the parameters that it takes (a wrong one exits 2 and
names them). `--compact` gives one line of JSON for agents: without nulls, numbers rounded, rows cut
to about 2,000 characters (6,000 where a number of rows was asked for) with `returned`, `total` and
`truncated`; with `--full` nothing is cut.""".splitlines()

ADVICE_INTRODUCTION = """\
*Generated from the rules by `scripts/make_docs.py`.*

Every advice has a cause, evidence (with the fields of the summary that hold it), what to do and how
to verify it. Its ceiling is the most that it can save, of device time and in microseconds of the
mean step: "known" where the cause of that time is seen, else "at most". Each ceiling is a part of
one term of device time (idle, waits in collectives, other exposed communication, exposed transfers,
compute), and no time is claimed twice: what two rules could claim goes to the one that stands
first here. So the ceilings never sum to more than the step. The list is ranked by ceiling, of which
a bound counts half; waits that nobody causes come behind causes that are seen, and what saves no
time itself comes last, or first if it changes the reading of everything. "One-off" and "recurring"
say whether a cause comes back from step to step. CPU devices share processors: their shares are of
their host's time, in which a device that waits while another one computes waits for a processor.\
""".splitlines()

COMMANDS_INTRODUCTION = """\
*Generated from the command line by `scripts/make_docs.py`; `marin-profile VERB --help` lists a
verb's options.*

Where a verb takes a profile, it takes what can be read: a run's profiler folder, anything above it
(the newest capture is taken), one `plugins/profile/<timestamp>/`, a profile's file, a summary, or a
W&B run (`entity/project/run_id` or its URL; [wandb.md](wandb.md)). All hosts of a capture are
merged. Each may be a URL (`marin-profile[gcs]` for `gs://`, `[s3]`, `[http]`); `--summary -`
reads stdin. A verb wins over a path of its name.

Results go to stdout, or to `-o FILE`, whose path is then printed; notes, progress and errors to
stderr. Summaries of profiles are kept in the user's cache (`--no-cache`).""".splitlines()

EXIT_CODES = (
    (0, "done; the verdict lets the change pass"),
    (
        1,
        "the verdict is fail or inconclusive; a history got slower; `doctor` found something bad; "
        "`fleet` or `finish` left something out; `bisect` found no commit; something in an "
        "`experiment` failed or stayed undecided",
    ),
    (2, "usage, or an unknown question"),
    (3, "not found"),
    (4, "the input is broken, or no JAX profile"),
    (5, "the input is sound, but does not hold the answer"),
    (6, "a remote service failed"),
    (7, "a likely fail, with `--fail-on-likely`"),
    (130, "interrupted"),
)

COMPLETION = """\
In `~/.bashrc`, or with `zsh` in `~/.zshrc`; for fish write it to
`~/.config/fish/completions/marin-profile.fish`:

```
eval "$(marin-profile completion bash)"
```""".splitlines()

ARCHITECTURE_INTRODUCTION = """\
*Generated by `scripts/make_docs.py` from the first lines of the packages and the import contract in
`pyproject.toml`, which `make lint` checks.*

A profile passes the stations from `capture` to a summary (`schema`), a summary those from `facts`
to a report or an answer. Imports go one way: a package imports packages of a lower level only. JAX
and Levanter are imported in `levanter` alone, W&B's package in `wandb` alone. Times are integer
picoseconds up to `analysis`, microseconds from `assemble` on.""".splitlines()


class Addition(typing.NamedTuple):
    """What a kind of addition touches, by an example; only its files match the pattern `sign`."""

    what: str
    how: str
    example: str
    sign: str
    files: tuple[str, ...]


ADDITIONS = (
    Addition(
        "a question",
        "a module with a `QUERY`, and its line in the table",
        "`passes`",
        r"passes\.QUERY|queries(?:\.| import )passes|name=\"passes\"",
        ("queries/passes.py", "queries/__init__.py"),
    ),
    Addition(
        "a file format",
        "a reader, and its entry in the table",
        "trace JSON",
        r"readers\.trace_json\b|def read_trace_json",
        ("readers/trace_json.py", "capture/formats.py"),
    ),
    Addition(
        "a rule for what to try next",
        "a function with its threshold, and its `Rule`",
        "`recompute`",
        r"def recompute\(f",
        ("analysis/advice/ops.py",),
    ),
    Addition(
        "a section of the report",
        "a function that renders it, and its line in the list",
        "Gaps by region",
        r"def gap_contexts\(summary|Gaps by region",
        ("reports/report_lists.py", "reports/report.py"),
    ),
    Addition(
        "a field of the summary",
        "the field with its unit, and the section that fills it",
        "`display_time_unit`",
        r"\bdisplay_time_unit\b",
        ("schema/capture.py", "assemble/identity.py"),
    ),
    Addition(
        "a verb",
        "a module with a `command`, and its line in `VERBS`",
        "`captures`",
        r"\"captures\":|`marin-profile captures`",
        ("cli/captures.py", "cli/__init__.py"),
    ),
)


def main() -> int:
    pages = {
        "schema.md": schema_page(),
        "queries.md": queries_page(),
        "architecture.md": architecture_page(),
        "commands.md": commands_page(),
        "advice.md": advice_page(),
    }
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
        "| query | answers | for example | parameters |",
        "|---|---|---|---|",
    ]
    for query in list_queries():
        taken = ", ".join(one["name"] for one in query["parameters"])
        cells = (f"`{query['name']}`", query["description"], query["example"], taken)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "| parameter | type | what it says |", "|---|---|---|"]
    for one in DECLARED.values():
        choices = f" One of {', '.join(one.choices)}." if one.choices else ""
        lines.append(f"| `--{one.name}` | {one.kind} | {one.doc}{choices} |")
    return "\n".join([*lines, ""])


def advice_page() -> str:
    lines = ["# What to try next: which rules are there?", "", *ADVICE_INTRODUCTION, ""]
    lines += ["| rule | fires when | what to do | how to verify |", "|---|---|---|---|"]
    for rule in RULES:
        cells = (f"`{rule.id}`", rule.when, " ".join(rule.do), rule.verify)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "## How is each ceiling got?",
        "",
        "| rule | a part of | ceiling |",
        "|---|---|---|",
    ]
    for rule in RULES:
        if rule.term is not None:
            lines.append(f"| `{rule.id}` | {rule.term} | {rule.basis} |")
    return "\n".join([*lines, ""])


def commands_page() -> str:
    lines = ["# Which verbs are there?", "", *COMMANDS_INTRODUCTION, ""]
    lines += ["| verb | what it does | for example |", "|---|---|---|"]
    for verb, text in VERBS.items():
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None, verb
        shown = ", ".join(f"`{line}`" for line in examples(command.epilog or ""))
        lines.append(f"| `{verb}` | {text} | {shown} |")
    lines += ["", "## Exit codes", "", "| code | means |", "|---:|---|"]
    lines += [f"| {code} | {text} |" for code, text in EXIT_CODES]
    return "\n".join([*lines, "", "## Completion", "", *COMPLETION, ""])


def examples(epilog: str) -> list[str]:
    """The command lines below a verb's help."""
    return [line.strip() for line in epilog.partition(":")[2].split(";")]


def architecture_page() -> str:
    lines = ["# How is the package built?", "", *ARCHITECTURE_INTRODUCTION, ""]
    lines += ["| level | package | what it does |", "|---|---|---|"]
    layers = _layers()
    for at, layer in enumerate(layers):
        for name in layer:
            lines.append(f"| {len(layers) - at} | `{name}` | {_first_lines(name)} |")
    lines += ["", "## What does an addition touch?", ""]
    lines += ["| to add | write | files | for example |", "|---|---|---|---|"]
    for one in ADDITIONS:
        files = ", ".join(f"`{file}`" for file in one.files)
        lines.append(f"| {one.what} | {one.how} | {files} | {one.example} |")
    return "\n".join([*lines, ""])


def _layers() -> list[list[str]]:
    """The layers of the import contract, the lowest last, each a list of what stands beside."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [contract] = [
        one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    ]
    layers = [layer.split(" | ") for layer in contract["layers"]]
    return [layer for layer in layers if layer != ["__main__"]]


def _first_lines(name: str) -> str:
    """The first paragraph of a package's or a module's docstring."""
    path = PACKAGE / name / "__init__.py"
    module = path if path.exists() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(module.read_text()))
    assert text is not None, name
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    sys.exit(main())
