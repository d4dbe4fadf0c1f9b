"""Words of questions -> concepts.

Contract
* Whole words only ("stop" holds no "op"); a plural is its singular; words that mean the same here
  share one concept. A word in no table is its own concept.
* `is_known_word`: it has a meaning here, or carries none; a question with any other word, that
  names nothing in the capture, is not understood.
"""

from __future__ import annotations

import re
from functools import cache

_CONCEPTS = {
    "op": (
        "op ops operation operations operator operators instruction instructions kernel kernels "
        "function functions"
    ),
    "hotspot": "hotspot hotspots",
    "top": (
        "top hot hottest expensive costly costliest priciest slow slowest big bigger biggest large "
        "larger largest longest heavy heavier heaviest worst most maximum highest "
        "greatest main major max biggest costlier"
    ),
    "time": (
        "time times duration durations runtime latency timing timings milliseconds ms microseconds "
        "us seconds"
    ),
    "take": "take takes taking taken took consume consumes consuming use uses using used",
    "spend": "spend spends spent spending go goes going gone went eat eats eating",
    "share": "share shares fraction percent percentage proportion portion",
    "cost": "cost costs costing",
    "least": (
        "least fastest smallest shortest cheapest lowest minimum min fewest quickest tiniest "
        "lightest smaller shorter cheaper"
    ),
    "collective": "collective collectives coll colls",
    "communication": (
        "communication communications comm comms communicate communicating communicated"
    ),
    "compute": "compute computes computation computations computing",
    "dominate": "dominate dominates dominating dominant dominated dominance dominator",
    "expose": "expose exposed exposes exposing unhidden",
    "overlap": "overlap overlaps overlapped overlapping",
    "hide": "hide hides hidden",
    "gap": "gap gaps bubble bubbles",
    "idle": "idle idlest idles idling idleness stall stalls stalled stalling",
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
    "outlier": (
        "outlier outliers straggling hiccup hiccups hickup hickups stall stalls stalled spike "
        "spikes stutter stutters blip blips glitch glitches"
    ),
    "warmup": "warmup warmups",
    "typical": "typical typically usual usually normal normally ordinary representative",
    "compile": (
        "compile compiles compiled compiling recompile recompiles recompiled recompiling "
        "compilation compilations recompilation recompilations retrace retraced retraces jitted"
    ),
    "launch": "launch launches launched launching dispatch dispatches dispatched enqueue enqueued",
    "donate": "donate donates donated donating donation donations alias aliases aliased aliasing",
    "stat": "stats statistics stat",
    "device": (
        "device devices dev devs gpu gpus tpu tpus chip chips core cores accelerator accelerators"
    ),
    "busy": "busy busiest active",
    "util": "utilization utilisation utilized utilised",
    "ledger": "ledger ledgers",
    "breakdown": "breakdown breakdowns decomposition divide divided split",
    "transfer": (
        "transfer transfers transferred transferring dma dmas offload copies copied copying memcpy "
        "memcpys memcopy memcopies upload uploads uploaded download downloads downloaded"
    ),
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
    "input": "input inputs loader loaders dataloader loading pipeline",
    "event": "event events",
    "drop": "drop drops dropped",
    "lose": "lose loses lost losing",
    "warning": "warning warnings caveat caveats",
    "complete": "complete completely incomplete trustworthy reliable trust",
    "hardware": "hardware machine",
    "faster": "faster speed",
    "bound": "bound limited bounded",
    "bottleneck": "bottleneck bottlenecks bottlenecked",
    "memory": "memory mem hbm vmem ram",
    "byte": "byte bytes gigabytes megabytes gb mb gib mib",
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
    everything for from get gets give had has have how i if in into is it its just me much my not
    now of on once or our out per please said so some starting starts than that the their them then
    there these they this those to up was we were what when where which while who why will with
    would you your u ur plz pls thx thanks thank kindly hey dear um btw fyi its im ive id lets all
    first ran run running before after during profile profiler trace capture training model program
"""
STOP_WORDS = frozenset(_STOP.split())

# Words that only say how somebody asks, or of what in general; none changes which query is meant,
# or only by an intent that names it.
_SAID = """
    able about above abs accelerate accumulate accumulated accurate achieve achieved across action
    actions activity actual actually add added adding adds again against aggregate aggregated
    aggregates ago alone along already alright also although altogether always am amid among amongst
    amount amounts annotation annotations another answer anything apart apiece app application
    appreciable approximately argument arguments arithmetic around array arrays arrive asap aside
    asking assume assuming async asynchronous available average avg away awesome axis back bad badly
    base based basically because become becomes began begin behave behind being below beside besides
    best better between beyond big bigger biggest bill bit block blocks both break breaks bring
    bunch bus but bytes calculate call called caller calling calls came cannot capacity capture
    captured case cases cause caused causes causing ceiling certain changed chart cheap check
    checkpoint checkpoints chunk clock close clue clues cluster code cold collected combined come
    comes coming common compared completed concern concerned concerning concurrently condition
    consider considered consist consists constitute constitutes consumed consumption contain
    contains contribute contributes contribution correct corrupt corrupted count counted counts
    couple cpu cpus create created critical cumulated cumulative curious current currently damage
    damaged data dataset date day dead dear decreased definitely delivers describe described despite
    detail detailed details detect detected determine diagnose differ difference different differs
    directly disappear disappeared distinct distributed distribution double doubling down dude due
    during earlier earliest easily easy effect effective efficiency efficient efficiently eh either
    elapsed eliminate eliminated else elsewhere end ended ends enough entire entirely equal estimate
    eta even eventually ever every everybody everyone evidence exact exactly except exclude excludes
    excluding exclusive executable executables execute executed executes execution executions exist
    existing exists expect expected experience experiment explain explained explicitly explode extra
    fact factor fair fall falls far feel fell few figure figures file fill fills find finish
    finished fit fits flight focus folks follow following found free freed frequency frequent
    frequently friend full fully further gain general generally generate gigabyte giving gone gonna
    good got gotta great group groups grow grows guess guys half halved halving hand handle hang
    hangs happen happened happening happens hard headline headroom hear heaviest held hello help
    helpful hey hi hidden high higher highest highly hint hlo hmm hog hogging hogs hold holds hoping
    host hosts hour hours how however huge hundred hurting hw idea ideal identical identify idled
    immediately imply important inclusive increased indeed individual inference infinite infinitely
    init initial inside insight insights inspect instance instances instant instantaneous instead
    instructions interested interesting interval investigate involve involved isolate item items
    itself jax job jobs keep keeps kept kinda know known lack lacking lacks latest latter lazy lead
    leads leave leaves left less let lets level lie lies life like likely limit limiter limiting
    limits line lines listed little live load local located location long longer longest look looks
    loop loops lose losing lost lot lots low made main mainly make makes making man many mark marked
    mate may maybe mb mean meaning means meant measure measured mechanism median megabyte mention
    merge mesh message microsecond mighty millisecond mind minor minute minutes missing model models
    moment monitor more moreover mostly move moved moves moving msec must name named names
    nanosecond nanoseconds near necessary need needed needing needs neither network never nice no
    nobody node nodes noise noisier non none nope nor normal normally notable note notes nothing
    number numbers observe observed obtain occupancy occupied occupies occupy occur occurred
    occurring occurs of off offending often oh ok okay old one ones only onto onwards oom open
    operate opinion optimal order ordered other others otherwise output outputs outside over overall
    overhead overheads overview owing own p p50 p90 padding page paid parallel parallelism parameter
    parameters particular particularly past path pay paying pays pct peak peaks people per percent
    perform performance performed performing perhaps picture pipelined place places plan planned
    planning please plus point pointed pop portion possible possibly potential practice pre precedes
    precisely present pretty prevent prevents prioritize priority probably produce produced program
    programs proper properly provide provided python quantify question quick quickly quite quote ran
    rank ranked ranks rate rates rather ratio ratios raw reach reached read reading reads ready real
    really reason reasons recent recently record recorded refer regard regarding regards related
    relative relatively remain remaining remove removed repeat repeated repeating repeats replica
    replicas report reported request require required requires respectively responsible rest result
    results return reveal rid right room roughly round row rows run running runs same saturate
    saturated saturates saturating save saved saves saving says scale scan scanned scans search sec
    second seconds secs section see seeing seem seems seen self sense separate separately series
    serious serving set several shall shape shapes shard sharding shards should shown shrink side
    sides significant significantly similar simple simply simultaneously since single sir sit sits
    sitting size sizes sleep sleeping slow slowdown slower slowing slowness slows small so soft
    solely someone something sometimes somewhere soon sorry sort sorted source space sparsecore spec
    specific specifically sped speeds spending spends stage stand standing start started starts
    startup state stated statement statistics stay still stop stopped stops story stream string
    structure stuck stuff such sudden suffer suffers sum summed summing supposed sure surface sync
    synchronous system tally target task team tell telling tells tend tensor tensors terms
    theoretical there thereof thing things think thinking third though thread threads three thrice
    through throughout throughput throughputs thus tie timeline tiny today together told ton too
    tool top topology tot total totals touch toward towards traced tracing track train training tree
    true truly truncate truncated truncation turn twice two type uh ultimately um under understand
    underutilized unfortunately unique unit units unless unlike unlimited until unused update
    updates upon upto urgent usec useful user uses using usual util utilize utilized value values
    vanish vanished various version versus very via view visible vs waiting wall wallclock wanna
    want wanted wants warm warmup waste wasted wastes wasting way ways week weight well went
    whatever whats whereas wheres whether whichever while whoever whole whos whose wide wire within
    without wonder wondering wonders wont work worked working workload works world worry worse worth
    worthwhile would write wrong xla yall yeah yep yes yet yield yours zero
"""
_SAID_WORDS = frozenset(_SAID.split())

NEGATIONS = frozenset(
    ["not", "non", "neither", "excluding", "except", "exclude", "excludes", "besides", "outside"]
)

# What no profile holds, and where it stands.
_BEYOND = {
    "the training's own metrics, such as the run's charts in W&B": (
        "loss losses accuracy perplexity lr convergence converging gradnorm epoch epochs metric "
        "metrics reward learning hyperparameter hyperparameters"
    ),
    "the model's code or configuration": (
        "author authored wrote flavor flavour architecture dtype batch batches"
    ),
    "the machine's own monitoring": (
        "power energy watts temperature thermal throttling throttled fan voltage"
    ),
    "the provider's bill": "price dollar dollars usd money euro euros budget",
    "the logs of the input pipeline and the tokens of a batch": "token tokens tps",
}
BEYOND = {word: where for where, words in _BEYOND.items() for word in words.split()}

_WORD = re.compile(r"(?:@|[^\W_])+(?:'[a-z]+)?")
_NOT = re.compile(r"n['\u2019]t\b|\bcannot\b")


def words_of(text: str) -> list[str]:
    """The words of a text in order, lower-cased; "step_time" and "memory-bound" are two each, and
    so is "isn't"."""
    plain = _NOT.sub(" not", text.lower()).replace("\u2019", "'")
    return [word.split("'", 1)[0] for word in _WORD.findall(plain)]


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
        or word.isdecimal()
    )


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def is_said(word: str) -> bool:
    """Whether a word is understood: it has a meaning, or carries none."""
    return is_known_word(word) or word in _SAID_WORDS or _singular(word) in _SAID_WORDS


MEANINGFUL = frozenset((*_BY_WORD, *PASS_WORDS, *NUMBER_WORDS))


@cache
def vocabulary() -> tuple[str, ...]:
    """The words that have a meaning, for what is mistyped; and those that only link."""
    tables = (_BY_WORD, PASS_WORDS, NUMBER_WORDS, STOP_WORDS, _SAID_WORDS, BEYOND)
    return tuple(sorted({word for table in tables for word in table}))
