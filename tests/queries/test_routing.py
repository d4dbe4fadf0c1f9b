"""Which query a question asks for, and with which parameters."""

from __future__ import annotations

import pytest

from builders_summary import build_summary, build_v1_summary
from marin_profile.base.errors import UsageError
from marin_profile.queries import QUERIES, answer, list_queries, run_query
from marin_profile.queries.model import Parameters
from marin_profile.queries.router import route, take_apart

SUMMARY = build_summary()

QUESTIONS = {
    "overview": [
        "why is it slow?",
        "what eats my step?",
        "Where does my step time go?",
        "where does the time go",
        "Where is the step time spent?",
        "What is the time spent on?",
        "What dominates the step time?",
        "overview",
        "summarize this profile",
        "What is the bottleneck?",
        "step time breakdown",
    ],
    "step_time": [
        "How long does a step take?",
        "step time",
        "what is the median step time?",
        "How many steps are in the capture?",
        "Which step was slowest?",
        "what's the iteration period",
        "is the step time stable",
        "How fast is training?",
        "Which steps are outliers?",
        "Why are some steps slow?",
        "What is the typical step time?",
        "why is the mean step longer than the median?",
        "How regular are the steps?",
    ],
    "compute_vs_communication": [
        "Is communication or compute dominating, and what is the worst collective?",
        "is communication or compute dominating, and which collective is worst?",
        "Is comm or compute dominating?",
        "compute vs communication",
        "Are we communication bound?",
        "How much communication is exposed?",
        "Is communication hidden?",
        "how well does communication overlap with compute",
    ],
    "device_ledger": [
        "How idle is each device?",
        "device ledger",
        "which GPU is busiest",
        "What share of the time are the TPUs idle?",
        "Where is the device idle?",
        "time per device",
        "how many devices are there",
    ],
    "top_ops": [
        "What are the top ops?",
        "what are the top 5 ops by exclusive time?",
        "top 5 ops",
        "top 3 all-reduce ops",
        "10 slowest ops",
        "Show me the five most expensive kernels",
        "Which op takes the most time?",
        "What ops dominate the step time?",
        "hotspots?",
        "which operations are slow",
        "What are the top communication ops?",
        "top 2 ops in the backward pass",
        "Which kernels cost most?",
        "list all ops",
        "What are the hottest functions?",
        "worst 4 kernels",
        "Give me the ops with the highest exclusive time",
    ],
    "host_activity": [
        "is it input bound?",
        "is the input pipeline the bottleneck?",
        "is the data loader the bottleneck?",
        "is the GPU starved?",
        "What does the host do while the devices are idle?",
        "why are the devices idle?",
        "host activity",
        "how long does the loader take",
    ],
    "launches": [
        "how many launches per step?",
        "how many launches from python?",
        "how often is a program dispatched",
        "launch count",
    ],
    "compilations": [
        "what was compiled?",
        "did anything recompile?",
        "which steps recompiled?",
        "how many recompilations were there",
        "was there a retrace?",
    ],
    "donation": ["is donation working?", "which buffers are donated?", "are inputs aliased?"],
    "time_of": [
        "How much time is not communication?",
        "how much time is spent outside of the mlp?",
        "what fraction of the time isn't all-reduce?",
        "how much communication is in the backward pass?",
        "how long is everything other than attention?",
    ],
    "programs": [
        "Which programs ran, and how often?",
        "list the programs",
        "how many times is each program called per step?",
        "how many calls of each program are there per step?",
        "what share does each program take?",
        "what is the time per call of each program?",
    ],
    "loops": [
        "How long does one iteration of the scan take?",
        "which loops are there?",
        "how many iterations does the scan have?",
    ],
    "memory": [
        "How much HBM is used at the peak?",
        "what uses it at the peak of memory?",
        "Which buffers are the largest?",
        "peak memory",
        "which parameters take the most memory",
        "how much memory is lost to padding",
        "memory consumption",
    ],
    "transfers": [
        "How fast are host transfers?",
        "how fast is the host offload",
        "h2d bandwidth",
        "what is the bandwidth of host to device copies",
        "which transfers do we wait for",
        "How long does the TPU wait for the SparseCore?",
        "top transfers",
        "show transfers",
    ],
    "collective_breakdown": [
        "how many bytes are all-reduced per step?",
        "Which collectives are the top ones?",
        "collective breakdown",
        "Which collectives take the most time?",
        "How long do the all-reduces take?",
        "what is the bus bandwidth of all-gather",
        "how much time is communication",
        "communication breakdown",
        "worst collective",
    ],
    "stragglers": [
        "Which device is slow?",
        "which host is slow",
        "Which host is the slowest?",
        "is one device slower than the others?",
        "which device is the slowest?",
        "are there stragglers?",
        "straggler",
        "why do the devices wait?",
        "which TPU arrives late",
        "how much of the all-reduce is waiting?",
        "How much of the communication is wait?",
        "which host do the others wait for",
        "is one GPU behind",
    ],
    "pre_op_gap": [
        "What is the gap before copy.1?",
        "what is the idle time before `fusion.7`?",
        "show the biggest gaps",
        "gap before copy",
        "largest gaps before ops",
        "how long does the device wait before all-reduce.3",
    ],
    "gap_region_context": [
        "show context for op copy.1",
        "copy.1 is noisy; can you contextualize that in hierarchical annotation?",
        "where does fusion.7 come from?",
        "context for copy",
        "tell me about fusion.9",
        "gap region context",
        "fusion.7",
        "how long does fusion.7 take",
    ],
    "hierarchical_regions": [
        "show hierarchical regions",
        "Which layers take the most time?",
        "top 3 regions",
        "which modules are expensive",
        "which part of the model is slowest",
    ],
    "semantic_families": [
        "Which families of ops take the most time?",
        "how much time is spent in attention",
        "time by family",
        "what share does matmul take",
        "What kinds of ops take the most time?",
    ],
    "passes": [
        "How much time does the backward pass take?",
        "forward vs backward time",
        "How long is the optimizer?",
    ],
    "bound_by": [
        "Is it memory-bound or compute-bound?",
        "Are we memory bound?",
        "what is the MFU",
        "roofline",
        "Are the matmuls compute bound?",
    ],
    "what_if": [
        "What if communication were free?",
        "what if device 3 were average?",
        "what if gpu gaps were gone",
        "What if the all-reduce took no time?",
        "how long would a step be if fusion.1 were twice as fast?",
        "What would the step take without device 3?",
        "what if the recompute were removed?",
    ],
    "capture": [
        "Is the profile complete?",
        "what are the warnings?",
        "any caveats?",
        "what hardware is this?",
        "what is the hardware topology?",
        "is the trace truncated or damaged?",
        "how many hosts?",
    ],
    "attribution": [
        "Which ops lack attribution?",
        "how much time is unattributed",
        "What is the HLO coverage?",
    ],
    "optimization_candidates": [
        "what's wrong with this run?",
        "What should we try next?",
        "What should we try next to improve performance?",
        "how can I make this faster",
        "any optimization suggestions?",
        "next steps",
        "What are the biggest problems?",
        "how do I reduce step time",
        "how can I reduce the communication",
        "what can I change to make it faster?",
    ],
    "comparison_hint": [
        "Did it regress since the last run?",
        "is this faster than before",
        "compare with the baseline",
        "why did it get slower?",
        "did my change help?",
        "Is my change an improvement?",
        "does this change make it faster?",
        "what did my change do?",
        "what changed?",
        "which op changed the most?",
        "did this commit hurt?",
        "did step time improve?",
        "did the optimization work?",
        "should I merge this?",
    ],
}

UNKNOWN = [
    "",
    "why does it stop?",
    "How do I stop the profiler?",
    "Tell me a joke",
    "What was the loss at step 5?",
    "What is the learning rate?",
    "who opened this",
    "compute the loss",
    "top",
    "what is the copyright of the laptop adoption shop",
    "develop a desktop workshop",
    "ßtep tíme 時間",
]


@pytest.mark.parametrize(
    ("name", "question"),
    [(name, question) for name, questions in QUESTIONS.items() for question in questions],
)
def test_a_question_reaches_its_query(name: str, question: str) -> None:
    assert answer(SUMMARY, question)["query_type"] == name


@pytest.mark.parametrize("question", UNKNOWN)
def test_a_question_that_fits_nothing_is_not_answered(question: str) -> None:
    refused = answer(SUMMARY, question)
    assert set(refused) == {"query_type", "cannot_answer"}
    assert refused["query_type"] is None
    assert refused["cannot_answer"]["reason"].startswith("No query fits ")
    assert refused["cannot_answer"]["advice"] == [
        one.title for one in SUMMARY.optimization_candidates[:3]
    ]


def test_every_query_is_reached_by_its_example_and_its_name() -> None:
    for query in QUERIES:
        for words in (query.example, query.name):
            assert route(SUMMARY, words, QUERIES).query is query


def test_the_table_covers_every_query() -> None:
    assert set(QUESTIONS) == {query["name"] for query in list_queries()}


def test_the_nearest_queries_are_named_first() -> None:
    candidates = answer(SUMMARY, "flop consumption")["cannot_answer"]["candidates"]
    assert len(candidates) == 5
    assert candidates[0] == "bound_by: Is it memory-bound or compute-bound?"


def test_a_refusal_repeats_little_of_the_question() -> None:
    refused = answer(SUMMARY, "what\nis\x00this " + "x" * 50_000)
    assert len(refused["cannot_answer"]["reason"]) < 200


PARAMETERS = [
    ("top 3 all-reduce ops", Parameters(limit=3, kind="all-reduce")),
    ("five slowest kernels", Parameters(limit=5)),
    ("top-7 ops", Parameters(limit=7)),
    ("first 3 gaps", Parameters(limit=3)),
    ("the 4 most expensive collective ops", Parameters(limit=4, kind="communication")),
    ("top ten regions", Parameters(limit=10)),
    ("ops on 8 devices", Parameters()),
    ("top ops of step 5", Parameters(step=5)),
    ("slowest ops in the last 24 hours", Parameters()),
    ("p90 of the step time", Parameters()),
    ("top 2 backward ops", Parameters(limit=2, pass_="backward")),
    ("top ops of kind h2d", Parameters(kind="host_to_device")),
    ("forward vs backward time", Parameters()),
    ("all-reduce vs all-gather time", Parameters()),
    ("top 3 psum ops", Parameters(limit=3, kind="all-reduce")),
    ("slowest reduce scatters", Parameters(kind="reduce-scatter")),
    ("gap before `my odd op`", Parameters(op="my odd op")),
    ("context for op 'copy.1'?", Parameters(op="copy.1")),
    ("gap before copy.1.", Parameters(op="copy.1")),
    ("gap before the op fusion", Parameters(op="fusion")),
    ("gap before every op", Parameters()),
    ("gap before all reduce", Parameters(op="all-reduce", kind="all-reduce")),
    ("gap before fusion.77", Parameters(op="fusion.77")),
    ("gap before %copy.1", Parameters(op="copy.1")),
    (
        "how much time is spent in attention",
        Parameters(family="attention", scope="attention"),
    ),
    ("device ledger of the whole capture", Parameters(window="capture")),
    ('what does "where does the time go" mean', Parameters()),
]


@pytest.mark.parametrize(("question", "expected"), PARAMETERS)
def test_parameters(question: str, expected: Parameters) -> None:
    assert take_apart(SUMMARY, question).parameters == expected


def test_a_known_name_is_found_whole() -> None:
    """fusion.1 stands in the text only as a part of fusion.12."""
    ops = [
        SUMMARY.hot_ops[0].model_copy(update={"name": name}) for name in ("fusion.1", "odd op(2)")
    ]
    summary = build_summary(hot_ops=ops)
    assert take_apart(summary, "about fusion.12").parameters.op == "fusion.12"
    assert take_apart(summary, "about fusion.1, please").parameters.op == "fusion.1"
    assert take_apart(summary, "what about odd op(2)?").parameters.op == "odd op(2)"


def test_top_k_caps_what_the_question_asks_for() -> None:
    assert answer(SUMMARY, "top 3 ops", top_k=10)["returned"] == 3
    assert answer(SUMMARY, "top 3 ops", top_k=2)["returned"] == 2
    assert answer(SUMMARY, "top ops", top_k=2)["returned"] == 2


@pytest.mark.parametrize("question", ["top 0 ops", "first 0 gaps"])
def test_no_row_is_a_usage_error(question: str) -> None:
    with pytest.raises(UsageError, match="at least one"):
        answer(SUMMARY, question)


def test_top_k_below_one_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="at least one"):
        answer(SUMMARY, "top ops", top_k=0)


def test_routing_does_not_depend_on_case_space_or_repetition() -> None:
    for question in ("TOP 5 OPS", "  top   5\tops  ", "Top 5 ops!!!", "top-5-ops"):
        assert answer(SUMMARY, question) == answer(SUMMARY, "top 5 ops")


def test_run_query_by_name() -> None:
    assert run_query(SUMMARY, "top_ops", Parameters(limit=1)) == answer(SUMMARY, "top 1 ops")
    with pytest.raises(UsageError, match="no query 'nope'"):
        run_query(SUMMARY, "nope")


def test_every_query_answers_an_older_summary_in_one_of_the_two_shapes() -> None:
    for query in QUERIES:
        answered = answer(build_v1_summary(), query.example)
        assert answered["query_type"] == query.name
        assert "cannot_answer" in answered or "results" in answered
