"""A question in words, taken apart: its concepts, its parameters, and what is not understood.

Contract
* Whole words only. Names of things in the capture, kinds, passes and numbered devices and steps are
  recognised first and stand in the word list as "@op", "@scope", "@program", "@family", "@span",
  "@kind" ("@collective"), "@pass", "@device", "@step".
* Nothing is dropped in silence: a name that is not in the capture is in `missing`, a word with no
  meaning here in `unknown`, what was read otherwise in `read_as`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marin_profile.base.errors import UsageError
from marin_profile.events.classify import COMPUTE
from marin_profile.queries.kinds import COMMUNICATION, TRANSFER, find_kinds, is_of_kind
from marin_profile.queries.lexicon import (
    BEYOND,
    MEANINGFUL,
    NEGATIONS,
    NUMBER_WORDS,
    PASS_WORDS,
    STOP_WORDS,
    concept_of,
    is_known_word,
    is_said,
    vocabulary,
    words_of,
)
from marin_profile.queries.names import THINGS, Found, Names, mistyped
from marin_profile.queries.parameters import LEAST, Parameters
from marin_profile.queries.settle import step_number
from marin_profile.queries.wording import (
    LEAVE_OUT,
    counted,
    left_out,
    moved,
    other_hardware,
    work_of,
)
from marin_profile.schema import CAPTURE, ProfileSummary

_QUOTED = re.compile(
    r"```(.+?)```|``(.+?)``|`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)", re.DOTALL
)
# A token that looks like a name: numbered ("copy.1"), joined ("add_fusion", "a/b", "jit(f)",
# "%name"), or with capitals inside ("MlpBlock").
_NAME_LIKE = re.compile(
    r"(?<![\w.\-/%])(?:%[\w.\-]+|[\w.\-*]+(?:\([\w.\-]*\))?(?:(?:/|=>)[\w.\-()*:]+)+|\w+\([\w.\-]*\)"
    r"|[A-Za-z][\w\-]*(?:\.[\w\-]+)*\.\d+|\w*[A-Za-z]_\w*|[A-Z]?[a-z]+[A-Z]\w*|_\w+)"
)
_THING_WORDS = {
    "op": "op", "operation": "op", "kernel": "op", "instruction": "op",
    "scope": "scope", "region": "scope", "layer": "scope", "module": "scope", "block": "scope",
    "program": "program", "executable": "program",
    "family": "family", "span": "span", "annotation": "span",
}  # fmt: skip
_POINTED_AT = re.compile(
    r"(?<!@)\b(?P<where>before|preceding|named|called|context\s+(?:for|of)|about|of|for|in|inside|"
    r"within|" + "|".join(_THING_WORDS) + r")\s+"
    r"(?:(?:the|a|an|each|every|any|all|op|ops|operation|kernel|instruction|function)\s+)*"
    r"(?P<name>[A-Za-z][\w\-]*)(?!\s*\()",
    re.IGNORECASE,
)
_TRAILED = re.compile(
    r"\bthe\s+(?P<name>[A-Za-z][\w\-]*)\s+(?P<where>" + "|".join(_THING_WORDS) + r")\b",
    re.IGNORECASE,
)
# Where whatever follows is meant as a name; elsewhere it must be one that is known.
_STRONG = re.compile(r"before|preceding|named|called|context", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\b(?P<name>(?:layer|block|stage|expert|head|encoder|decoder|scope|region)s?[ #]+\d+)\b",
    re.IGNORECASE,
)
_PER = re.compile(
    r"(?:\bper|\beach|\bevery|\bin (?:a|one|each|every|a single)|/)\s*(?:training\s+|train\s+|"
    r"single\s+|[a-z\-]+\s+(?=call|execution|invocation))?"
    r"(?P<unit>steps?|iterations?|devices?|gpus?|tpus?|"
    r"chips?|cores?|calls?|executions?|invocations?|seconds?|s)\b",
    re.IGNORECASE,
)
_UNITS = {
    "step": "step", "iteration": "step", "call": "call", "execution": "call", "invocation": "call",
    "second": "second", "s": "second", "": "second",
}  # fmt: skip
_COUNTED = frozenset(
    {"op", "collective", "gap", "region", "step", "device", "family", "suggest", "kind"}
    | {"hotspot", "context", "pass", "problem", "buffer", "transfer", "program", "loop"}
    | {"@kind", "@collective"}
)
_NOT_COUNTED_AFTER = frozenset({"step", "device", "host", "layer", "region", "p", "last"})
_QUALIFIERS = frozenset(
    {"top", "least", "dominate", "communication", "compute", "transfer", "collective", "@pass"}
    | {"@kind", "@collective", "most", "of", "the", "first", "idle", "exposed", "expose"}
)
# What is not one of these is something else that a summary tells of.
_OPPOSITES = {"hide": "expose", "overlap": "expose", "idle": "busy", "busy": "idle"}
_PARTS_OF_TIME = frozenset(
    {
        "communication",
        "collective",
        "compute",
        "transfer",
        "idle",
        "@pass",
        "@kind",
        "@scope",
        "@op",
    }
    | {"@family", "@program"}
)
_POLAR = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "does",
        "do",
        "did",
        "has",
        "have",
        "isn",
        "aren",
        "why",
        "can",
        "could",
        "should",
        "would",
        "will",
        "am",
        "if",
    ]
)
_RANKED = frozenset({"step", "program", "region", "family", "pass"})
_DEVICE_TERMS = ("idle", "busy", "compute", "communication", "transfer")


@dataclass(frozen=True)
class Mention:
    """Something called by a name: as it was said, and what it means."""

    text: str
    found: Found
    kind: str | None = None  # said beside it ("the program X")


@dataclass(frozen=True)
class Question:
    """A question taken apart. `narrows`: parameters that the answer must take; `things`: the ways
    in which the named thing can be given to a query, the likeliest first; `unit_concepts`: those
    that only say per what is asked; `passes`, `devices`, `steps`: all that are named; `refused`:
    the negated word that nothing can be made of; `counts`: how often is asked; `says_per`: "per",
    and not merely "each" or "every"; `excluded`: what is to be left out, which some figures leave
    out by what they are; `elsewhere`: hardware that is not the capture's; `listed`: concepts, but
    for the device in "device time"."""

    text: str
    concepts: frozenset[str]
    parameters: Parameters
    unit_concepts: frozenset[str] = frozenset()
    passes: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    narrows: frozenset[str] = frozenset()
    things: tuple[tuple[str, str], ...] = ()
    mentions: tuple[Mention, ...] = ()
    unknown: tuple[str, ...] = ()
    read_as: tuple[tuple[str, str], ...] = ()
    refused: str | None = None
    counts: bool = False
    says_per: bool = False
    excluded: str | None = None
    elsewhere: tuple[str, ...] = ()
    listed: frozenset[str] = frozenset()

    @property
    def missing(self) -> Mention | None:
        return next((one for one in self.mentions if not one.found.kinds), None)


def take_apart(summary: ProfileSummary, question: str) -> Question:
    """The concepts and the parameters of a question."""
    names = Names(summary)
    text, mentions = _take_named(question, names)
    text, elsewhere = _take_hardware(text, summary)
    text = moved(counted(left_out(text)))
    text, kinds = find_kinds(_NUMBERED_PLAINLY.sub(r"\1 \2", text))
    text, pointed = _take_pointed_at(text, names)
    mentions += pointed
    for kind in kinds:
        text = text.replace(
            kind, " @collective @kind " if is_of_kind(kind, COMMUNICATION) else " @kind "
        )
    text, grams = _take_words(text, names)
    mentions += grams
    words, parts, read_as, unknown = _spelled(words_of(text), names)
    mentions += parts
    concepts = [PASS_WORDS[word] if word in PASS_WORDS else concept_of(word) for word in words]
    passes = {PASS_WORDS[word] for word in words if word in PASS_WORDS}
    tokens = ["@pass" if concept in PASS_WORDS.values() else concept for concept in concepts]
    devices, steps = _numbers(words, tokens, "device"), _numbers(words, tokens, "step")
    steps = steps or _end_step(summary, text)
    device, step = next(iter(devices), None), next(iter(steps), None)
    unknown += _SPAN_OF_TIME.findall(text)
    per = _per(question) or _per(" ".join(words)) or ("share" if "share" in tokens else None)
    tokens, negated = _negation(tokens)
    things = _things(mentions)
    found = frozenset(tokens)
    found |= {"@device"} if device is not None else set()
    found |= {"@step"} if step is not None else set()
    found |= {f"@{kind}" for kind, _ in things}
    found |= {"top"} if "least" in found else set()
    # "Compute bound" names what binds, not what is bound.
    group = None if "bound" in found and _kind_group(tokens) == COMPUTE else _kind_group(tokens)
    values = dict(things)
    one_of_each = [one for one in mentions if one.found.kinds]
    op = values.get("op")
    if op is None and mentions and not one_of_each:
        op = mentions[0].text
    is_straggler = "if" in found and "@device" not in found and _is_slow_device(found)
    parameters = Parameters(
        limit=_limit(words, tokens),
        op=op,
        scope=values.get("scope"),
        program=values.get("program"),
        kind=_only(set(kinds)) if kinds else group,
        family=values.get("family"),
        pass_=_only(passes),
        window=CAPTURE if {"whole", "entire", "full"} & found else None,
        device=device,
        step=step,
        per=per,
        order=LEAST if "least" in found else None,
        by=None if is_straggler else _by(found - _unit_concepts(words, tokens)),
        without=negated is not None and negated.is_told,
        straggler=is_straggler,
        single="gap" in found and bool(_LARGEST & {*words}),
        gaps=bool({"gap", "idle"} & found and {"if", "without"} & found),
    )
    narrows: set[str] = {
        name
        for name in ("device", "step", "order", "without", "straggler")
        if name in parameters.given()
    }
    narrows |= {"pass"} if parameters.pass_ else set()
    if any(token in ("@kind", "@collective") for token in tokens):
        narrows |= {"kind"} if parameters.kind else set()
    if narrows & {"pass", "device", "step"} or things:
        narrows |= {"kind"} if parameters.kind else set()
    if "top" in found and parameters.by is not None and _RANKED & found and "op" not in found:
        narrows |= {"by"}
    named = [
        (one.text, one.found.read_as)
        for one in mentions
        if one.found.read_as is not None and one.text != one.found.read_as
    ]
    return Question(
        text=question,
        counts=_COUNTS.search(question) is not None,
        says_per=per == "share" or _SAYS_PER.search(question) is not None,
        concepts=found,
        parameters=parameters,
        unit_concepts=_unit_concepts(words, tokens),
        passes=tuple(sorted(passes)),
        devices=devices,
        steps=steps,
        narrows=frozenset(narrows),
        things=things,
        mentions=tuple(mentions),
        unknown=tuple(unknown),
        read_as=tuple(dict.fromkeys((*read_as, *named))),
        refused=negated.target if negated and not negated.is_told else None,
        excluded=negated.target if negated and negated.is_left_out else None,
        elsewhere=tuple(elsewhere),
        listed=frozenset(
            token
            for token, following in zip(tokens, (*tokens[1:], ""), strict=False)
            if following != "time"
        ),
    )


_LARGEST = frozenset({"longest", "largest", "biggest", "maximum", "max", "single", "worst"})


def _take_hardware(text: str, summary: ProfileSummary) -> tuple[str, list[str]]:
    run = summary.run_metadata
    return other_hardware(text, run.hardware_type, run.num_devices)


def _is_slow_device(found: frozenset[str]) -> bool:
    return "straggler" in found or ("device" in found and bool({"top", "slower", "late"} & found))


def _token(mention: Mention) -> str:
    kinds = mention.found.kinds
    if not kinds:
        return f"@{mention.kind or 'op'}"
    return f"@{_best(kinds, mention.kind)}"


def _best(kinds: Iterable[str], said: str | None) -> str:
    given = set(kinds)
    return said if said in given else next(kind for kind in THINGS if kind in given)


def _things(mentions: Sequence[Mention]) -> tuple[tuple[str, str], ...]:
    """What is named, once per kind of thing; names of one kind that differ are left open."""
    values: dict[str, set[str]] = {}
    for one in mentions:
        kinds = dict(one.found.kinds)
        if one.kind in kinds:
            kinds = {one.kind: kinds[one.kind]}
        for kind, name in kinds.items():
            values.setdefault(kind, set()).add(name)
    return tuple(
        (kind, next(iter(values[kind])))
        for kind in THINGS
        if kind in values and len(values[kind]) == 1
    )


def _take_named(question: str, names: Names) -> tuple[str, list[Mention]]:
    """Names that are quoted, that stand in the text as they are, or that look like names."""
    mentions: list[Mention] = []
    text = question
    quotes: list[Mention] = []
    for quoted in reversed(list(_QUOTED.finditer(question))):
        name = next(group for group in quoted.groups() if group is not None).strip()
        found = names.find(name)
        if found.kinds or not _is_plain(name):
            mention = Mention(name, found, _said_before(text, quoted.start()))
            text = _put(text, quoted.start(), quoted.end(), mention, quotes)
    mentions += reversed(quotes)
    while (standing := _standing(text, names)) is not None:
        at, name = standing
        text = _put(text, at, at + len(name), Mention(name, names.find(name)), mentions)
    alike: list[Mention] = []
    for like in reversed(list(_NAME_LIKE.finditer(text))):
        name = like.group().rstrip(".-")
        if _is_plain(name) or "@" in name or find_kinds(name)[1]:
            continue
        mention = Mention(name.lstrip("%"), names.find(name), _said_before(text, like.start()))
        text = _put(text, like.start(), like.start() + len(name), mention, alike)
    for like in reversed(list(_NUMBERED.finditer(text))):
        found = names.find(like.group())
        text = _put(text, like.start(), like.end(), Mention(like.group(), found, "scope"), alike)
    mentions += reversed(alike)
    return text, mentions


def _put(text: str, at: int, end: int, mention: Mention, mentions: list[Mention]) -> str:
    mentions.append(mention)
    return f"{text[:at]} {_token(mention)} {text[end:]}"


def _said_before(text: str, at: int) -> str | None:
    before = words_of(text[:at])[-1:]
    return _THING_WORDS.get(before[0].rstrip("s")) if before else None


def _standing(text: str, names: Names) -> tuple[int, str] | None:
    """The first name, and of several there the longest, that stands whole in the text."""
    known = {*names.ops, *names.programs, *names.spans}
    standing = [
        (at, -len(name), name)
        for name in known
        if _is_name_like(name) and (at := _position(name, text)) is not None
    ]
    return (min(standing)[0], min(standing)[2]) if standing else None


def _is_name_like(name: str) -> bool:
    """Names of letters alone ("copy", "all-reduce") need pointing at: they are words as well."""
    return any(character in "._%0123456789(<" for character in name) and len(name) > 2


def _is_plain(token: str) -> bool:
    """Whether a quoted or joined name is mere words ("step_time")."""
    parts = words_of(re.sub(r"[_/]", " ", token))
    return bool(parts) and all(is_known_word(part) and not part.isdecimal() for part in parts)


def _position(name: str, text: str) -> int | None:
    """Where a name stands in a text, not as a part of a longer one."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 2]
        joins_before = before.isalnum() or before in ("_", ".", "-", "/", "@")
        joins_after = after[:1].isalnum() or after[:1] in ("_", "-", "/")
        joins_after = joins_after or (after[:1] == "." and after[1:].isalnum())
        if not (before and joins_before) and not (after and joins_after):
            return at
        at = text.find(name, at + 1)
    return None


def _take_pointed_at(text: str, names: Names) -> tuple[str, list[Mention]]:
    """What a question points at: "gap before X", "context for X", "program X", "the X layer"."""
    for match in (*_POINTED_AT.finditer(text), *_TRAILED.finditer(text)):
        name, where = match.group("name").rstrip("-"), match.group("where").lower()
        if match.start("name") and text[match.start("name") - 1] == "@":
            continue
        if find_kinds(name)[1] and _THING_WORDS.get(where) != "op" and not _STRONG.match(where):
            continue  # A kind, though an op may be called so.
        is_stop, is_word = name.casefold() in STOP_WORDS, is_said(name.casefold())
        is_word = is_word or bool(work_of(name.casefold()))
        kind = _THING_WORDS.get(where)
        found = names.find(name) if kind or not is_stop else Found()
        is_here = kind in found.kinds if kind else bool(found.kinds)
        is_there = bool(names.exact(name))
        if is_stop and not (kind and kind in names.exact(name) and name.casefold() != "a"):
            continue
        is_strong = _STRONG.match(where) is not None
        means_words = is_known_word(name.casefold()) and not is_there
        is_own = not is_known_word(name.casefold())
        is_name = is_there and (is_own or (kind is not None and is_here))
        if (is_strong and not means_words) or is_name or (kind and not is_word):
            mentions: list[Mention] = []
            mention = Mention(name, found, kind)
            return _put(text, match.start("name"), match.end("name"), mention, mentions), mentions
    return text, []


_GRAM = re.compile(r"(?<![\w@.])[A-Za-z][\w\-]*")
_LONGEST_GRAM = 4
# "gpu0", "TPU:3", "step #7"
_NUMBERED_PLAINLY = re.compile(
    r"\b(device|gpu|tpu|chip|step)s?[ #:]*(\d+)\b(?!\.\d)", re.IGNORECASE
)
_END_STEP = re.compile(r"\b(first|initial|last|final)\s+step\b", re.IGNORECASE)
_SPAN_OF_TIME = re.compile(
    r"\b\d[\d.]*\s*(?:ms|us|µs|ns|s|secs?|(?:milli|micro|nano)?seconds?|minutes?|hours?)\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"\bhow\s+(?:many\s+times|often)\b", re.IGNORECASE)
_SAYS_PER = re.compile(r"\bper\b|/", re.IGNORECASE)
_PERCENTILE = re.compile(r"p\d\d+")
SHORTEST_PART = 3


def _take_words(text: str, names: Names) -> tuple[str, list[Mention]]:
    """Names that stand in the text as words: "mlp up", "attention"."""
    mentions: list[Mention] = []
    words = list(_GRAM.finditer(text))
    at = 0
    while at < len(words):
        for size in range(min(_LONGEST_GRAM, len(words) - at), 0, -1):
            first, last = words[at], words[at + size - 1]
            said = text[first.start() : last.end()]
            parts = words_of(said)
            is_pointed_at = size > 1 and _said_before(text, first.start()) is not None
            is_said_only = all(is_said(part) for part in parts) and not is_pointed_at
            if not parts or is_said_only or "@" in said:
                continue
            kinds = names.exact(said)
            if kinds:
                mention = Mention(said, Found(kinds))
                mentions.append(mention)
                blank = f"@{_best(kinds, None)}"
                text = f"{text[: first.start()]} {blank} {text[last.end() :]}"
                words = list(_GRAM.finditer(text))
                at = (
                    next(
                        (i for i, w in enumerate(words) if w.start() > first.start() + len(blank)),
                        len(words),
                    )
                    - 1
                )
                break
        at += 1
    return text, mentions


def _spelled(
    words: list[str], names: Names
) -> tuple[list[str], list[Mention], list[tuple[str, str]], list[str]]:
    """The words with parts of names and mistyped ones put right; the names, what was read as what,
    and what nothing is made of."""
    spelled: list[str] = []
    mentions: list[Mention] = []
    read_as: list[tuple[str, str]] = []
    unknown: list[str] = []
    for word in words:
        if _PERCENTILE.fullmatch(word):
            if word not in ("p50", "p90"):
                unknown.append(word)
            spelled.append(word)
            continue
        if work_of(word):
            mentions.append(_working(word, names))
            spelled.append(_token(mentions[-1]))
            continue
        if word.startswith("@") or is_said(word) or word[0].isdecimal():
            spelled.append(word)
            continue
        if any(letter.isdecimal() for letter in word):
            mentions.append(Mention(word, names.find(word)))
            spelled.append(_token(mentions[-1]))
            continue
        found = names.find(word, may_be_mistyped=False) if len(word) >= SHORTEST_PART else Found()
        meant = None
        if not found.kinds and not found.ambiguous:
            meant = mistyped(word, vocabulary(), MEANINGFUL)
            found = Found() if meant or len(word) < SHORTEST_PART else names.find(word)
        if found.kinds or found.ambiguous:
            mentions.append(Mention(word, found))
            spelled.append(_token(mentions[-1]))
        elif swapped := _swapped(word):
            read_as.append((word, swapped))
            spelled.append(swapped)
        elif meant is not None and meant not in BEYOND:
            read_as.append((word, meant))
            spelled.append(meant)
        else:
            unknown.append(meant or word)
            spelled.append(word)
    return spelled, mentions, read_as, unknown


def _working(word: str, names: Names) -> Mention:
    """What does such work: a program, a span or a scope that is called by it or cut short."""
    tried = [names.find(one, may_be_mistyped=False) for one in work_of(word)]
    found = next((one for one in tried if one.kinds), None) or next(
        (one for one in tried if one.ambiguous), None
    )
    return Mention(word, found or names.find(word), None if found else "program")


def _swapped(word: str) -> str | None:
    """The word that only links, of three letters of which two are swapped ("teh")."""
    if len(word) != 3:
        return None
    found = {word[1] + word[0] + word[2], word[0] + word[2] + word[1]} & STOP_WORDS
    return next(iter(found)) if len(found) == 1 else None


@dataclass(frozen=True)
class _Negated:
    """`target`: what is not meant. `is_told`: it is one part of the time, and no other is named;
    `is_left_out`: said of what is counted, not of what is so."""

    target: str
    is_told: bool
    is_left_out: bool


def _negation(tokens: Sequence[str]) -> tuple[list[str], _Negated | None]:
    """What is negated: its opposite takes its place where there is one; of parts of the time, and
    of what nothing can be made of, the concept is returned."""
    said = list(tokens)
    for at, token in enumerate(tokens):
        if token not in NEGATIONS:
            continue
        is_left_out = token == LEAVE_OUT
        if "if" in tokens[:at] and not is_left_out:
            continue  # What would be different: no part of what is asked for.
        following = [
            (to, word)
            for to, word in enumerate(tokens[at + 1 :], at + 1)
            if word not in STOP_WORDS and word not in _NOT_NEGATED
        ]
        if not following or token == "neither":
            return said, _Negated(token, is_told=False, is_left_out=False)
        to, target = following[0]
        until = to + 1
        if target in ("collective", "@collective") and tokens[until : until + 1] == ["@kind"]:
            target, until = "@kind", until + 1
        if target == "attribution":
            continue
        if target in _OPPOSITES and not is_left_out:
            said[to] = _OPPOSITES[target]
            continue
        if tokens[0] in _POLAR and not is_left_out:
            continue
        others = {*tokens[:at], *tokens[until:]} & _PARTS_OF_TIME
        is_told = target in _PARTS_OF_TIME and not others
        if is_left_out and target not in _PARTS_OF_TIME:
            del said[at:until]
        return said, _Negated(target, is_told, is_left_out)
    return said, None


_NOT_NEGATED = frozenset({"than", "from", "time", "spend", "take", "count", "other"})


_OTHER_MEASURES = (
    ("bytes", frozenset({"byte", "bandwidth"})),
    ("flops", frozenset({"flop"})),
    ("count", frozenset({"often", "frequent", "frequently", "count"})),
)


def _by(found: frozenset[str]) -> str | None:
    """What devices are compared by; slow ones by what they compute."""
    terms = [term for term in _DEVICE_TERMS if term in found]
    term = terms[0] if len(terms) == 1 else None
    if "op" in found and "top" in found:
        return next((other for other, words in _OTHER_MEASURES if words & found), None)
    if term is None and "device" in found and {"top", "slower", "least"} & found:
        return "compute"
    return term


def _only(names: set[str]) -> str | None:
    """The one name to look at; a question that names several compares them."""
    return next(iter(names)) if len(names) == 1 else None


def _kind_group(tokens: Sequence[str]) -> str | None:
    if "communication" in tokens or "collective" in tokens:
        return COMMUNICATION
    if "transfer" in tokens:
        return TRANSFER
    return COMPUTE if "compute" in tokens else None


_JOINS, _TO = frozenset({"and", "or", "vs", "versus", "than"}), frozenset({"to", "through"})
MOST_NUMBERS = 32


def _numbers(words: Sequence[str], tokens: Sequence[str], what: str) -> tuple[int, ...]:
    """The numbers behind devices or steps: "gpu 3", "devices 0 and 1", "steps 3 to 7"."""
    found: list[int] = []
    for at, token in enumerate(tokens):
        if token != what:
            continue
        to, join = at + 1, ""
        while to < len(words) and words[to].isdecimal() and len(words[to]) < 19:
            number = int(words[to])
            if join in _TO and found and 0 < number - found[-1] < MOST_NUMBERS:
                found += range(found[-1] + 1, number)
            found.append(number)
            join = words[to + 1] if to + 1 < len(words) else ""
            to += 2 if join in _JOINS | _TO else 1
    return tuple(dict.fromkeys(found))


def _end_step(summary: ProfileSummary, text: str) -> tuple[int, ...]:
    """The number of the first or of the last step, where one of these is asked for."""
    match, known = _END_STEP.search(text), summary.step_time.steps
    if match is None or not known:
        return ()
    is_first = match.group(1).lower() in ("first", "initial")
    return (step_number(known[0] if is_first else known[-1]),)


def _per(question: str) -> str | None:
    match = _PER.search(question)
    if match is None:
        return None
    unit = match.group("unit").lower()
    said = match.group().lower()
    if unit == "s" and "/" not in said and "per" not in said:
        return None
    if not said.startswith(("per", "/", "each", "every", "in")):
        return None
    return _UNITS.get(unit.rstrip("s"), "device")


_UNIT_WORDS = frozenset({"step", "device", "call", "execution", "invocation", "second"})


def _unit_concepts(words: Sequence[str], tokens: Sequence[str]) -> frozenset[str]:
    """The concepts that stand in the question as units alone ("per step")."""
    units = {
        token
        for at, token in enumerate(tokens)
        if token in _UNIT_WORDS and at and words[at - 1] in ("per", "each", "every")
    }
    elsewhere = {
        token
        for at, token in enumerate(tokens)
        if token in units and not (at and words[at - 1] in ("per", "each", "every"))
    }
    return frozenset(units - elsewhere)


def _limit(words: Sequence[str], tokens: Sequence[str]) -> int | None:
    """The number of rows asked for: "top 5", "five slowest ops", "first 3 gaps"."""
    for at, word in enumerate(words):
        is_number = word.isdecimal() and len(word) < 19
        number = NUMBER_WORDS.get(word) or (int(word) if is_number else None)
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
