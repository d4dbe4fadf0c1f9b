"""A question in words -> the query it asks for and its parameters.

Contract
* Deterministic: the same question and summary give the same query. Every query brings its own
  intents; the highest score wins, the registry's order breaks ties.
* Whole words only. Names of ops, kinds, families, passes and numbers are recognised first and
  stand in the word list as "@op", "@kind" ("@collective"), "@family", "@pass".
* A question that no intent fits has no route: `nearest_first` tells what it may mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from marin_profile.base.errors import UsageError
from marin_profile.events.classify import COMPUTE
from marin_profile.queries.kinds import COMMUNICATION, TRANSFER, find_kinds, is_of_kind
from marin_profile.queries.lexicon import (
    NUMBER_WORDS,
    PASS_WORDS,
    STOP_WORDS,
    concept_of,
    is_known_word,
    words_of,
)
from marin_profile.queries.model import Parameters, Query
from marin_profile.queries.names import known_ops
from marin_profile.schema import CAPTURE, ProfileSummary

OP = " @op "

_QUOTED = re.compile(
    r"```(.+?)```|``(.+?)``|`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)", re.DOTALL
)
# A token that looks like an op's name: numbered ("copy.1"), joined ("add_fusion") or "%name".
_OP_LIKE = re.compile(
    r"(?<![\w.\-/])(%[\w.\-]+|[A-Za-z][\w\-]*(?:\.[\w\-]+)*\.\d+|\w*[A-Za-z]_\w+)"
)
_POINTED_AT = re.compile(
    r"\b(?P<where>before|preceding|named|called|context\s+(?:for|of)|op|kernel|about|of|for)\s+"
    r"(?:(?:the|a|an|each|every|any|all|op|ops|operation|kernel|instruction)\s+)*"
    r"(?P<name>[A-Za-z][\w\-]*)",
    re.IGNORECASE,
)
# Where whatever follows is meant as a name; elsewhere it must be one that is known.
_STRONG = re.compile(r"before|preceding|named|called|context", re.IGNORECASE)
_COUNTED = frozenset(
    {"op", "collective", "gap", "region", "step", "device", "family", "suggest", "kind"}
    | {"hotspot", "context", "pass", "problem", "@kind", "@collective"}
)
_NOT_COUNTED_AFTER = frozenset({"step", "device", "host", "layer", "region", "p", "last"})
_QUALIFIERS = frozenset(
    {"top", "dominate", "communication", "compute", "transfer", "collective", "@pass", "@kind"}
    | {"@collective", "most", "of", "the", "first", "idle", "exposed"}
)


@dataclass(frozen=True)
class Question:
    """A question taken apart."""

    concepts: frozenset[str]
    parameters: Parameters


def route(
    summary: ProfileSummary, question: str, queries: Sequence[Query]
) -> tuple[Query, Parameters] | None:
    """The query that the question asks for; None if none fits."""
    direct = "_".join(words_of(question))
    for query in queries:
        if direct == query.name:
            return query, Parameters()
    asked = take_apart(summary, question)
    scores = [
        max((one.score for one in query.intents if one.matches(asked.concepts)), default=0)
        for query in queries
    ]
    best = max(scores, default=0)
    if best == 0:
        return None
    return queries[scores.index(best)], asked.parameters


def take_apart(summary: ProfileSummary, question: str) -> Question:
    """The concepts and the parameters of a question."""
    text, op = _take_op(question, known_ops(summary))
    text, kinds = find_kinds(text)
    if op is None:
        text, op = _take_pointed_at(text, summary)
    for kind in kinds:
        text = text.replace(
            kind, " @collective @kind " if is_of_kind(kind, COMMUNICATION) else " @kind "
        )
    words = words_of(text)
    concepts = [PASS_WORDS[word] if word in PASS_WORDS else concept_of(word) for word in words]
    passes = {PASS_WORDS[word] for word in words if word in PASS_WORDS}
    tokens = ["@pass" if concept in PASS_WORDS.values() else concept for concept in concepts]
    family = _family(summary, words)
    found = frozenset(tokens) | (frozenset({"@family"}) if family else frozenset())
    return Question(
        found,
        Parameters(
            limit=_limit(words, tokens),
            op=op,
            kind=_only(set(kinds)) if kinds else _kind_group(tokens),
            family=family,
            pass_=_only(passes),
            window=CAPTURE if {"whole", "entire", "full"} & found else None,
            device=_device(words, tokens),
            gaps=bool({"gap", "idle"} & found and {"if", "without"} & found),
        ),
    )


def with_limit(parameters: Parameters, top_k: int | None) -> Parameters:
    """`top_k` caps what the question itself asks for."""
    if top_k is None:
        return parameters
    limit = top_k if parameters.limit is None else min(parameters.limit, top_k)
    return replace(parameters, limit=limit)


def _take_op(question: str, known: frozenset[str]) -> tuple[str, str | None]:
    """The op that a question names without doubt, and the question with "@op" in its place.

    In this order: a quoted name, a known name standing in the text, a token that looks like one.
    """
    for quoted in _QUOTED.finditer(question):
        name = next(group for group in quoted.groups() if group is not None).strip()
        if name in known or not _is_plain(name):
            return question[: quoted.start()] + OP + question[quoted.end() :], name
    standing = [
        (at, -len(name), name)
        for name in known
        if _is_op_like(name) and (at := _position(name, question)) is not None
    ]
    if standing:
        at, _, name = min(standing)
        return question[:at] + OP + question[at + len(name) :], name
    like = next(
        (match for match in _OP_LIKE.finditer(question) if not _is_plain(match.group())), None
    )
    if like:
        return question[: like.start()] + OP + question[like.end() :], like.group()
    return question, None


def _is_op_like(name: str) -> bool:
    """Names of letters alone ("copy", "all-reduce") need pointing at: they are words as well."""
    return any(character in "._%0123456789(<" for character in name) and len(name) > 2


def _is_plain(token: str) -> bool:
    """Whether a quoted or joined name is mere words ("step_time")."""
    parts = words_of(token.replace("_", " "))
    return bool(parts) and all(is_known_word(part) for part in parts)


def _position(name: str, text: str) -> int | None:
    """Where a name stands in a text, not as a part of a longer one."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 2]
        joins_before = before.isalnum() or before in ("_", ".", "-")
        joins_after = after[:1].isalnum() or after[:1] in ("_", "-")
        joins_after = joins_after or (after[:1] == "." and after[1:].isalnum())
        if not (before and joins_before) and not (after and joins_after):
            return at
        at = text.find(name, at + 1)
    return None


def _take_pointed_at(text: str, summary: ProfileSummary) -> tuple[str, str | None]:
    """The op that a question points at: "gap before X", "context for X", "op X"."""
    known = {name.casefold() for name in known_ops(summary)}
    for match in _POINTED_AT.finditer(text):
        name = match.group("name").rstrip("-")
        if name.casefold() in STOP_WORDS:
            continue
        is_strong = _STRONG.match(match.group("where")) is not None
        is_name = name.casefold() in known and not is_known_word(name.casefold())
        means_words = is_known_word(name.casefold()) and name.casefold() not in known
        if (is_strong and not means_words) or is_name:
            return text[: match.start("name")] + OP + text[match.end("name") :], name
    return text, None


def _only(names: set[str]) -> str | None:
    """The one name to look at; a question that names several compares them."""
    return next(iter(names)) if len(names) == 1 else None


def _kind_group(tokens: Sequence[str]) -> str | None:
    if "communication" in tokens or "collective" in tokens:
        return COMMUNICATION
    if "transfer" in tokens:
        return TRANSFER
    return COMPUTE if "compute" in tokens else None


def _family(summary: ProfileSummary, words: Sequence[str]) -> str | None:
    """The family of the summary whose name the question holds; the longest one."""
    said = {_american(concept_of(word)) for word in words}
    names = sorted(
        (one.family for one in summary.semantic_families), key=lambda name: (-len(name), name)
    )
    return next(
        (
            name
            for name in names
            if (parts := words_of(name.replace("_", " ")))
            and {_american(concept_of(part)) for part in parts} <= said
        ),
        None,
    )


def _american(word: str) -> str:
    return word.replace("isation", "ization")


def _device(words: Sequence[str], tokens: Sequence[str]) -> int | None:
    """The number behind a device: "gpu 3", "/device:TPU:3"."""
    return next(
        (
            int(words[at + 1])
            for at, token in enumerate(tokens[:-1])
            if token == "device" and words[at + 1].isdigit()
        ),
        None,
    )


def _limit(words: Sequence[str], tokens: Sequence[str]) -> int | None:
    """The number of rows asked for: "top 5", "five slowest ops", "first 3 gaps"."""
    for at, word in enumerate(words):
        number = NUMBER_WORDS.get(word) or (int(word) if word.isdigit() else None)
        if number is None:
            continue
        before = tokens[at - 1] if at else ""
        if words[at - 1 : at] in (["top"], ["first"]) or (
            before not in _NOT_COUNTED_AFTER and _is_counted(tokens[at + 1 :])
        ):
            if number < 1:
                raise UsageError("The question asks for no row; ask for at least one.")
            return number
    return None


def _is_counted(following: Sequence[str]) -> bool:
    """Whether a number counts what follows: qualifiers, then something that answers list."""
    if following[:1] in (["device"], ["step"]):
        return False  # "on 8 devices" names the setting
    for token in following:
        if token in _COUNTED:
            return True
        if token not in _QUALIFIERS:
            return False
    return False


def nearest_first(summary: ProfileSummary, question: str, queries: Sequence[Query]) -> list[Query]:
    """The queries by how many concepts they share with a question, then by likeness of text."""
    from difflib import SequenceMatcher

    asked = take_apart(summary, question).concepts

    def distance(query: Query) -> tuple[int, float]:
        own = {concept_of(word) for word in words_of(f"{query.name} {query.description}")} | {
            concept for one in query.intents for need in one.needs for concept in need.split("|")
        }
        shared = len((asked & own) - STOP_WORDS)
        likeness = SequenceMatcher(None, question.lower()[:200], query.example.lower()).ratio()
        return -shared, -likeness

    return sorted(queries, key=distance)
