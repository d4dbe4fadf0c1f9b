"""scripts/scoreboard.py: what counts as right, and a round over the made capture."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from scoreboard import OURS, Cell, cells, ours, page, summarized, table
from scoreboard_judge import UNANSWERED, Found, Reply, judge
from scoreboard_made import made_truths, write_made
from scoreboard_marin import FIELDS, SHOWS
from scoreboard_ours import read
from scoreboard_questions import CAPTURES, CPU, MADE, NAMES, QUESTIONS
from scoreboard_raw import Ops, read_events
from scoreboard_truth import Absent, Nothing, Ranked, name, share, us
from scoreboard_xprof import CHOSEN, XProf

from marin_profile.cli import cli

HERE = Path()


def answer(query: str | None, *rows: dict, units: dict | None = None, **more) -> dict:
    return {
        "query_type": query,
        "results": list(rows),
        "units": units or {"total_duration": "us", "count": "count"},
        "truncated": False,
        **more,
    }


def outcome(key: str, truth, given: dict) -> str:
    return judge(truth, read(key, truth, given, NAMES[MADE], 0))


ROW = {"record": "op", "name": "fusion.2", "total_duration": 15600.0, "count": 48}
TRUE = {"time": us(15600)}


def test_a_figure_counts_where_it_stands():
    assert outcome("op_total", TRUE, answer("gap_region_context", ROW)) == "right"
    off = ROW | {"total_duration": 15000.0}
    assert outcome("op_total", TRUE, answer("gap_region_context", off)) == "wrong"
    # The number is there, but of another op, in another field, or for another question.
    other = ROW | {"name": "fusion.22"}
    assert outcome("op_total", TRUE, answer("gap_region_context", other)) == "unanswered"
    moved = ROW | {"total_duration": 1.0, "count": 15600.0}
    assert outcome("op_total", TRUE, answer("gap_region_context", moved)) == "wrong"
    assert outcome("op_total", TRUE, answer("step_time", ROW)) == "wrong"


def test_the_unit_is_part_of_it():
    milliseconds = answer("gap_region_context", ROW, units={"total_duration": "ms"})
    assert outcome("op_total", TRUE, milliseconds) == "wrong"


def test_an_empty_place_is_no_answer_and_an_empty_list_says_none():
    empty = ROW | {"total_duration": None}
    assert outcome("op_total", TRUE, answer("gap_region_context", empty)) == "unanswered"
    assert outcome("op_total", TRUE, answer("gap_region_context")) == "wrong"
    assert outcome("rs_none", Nothing(), answer("collective_breakdown")) == "right"
    assert outcome("rs_none", Nothing(), answer("collective_breakdown", ROW)) == "wrong"
    assert outcome("rs_none", Nothing(), answer("step_time")) == "wrong"


def test_a_refusal_is_a_refusal():
    refused = {"cannot_answer": {"reason": "..."}}
    assert outcome("op_total", TRUE, answer(None) | refused) == "unanswered"
    assert outcome("loss", Absent(), answer(None) | refused) == "right"
    assert outcome("loss", Absent(), answer("step_time", ROW)) == "wrong"
    # Refused for want of something else; and not knowing is not knowing that there is none.
    assert outcome("loss", Absent(), answer("host_activity") | refused) == "unanswered"
    assert outcome("rs_none", Nothing(), answer(None) | refused) == "unanswered"
    assert outcome("rs_none", Nothing(), answer("collective_breakdown") | refused) == "right"


def test_all_parts_have_to_be_right():
    truth = {"step": name("19"), "time": us(2000)}
    right = Reply(parts={"step": "19", "time": Found(2000.0, "us")})
    assert judge(truth, right) == "right"
    assert judge(truth, Reply(parts={**right.parts, "step": "18"})) == "wrong"
    assert judge(truth, Reply(parts={**right.parts, "step": None})) == "unanswered"
    assert judge(truth, Reply(parts={"step": "18", "time": None})) == "wrong"
    assert judge(truth, UNANSWERED) == "unanswered"


def test_the_tolerance_is_relative_or_as_said():
    assert us(100).holds(102)
    assert not us(100).holds(102.1)
    assert us(100, 500).holds(500)
    assert share(0.5, within=0.003).holds(0.503)
    assert not us(0).holds(1)


def test_ranks_may_change_places_where_they_are_alike():
    ranked = Ranked((("a", 100.0), ("b", 99.5), ("c", 50.0)), 2)
    assert ranked.holds(["a", "b"])
    assert ranked.holds(["b", "a", "c"])
    assert not ranked.holds(["a", "c"])
    assert not ranked.holds(["a"])


def test_the_table():
    def cell(tool: str, outcome: str, chars: int) -> Cell:
        return Cell(tool, MADE, "step", "how long is a step?", outcome, chars, "")

    rows = table([cell(OURS, "right", 10), cell(OURS, "wrong", 30), cell("peer", "unanswered", 0)])
    assert rows[2] == "| marin-profile | 1 (50%) | 0 (0%) | 1 (50%) | 20 | 30 |"
    assert rows[3] == "| peer | 0 (0%) | 1 (100%) | 0 (0%) | n/a | n/a |"


def test_each_question_is_put_over_a_capture_by_its_names():
    assert len({question.key for question in QUESTIONS}) == len(QUESTIONS)
    for capture in CAPTURES:
        assert all("{" not in question.words(capture) for question in QUESTIONS)
    known = {question.key for question in QUESTIONS}
    assert set(made_truths(HERE, HERE)) <= known


def asked(key: str):
    return next(question for question in QUESTIONS if question.key == key)


class Printed(XProf):
    """What XProf would print."""

    def __init__(self, text: str) -> None:
        super().__init__(HERE, {MADE: HERE})
        self.text = text

    def run(self, capture: str, verb: str, *flags: str) -> str:
        return self.text


def test_a_peer_is_read_by_verb_and_field():
    record = {"op_name": "fusion.2", "total_self_time_us": 15600.0, "occurrences": 48}
    xprof = Printed(json.dumps({"records": [record]}))
    assert judge(TRUE, xprof.ask(asked("op_total"), MADE, TRUE)[0]) == "right"
    assert judge({"time": us(1)}, xprof.ask(asked("op_total"), MADE, TRUE)[0]) == "wrong"
    assert judge(Nothing(), xprof.ask(asked("op_none"), MADE, Nothing())[0]) == "right"


def test_a_peer_without_data_or_tool_does_not_answer():
    refusing = Printed(json.dumps({"status": "NO_DATA"}))
    assert judge(TRUE, refusing.ask(asked("op_total"), MADE, TRUE)[0]) == "unanswered"
    assert judge(TRUE, Printed("Traceback").ask(asked("op_total"), MADE, TRUE)[0]) == "unanswered"
    silent = Printed("{}")
    assert judge(TRUE, silent.ask(asked("why_idle"), CPU, TRUE)[0]) == "unanswered"
    assert judge(Absent(), silent.ask(asked("loss"), MADE, Absent())[0]) == "right"
    assert judge(Nothing(), silent.ask(asked("remat"), MADE, Nothing())[0]) == "unanswered"


def test_the_peers_are_asked_what_is_asked():
    known = {question.key for question in QUESTIONS}
    assert set(CHOSEN) | set(FIELDS) | {one for keys in SHOWS.values() for one in keys} <= known


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return write_made(tmp_path_factory.mktemp("made"))


def test_the_made_capture_holds_what_it_is_said_to_hold(made):
    """The plain reader and the construction agree; neither knows this package."""
    ops = Ops(read_events(next(made.rglob("*.xplane.pb"))))
    assert sum(ops.lengths("fusion.2")) == pytest.approx(15600)
    assert dict(ops.totals())["all-reduce.1"] == pytest.approx(8400)
    ledger = ops.ledger(ops.windows())
    assert ledger["idle"] == pytest.approx(2200 / 14100)
    assert ledger["communication"] == pytest.approx(12 * (3 * 251 + 151) / 56400)
    assert max(ops.gaps("/device:TPU:0")) == (pytest.approx(1100), "fusion.1")


def run(arguments: list[str]) -> tuple[int, str]:
    done = CliRunner().invoke(cli, arguments)
    return done.exit_code, done.stdout


def test_a_round_over_the_made_capture(made, tmp_path):
    """Questions of each kind that have been answered rightly since there is a scoreboard."""
    keys = ("step", "step_mean", "top3", "op_total", "op_none", "idle", "ar_exposed", "rs_none",
            "why_idle", "slower", "programs", "peak", "mfu", "loss", "hardware", "cut")  # fmt: skip
    summaries = summarized({MADE: made}, tmp_path, run)
    asked = [question for question in QUESTIONS if question.key in keys]
    truths = {MADE: made_truths(HERE, HERE)}
    found = cells(OURS, ours(summaries, run), truths, asked)
    assert [cell.key for cell in found if cell.outcome != "right"] == []
    assert len(found) == len(keys)
    assert "| marin-profile | 16 (100%) |" in page(found)
