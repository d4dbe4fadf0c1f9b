"""Executions of programs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from builders_xspace import Space, summary_of
from marin_profile.analysis.program_calls import period_of
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown


def training() -> Space:
    """Two devices, six steps of 100 us: train runs a fusion of 40, idles for 10, and an all-reduce
    of 20. Every third step evaluates twice: 5 us of a fusion each, on the first device alone."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(6):
            at = 100 * step
            tpu.step(step, at, 100)
            tpu.module("jit_train(1)", at, 72, run_id=step)
            tpu.op("fusion.1", at, 40, program_id=1)
            tpu.op("all-reduce.2", at + 50, 20, category="all-reduce", program_id=1)
            if step % 3 == 2 and ordinal == 0:
                for run in range(2):
                    tpu.module("jit_eval(2)", at + 80 + 10 * run, 6, run_id=10 * step + run)
                    tpu.op("fusion.9", at + 80 + 10 * run, 5, program_id=2)
    space.planes[0].module("jit_empty(3)", 75, 2, run_id=99)
    return space


def test_programs_of_a_training():
    """The whole periods are those of steps 1 to 4: step 0 is warm-up, the last one has no end."""
    summary = summary_of(training().analyse())
    train, evaluation = summary.programs
    assert (train.name, train.program_id) == ("jit_train", "1")
    assert (train.executions, train.devices) == (12, 2)
    assert (train.compute_duration, train.exposed_communication_duration) == (480.0, 240.0)
    assert (train.exposed_transfer_duration, train.unattributed_duration) == (0.0, 0.0)
    assert train.exposed_duration == 720.0
    assert train.idle_duration == 120.0
    assert (train.call.count, train.call.median, train.call.max) == (12, 70.0, 70.0)
    assert train.period == 100.0
    assert (train.calls_per_step, train.share_of_steps) == (1.0, 1.0)
    assert [op.name for op in train.top_ops] == ["fusion.1", "all-reduce.2"]
    # The windows are 595 and 570 us: to the end of the last evaluation, of the last all-reduce.
    assert train.share_of_device_time == pytest.approx(720.0 / 1165.0)
    assert (evaluation.name, evaluation.executions, evaluation.devices) == ("jit_eval", 4, 1)
    assert (evaluation.exposed_duration, evaluation.idle_duration) == (20.0, 0.0)
    # Step 2 of steps 1 to 4; it runs 10, 290 and 10 us after itself.
    assert (evaluation.calls_per_step, evaluation.share_of_steps) == (0.5, 0.25)
    assert evaluation.period is None


def test_own_time_is_that_of_the_ledgers():
    summary = summary_of(training().analyse())
    ledgers = [row for row in summary.device_ledger if row.window == "capture"]
    for term in ("compute", "exposed_communication", "exposed_transfer", "unattributed"):
        name = f"{term}_duration"
        own = sum(getattr(row, name) for row in summary.programs)
        assert own == sum(getattr(row, name) for row in ledgers), term


def test_many_programs_leave_a_remainder():
    space = Space()
    tpu = space.tpu(0)
    for at in range(40):
        tpu.module(f"jit_f{at}({at})", 100 * at, 50, run_id=at)
        tpu.op("fusion.1", 100 * at, 40 - at, program_id=at)
    rows = summary_of(space.analyse()).programs
    assert len(rows) == 33
    assert (rows[-1].name, rows[-1].executions) == ("(remainder)", None)
    assert rows[-1].exposed_duration == sum(range(1, 9))
    assert sum(row.exposed_duration for row in rows) == sum(range(1, 41))


def test_programs_of_one_name_are_told_apart_by_id():
    space = Space()
    tpu = space.tpu(0)
    for at, program_id in enumerate((7, 8, 7)):
        tpu.module(f"jit_f({program_id})", 100 * at, 50, run_id=at)
        tpu.op("fusion.1", 100 * at, 40, program_id=program_id)
    rows = summary_of(space.analyse()).programs
    assert [(row.program_id, row.executions) for row in rows] == [("7", 2), ("8", 1)]


@pytest.mark.parametrize(
    ("distances", "period"),
    [
        ([100, 100], None),
        ([100, 100, 100], 100.0),
        # Quartiles of 80 and 120 about 100; of 70.
        ([60, 80, 100, 120, 400], 100.0),
        ([60, 70, 100, 120, 400], None),
        ([10, 10, 10, 500, 10, 10, 500], None),
        ([0, 0, 0], None),
    ],
)
def test_what_repeats(distances, period):
    assert period_of(np.array(distances, np.int64)) == period


def test_the_question_and_the_section():
    summary = summary_of(training().analyse())
    one = answer(summary, "how much time does the program `jit_eval` take?")
    assert one["query_type"] == "programs"
    assert [row["name"] for row in one["results"]] == ["jit_eval"]
    every = answer(summary, "which programs ran?")
    assert (every["query_type"], every["total_matched"]) == ("programs", 2)
    none = answer(summary, "how often does the program `jit_other` run?")
    assert none["cannot_answer"]["candidates"] == ["jit_train"]
    section = render_markdown(summary).partition("## Programs\n")[2].partition("\n## ")[0]
    assert "0.5 (2.0 in 25.0 % of steps)" in section
