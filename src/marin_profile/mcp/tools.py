"""What an agent can ask: one entry a tool, with its arguments and one function.

Contract
* A tool's arguments are `Parameter`s, as those of queries are: the JSON Schema, the checks and the
  errors follow from that one declaration. What a tool does not take is refused.
* A tool takes checked arguments and returns an answer whose `results` are paged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.comparison import Comparison, compare
from marin_profile.comparison.model import HloChanges, OpChange, Split, SplitRow
from marin_profile.mcp.pages import page_of
from marin_profile.mcp.roots import Found, Roots
from marin_profile.mcp.summaries import Summaries
from marin_profile.queries import QUERIES, answer, query_named, run_query
from marin_profile.queries.parameters import DECLARED, Parameter, Parameters, typed
from marin_profile.reports.comparison import comparison_headline
from marin_profile.reports.headline import headline

Arguments = Mapping[str, Any]
LONGEST_TEXT = 1000
PARTS = 5
_TYPES = {"number": "integer", "text": "string", "flag": "boolean"}

HANDLE = Parameter("handle", "text", "A capture's handle, or its path below a root.")
CURSOR = Parameter("cursor", "text", "Of the page before, with the same arguments: go on.")
LIMIT = DECLARED["limit"]


class Service:
    """The captures below roots, their summaries, and the tools that ask them."""

    def __init__(self, roots: Roots, cache: Path | None) -> None:
        self.roots = roots
        self._summaries = Summaries(cache)

    def call(self, name: str, arguments: Arguments) -> str:
        """A page of the answer, as JSON. Raises ProfileError."""
        tool = next((one for one in TOOLS if one.name == name), None)
        if tool is None:
            raise UsageError(f"There is no such tool; there are: {', '.join(TOOL_NAMES)}.")
        given = tool.checked(arguments)
        return page_of(tool.run(self, given), given.get("cursor"))

    def captures(self, given: Arguments) -> dict[str, Any]:
        rows = [_listed(one, several=len(self.roots.roots) > 1) for one in self.roots.captures()]
        return {"units": {"size": "byte"}, "results": rows}

    def ask(self, given: Arguments) -> dict[str, Any]:
        found = self.roots.find(given["handle"])
        answered = answer(self._summaries.of(found), given["question"], top_k=given.get("limit"))
        return {"handle": found.handle, **answered}

    def query(self, given: Arguments) -> dict[str, Any]:
        name = given["name"]
        texts = {key: str(value) for key, value in given.items() if key in DECLARED}
        parameters = typed(name, query_named(name).takes, texts, mark="")
        found = self.roots.find(given["handle"])
        answered = run_query(self._summaries.of(found), name, parameters)
        return {"handle": found.handle, **answered}

    def advice(self, given: Arguments) -> dict[str, Any]:
        found = self.roots.find(given["handle"])
        summary = self._summaries.of(found)
        parameters = Parameters(limit=given.get("limit"))
        advised = run_query(summary, "optimization_candidates", parameters)
        return {"handle": found.handle, "headline": headline(summary), **advised}

    def compare(self, given: Arguments) -> dict[str, Any]:
        before, after = (self.roots.find(given[side]) for side in ("before", "after"))
        (one, its_programs), (two, other_programs) = map(
            self._summaries.with_programs, (before, after)
        )
        programs = [its_programs], [other_programs]
        found = compare(one, two, top_k=given.get("limit", PARTS), programs=programs)
        return {"before": before.handle, "after": after.handle, **_compared(found)}


@dataclass(frozen=True)
class Tool:
    """`needs`: the arguments that must be given; `takes`: those that may be, beside the cursor."""

    name: str
    title: str
    description: str
    run: Callable[[Service, Arguments], dict[str, Any]]
    needs: tuple[Parameter, ...] = ()
    takes: tuple[Parameter, ...] = ()

    @property
    def arguments(self) -> dict[str, Parameter]:
        return {one.name: one for one in (*self.needs, *self.takes, CURSOR)}

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {name: _schema(one) for name, one in self.arguments.items()},
            "required": [one.name for one in self.needs],
            "additionalProperties": False,
        }

    def checked(self, given: Arguments) -> Arguments:
        """The arguments that are given. Raises UsageError."""
        known = self.arguments
        stray = next((name for name in given if name not in known), None)
        if stray is not None:
            raise UsageError(f"{self.name} takes {', '.join(known)}; nothing else.")
        values = {name: value for name, value in given.items() if value is not None}
        missing = [one.name for one in self.needs if one.name not in values]
        if missing:
            raise UsageError(f"{self.name} needs {' and '.join(missing)}.")
        checked = {name: _checked(known[name], value) for name, value in values.items()}
        return {name: value for name, value in checked.items() if value is not False}


def _schema(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[one.kind], "description": one.doc}
    if one.kind == "number":
        schema["minimum"] = one.least
    return schema | ({"enum": list(one.choices)} if one.choices else {})


def _checked(one: Parameter, value: object) -> object:
    if one.kind == "number":
        if isinstance(value, bool) or not isinstance(value, int) or not one.least <= value < 1e18:
            raise UsageError(f"{one.name} is a whole number from {one.least} on.")
    elif one.kind == "flag":
        if not isinstance(value, bool):
            raise UsageError(f"{one.name} is true or false.")
    elif not isinstance(value, str) or not value.strip():
        raise UsageError(f"{one.name} is a text that is not empty.")
    elif len(value) > LONGEST_TEXT:
        raise UsageError(f"{one.name} has at most {LONGEST_TEXT:,} characters.")
    return value


# --- rows ----------------------------------------------------------------------------------------


def _listed(found: Found, *, several: bool) -> dict[str, Any]:
    hosts = found.capture.hosts
    return {
        "handle": found.handle,
        "path": _readable(found.path),
        **({"root": _readable(found.root.name)} if several else {}),
        "stamp": _readable(found.capture.stamp),
        "hosts": len({host.machine or host.host for host in hosts}),
        "size": sum(host.size for host in hosts),
    }


def _readable(name: str) -> str:
    """File names need not be text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _compared(found: Comparison) -> dict[str, Any]:
    state = found.comparability
    unit = found.units["durations"]
    compared: dict[str, Any] = {
        "headline": comparison_headline(found),
        "comparable": state.comparable,
        "same_capture": state.same_capture,
        "caveats": [{"severity": one.severity, "sentence": one.sentence} for one in state.caveats],
        "units": {
            **dict.fromkeys(("before", "after", "delta", "interval"), unit),
            "share_of_target": "share of the change",
        },
        "results": [],
    }
    if found.attribution is not None and not state.same_capture:
        splits = (
            ("device_time", found.attribution.ledger),
            ("region", found.attribution.headline),
            ("op", found.attribution.ops),
        )
        compared["results"] = [
            *_xla(found.hlo),
            *(row for part, split in splits for row in _parts(part, split)),
        ]
        if found.hlo is not None and found.hlo.cannot_answer:
            compared["xla"] = {"cannot_answer": found.hlo.cannot_answer}
        elif found.hlo is not None:
            compared["xla"] = {
                "programs": [one.model_dump(mode="json") for one in found.hlo.programs],
                "total_differences": found.hlo.total_differences,
            }
    return compared


def _xla(found: HloChanges | None) -> Iterator[dict[str, Any]]:
    """What XLA did differently."""
    for row in found.differences if found is not None else ():
        yield {"part": "xla", **row.model_dump(mode="json", by_alias=True, exclude_none=True)}


def _parts(part: str, split: Split) -> Iterator[dict[str, Any]]:
    """The rows of a split that changed; what others it has stands in its last row."""
    others = [split.others] if split.others is not None else []
    for row in (*split.rows, *others):
        if row.delta:
            yield {
                "part": part,
                "name": row.name,
                **_op(row),
                "before": row.before,
                "after": row.after,
                "delta": row.delta,
                "share_of_target": row.share_of_target,
                "interval": list(row.interval) if row.interval else None,
                "noise": row.noise,
            }


def _op(row: SplitRow) -> dict[str, Any]:
    if not isinstance(row, OpChange):
        return {}
    sides = [op for op in (row.before_op, row.after_op) if op is not None]
    return {"match": row.match, "kind": sides[-1].category if sides else None}


# --- the tools -----------------------------------------------------------------------------------

QUESTION = Parameter("question", "text", 'In words, as "top 5 ops of the backward pass".')
NAME = Parameter(
    "name", "text", "The query.", choices=tuple(sorted(query.name for query in QUERIES))
)
_LIST = "\n".join(
    f"- {query.name}({', '.join(query.takes)}): {query.description}" for query in QUERIES
)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "captures",
        "List captures",
        "Start here: which profiles of training runs there are, each with its handle, the newest "
        "first. The other tools take a handle.",
        Service.captures,
    ),
    Tool(
        "advice",
        "What to try next",
        "Ask this first about a capture: where the step time goes, in a sentence, and what would "
        "make the step faster, by what it can save at most, with the evidence.",
        Service.advice,
        needs=(HANDLE,),
        takes=(LIMIT,),
    ),
    Tool(
        "ask",
        "Ask in words",
        "A question about one capture, in words. Names of ops, scopes, programs and devices are "
        "looked up; what is not known is refused with the nearest names (`cannot_answer`). For "
        "exact control use `query`.",
        Service.ask,
        needs=(HANDLE, QUESTION),
        takes=(LIMIT,),
    ),
    Tool(
        "query",
        "Ask a query by name",
        "One query by its name, with the parameters in brackets and no others; limit caps the rows "
        f"(`total_matched` tells how many there are). The queries:\n{_LIST}",
        Service.query,
        needs=(HANDLE, NAME),
        takes=tuple(DECLARED.values()),
    ),
    Tool(
        "compare",
        "Compare two captures",
        "After a change: did the step get faster, which device time, regions and ops account for "
        "it, and what did XLA compile differently (part `xla`)? Figures are per step and device; "
        "read `caveats` before you trust them.",
        Service.compare,
        needs=(
            Parameter("before", "text", "The capture before the change, as a handle."),
            Parameter("after", "text", "The one after it."),
        ),
        takes=(Parameter("limit", "number", f"Rows of each part, {PARTS} if left out.", least=1),),
    ),
)
TOOL_NAMES = tuple(tool.name for tool in TOOLS)
