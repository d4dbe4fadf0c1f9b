"""What a host event is, by its name: compiling, launching, copying, a frame, or named by people;
and what people who named it meant.

Contract: names are those that JAX, PJRT, XLA and libtpu give (JAX 0.4 to 0.10). What none of the
patterns knows is NAMED: an annotation of the program's own, which is how people know it.
"""

from __future__ import annotations

import re
from typing import Final

COMPILE: Final = "compile"
READ: Final = "device_read"
WRITE: Final = "device_write"
WAIT: Final = "device_wait"
DISPATCH: Final = "dispatch"
FRAME: Final = "python_frame"
NAMED: Final = "host_event"

# In this order: the first that matches counts.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (WAIT, re.compile(r"\$.* block_until_ready$")),
    (READ, re.compile(r"\$.* (?:_value|__array__|item|tolist|__float__|__int__|device_get)$")),
    (FRAME, re.compile(r"\$")),
    (
        COMPILE,
        re.compile(
            r"(?:backend_|[Xx]la_?|\w*::)?[Cc]ompil(?:e|ing|ation)(?![a-z])|trace_to_jaxpr"
            r"|lower_(?:sharding|jaxpr|parallel)"
        ),
    ),
    (
        READ,
        re.compile(
            r"np\.asarray\(jax\.Array\)|copy_?to_?host|toliteral|jax\.device_get|device_get$"
            r"|d2h dispatch",
            re.IGNORECASE,
        ),
    ),
    (WAIT, re.compile(r"\w*::(?:await|blockhostuntilready)|block_until_ready", re.IGNORECASE)),
    (
        WRITE,
        re.compile(
            r"(?:batched_?)?device_?put|buffer_?from_?host|copy_?from_?host|transfer_?to_?device"
            r"|\w*::bufferfromhost|h2d dispatch",
            re.IGNORECASE,
        ),
    ),
    (
        DISPATCH,
        re.compile(
            r"p?jitfunction\(|\w*executable::|\w*execut(?:e|able)\b|pjrt_\w*execute|pmap|shard_args"
            r"|parsearguments|wait for |launchondevice|doenqueueprogram|handle ?inputs|cugraph"
            r"|culaunch|hiplaunch|thunkexecutor|run_backend|tfrtcpu|\w*::execute|allocatebuffer",
            re.IGNORECASE,
        ),
    ),
)
# What work a name speaks of, by its words; the first that has one counts.
SAVES: Final = "save"
EVALUATES: Final = "evaluate"
LOGS: Final = "log"
LOADS: Final = "load"
_PURPOSES: tuple[tuple[str, frozenset[str]], ...] = (
    (
        SAVES,
        frozenset({"save", "saves", "saving", "checkpoint", "checkpoints", "checkpointer"})
        | {"checkpointing", "ckpt", "serialize", "serialization"},
    ),
    (
        EVALUATES,
        frozenset({"eval", "evals", "evaluate", "evaluation", "evaluator", "valid", "validate"})
        | {"validation"},
    ),
    (
        LOGS,
        frozenset({"log", "logs", "logger", "logging", "metric", "metrics", "report", "tracker"})
        | {"wandb", "tensorboard"},
    ),
    (
        LOADS,
        frozenset({"load", "loads", "loader", "loading", "dataloader", "batch", "batches", "data"})
        | {"dataset", "datasets", "input", "inputs", "fetch", "prefetch", "next", "iter"}
        | {"iterator", "token", "tokens", "tokenize", "tokenizer"},
    ),
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_PROGRAM = re.compile(r"P?jitFunction\((.*)\)$", re.IGNORECASE)


def kind_of_host_event(name: str) -> str:
    """COMPILE, READ, WRITE, WAIT, DISPATCH, FRAME or NAMED."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), NAMED)


def launched_function(name: str) -> str | None:
    """ "PjitFunction(train_step)" -> "train_step"."""
    found = _PROGRAM.match(name)
    return found.group(1) if found else None


def purpose_of(name: str) -> str:
    """SAVES, EVALUATES, LOGS, LOADS, or "" for anything else: "DataLoader.next" -> LOADS."""
    words = {word.lower() for word in _WORDS.findall(name)}
    return next((purpose for purpose, known in _PURPOSES if words & known), "")
