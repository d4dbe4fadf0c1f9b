"""`marin_profile.open`: what is opened, asked, shown and handed on."""

from __future__ import annotations

import copy
import importlib.util
import json
import math
import pickle
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

import marin_profile
from builders_capture import context, leave_capture
from builders_summary import build_summary, hot_op, no_steps, step_time
from marin_profile import Profile
from marin_profile.base.errors import (
    CannotAnswerError,
    MissingPackageError,
    NotFoundError,
    ProfileError,
    UnknownNameError,
    UsageError,
)
from marin_profile.opened import Table
from marin_profile.queries import answer
from marin_profile.reports.headline import headline
from marin_profile.schema import (
    HotOp,
    OptimizationCandidate,
    ProgramMemory,
    parse_summary,
)

HOSTILE = "<script>alert(1)</script>|`*_x_*`\n# y"
TABLES = (
    "ops",
    "steps",
    "regions",
    "devices",
    "programs",
    "collectives",
    "transfers",
    "stragglers",
    "gaps",
    "memory",
)


@pytest.fixture
def profile() -> Profile:
    return Profile(build_summary(), "runs/mine")


def advice(title: str, why: str = "seen") -> OptimizationCandidate:
    return OptimizationCandidate(
        candidate_id=title, title=title, rationale="r", why=why, evidence=[why], suggestions=["s"]
    )


# --- opening -----------------------------------------------------------------------------------


def test_a_folder_a_file_and_a_summary_are_opened(tmp_path, capfd):
    leave_capture(tmp_path / "run")
    (file,) = (tmp_path / "run").rglob("*.xplane.pb")
    expected = marin_profile.summarize(tmp_path / "run")
    opened = marin_profile.open(tmp_path / "run", cache=False)
    assert opened.summary == expected
    assert opened.headline == headline(expected)
    assert marin_profile.open(str(file), cache=False).summary.step_time == expected.step_time
    opened.save(tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == expected.to_json()
    assert marin_profile.open(tmp_path / "s.json").summary.to_json() == expected.to_json()
    assert capfd.readouterr() == ("", "")


def test_choices_are_noted_and_not_printed(tmp_path, capfd):
    leave_capture(tmp_path)
    leave_capture(tmp_path, stamp="2026_01_02_09_00_00", note=context(after_seconds=3600))
    (note,) = marin_profile.open(tmp_path, cache=False).notes
    assert "2026_01_02_09_00_00, was taken" in note
    assert capfd.readouterr() == ("", "")


def test_warmup_steps_and_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    leave_capture(tmp_path / "run")
    assert marin_profile.open(tmp_path / "run", cache=False).steps[0].kept is False
    assert not (tmp_path / "cache").exists()
    every = marin_profile.open(tmp_path / "run", warmup_steps=0)
    assert every.steps[0].kept is True
    assert list((tmp_path / "cache").rglob("*.json"))
    again = marin_profile.open(tmp_path / "run", warmup_steps=0)
    assert again.summary.to_json() == every.summary.to_json()
    assert all(getattr(one, name).is_known for one in (every, again) for name in TABLES[:-1])
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(UsageError, match="warmup_steps"):
            marin_profile.open(tmp_path / "run", warmup_steps=wrong)


def test_what_is_not_there(tmp_path):
    with pytest.raises(NotFoundError):
        marin_profile.open(tmp_path / "none")


def test_an_import_of_all_names_leaves_the_builtin_open():
    assert "open" in dir(marin_profile)
    assert "open" not in marin_profile.__all__


# --- asking ------------------------------------------------------------------------------------


def test_questions_and_queries(profile):
    question = "what are the top 2 ops?"
    assert profile.ask(question) == answer(profile.summary, question)
    assert [row["name"] for row in profile.ask(question, limit=1)["results"]] == ["all-reduce.3"]
    by_name = profile.query("top_ops", limit=2)
    assert by_name["results"] == profile.ask(question)["results"]
    backward = profile.query("top_ops", pass_="backward", limit=None)
    assert {row["pass"] for row in backward["results"]} == {"backward"}
    assert backward == profile.query("top_ops", **{"pass": "backward"})
    assert profile.query("top_ops", kind="all-reduce", limit=1)["total_matched"] == 3


def test_a_refusal_is_a_value_and_a_mistake_an_error(profile):
    assert "cannot_answer" in profile.ask("how is the weather?")
    assert "cannot_answer" in profile.ask("")
    with pytest.raises(UsageError, match="top_ops takes no limt; its parameters: limit, kind"):
        profile.query("top_ops", limt=3)
    for wrong in (0, -1, 2.5, True, "x"):
        with pytest.raises(UsageError, match=r"^limit takes a whole number from 1 on"):
            profile.query("top_ops", limit=wrong)
    with pytest.raises(UsageError, match="There is no query 'top_op'"):
        profile.query("top_op")
    with pytest.raises(UsageError, match="A question is text"):
        profile.ask(3)


def test_two_are_compared(tmp_path, profile):
    other = build_summary(step_time=step_time(typical_period=1100.0))
    path = tmp_path / "other.json"
    path.write_text(other.to_json())
    expected = marin_profile.compare(profile.summary, other)
    for one in (Profile(other), other, path, str(path)):
        assert profile.compare(one) == expected
    with pytest.raises(UsageError, match="not with int"):
        profile.compare(3)


# --- events ------------------------------------------------------------------------------------


def test_events_are_a_table_of_arrow(tmp_path):
    leave_capture(tmp_path)
    table = marin_profile.open(tmp_path, cache=False).events()
    assert table.column("step").to_pylist() == [0, 1, 2, 3]
    assert sum(table.column("self_ps").to_pylist()) == 4 * 80_000_000


def test_events_of_a_summary_or_of_another_capture_there_are_none(tmp_path, profile):
    with pytest.raises(CannotAnswerError, match="open the profile itself"):
        Profile(profile.summary).events()
    profile.save(tmp_path / "s.json")
    with pytest.raises(CannotAnswerError, match="is a summary, which holds no single events"):
        marin_profile.open(tmp_path / "s.json").events()
    leave_capture(tmp_path / "run")
    opened = marin_profile.open(tmp_path / "run", cache=False)
    leave_capture(tmp_path / "run", stamp="2026_01_02_09_00_00", note=context(after_seconds=3600))
    with pytest.raises(CannotAnswerError, match=r"names another capture now, .*09_00_00"):
        opened.events()


# --- tables ------------------------------------------------------------------------------------


def test_a_table_is_a_sequence_of_records(profile):
    ops = profile.ops
    assert [op.name for op in ops] == [op.name for op in profile.summary.hot_ops]
    assert (ops[0].name, ops[-1].name, len(ops)) == ("fusion.7", "copy.1", 5)
    assert ops[0] in ops
    assert isinstance(ops[1:3], Table)
    assert [op.name for op in ops[1:3]] == ["fusion.9", "all-reduce.3"]
    assert ops.basis == profile.summary.list_basis["hot_ops"]
    assert ops.units["exclusive_duration"] == "us"
    assert ops.units["achieved_gbps"] == "GB/s"
    assert "name" not in ops.units
    with pytest.raises(IndexError):
        ops[5]


def test_columns_are_plain_values_by_the_names_of_the_summary(profile):
    found = profile.ops.to_dict()
    assert found["name"][:2] == ["fusion.7", "fusion.9"]
    assert found["pass"] == ["forward", "backward", None, None, None]
    assert found["flops"] == [2_000_000, None, None, None, None]
    devices = profile.devices.to_dict()
    assert devices["exposed_communication_by_kind.all-reduce"] == [800.0, 800.0, 1000.0, 1000.0]
    assert profile.devices.units["exposed_communication_by_kind.all-reduce"] == "us"
    assert "ledger.idle_duration" in profile.steps.columns
    assert profile.steps.to_dict()["ledger.idle_duration"] == [None] * 5


def test_keys_that_some_records_lack_are_not_known_there(profile):
    rows = list(profile.summary.device_ledger)
    rows[1] = rows[1].model_copy(update={"exposed_transfer_by_kind": {"on_chip": 1.0}})
    found = Profile(build_summary(device_ledger=rows)).devices.to_dict()
    assert found["exposed_transfer_by_kind.device_to_host"] == [160.0, None, 200.0, 200.0]
    assert found["exposed_transfer_by_kind.on_chip"] == [None, 1.0, None, None]


def test_what_a_summary_does_not_hold_is_not_known():
    old = build_summary(memory=None)
    data = old.model_dump(mode="json", by_alias=True)
    for name in ("collectives", "memory", "stragglers", "device_ledger", "list_basis"):
        data.pop(name, None)
    opened = Profile(parse_summary(json.dumps(data)))
    for name in ("collectives", "memory", "stragglers", "devices"):
        table = getattr(opened, name)
        assert (len(table), table.is_known, table.basis) == (0, False, None)
        assert "not known" in repr(table)
    assert opened.ops.is_known
    assert Profile(build_summary(memory=[])).memory.is_known
    assert not Profile(build_summary(memory=None)).memory.is_known
    assert opened.memory.to_dict().keys() == {*opened.memory.columns}
    assert "peak_size" in opened.memory.columns
    assert Table(ProgramMemory, None)[:1].is_known is False


def test_to_pandas(profile):
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(MissingPackageError, match="pip install pandas"):
            profile.ops.to_pandas()
        return
    frame = profile.ops.to_pandas()
    assert list(frame.columns) == profile.ops.columns
    assert frame["exclusive_duration"].tolist() == [2400.0, 1600.0, 2400.0, 480.0, 320.0]
    assert frame["flops"].isna().tolist() == [False, True, True, True, True]
    for name in TABLES:
        assert len(getattr(profile, name).to_pandas()) == len(getattr(profile, name))


def test_to_polars(profile):
    if importlib.util.find_spec("polars") is None:
        with pytest.raises(MissingPackageError, match="pip install polars"):
            profile.ops.to_polars()
        return
    frame = profile.ops.to_polars()
    assert frame.columns == profile.ops.columns
    assert frame["flops"].to_list() == [2_000_000, None, None, None, None]
    for name in TABLES:
        assert len(getattr(profile, name).to_polars()) == len(getattr(profile, name))


def test_whole_numbers_that_polars_does_not_hold_are_floats():
    polars = pytest.importorskip("polars")
    huge = [hot_op("a", 1.0, flops=10**30), hot_op("b", 1.0, flops=3), hot_op("c", 1.0)]
    frame = Profile(build_summary(hot_ops=huge)).ops.to_polars()
    assert frame["flops"].to_list() == [1e30, 3.0, None]
    assert frame["count"].dtype == polars.Int64


def test_polars_is_told_the_type_of_each_column(profile, monkeypatch):
    made = {}
    monkeypatch.setitem(
        sys.modules,
        "polars",
        SimpleNamespace(
            List=lambda kind: ("list", kind),
            DataFrame=lambda data, schema: made.update(data=data, schema=schema),
        ),
    )
    profile.ops.to_polars()
    assert made["data"] == profile.ops.to_dict()
    wanted = {"name": str, "count": int, "bytes_accessed": int, "fused_with": ("list", str)}
    assert wanted.items() <= made["schema"].items()
    assert made["schema"].keys() == made["data"].keys()
    assert made["schema"]["achieved_gbps"] is float


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(profile, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=f"install it with pip install {name}") as caught:
        getattr(profile.ops, f"to_{name}")()
    assert isinstance(caught.value, ProfileError)


# --- what is shown -----------------------------------------------------------------------------


def test_the_step_and_its_largest_term(profile):
    # 4,000 of 8,000 us are compute.
    assert repr(profile) == "<Profile runs/mine: step 1.00 ms, most in compute (50.0 %)>"
    assert repr(Profile(profile.summary)) == "<Profile: step 1.00 ms, most in compute (50.0 %)>"
    rows = [
        row.model_copy(update={"compute_duration": 100.0, "idle_duration": 2900.0})
        for row in profile.summary.device_ledger
    ]
    assert "most in idle (72.5 %)" in repr(Profile(build_summary(device_ledger=rows)))
    # Without a ledger by the five buckets: 4,000 of 8,000 us.
    assert "most in compute (50.0 %)" in repr(Profile(build_summary(device_ledger=[])))
    assert repr(Profile(profile.summary, HOSTILE)).count("\n") == 0


def test_without_steps_and_with_numbers_that_are_none():
    none = Profile(build_summary(step_time=no_steps()))
    assert "no step length" in repr(none)
    nan = math.nan
    period = step_time().period.model_copy(update=dict.fromkeys(("mean", "median", "p90"), nan))
    rows = [
        row.model_copy(update={name: nan for name in dict(row) if name.endswith("_duration")})
        for row in build_summary().device_ledger
    ]
    odd = Profile(build_summary(step_time=step_time(period=period), device_ledger=rows))
    assert "step length not known" in repr(odd)
    assert "not known" in repr(odd)
    for one in (none, odd):
        for shown in (repr(one), one.headline, one._repr_markdown_(), one._repr_html_()):
            assert "nan" not in shown.lower()
        for name in TABLES:
            getattr(one, name)._repr_html_()


def test_the_headline_and_three_advices_are_shown():
    many = build_summary(optimization_candidates=[advice(f"Try {at}") for at in "abcd"])
    shown = Profile(many)._repr_markdown_()
    assert shown.startswith("Step 1.00 ms")
    assert "1. Try a: seen\n2. Try b: seen\n3. Try c: seen\n" in shown
    assert "Try d" not in shown
    assert [one.title for one in Profile(many).advice] == ["Try a", "Try b", "Try c", "Try d"]
    page = Profile(many)._repr_html_()
    assert "<ol><li>Try a: seen</li><li>Try b: seen</li><li>Try c: seen</li></ol>" in page


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.names.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_hostile_names_stay_text():
    summary = build_summary(
        hot_ops=[hot_op(HOSTILE, 10.0)], optimization_candidates=[advice(HOSTILE, HOSTILE)]
    )
    one = Profile(summary, HOSTILE)
    page = Tags(one._repr_html_())
    assert page.names == {"p", "ol", "li"}
    assert "<script>alert(1)</script>" in "".join(page.texts)
    table = Tags(one.ops._repr_html_())
    assert table.names == {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert any(text.startswith("<script>") for text in table.texts)
    assert "<script>" not in one._repr_markdown_().replace("\\<script\\>", "")


# --- names that do not exist -------------------------------------------------------------------


def test_a_name_that_does_not_exist_is_told_with_the_nearest(profile):
    with pytest.raises(UnknownNameError, match="A Profile has no opps; did you mean ops") as caught:
        _ = profile.opps
    assert isinstance(caught.value, ProfileError)
    assert isinstance(caught.value, AttributeError)
    with pytest.raises(UnknownNameError, match="A Table has no to_panda; did you mean to_pandas"):
        _ = profile.ops.to_panda
    with pytest.raises(UnknownNameError, match="it has advice, ask, "):
        _ = profile.zzz
    assert not hasattr(profile, "opps")
    assert getattr(profile, "opps", None) is None


@pytest.mark.parametrize("name", ["_ipython_canary_method_should_not_exist_", "__array__", "_x"])
def test_names_of_protocols_are_plain_attribute_errors(profile, name):
    for one in (profile, profile.ops):
        with pytest.raises(AttributeError) as caught:
            getattr(one, name)
        assert type(caught.value) is AttributeError


def test_copies_and_pickles_are_the_same(profile):
    for made in (
        copy.copy(profile),
        copy.deepcopy(profile),
        pickle.loads(pickle.dumps(profile)),
    ):
        assert (made.summary, made.name, made.notes) == (profile.summary, "runs/mine", ())
    ops = pickle.loads(pickle.dumps(profile.ops))
    assert isinstance(ops, Table)
    assert isinstance(copy.copy(ops)[0], HotOp)
    assert ops.to_dict() == profile.ops.to_dict()


def test_a_real_capture(traces: Path) -> None:
    opened = marin_profile.open(traces / "cpu_8dev", cache=False)
    assert len(opened.devices) == 16
    assert {row.window for row in opened.devices} == {"steady", "capture"}
    assert opened.ask("top 1 op")["results"][0]["name"] == opened.ops[0].name
