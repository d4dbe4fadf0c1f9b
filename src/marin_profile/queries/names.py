"""Names: what a summary calls by one, and what a person means by one.

Contract
* Programs, families, spans of the host, ops and scopes are looked up in one place (`Names`): exact
  first, then as an unambiguous part, then with a letter or two mistyped (digits never). What is
  ambiguous is never guessed, and what is not there is never left out: candidates are returned.
* An op may also be named by its kind ("psum"), where one op is of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from marin_profile.events.scopes import SEPARATOR, split_path
from marin_profile.queries.kinds import find_kinds, is_of_kind
from marin_profile.queries.model import CannotAnswer
from marin_profile.schema import REMAINDER, ProfileSummary

MOST_CANDIDATES = 10
# Likeness is slow to tell: a large pool is narrowed to names that start alike.
LARGEST_POOL = 2000
MOST_NEAR = 5


@dataclass(frozen=True)
class Match:
    """`name` if one name is meant; else `candidates` (ambiguous, or merely close)."""

    name: str | None = None
    candidates: tuple[str, ...] = ()
    is_ambiguous: bool = False


def known_ops(summary: ProfileSummary) -> frozenset[str]:
    """Every op name that the summary mentions."""
    names: set[str] = set()
    names.update(op.name for op in summary.hot_ops)
    for group in summary.op_groups:
        names.update(group.names)
    names.update(gap_ops(summary))
    names.update(context.op_name for context in summary.gap_region_contexts)
    if summary.coverage:
        names.update(op.name for op in summary.coverage.unattributed_ops)
    return frozenset(names)


def gap_ops(summary: ProfileSummary) -> set[str]:
    """Every op that a gap ends at, as payload or as marker."""
    names = {gap.name for gap in summary.gap_before_ops}
    for gap in summary.gap_before_ops:
        names.update(name for name in (gap.payload_op, gap.marker_op) if name)
    return names


def find_op(wanted: str, names: Iterable[str], summary: ProfileSummary) -> Match:
    """The one op of `names` that `wanted` means, by its name, else by its kind."""
    pool = set(names)
    match = find_name(wanted, pool)
    _, kinds = find_kinds(wanted)
    if match.name is not None or match.is_ambiguous or not kinds:
        return match
    of_kind = sorted(pool & _ops_of_kind(summary, kinds[0]))
    if len(of_kind) == 1:
        return Match(of_kind[0])
    return Match(candidates=tuple(of_kind), is_ambiguous=bool(of_kind))


def _ops_of_kind(summary: ProfileSummary, kind: str) -> set[str]:
    names = {op.name for op in summary.hot_ops if is_of_kind(op.category, kind)}
    for group in summary.op_groups:
        if is_of_kind(group.category, kind):
            names.update(group.names)
    return names


def find_name(wanted: str, names: Iterable[str]) -> Match:
    """The one name that `wanted` means: exact, but for case or "%", or the one it is part of."""
    pool = sorted(set(names))
    if wanted in pool:
        return Match(wanted)
    folded = _fold(wanted)
    for alike in (
        [name for name in pool if _fold(name) == folded],
        [name for name in pool if folded and _is_part(folded, _fold(name))],
    ):
        if len(alike) == 1:
            return Match(alike[0])
        if alike:
            return Match(candidates=tuple(alike), is_ambiguous=True)
    return Match(candidates=_close(folded, pool))


def _fold(name: str) -> str:
    return name.strip().lstrip("%").casefold()


def _close(folded: str, pool: list[str]) -> tuple[str, ...]:
    from difflib import get_close_matches

    by_fold = {_fold(name): name for name in reversed(pool) if len(name) <= 200}
    if len(by_fold) > LARGEST_POOL:
        alike = [fold for fold in sorted(by_fold) if fold[:3] == folded[:3]][:LARGEST_POOL]
        by_fold = {fold: by_fold[fold] for fold in alike}
    near = get_close_matches(folded, by_fold, n=MOST_NEAR, cutoff=0.6)
    ordered = sorted(near, key=lambda fold: (-_likeness(folded, fold), fold))
    return tuple(by_fold[fold] for fold in ordered)


def no_such_op(wanted: str, match: Match) -> CannotAnswer:
    """Why a name that was not found, or not found alone, gives no answer."""
    shown = match.candidates[:MOST_CANDIDATES]
    if match.is_ambiguous:
        return CannotAnswer(
            f"'{wanted}' may mean several ops.",
            "Ask with the full name of one of the candidates"
            + (" (the list is cut)." if len(match.candidates) > len(shown) else "."),
            shown,
        )
    return CannotAnswer(
        f"No op named '{wanted}' is in this summary.",
        "Ask with an op's name as the answer of top_ops gives it.",
        shown,
    )


# One lookup over all that a capture names.

# Of things that are alike in how well they fit, the first is meant.
THINGS = ("program", "family", "span", "op", "scope")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
# With capitals as borders.
_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_WRAPPED = re.compile(r"^(?:jit|pjit|pmap)(?:_|\()")
_SHORT = 4
MOST_HELD = 3
LONG_WORD = 8


@dataclass(frozen=True)
class Found:
    """What a name means: `kinds` maps a kind of thing to the name by which queries find it there.
    `read_as`: the name that was meant, where the text has a letter or two else. Else `ambiguous`
    or `nearest` hold candidates; `held`: some of what there is, where nothing is near."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    read_as: str | None = None
    ambiguous: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    are_ops: bool = False


def fold(name: str) -> str:
    """What stays the same however a name is spelled: "Layers/1", "layer_1" and "layer 1"."""
    folded = ""
    for part in _WORDS.findall(name.casefold()):
        if len(part) > _SHORT and part.endswith("s") and not part.endswith("ss"):
            part = part[:-1]
        joins_digits = folded[-1:].isdecimal() and part[0].isdecimal()
        folded += f".{part}" if joins_digits else part
    return folded


def fold_program(name: str) -> str:
    """A program may be called with or without what jit adds to its function's name."""
    bare = _WRAPPED.sub("", name.strip())
    return fold(bare) or fold(name)


class Names:
    """All named things of one summary."""

    def __init__(self, summary: ProfileSummary) -> None:
        self.summary = summary

    @cached_property
    def programs(self) -> tuple[str, ...]:
        names = {one.name for one in self.summary.programs} - {REMAINDER}
        names |= {one.module for one in self.summary.memory or () if one.module}
        names |= {one.function for host in self.summary.host_activity for one in host.launches}
        return tuple(sorted(names, key=lambda name: (_WRAPPED.match(name) is None, name)))

    @cached_property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted(one.family for one in self.summary.semantic_families))

    @cached_property
    def spans(self) -> tuple[str, ...]:
        """What the user's own code calls: annotations, and functions of the host."""
        names = {one.name for host in self.summary.host_activity for one in host.causes}
        names |= {
            one.cause_name for one in self.summary.step_time.outliers if one.cause == "host_event"
        }
        return tuple(sorted(name for name in names if name))

    @cached_property
    def ops(self) -> frozenset[str]:
        return known_ops(self.summary)

    @cached_property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Every scope, as the parts of its path."""
        paths = {tuple(one.path.split(SEPARATOR)) for one in self.summary.hierarchical_regions}
        paths |= {path_of(group.scope) for group in self.summary.op_groups if group.scope}
        for program in self.summary.memory or ():
            paths |= {path_of(one.scope) for one in program.by_scope if one.scope}
        return tuple(sorted(paths))

    @cached_property
    def parts(self) -> dict[str, str]:
        """Parts of scope paths, by how they fold."""
        parts = sorted({part for path in self.paths for part in path}, reverse=True)
        return {fold_program(part): part for part in parts if fold_program(part)}

    @cached_property
    def _folded_ops(self) -> dict[str, str]:
        return {fold(name): name for name in sorted(self.ops, reverse=True)}

    @cached_property
    def _largest_parts(self) -> tuple[str, ...]:
        """Of the scopes with most time, the parts of the path that the program names."""
        regions = sorted(
            self.summary.hierarchical_regions, key=lambda one: (-one.inclusive_duration, one.path)
        )
        parts = (one.path.split(SEPARATOR)[-1] for one in regions if SEPARATOR in one.path)
        return tuple(dict.fromkeys(parts))[:MOST_HELD]

    def exact(self, text: str) -> dict[str, str]:
        """What is called so, but for case, separators, plurals and the "jit_" of programs."""
        wanted, kinds = fold(text), dict[str, str]()
        if not wanted:
            return kinds
        of_program = fold_program(text)
        for kind, names, key in (
            ("program", self.programs, fold_program),
            ("family", self.families, fold),
            ("span", self.spans, fold),
        ):
            name = next(
                (
                    name
                    for name in names
                    if key(name) == (of_program if kind == "program" else wanted)
                ),
                None,
            )
            if name is not None:
                kinds[kind] = name
        bare = text.strip().lstrip("%")
        if bare in self.ops:
            kinds["op"] = bare
        elif wanted in self._folded_ops:
            kinds["op"] = self._folded_ops[wanted]
        if self.has_scope(text):
            kinds["scope"] = text
        return kinds

    def has_scope(self, text: str) -> bool:
        if fold_program(text) in self.parts:
            return True
        if "*" not in text and not re.search(r"\W|_|\d", text):
            return False
        is_within = within(text)
        return any(is_within(path) for path in self.paths)

    def find(self, text: str, may_be_mistyped: bool = True) -> Found:
        """What a text means that must be a name."""
        kinds = self.exact(text)
        if kinds:
            return Found(kinds)
        wanted = fold(text)
        matched = find_name(text, self.ops)
        parts = [part for part in self.parts.values() if _has_words(part, text)]
        programs = [name for name in self.programs if _has_words(name, text)]
        if wanted and len(programs) == 1:
            kinds["program"] = programs[0]
        if matched.name is not None:
            kinds["op"] = matched.name
        if wanted and len(parts) == 1:
            kinds["scope"] = parts[0]
        if kinds:
            return Found(kinds)
        if matched.is_ambiguous or (wanted and (parts or programs)):
            return Found(
                ambiguous=tuple(sorted({*matched.candidates, *parts, *programs})),
                are_ops=not parts and not programs,
            )
        if not may_be_mistyped:
            return Found()
        pool = {fold(name): name for name in (*self.spans, *self.families)}
        pool |= {fold_program(name): name for name in reversed(self.programs)} | self.parts
        meant = mistyped(wanted, pool) or mistyped(wanted, self._folded_ops)
        if meant is not None:
            name = pool.get(meant) or self._folded_ops[meant]
            return Found(self.exact(name), read_as=name)
        near = _close(_fold(text), sorted({*pool.values(), *self.ops}))
        ran = {fold_program(one.name): one.name for one in reversed(self.summary.programs)}
        held = (*reversed(ran.values()), *self._largest_parts)[: 2 * MOST_HELD]
        return Found(nearest=near, held=() if near else tuple(dict.fromkeys(held)))


def mistyped(word: str, known: Iterable[str], likelier: Container[str] = frozenset()) -> str | None:
    """The one known word that differs from this one in a letter, or in two of a long one; digits
    never differ. None where several are as near."""
    from difflib import get_close_matches

    if len(word) < _SHORT - 1:
        return None
    digits = [letter for letter in word if letter.isdecimal()]
    most = 2 if len(word) >= LONG_WORD else 1
    alike = [
        name
        for name in known
        if abs(len(name) - len(word)) <= most
        and len(name) >= _SHORT
        and [letter for letter in name if letter.isdecimal()] == digits
    ]
    near = get_close_matches(word, sorted(alike), n=5, cutoff=0.7)
    by_distance = sorted(
        (_edits(word, name), name not in likelier, -_likeness(word, name), name) for name in near
    )
    if not by_distance or by_distance[0][0] > most:
        return None
    if len(by_distance) > 1 and by_distance[1][:3] == by_distance[0][:3]:
        return None
    return by_distance[0][3]


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


def _edits(one: str, other: str) -> int:
    """Letters to put in, take out, change or swap with the next."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        following = [at]
        for to, wanted in enumerate(other, 1):
            cost = min(row[to] + 1, following[to - 1] + 1, row[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, before[to - 2] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]


def path_of(scope: str) -> tuple[str, ...]:
    return tuple(split_path(scope.strip(":").replace(SEPARATOR, "/")))


def within(scope: str) -> Callable[[Sequence[str]], bool]:
    """Whether a path goes through a scope: its parts stand in the path, one behind the other,
    spelled alike; "*" in a part is any text."""
    parts = [part for part in path_of(scope) if part]
    wanted = _joined(fold_program(part) for part in parts)
    patterns = (
        [re.compile(re.escape(part).replace(r"\*", ".*"), re.IGNORECASE) for part in parts]
        if "*" in scope
        else []
    )

    def is_within(path: Sequence[str]) -> bool:
        if patterns:
            return any(
                at + len(patterns) <= len(path)
                and all(
                    part.fullmatch(own)
                    for part, own in zip(patterns, path[at : at + len(patterns)], strict=True)
                )
                for at in range(len(path))
            )
        folds = [_folded_part(part) for part in path]
        return any(_runs_to(wanted, folds[at:]) for at in range(len(folds)))

    return is_within


def _joined(folds: Iterable[str]) -> str:
    """Folds one behind the other, with numbers kept apart."""
    run = ""
    for part in folds:
        run += f".{part}" if run[-1:].isdecimal() and part[:1].isdecimal() else part
    return run


def _runs_to(wanted: str, folds: Sequence[str]) -> bool:
    run = ""
    for part in folds:
        run = _joined((run, part))
        if run == wanted:
            return bool(wanted)
        if not wanted.startswith(run):
            return False
    return False


@cache
def _folded_part(part: str) -> str:
    return fold_program(part)


def _has_words(name: str, text: str) -> bool:
    """Whether the words of a text stand in a name, one behind the other: "linear" or "row
    parallel" in "RowParallelLinear"."""
    words, wanted = _split(name), _split(text)
    return bool(wanted) and any(
        words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1)
    )


def _split(name: str) -> list[str]:
    return [fold(word) for word in _NAME_WORDS.findall(name)]


def _is_part(wanted: str, folded: str) -> bool:
    """Whether a fold stands in another one, numbers whole."""
    at = folded.find(wanted)
    if not wanted or at < 0:
        return False
    before, after = folded[at - 1 : at], folded[at + len(wanted) :][:1]
    return not (wanted[0].isdecimal() and before.isdecimal()) and not (
        wanted[-1].isdecimal() and after.isdecimal()
    )


def no_such(text: str, found: Found, what: str = "op, region, program or span") -> CannotAnswer:
    """Why a name gives no answer."""
    if found.ambiguous:
        shown = found.ambiguous[:MOST_CANDIDATES]
        return CannotAnswer(
            f"'{text}' may mean several things.",
            "Ask with the full name of one of the candidates"
            + (" (the list is cut)." if len(found.ambiguous) > len(shown) else "."),
            shown,
        )
    near = f" The nearest: {', '.join(found.nearest)}." if found.nearest else ""
    near = f" There are {', '.join(found.held)}." if found.held else near
    return CannotAnswer(
        f"No {what} of this capture is called '{text}'.{near}",
        "Ask with a name as the answers of top_ops, hierarchical_regions or programs give it.",
        found.nearest or found.held,
    )
