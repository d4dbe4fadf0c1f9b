"""As much GraphQL as the wandb SDK speaks: a document becomes selections, executed on nodes.

Contract: a node is a dict with a `__typename`; a callable in it takes the field's arguments. An
answer holds exactly what is selected; a field that its node lacks is null and noted in `unknown`.
Types are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Node = dict[str, Any]

_TOKEN = re.compile(
    r'(?:[\s,]|#[^\n]*)*(\.\.\.|"(?:\\.|[^"\\])*"|\$?[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[{}()\[\]:!=@])'
)
_LITERALS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Variable:
    name: str


@dataclass(frozen=True)
class Selection:
    """A field, or with `fragment` (a name) or `on` (inline) a fragment."""

    name: str = ""
    alias: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    directives: tuple[tuple[str, Any], ...] = ()
    children: tuple[Selection, ...] | None = None
    fragment: str = ""
    on: str = ""


@dataclass(frozen=True)
class Operation:
    kind: str
    name: str
    defaults: dict[str, Any]
    selections: tuple[Selection, ...]


class Parser:
    """One GraphQL document; afterwards `operations` and `fragments` hold what it says."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self.operations: list[Operation] = []
        self.fragments: dict[str, tuple[str, tuple[Selection, ...]]] = {}
        while self._peek():
            self._definition()

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _definition(self) -> None:
        kind = "query" if self._peek() == "{" else self._next()
        if kind == "fragment":
            name, _, on = self._next(), self._next(), self._next()
            self.fragments[name] = on, self._selections()
            return
        name = "" if self._peek() in "({" else self._next()
        defaults = self._variables()
        self.operations.append(Operation(kind, name, defaults, self._selections()))

    def _variables(self) -> dict[str, Any]:
        """The defaults of `($name: [Type!] = value, ...)`."""
        defaults: dict[str, Any] = {}
        name = ""
        if self._accept("("):
            while not self._accept(")"):
                token = self._next()
                if token.startswith("$"):
                    name = token[1:]
                elif token == "=":
                    defaults[name] = self._value()
        return defaults

    def _value(self) -> Any:
        token = self._next()
        if token == "[":
            items = []
            while not self._accept("]"):
                items.append(self._value())
            return items
        if token == "{":
            pairs = {}
            while not self._accept("}"):
                key, _ = self._next(), self._next()
                pairs[key] = self._value()
            return pairs
        if token.startswith("$"):
            return Variable(token[1:])
        if token.startswith('"') or re.fullmatch(r"-?[\d.]+", token):
            return json.loads(token)
        return _LITERALS.get(token, token)

    def _arguments(self) -> dict[str, Any]:
        found = {}
        if self._accept("("):
            while not self._accept(")"):
                key, _ = self._next(), self._next()
                found[key] = self._value()
        return found

    def _directives(self) -> tuple[tuple[str, Any], ...]:
        found = []
        while self._accept("@"):
            name = self._next()
            found.append((name, self._arguments().get("if")))
        return tuple(found)

    def _selections(self) -> tuple[Selection, ...]:
        self._next()
        found = []
        while not self._accept("}"):
            found.append(self._fragment() if self._accept("...") else self._field())
        return tuple(found)

    def _fragment(self) -> Selection:
        if self._accept("on"):
            on = self._next()
            return Selection(on=on, directives=self._directives(), children=self._selections())
        return Selection(fragment=self._next(), directives=self._directives())

    def _field(self) -> Selection:
        alias = name = self._next()
        if self._accept(":"):
            name = self._next()
        arguments, directives = self._arguments(), self._directives()
        children = self._selections() if self._peek() == "{" else None
        return Selection(name, alias, arguments, directives, children)


_INTERFACES = {"ArtifactCollection": ("ArtifactSequence",)}


class Executor:
    """Gives of a node what the selections ask for."""

    def __init__(self, document: Parser, variables: Node, unknown: set[str]) -> None:
        self._fragments = document.fragments
        self._variables = variables
        self._unknown = unknown

    def select(self, node: Any, selections: Iterable[Selection]) -> Any:
        if isinstance(node, list):
            return [self.select(item, selections) for item in node]
        if node is None:
            return None
        out: Node = {}
        for selection in selections:
            if not self._is_wanted(selection):
                continue
            if selection.fragment or selection.on:
                on, children = self._fragments.get(
                    selection.fragment, (selection.on, selection.children or ())
                )
                if node["__typename"] in (on, *_INTERFACES.get(on, ())):
                    _merge(out, self.select(node, children))
            else:
                _merge(out, {selection.alias: self._field(node, selection)})
        return out

    def _is_wanted(self, selection: Selection) -> bool:
        return all(
            bool(self._resolved(condition)) is (name == "include")
            for name, condition in selection.directives
        )

    def _field(self, node: Node, selection: Selection) -> Any:
        if selection.name not in node:
            self._unknown.add(f"{node['__typename']}.{selection.name}")
            return None
        value = node[selection.name]
        if callable(value):
            value = value(**self._resolved(selection.arguments))
        return value if selection.children is None else self.select(value, selection.children)

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, Variable):
            return self._variables.get(value.name)
        if isinstance(value, list):
            return [self._resolved(item) for item in value]
        if isinstance(value, dict):
            return {key: self._resolved(item) for key, item in value.items()}
        return value


def _merge(into: Node, more: Node) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
