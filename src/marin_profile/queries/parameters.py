"""What queries are asked with: each parameter's name, type and meaning, declared once.

Contract
* A query names the parameters that it takes (`Query.parameters`); the command line, the list of
  queries, errors and the router all follow from that and from `DECLARED`.
* What is given to a query and not taken by it is an error, never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from marin_profile.base.errors import UsageError
from marin_profile.events.classify import COLLECTIVES, COMPUTE, TRANSFERS
from marin_profile.queries.kinds import COMMUNICATION, TRANSFER, find_kinds
from marin_profile.schema import CAPTURE, STEADY

MOST, LEAST = "most", "least"
TERMS = ("idle", "busy", "compute", "communication", "transfer", "count", "bytes", "flops")
PER = ("step", "device", "call", "second", "share")


@dataclass(frozen=True)
class Parameters:
    """What a question asks with, None where it does not say. Names of ops and scopes are as asked:
    queries look them up; `device`: the number in its name; `without`: all but what the others
    name; `gaps`: what if there were no gaps; `straggler`: no slow device; `single`: the
    longest single one first."""

    limit: int | None = None
    op: str | None = None
    scope: str | None = None
    program: str | None = None
    kind: str | None = None
    family: str | None = None
    span: str | None = None
    pass_: str | None = None
    window: str | None = None
    device: int | None = None
    step: int | None = None
    per: str | None = None
    order: str | None = None
    by: str | None = None
    without: bool = False
    gaps: bool = False
    straggler: bool = False
    single: bool = False

    def given(self) -> dict[str, object]:
        """What is set, by the parameter's name."""
        values = {one.name.rstrip("_"): getattr(self, one.name) for one in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }


@dataclass(frozen=True)
class Parameter:
    """`kind`: "number", "text" or "flag"; `choices`: the values, if only these can be."""

    name: str
    kind: str
    doc: str
    choices: tuple[str, ...] = ()
    least: int = 0

    def to_dict(self) -> dict[str, object]:
        told: dict[str, object] = {"name": self.name, "type": self.kind, "doc": self.doc}
        return told | ({"choices": list(self.choices)} if self.choices else {})

    def value_of(self, text: str, mark: str = "--") -> object:
        """The value that a text means. Raises UsageError where it means none; `mark` stands
        before names there."""
        if self.kind == "number":
            if text.isascii() and text.isdecimal() and len(text) < 19 and int(text) >= self.least:
                return int(text)
            raise UsageError(
                f"{mark}{self.name} takes a whole number from {self.least} on, not {text!r}."
            )
        if self.kind == "flag":
            return True
        if not text.strip():
            raise UsageError(f"{mark}{self.name} takes a text that is not empty.")
        if self.name == "kind":
            text = next(iter(find_kinds(text)[1]), text)
        if self.choices and text not in self.choices:
            raise UsageError(
                f"{mark}{self.name} is one of {', '.join(self.choices)}, not {text!r}."
            )
        return text


_KINDS = (COMMUNICATION, TRANSFER, COMPUTE, *sorted({*COLLECTIVES, *TRANSFERS} - {TRANSFER}))

DECLARED: Mapping[str, Parameter] = {
    one.name: one
    for one in (
        Parameter("limit", "number", "At most this many rows of each list.", least=1),
        Parameter("op", "text", "An op by name, or by a part of it that no other op has."),
        Parameter("scope", "text", "A scope (region) by path or by parts of it."),
        Parameter("program", "text", "A program by name, with or without jit_."),
        Parameter("kind", "text", "A kind of ops.", choices=_KINDS),
        Parameter("family", "text", "A family of ops, such as matmul."),
        Parameter("span", "text", "An annotation or a function of the host."),
        Parameter(
            "pass",
            "text",
            "A pass.",
            choices=("forward", "backward", "recompute", "optimizer", "other"),
        ),
        Parameter("window", "text", "The steady steps or the capture.", choices=(STEADY, CAPTURE)),
        Parameter("device", "number", "The number in a device's name."),
        Parameter("step", "number", "A step's number, or its index where steps have none."),
        Parameter("per", "text", "The unit that is asked for.", choices=PER),
        Parameter("order", "text", "What comes first.", choices=(MOST, LEAST)),
        Parameter("by", "text", "What rows are ordered by.", choices=TERMS),
        Parameter("without", "flag", "All but what the other parameters name."),
        Parameter("gaps", "flag", "What if there were no gaps."),
        Parameter("single", "flag", "The longest single one first, not those longest together."),
        Parameter("straggler", "flag", "What if the slow device were like the others."),
    )
}


def typed(
    query_name: str, taken: Iterable[str], given: Mapping[str, str], mark: str = "--"
) -> Parameters:
    """Parameters from texts, such as a command line's. Raises UsageError naming what exists."""
    names = tuple(taken)
    values: dict[str, object] = {}
    for name, text in given.items():
        if name not in names:
            known = ", ".join(f"{mark}{one}" for one in names) or "none"
            raise UsageError(f"{query_name} takes no {mark}{name}; its parameters: {known}.")
        values["pass_" if name == "pass" else name] = DECLARED[name].value_of(text, mark)
    return replace(Parameters(), **values)  # type: ignore[arg-type]


def with_limit(parameters: Parameters, top_k: int | None) -> Parameters:
    """`top_k` caps what the question itself asks for."""
    if top_k is None:
        return parameters
    limit = top_k if parameters.limit is None else min(parameters.limit, top_k)
    return replace(parameters, limit=limit)
