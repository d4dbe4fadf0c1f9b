"""profile_summary.v1: round trips, aliases, canonical JSON."""

from __future__ import annotations

import json
import math
import typing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import marin_profile.schema
from builders_summary import build_summary, build_v1_summary, hot_op
from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.base.units import unit_in
from marin_profile.schema import (
    DurationStats,
    Host,
    HotOp,
    ProfileSummary,
    Record,
    SemanticFamily,
    StepTime,
    canonical_json,
    load_summary,
    parse_summary,
)


@pytest.mark.parametrize("summary", [build_summary(), build_v1_summary()], ids=["all", "v1"])
def test_round_trip(summary: ProfileSummary) -> None:
    text = summary.to_json()
    assert parse_summary(text).to_json() == text


def _with_unknown_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_unknown_fields(item) for name, item in value.items()} | {
            "x_new": {"deep": [1, "two", None]}
        }
    if isinstance(value, list):
        return [_with_unknown_fields(item) for item in value]
    return value


def test_unknown_fields_survive() -> None:
    data = json.loads(build_summary().to_json())
    data["step_time"] = _with_unknown_fields(data["step_time"])
    data["hot_ops"] = _with_unknown_fields(data["hot_ops"])
    data["run_metadata"]["x_cluster"] = "v6e-256"
    data["x_top"] = [{"a": 1.5}]
    written = json.loads(parse_summary(json.dumps(data)).to_json())
    assert written == data


def test_a_misspelt_field_is_refused_where_a_record_is_made() -> None:
    stats = {"count": 0}
    for make in (
        lambda: DurationStats(count=1, medain=2.0),  # type: ignore[call-arg]
        lambda: DurationStats(count=1).model_copy(update={"medain": 2.0}),
        lambda: DurationStats(count=1, model_extra={}),  # type: ignore[call-arg]
        lambda: StepTime(
            warmup_steps_ignored=0,
            all_steps={"count": 1, "medain": 2.0},  # type: ignore[arg-type]
            steady_state_steps=stats,  # type: ignore[arg-type]
        ),
        lambda: StepTime(
            warmup_steps_ignored=0,
            all_steps=stats,  # type: ignore[arg-type]
            steady_state_steps=stats,  # type: ignore[arg-type]
            steps=[{"index": 0, "start": 0.0, "kept": True, "peroid": 1.0}],  # type: ignore
        ),
        lambda: hot_op("a", 1.0).model_copy(update={"pass": "forward"}),
    ):
        with pytest.raises(TypeError, match=r"has no (medain|model_extra|peroid|pass)"):
            make()


def test_every_name_that_a_file_may_use_is_taken_by_the_constructor() -> None:
    family = json.loads(build_summary().semantic_families[0].model_dump_json())
    older = {"normalized_exclusive_per_work": family.pop("time_per_flop_proxy")}
    assert SemanticFamily(**family, **older) == build_summary().semantic_families[0]
    op = build_summary().hot_ops[0]
    assert HotOp(**op.model_dump(by_alias=True)) == HotOp(**op.model_dump()) == op


def test_what_was_read_with_an_unknown_field_can_be_used() -> None:
    read = DurationStats.model_validate_json('{"count": 1, "x_new": 2}')
    assert (read.model_copy(update={"x_new": 3}).model_extra or {}) == {"x_new": 3}
    made = StepTime(warmup_steps_ignored=0, all_steps=read, steady_state_steps=read)
    assert made.all_steps is read
    assert json.loads(made.model_dump_json())["all_steps"]["x_new"] == 2


NAMES_NOT_QUANTITIES = {
    ("StepCompiles", "step_num"),
    ("WorkBetween", "step_num"),
    ("Compilation", "step"),
    ("HostCause", "steps"),
    ("OutlierCause", "steps"),
    ("StepOutlier", "index"),
    ("StepOutlier", "step_num"),
    ("Profiling", "missing_processes"),
    ("Region", "depth"),
    ("RepeatedRegion", "depth"),
    ("Step", "index"),
    ("Step", "step_num"),
    ("StepClass", "representative_step"),
}


def test_every_quantity_has_a_unit() -> None:
    bare = {
        (record.__name__, name)
        for record in vars(marin_profile.schema).values()
        if isinstance(record, type) and issubclass(record, Record)
        for name, annotation in typing.get_type_hints(record, include_extras=True).items()
        if {int, float} & numbers_in(annotation) and unit_in(annotation) is None
    }
    assert bare == NAMES_NOT_QUANTITIES


def test_json_schema_names_the_units() -> None:
    fields = ProfileSummary.model_json_schema()["$defs"]["Collective"]["properties"]
    assert (fields["duration"]["type"], fields["duration"]["unit"]) == ("number", "us")
    assert {"type": "number", "unit": "GB/s"} in fields["bus_gbps"]["anyOf"]
    assert "unit" not in fields["collective"]


def numbers_in(annotation: Any) -> set[Any]:
    inner = typing.get_args(annotation)
    return {annotation} if not inner else set().union(*map(numbers_in, inner))


def test_older_names_are_read() -> None:
    op = HotOp.model_validate(
        {
            "name": "%fusion.7",
            "category": "compute",
            "count": 1,
            "total_duration": 1.0,
            "exclusive_duration": 1.0,
            "avg_duration": 1.0,
            "work_proxy_per_invocation": 12.0,
        }
    )
    assert op.flop_proxy_per_invocation == 12.0
    assert op.canonical_name == "fusion"
    family = SemanticFamily.model_validate(
        {
            "family": "matmul",
            "count": 1,
            "total_duration": 1.0,
            "exclusive_duration": 1.0,
            "share_of_total": 1.0,
            "avg_duration": 1.0,
            "avg_exclusive_duration": 1.0,
            "work_proxy_total": 5.0,
            "normalized_exclusive_per_work": 0.2,
        }
    )
    assert (family.flop_proxy_total, family.time_per_flop_proxy) == (5.0, 0.2)
    assert "work_proxy_total" not in family.model_dump()


def test_a_given_canonical_name_stays() -> None:
    op = build_summary().hot_ops[0].model_copy(update={"canonical_name": "kept"})
    assert HotOp.model_validate(op.model_dump(by_alias=True)).canonical_name == "kept"


def test_pass_is_called_pass_in_json() -> None:
    data = json.loads(build_summary().to_json())
    assert data["hot_ops"][0]["pass"] == "forward"
    assert "pass_" not in data["hot_ops"][0]
    assert parse_summary(json.dumps(data)).hot_ops[0].pass_ == "forward"


def test_what_older_readers_need_is_never_null() -> None:
    data = json.loads(build_summary().to_json())
    for path in (
        "schema_version generated_at_utc source_format source_path run_metadata",
        "trace_overview.num_events_total trace_overview.num_complete_events "
        "trace_overview.num_processes trace_overview.num_threads trace_overview.duration_basis",
        "step_time.warmup_steps_ignored step_time.all_steps.count "
        "step_time.steady_state_steps.count",
        "time_breakdown.duration_basis time_breakdown.total_duration",
        " ".join(
            f"time_breakdown.{part}.{name}"
            for part in ("compute", "communication", "host", "stall", "other")
            for name in ("total_duration", "share_of_total")
        ),
        "hot_ops communication_ops gap_before_ops hierarchical_regions optimization_candidates",
    ):
        for name in path.split():
            value = data
            for key in name.split("."):
                value = value[key]
            assert value is not None, name


def test_records_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        build_summary().source_path = "other"  # type: ignore[misc]


def test_canonical_json() -> None:
    text = canonical_json({"b": 1.23456789, "a": [2, (0.1 + 0.2,)], "ä": None, "n": -0.0000001})
    assert text == (
        '{\n  "a": [\n    2,\n    [\n      0.3\n    ]\n  ],\n  "b": 1.234568,\n  "n": -0.0,\n'
        '  "ä": null\n}\n'
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_summary_holds_what_is_no_number(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": value})


@given(st.integers(min_value=0, max_value=8_589_934_592_000_000))
def test_microseconds_are_exact_picoseconds(picoseconds: int) -> None:
    text = canonical_json({"us": picoseconds / 1_000_000})
    assert json.loads(text, parse_float=Decimal)["us"] * 1_000_000 == picoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no profile_summary.v1"),
        ("[]", "is no profile_summary.v1: the top level"),
        ("{}", "schema_version: it is missing"),
        ('{"schema_version": "profile_summary.v1"}', "source_format: Field required"),
        ('{"schema_version": "profile_summary.v1", "source_format": 1}', "source_format: Input"),
    ],
)
def test_what_is_no_summary_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(BrokenInputError, match=message) as caught:
        parse_summary(text, path="s.json")
    assert str(caught.value).startswith("s.json")


@pytest.mark.parametrize("version", ["profile_summary.v2", "", None, 1, ["profile_summary.v1"]])
def test_another_version_is_refused(version: Any) -> None:
    data = json.loads(build_summary().to_json()) | {"schema_version": version}
    with pytest.raises(BrokenInputError, match="has schema_version") as caught:
        parse_summary(json.dumps(data))
    assert repr(version) in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["NaN", "-Infinity", "1e999", "1e31", "-1e-31", "9" * 5000, "[" * 200 + "]" * 200],
    ids=lambda value: value[:9],
)
@pytest.mark.parametrize("field", ["step_time.all_steps.mean", "run_metadata.x_unknown", "x_top"])
def test_numbers_that_cannot_be_reckoned_with_are_refused_by_name(field: str, value: str) -> None:
    data = json.loads(build_summary().to_json())
    *above, last = field.split(".")
    place = data
    for name in above:
        place = place[name]
    place[last] = "HERE"
    with pytest.raises(BrokenInputError) as caught:
        parse_summary(json.dumps(data).replace('"HERE"', value))
    why = f": {field}: " if value[0] != "[" else ": it is nested more than 100 deep"
    assert why in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ['"12"', '"NaN"', "true", "null", "[]", "{}", "1.5"])
def test_other_types_are_refused_by_name(value: str) -> None:
    text = build_summary().to_json().replace('"num_events_total": ', '"num_events_total": HERE')
    start, _, rest = text.partition("HERE")
    with pytest.raises(BrokenInputError, match=r"trace_overview\.num_events_total: "):
        parse_summary(start + value + rest[rest.index(",") :])


def test_what_never_ends_is_not_read_to_its_end() -> None:
    with pytest.raises(BrokenInputError, match=r"/dev/zero is larger than 100\.0 MB"):
        load_summary("/dev/zero")


def test_load_from_files_and_urls(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    summary = build_summary()
    path = tmp_path / "s.json"
    path.write_text(summary.to_json(), encoding="utf-8")
    assert load_summary(path) == summary
    fsspec.filesystem("memory").pipe_file("/schema/s.json", summary.to_json().encode())
    assert load_summary("memory://schema/s.json") == summary
    for missing in (str(tmp_path / "no.json"), str(tmp_path), "memory://schema/no.json"):
        with pytest.raises(NotFoundError):
            load_summary(missing)


def test_the_json_schema_names_every_field() -> None:
    schema = ProfileSummary.model_json_schema(mode="serialization")
    assert set(schema["properties"]) == set(ProfileSummary.model_fields)
    assert "pass" in schema["$defs"]["HotOp"]["properties"]


@pytest.mark.parametrize(("processes", "expected"), [(2, 1), (4, 4)])
def test_a_run_counts_processes_as_hosts(processes, expected) -> None:
    """Two processes of one machine are one host; of four, two are not in the capture."""
    hosts = [Host(host=f"vm ({name})", file="f", sha256="0", machine="vm") for name in "ab"]
    summary = build_summary(hosts=hosts)
    found = summary.with_run({"num_hosts": processes, "run_id": "r"}).run_metadata
    assert (found.num_hosts, found.run_id, found.num_devices) == (expected, "r", 2)


def test_records_of_columns_are_those_of_the_constructor():
    columns = {"index": [0, 1], "start": [0.5, 1.5], "kept": [True, False], "period": [None, 2.0]}
    rows = [
        {"index": 0, "start": 0.5, "kept": True, "period": None},
        {"index": 1, "start": 1.5, "kept": False, "period": 2.0},
    ]
    kind = marin_profile.schema.Step
    assert kind.of_columns(**columns) == [kind(**row) for row in rows]
    with pytest.raises(TypeError, match="Step has no begin"):
        kind.of_columns(**columns, begin=[0.0, 0.0])
    with pytest.raises(ValueError, match="zip"):
        kind.of_columns(**columns, cut=[False])
