"""Words of questions -> concepts.

Contract: whole words only ("stop" holds no "op"); a plural is its singular; words that mean the
same here share one concept. A word in no table is its own concept.
"""

from __future__ import annotations

import re

_CONCEPTS = {
    "op": (
        "op ops operation operations operator operators instruction instructions kernel kernels "
        "function functions"
    ),
    "hotspot": "hotspot hotspots",
    "top": (
        "top hot hottest expensive costly costliest priciest slow slowest big bigger biggest large "
        "larger largest longest heavy heavier heaviest worst most maximum highest "
        "greatest main major"
    ),
    "time": (
        "time times duration durations runtime latency timing timings milliseconds ms microseconds "
        "us seconds"
    ),
    "take": "take takes taking taken took consume consumes consuming use uses using used",
    "spend": "spend spends spent spending go goes going gone went eat eats eating",
    "share": "share shares fraction percent percentage proportion portion",
    "cost": "cost costs costing",
    "collective": "collective collectives",
    "communication": (
        "communication communications comm comms communicate communicating communicated"
    ),
    "compute": "compute computes computation computations computing",
    "dominate": "dominate dominates dominating dominant dominated dominance dominator",
    "expose": "expose exposed exposes exposing unhidden",
    "overlap": "overlap overlaps overlapped overlapping",
    "hide": "hide hides hidden",
    "gap": "gap gaps bubble bubbles",
    "idle": "idle idles idling idleness stall stalls stalled stalling",
    "wait": "wait waits waiting waited",
    "straggler": "straggler stragglers laggard laggards",
    "late": "late lags lagging lag later",
    "arrive": "arrive arrives arrived arriving arrival",
    "delay": "delay delays delayed delaying",
    "before": "before preceding precedes precede",
    "context": "context contexts contextualize contextualise contextualized contextualised",
    "region": (
        "region regions scope scopes hierarchy hierarchies hierarchical layer layers module "
        "modules part parts"
    ),
    "step": "step steps iteration iterations",
    "period": "period periods",
    "long": "long length",
    "fast": "fast quick quickly",
    "stable": "stable steady jitter noisy variance variation",
    "vary": "vary varies varying variable uneven regular irregular",
    "outlier": "outlier outliers straggling hiccup hiccups stall stalls stalled",
    "typical": "typical typically usual usually",
    "compile": "compile compiles compiled compiling recompile recompiles recompiled compilation",
    "stat": "stats statistics stat",
    "device": "device devices gpu gpus tpu tpus chip chips core cores accelerator accelerators",
    "busy": "busy",
    "util": "utilization utilisation utilized utilised",
    "ledger": "ledger ledgers",
    "breakdown": "breakdown breakdowns decomposition divide divided split",
    "transfer": "transfer transfers dma offload",
    "optimize": "optimize optimise optimizing optimising optimization optimisation optimizations",
    "improve": "improve improves improvement improvements improved speedup accelerate",
    "suggest": (
        "suggest suggestion suggestions recommend recommendation recommendations advice advise "
        "candidate candidates"
    ),
    "tune": "tune tuning",
    "lower": "lower reduce shorten shrink cut",
    "fix": "fix fixes fixing",
    "try": "try trying",
    "next": "next",
    "problem": "problem problems issue issues wrong",
    "starve": "starve starved starving starvation underfed fed",
    "input": "input inputs loader loaders dataloader pipeline batch batches",
    "warning": "warning warnings caveat caveats",
    "complete": "complete completely incomplete",
    "hardware": "hardware machine",
    "faster": "faster speed",
    "bound": "bound limited bounded",
    "bottleneck": "bottleneck bottlenecks bottlenecked",
    "memory": "memory hbm vmem",
    "buffer": "buffer buffers",
    "bandwidth": "bandwidth bandwidths gbps",
    "flop": "flop flops tflop tflops teraflops",
    "roofline": "roofline rooflines",
    "intensity": "intensity",
    "mfu": "mfu",
    "attribution": (
        "attribution attribute attributes attributed unattributed unmapped attributable"
    ),
    "coverage": "coverage covered cover covers",
    "family": "family families semantic",
    "kind": "kind kinds type types category categories class classes",
    "pass": "pass passes",
    "overview": "overview",
    "summarize": "summarize summarise summary",
    "compare": "compare compares compared comparison regress regressed regresses regression",
    "change": "change changes commit commits patch",
    "help": "help helps helped helping",
    "hurt": "hurt hurts hurting",
    "last": "last previous baseline earlier yesterday",
    "since": "since",
    "show": "show shows display print",
    "list": "list lists",
}
_BY_WORD = {word: concept for concept, words in _CONCEPTS.items() for word in words.split()}

PASS_WORDS = {
    "forward": "forward",
    "fwd": "forward",
    "backward": "backward",
    "backwards": "backward",
    "bwd": "backward",
    "backprop": "backward",
    "recompute": "recompute",
    "recomputation": "recompute",
    "remat": "recompute",
    "rematerialization": "recompute",
    "rematerialisation": "recompute",
    "optimizer": "optimizer",
    "optimiser": "optimizer",
}

NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        start=1,
    )
} | {"twelve": 12, "fifteen": 15, "twenty": 20, "fifty": 50, "hundred": 100}

# Words that carry no question; none of them is ever taken for an op's name.
_STOP = """
    a an and any anything are as at be been but by can could did do does doing each else every
    everything for from get gets give had has have how i if in into is it its just me much my
    not now of on once or our out per please said so some starting starts than that the their
    them then there these they this those to up was we were what when where which while who why
    will with would you your all first ran run running before after during profile profiler
    trace capture training model program
"""
STOP_WORDS = frozenset(_STOP.split())

_WORD = re.compile(r"[a-z0-9@]+(?:'[a-z]+)?")


def words_of(text: str) -> list[str]:
    """The words of a text in order, lower-cased; "step_time" and "memory-bound" are two each."""
    return [word.split("'", 1)[0] for word in _WORD.findall(text.lower().replace("\u2019", "'"))]


def concept_of(word: str) -> str:
    """The concept of a word; a word in no table stands for itself, in the singular."""
    known = _BY_WORD.get(word)
    if known:
        return known
    singular = _singular(word)
    return _BY_WORD.get(singular, singular)


def is_known_word(word: str) -> bool:
    """Whether a word has a meaning here, so that alone it does not name an op."""
    return (
        word in STOP_WORDS
        or word in _BY_WORD
        or _singular(word) in _BY_WORD
        or word in PASS_WORDS
        or word in NUMBER_WORDS
        or word.isdigit()
    )


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
