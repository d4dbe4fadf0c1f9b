"""A question in words -> the query it asks for and its parameters, or why there is none.

Contract
* Deterministic: the same question and summary give the same query. Every query brings its own
  intents; the highest score wins, the registry's order breaks ties.
* A query is asked only with everything that narrows the question (`narrows`, named things): where
  the likeliest takes it not, `time_of` adds up time by whatever is named, else the question is
  refused. So is one with a word or a name that is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from marin_profile.queries.lexicon import BEYOND, STOP_WORDS, concept_of, words_of
from marin_profile.queries.model import CannotAnswer, Query
from marin_profile.queries.names import THINGS, no_such
from marin_profile.queries.parameters import DECLARED, Parameters
from marin_profile.queries.question import Mention, Question, take_apart
from marin_profile.schema import ProfileSummary

MOST_WORDS, MOST_OF_WORD = 3, 24
# It adds up the time of whatever the parameters name.
TIME_OF = "time_of"
_ABOUT_TIME = frozenset(
    {
        "time",
        "take",
        "expose",
        "long",
        "share",
        "much",
        "cost",
        "spend",
        "overhead",
        "duration",
        "total",
    }
)
# What no query can be silent of.
_ABOUT = frozenset(
    {"op", "gap", "mfu", "intensity", "roofline", "flop", "byte", "launch", "compile", "donate"}
)
_LISTED = frozenset({"op", "step", "region", "program", "device", "family"})


@dataclass(frozen=True)
class Route:
    """The query and what it is asked with, once for each thing that is named; or a refusal."""

    query: Query | None
    parameters: tuple[Parameters, ...] = ()
    refusal: CannotAnswer | None = None
    asked: Question | None = None


def route(summary: ProfileSummary, question: str, queries: Sequence[Query]) -> Route:
    """The query that the question asks for."""
    direct = "_".join(words_of(question))
    for query in queries:
        if direct == query.name:
            return Route(query, (Parameters(),))
    asked = take_apart(summary, question)
    ranked = _ranked(asked.concepts - asked.unit_concepts, queries) or _ranked(
        asked.concepts, queries
    )
    ranked = [(score, query) for score, query in ranked if _tells(query, asked)] or ranked
    if asked.elsewhere:
        return Route(None, refusal=_no_change(", ".join(asked.elsewhere)), asked=asked)
    if asked.unknown:
        return Route(None, refusal=_unknown(asked.unknown), asked=asked)
    leaving = any(_leaves_out(query, asked) for score, query in ranked if score == ranked[0][0])
    if asked.refused is not None and ranked and not leaving:
        return Route(None, refusal=_negated(asked.refused), asked=asked)
    best = ranked[0][1] if ranked else None
    missing = asked.missing
    if missing is not None and not _looks_up(best, missing):
        refusal = no_such(missing.text, missing.found, *_what(missing))
        return Route(best, refusal=refusal, asked=asked)
    if best is None and not asked.unknown:
        best = _of_time(asked, queries)
        ranked = [(1, best)] if best else []
    if best is None:
        return Route(None, asked=asked)
    taker = _taker(asked, ranked, queries)
    if taker is not None and taker.name == "what_if" and not _changes(asked):
        return Route(taker, refusal=_no_change("What is to be different"), asked=asked)
    if taker is None and asked.parameters.without:
        return Route(best, refusal=_negated(_named(asked)), asked=asked)
    if taker is None:
        return Route(best, refusal=_cannot_narrow(best, asked, queries), asked=asked)
    return Route(taker, _given(asked, taker), asked=asked)


def _ranked(concepts: frozenset[str], queries: Sequence[Query]) -> list[tuple[int, Query]]:
    scores = [
        (max((one.score for one in query.intents if one.matches(concepts)), default=0), query)
        for query in queries
    ]
    return sorted((one for one in scores if one[0]), key=lambda one: -one[0])


def _looks_up(query: Query | None, missing: Mention) -> bool:
    """Ops of an ambiguous name are told apart by queries that know what they list."""
    return query is not None and "op" in query.parameters and missing.found.are_ops


def _what(missing: Mention) -> tuple[str, ...]:
    return (missing.kind,) if missing.kind else ()


def _taker(
    asked: Question, ranked: Sequence[tuple[int, Query]], queries: Sequence[Query]
) -> Query | None:
    """The likeliest query that takes everything that narrows the question."""
    likeliest = [query for score, query in ranked if score == ranked[0][0]]
    fits = next((query for query in likeliest if _takes(query, asked)), None)
    if fits is not None:
        return fits
    return _of_time(asked, queries)


def _of_time(asked: Question, queries: Sequence[Query]) -> Query | None:
    """The sum of the time of what is named, where a time is asked for."""
    lists = asked.listed & _LISTED and asked.parameters.without
    if lists or not asked.concepts & _ABOUT_TIME or not _has_part(asked):
        return None
    return next(
        (query for query in queries if query.name == TIME_OF and _takes(query, asked)), None
    )


def _has_part(asked: Question) -> bool:
    given = asked.parameters
    named = (given.kind, given.by, given.pass_, given.scope, given.family)
    return any(one is not None for one in named)


def _leaves_out(query: Query, asked: Question) -> bool:
    return asked.excluded is not None and asked.excluded in query.leaves_out


def _takes(query: Query, asked: Question) -> bool:
    if asked.refused is not None and not _leaves_out(query, asked):
        return False
    if not asked.narrows <= set(query.parameters) or not _tells(query, asked):
        return False
    fields = query.gives.get(asked.parameters.per or "", ())
    if asked.parameters.per is not None and (asked.says_per or query.gives) and not fields:
        return False
    if fields and asked.counts and not any(_is_count(name) for name in fields):
        return False
    if len(asked.passes) > 1 and "pass" not in query.parameters:
        return False
    return all(_ways(query, one) for one in asked.mentions)


def _is_count(name: str) -> bool:
    return any(part in name for part in ("count", "calls", "executions", "launches", "per_second"))


def _tells(query: Query, asked: Question) -> bool:
    """Whether it speaks of the things that the question is about, or only says why it cannot."""
    return not query.rows or asked.concepts & _ABOUT <= query.told


def _ways(query: Query, mention: Mention) -> list[tuple[str, str]]:
    """How a query can be given what is named."""
    kinds = dict(mention.found.kinds) or {"op": mention.text}
    if mention.kind in kinds:
        kinds = {mention.kind: kinds[mention.kind]}
    return [(kind, kinds[kind]) for kind in THINGS if kind in kinds and kind in query.parameters]


def _given(asked: Question, query: Query) -> tuple[Parameters, ...]:
    """The parameters that the query takes, once for each thing that is named."""
    taken = set(query.parameters)
    bare = dict.fromkeys(THINGS)
    if "kind" not in taken or (asked.mentions and "kind" not in asked.narrows):
        bare["kind"] = None
    base = replace(asked.parameters, **bare)  # type: ignore[arg-type]
    is_ranking = "by" in asked.narrows or "kind" in taken or not {"step", "program"} & taken
    if base.per not in query.gives:
        base = replace(base, per=None)
    if not is_ranking:
        base = replace(base, by=None)
    if asked.parameters.family is not None and not asked.mentions and "family" in taken:
        base = replace(base, family=asked.parameters.family)
    if len(asked.passes) > 1:
        return tuple(replace(base, pass_=name) for name in asked.passes)
    if len(asked.devices) > 1:
        return tuple(replace(base, device=number) for number in asked.devices)
    if len(asked.steps) > 1:
        return tuple(replace(base, step=number) for number in asked.steps)
    ways = [_ways(query, one)[0] for one in asked.mentions]
    kinds = [kind for kind, _ in ways]
    if len(set(kinds)) == len(kinds):
        return (replace(base, **dict(ways)),)  # type: ignore[arg-type]
    return tuple(dict.fromkeys(replace(base, **{kind: name}) for kind, name in ways))  # type: ignore[arg-type]


def _unknown(words: Sequence[str]) -> CannotAnswer:
    beyond = [word for word in words if word in BEYOND]
    said = ", ".join(f"'{word[:MOST_OF_WORD]}'" for word in words[:MOST_WORDS])
    if beyond:
        return CannotAnswer(
            f"A profile does not hold what {said} asks for.",
            f"That stands in {BEYOND[beyond[0]]}.",
        )
    return CannotAnswer(
        f"Nothing in the capture is called {said}, and no query knows the word.",
        "Ask with other words, with a name as the answers of top_ops, hierarchical_regions or "
        "programs give it, or one of the candidates.",
    )


def _no_change(what: str) -> CannotAnswer:
    return CannotAnswer(
        f"{what} is none of what can be replayed.",
        "Ask what if communication, a kind of collective, the gaps, an op, a scope, a pass or a "
        "slow device were different; of other machines, sizes or numbers of devices a capture "
        "cannot tell: capture there.",
    )


def _changes(asked: Question) -> bool:
    given = asked.parameters
    named = (
        given.kind,
        given.device,
        given.pass_,
        given.gaps or None,
        given.straggler or None,
        *asked.mentions,
    )
    return any(one is not None for one in named)


def _named(asked: Question) -> str:
    """What an answer would be without."""
    given = asked.parameters
    named = asked.mentions[0].text if asked.mentions else None
    return named or given.kind or given.pass_ or given.family or "that"


def _negated(word: str) -> CannotAnswer:
    return CannotAnswer(
        f"The question asks for what is not '{word.lstrip('@')}', and no query tells that.",
        "Ask for all of them, or for the time without communication, compute, transfers, a pass, a "
        "kind, a scope or a family.",
    )


def _cannot_narrow(query: Query, asked: Question, queries: Sequence[Query]) -> CannotAnswer:
    given = asked.parameters.given()
    lacking = [
        f"{name} {given[name]}" if DECLARED[name].kind != "flag" else "all the rest"
        for name in sorted(asked.narrows - set(query.parameters))
    ] + [f"'{one.text}'" for one in asked.mentions if not _ways(query, one)]
    lacking += list(asked.passes) if "pass" not in query.parameters else []
    if not _tells(query, asked):
        silent = ", ".join(f"'{word}'" for word in sorted(asked.concepts & _ABOUT - query.told))
        others = [one.name for one in queries if one.rows and _tells(one, asked)]
        return CannotAnswer(
            f"{query.name} does not tell of {silent}, and no query that does fits the question.",
            f"Ask for one of them alone; these tell of it: {', '.join(others) or 'none of all'}.",
        )
    if not lacking and asked.parameters.per is not None:
        return query.not_per(asked.parameters.per)
    others = [other.name for other in queries if _takes(other, asked) and other is not query]
    return CannotAnswer(
        f"{query.name} is not known for {', '.join(lacking)} alone.",
        f"Ask for it as a whole; these can be asked for {', '.join(lacking)}: "
        f"{', '.join(others) or 'none'}.",
    )


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
