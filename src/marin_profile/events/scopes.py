"""Scope paths: where in the program an op stands, and in which pass.

Contract: `parse_scope` turns a raw op name ("jit(step)/transpose(jvp(mlp))/dot_general:") into
(("jit(step)", "mlp", "dot_general"), "backward"). A value without "/" is an argument's or a
module's name, not a path, and gives None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from marin_profile.base.caches import cached

FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER, OTHER = (
    "forward",
    "backward",
    "recompute",
    "optimizer",
    "other",
)
SEPARATOR = "=>"
COMBINED = "(combined)"

# Segments that tracing adds and that name no part of a model.
DROPPED_SEGMENTS = frozenset(
    {"main", "while", "body", "cond", "body_pred", "scan", "closed_call", "core_call", "xla_call"}
    | {"shard_map", "pallas_call", "checkpoint", "remat", "remat2", "rematted_computation"}
    | {"eval_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_jvp_call"}
    | {"custom_jvp_call_jaxpr", "custom_vjp", "custom_jvp", "pjit", "jit", "XlaModule"}
)
DROPPED_WRAPPERS = frozenset({"jit", "pjit"})
# name(X): the transformation gives way to X.
TRANSPARENT_WRAPPERS = frozenset(
    {
        "jvp", "transpose", "vmap", "pmap", "xmap", "remat", "checkpoint", "shard_map",
        "custom_vjp", "custom_jvp", "linearize",
    }
)  # fmt: skip
OPTIMIZER_TOKENS = frozenset(
    {"optimizer", "optim", "adam", "adamw", "adafactor", "sgd", "lion", "sophia", "muon"}
    | {"apply_updates", "opt_update"}
)
# Arithmetic of an update step: outside the loss, in a program that has a backward pass.
UPDATE_PRIMITIVES = frozenset(
    {"add", "sub", "mul", "div", "sqrt", "rsqrt", "integer_pow", "pow", "square", "max", "min"}
)

# Paths inside paths, as in jvp(layers/jvp(mlp)).
DEEPEST_PATH = 16

_NUMBER = re.compile(r"[0-9]+")
_BRANCH = re.compile(r"branch_\d+_fun")
_WRAPPED = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


def split_path(value: str, separator: str = "/") -> list[str]:
    """The parts between separators that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(value):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(0, depth - 1)
        elif character == separator and depth == 0:
            parts.append(value[start:at])
            start = at + 1
    parts.append(value[start:])
    return parts


@cached
def parse_scope(value: str) -> tuple[tuple[str, ...], str] | None:
    """(segments, pass) of a raw op name, or None if it is no path.

    XLA writes "a;b" for what it merged into one op (the first path counts), and "p/(a:b:c)" for
    what it combined, such as the gradients of one all-reduce: their common path and COMBINED, in
    the pass that most of them are in.
    """
    paths = [path.strip().removesuffix(":") for path in value.split(";")]
    path = next((path for path in paths if "/" in path), None)
    if path is None:
        return None
    *parents, last = split_path(path)
    if last.startswith("(") and last.endswith(")"):
        prefix = "".join(f"{parent}/" for parent in parents)
        return _combined([prefix + part for part in split_path(last[1:-1], ":")])
    return _parse_path(path)


def _combined(paths: list[str]) -> tuple[tuple[str, ...], str] | None:
    parsed = [found for path in paths if (found := _parse_path(path))]
    if not parsed:
        return None
    shared: list[str] = []
    for level in zip(*(segments for segments, _ in parsed), strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    passes = Counter(pass_name for _, pass_name in parsed).most_common()
    undecided = len(passes) > 1 and passes[0][1] == passes[1][1]
    return (*shared, COMBINED), OTHER if undecided else passes[0][0]


def _parse_path(path: str) -> tuple[tuple[str, ...], str] | None:
    segments: list[str] = []
    seen: set[str] = set()
    for index, raw in enumerate(split_path(path)):
        raw = raw.strip()
        for segment in _unwrap(raw, seen, first=index == 0):
            repeats_parent = segment != raw and segments and segments[-1] == segment
            if not repeats_parent:
                segments.append(segment)
    if not segments:
        return None
    return tuple(segments), _pass(seen, segments)


def _unwrap(segment: str, seen: set[str], *, first: bool, depth: int = 0) -> list[str]:
    """The segments inside a segment's wrappers; `seen` collects wrappers and dropped names."""
    while match := _WRAPPED.fullmatch(segment):
        wrapper, inner = match.groups()
        if wrapper in DROPPED_WRAPPERS:
            return [segment] if first else []
        if wrapper not in TRANSPARENT_WRAPPERS:
            break
        seen.add(wrapper)
        segment, first = inner, False
    parts = split_path(segment)
    if len(parts) > 1 and depth < DEEPEST_PATH:
        return [
            inner
            for part in parts
            for inner in _unwrap(part.strip(), seen, first=False, depth=depth + 1)
        ]
    if not segment or segment in DROPPED_SEGMENTS or _BRANCH.fullmatch(segment):
        seen.add(segment)
        return []
    return [segment]


def _pass(seen: set[str], segments: Iterable[str]) -> str:
    """Inside a transposed checkpoint JAX names the recomputed part "rematted_computation"; the
    rest of that checkpoint is the backward pass itself."""
    if "rematted_computation" in seen:
        return RECOMPUTE
    if "transpose" in seen:
        return BACKWARD
    if any(segment.lower() in OPTIMIZER_TOKENS for segment in segments):
        return OPTIMIZER
    return FORWARD if "jvp" in seen else OTHER


def is_update(segments: tuple[str, ...], pass_name: str) -> bool:
    """Whether an op outside the loss looks like part of the parameter update; only meaningful in
    a program that has a backward pass."""
    return pass_name == OTHER and segments[-1] in UPDATE_PRIMITIVES


def numbered_as_one(scope: Sequence[str]) -> str:
    """The path of a scope with "*" for every number: layers that are numbered have one."""
    return _NUMBER.sub("*", "/".join(scope))
