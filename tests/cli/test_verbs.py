"""Each verb: what it prints, where, and its exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import marin_profile.pipeline
from builders_summary import build_summary, build_v1_summary
from marin_profile.base.errors import BrokenInputError, CannotAnswerError
from marin_profile.capture.sources import Capture
from marin_profile.cli.summarize import MODE_CHOICES
from marin_profile.pipeline import SummarizeOptions
from marin_profile.queries import answer, list_queries
from marin_profile.reports.report import render_markdown
from marin_profile.schema import ProfileSummary, canonical_json

Call = Callable[..., Any]


# query


def test_query_prints_the_answer(call: Call, summary_path: Path) -> None:
    result = call("query", "--summary", summary_path, "--question", "top 2 ops")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == canonical_json(answer(build_summary(), "top 2 ops"))


def test_query_top_k(call: Call, summary_path: Path) -> None:
    result = call("query", "--summary", summary_path, "--question", "top ops", "--top-k", "1")
    assert json.loads(result.stdout)["returned"] == 1


def test_query_that_cannot_be_answered_prints_why_and_exits_5(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "v1.json"
    path.write_text(build_v1_summary().to_json())
    result = call("query", "--summary", path, "--question", "is it memory bound?")
    assert result.exit_code == 5
    assert json.loads(result.stdout)["cannot_answer"]["reason"]
    assert result.stderr == ""


def test_query_with_a_question_that_fits_nothing_exits_5(call: Call, summary_path: Path) -> None:
    result = call("query", "--summary", summary_path, "--question", "why does it stop?")
    assert (result.exit_code, result.stderr) == (5, "")
    refused = json.loads(result.stdout)
    assert refused["query_type"] is None
    assert refused["cannot_answer"]["reason"] == "No query fits 'why does it stop?'."


def test_query_list_needs_no_summary(call: Call) -> None:
    result = call("query", "--list")
    assert json.loads(result.stdout) == list_queries()


@pytest.mark.parametrize("arguments", [(), ("--question", "top ops"), ("--summary", "x")])
def test_query_needs_both(call: Call, arguments: tuple[str, ...]) -> None:
    result = call("query", *arguments)
    assert result.exit_code == 2
    assert "--list" in result.stderr or "--summary" in result.stderr


def test_query_takes_a_summary_and_a_question_as_words(call: Call, summary_path: Path) -> None:
    asked = call("query", "--summary", summary_path, "--question", "top 2 ops").stdout
    assert call("query", summary_path, "top 2 ops").stdout == asked
    assert call("query", "--summary", summary_path, "top 2 ops").stdout == asked


def test_query_by_name_with_typed_parameters(call: Call, summary_path: Path) -> None:
    result = call("query", summary_path, "--name", "top_ops", "--limit", 2, "--kind", "psum")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == canonical_json(answer(build_summary(), "top 2 all-reduce ops"))
    region = call("query", summary_path, "--name", "hierarchical_regions", "--region", "mlp")
    assert json.loads(region.stdout)["results"][0]["inclusive_duration"] == 2400.0
    device = call("query", summary_path, "--name", "device_ledger", "--device", 9)
    assert device.exit_code == 5
    assert "there are devices 0, 1" in json.loads(device.stdout)["cannot_answer"]["reason"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--name", "top_ops", "--colour", "red"), "top_ops takes no --colour; its parameters: --"),
        (("--name", "top_ops", "--device", "1"), "top_ops takes no --device; its parameters: --"),
        (("--name", "top_ops", "--limit", "many"), "--limit takes a whole number from 1 on"),
        (("--name", "top_ops", "--limit", "0"), "--limit takes a whole number from 1 on"),
        (("--name", "top_ops", "--kind", "blue"), "--kind is one of communication, transfer"),
        (("--name", "hierarchical_regions", "--scope", ""), "--scope takes a text"),
        (("--name", "nope"), "There is no query 'nope'; the known ones are: overview,"),
        (("--name", "capture", "--step", "1"), "capture takes no --step; its parameters: --limit"),
        (("--question", "top ops", "--limit", "3"), "A question in words takes no --limit"),
        (("--question", "top ops", "--colour"), "A question in words takes no --colour"),
        (("--question", "top ops", "--name", "top_ops"), "one query by --name"),
        (("--question", "top ops", "--full"), "--full goes with --compact"),
    ],
)
def test_query_names_what_can_be_given(
    call: Call, summary_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = call("query", "--summary", summary_path, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_each_query_can_be_asked_by_name_with_each_parameter(
    call: Call, summary_path: Path
) -> None:
    values = {"number": "1", "text": "mlp", "flag": None}
    for query in list_queries():
        for one in query["parameters"]:
            value = one.get("choices", [values[one["type"]]])[0]
            given = [f"--{one['name']}", *([value] if value is not None else [])]
            result = call("query", summary_path, "--name", query["name"], *given)
            assert result.exit_code in (0, 5), (query["name"], one["name"], result.stderr)


def test_query_compact_is_one_line(call: Call, summary_path: Path) -> None:
    result = call("query", summary_path, "top 2 ops", "--compact")
    (line,) = result.stdout.splitlines()
    compact = json.loads(line)
    assert (compact["returned"], compact["total"], compact["truncated"]) == (2, 8, True)
    refused = call("query", summary_path, "why does it stop?", "--compact")
    assert refused.exit_code == 5
    assert json.loads(refused.stdout)["cannot_answer"]["reason"]


# report


def test_report(call: Call, summary_path: Path) -> None:
    result = call("report", "--summary", summary_path)
    assert result.stdout == render_markdown(build_summary())
    assert call("report", "--summary", summary_path, "--format", "md", "--top-k", 2).stdout == (
        render_markdown(build_summary(), top_k=2)
    )


def test_report_to_a_file_prints_its_path(call: Call, summary_path: Path, tmp_path: Path) -> None:
    target = tmp_path / "new/report.md"
    result = call("report", "--summary", summary_path, "--output", target)
    assert result.stdout == f"{target}\n"
    assert target.read_text(encoding="utf-8") == render_markdown(build_summary())


@pytest.mark.parametrize("wanted", ["terminal", "pdf"])
def test_report_in_a_format_that_is_not_there(call: Call, summary_path: Path, wanted: str) -> None:
    result = call("report", "--summary", summary_path, "--format", wanted)
    assert result.exit_code == 2
    assert f"'{wanted}' is not available" in result.stderr


def test_report_needs_a_summary(call: Call, tmp_path: Path) -> None:
    assert call("report").exit_code == 2
    assert call("report", "--summary", tmp_path / "no.json").exit_code == 3
    (tmp_path / "bad.json").write_text("{")
    assert call("report", "--summary", tmp_path / "bad.json").exit_code == 4


# summarize


@pytest.fixture
def summarized(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Capture, SummarizeOptions]]:
    """Stands in for the analysis; tells what it was called with."""
    calls: list[tuple[Capture, SummarizeOptions]] = []

    def stand_in(
        capture: Capture, options: SummarizeOptions, *, read: object, keep_copies: bool
    ) -> ProfileSummary:
        calls.append((capture, options))
        return build_summary()

    monkeypatch.setattr(marin_profile.pipeline, "summarize_capture", stand_in)
    return calls


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    for stamp in ("2026_01_02_03_04_05", "2026_02_02_03_04_05"):
        folder = tmp_path / "run/plugins/profile" / stamp
        folder.mkdir(parents=True)
        (folder / "h0.xplane.pb").write_bytes(b"x")
        (folder / "h1.trace.json.gz").write_bytes(b"xy")
    return tmp_path / "run"


def test_summarize_a_folder(call: Call, profile: Path, summarized: list[Any]) -> None:
    result = call("summarize", "--profile-dir", profile)
    assert (result.exit_code, result.stdout) == (0, build_summary().to_json())
    assert result.stderr.startswith("note: 2 captures found; the newest, 2026_02_02_03_04_05,")
    [(capture, options)] = summarized
    assert [host.host for host in capture.hosts] == ["h0", "h1"]
    assert options == SummarizeOptions()


def test_summarize_options(
    call: Call, profile: Path, summarized: list[Any], tmp_path: Path
) -> None:
    target = tmp_path / "out/summary.json"
    result = call(
        *("summarize", "--profile-dir", profile, "--host", "h1", "--warmup-steps", "0"),
        *("--hot-op-limit", "7", "--breakdown-mode", "exclusive_global", "--stamp"),
        *("--output", target),
    )
    assert result.stdout == f"{target}\n"
    assert target.read_text(encoding="utf-8") == build_summary().to_json()
    [(capture, options)] = summarized
    assert [host.host for host in capture.hosts] == ["h1"]
    assert options == SummarizeOptions(
        warmup_steps=0, hot_op_limit=7, breakdown_mode="exclusive_global", stamp=True
    )


@pytest.mark.parametrize(
    ("option", "name"), [("--xplane-file", "h0.xplane.pb"), ("--trace-file", "h1.trace.json.gz")]
)
def test_summarize_one_file(
    call: Call, profile: Path, summarized: list[Any], option: str, name: str
) -> None:
    path = profile / "plugins/profile/2026_01_02_03_04_05" / name
    assert call("summarize", option, path).exit_code == 0
    assert summarized[0][0].source_path == f"plugins/profile/2026_01_02_03_04_05/{name}"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(BrokenInputError("The file is cut."), 4), (CannotAnswerError("No device op."), 5)],
)
def test_summarize_that_fails_writes_no_file(
    call: Call,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    exit_code: int,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(marin_profile.pipeline, "summarize_capture", fail)
    target = tmp_path / "summary.json"
    result = call("summarize", "--profile-dir", profile, "--output", target)
    assert (result.exit_code, result.stdout, target.exists()) == (exit_code, "", False)
    assert result.stderr.splitlines()[-1] == f"error: {error}"


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((), 2),
        (("--profile-dir", "a", "--trace-file", "b"), 2),
        (("--profile-dir", "/nowhere/at/all"), 3),
        (("--trace-file", "/nowhere/at/all.json"), 3),
        (("--warmup-steps", "-1", "--profile-dir", "a"), 2),
        (("--hot-op-limit", "0", "--profile-dir", "a"), 2),
        (("--breakdown-mode", "other", "--profile-dir", "a"), 2),
        (("--artifact", "x"), 2),
    ],
)
def test_summarize_usage(call: Call, arguments: tuple[str, ...], exit_code: int) -> None:
    result = call("summarize", *arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert result.stderr.count("error: ") == 1


def test_summarize_offers_the_breakdown_modes_of_the_pipeline() -> None:
    assert MODE_CHOICES == marin_profile.pipeline.BREAKDOWN_MODES


def test_summarize_a_folder_of_foreign_files_exits_4(call: Call, tmp_path: Path) -> None:
    (tmp_path / "worker.pt.trace.json").write_text("{}")
    result = call("summarize", "--profile-dir", tmp_path)
    assert result.exit_code == 4
    assert "PyTorch" in result.stderr


# captures


def test_captures(call: Call, profile: Path) -> None:
    (profile / "plugins/profile/2026_01_02_03_04_05/h0.overview_page.json").write_text("{}")
    (profile / "plugins/profile/2026_01_02_03_04_05/h0.trace.json.gz").write_bytes(b"xyz")
    result = call("captures", profile)
    folder = f"{profile}/plugins/profile"
    assert result.stdout.splitlines() == [
        f"2026_02_02_03_04_05  2 hosts  3 B  {folder}/2026_02_02_03_04_05",
        "  h0: h0.xplane.pb 1 B",
        "  h1: h1.trace.json.gz 2 B",
        f"2026_01_02_03_04_05  2 hosts  6 B  {folder}/2026_01_02_03_04_05",
        "  h0: h0.xplane.pb 1 B  [h0.trace.json.gz 3 B]",
        "  h1: h1.trace.json.gz 2 B",
        "  not read: h0.overview_page.json",
    ]


def test_captures_with_names_that_are_no_text(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/2026_01_02_03_04_05"
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"h\xff\n.xplane.pb")).write_bytes(b"x")
    result = call("captures", tmp_path)
    assert result.stdout.splitlines()[1] == "  h\\xff\\n: h\\udcff\\n.xplane.pb 1 B"


def test_captures_of_nothing(call: Call, tmp_path: Path) -> None:
    assert call("captures", tmp_path / "no").exit_code == 3
    assert call("captures", tmp_path).exit_code == 3
    assert call("captures").exit_code == 2


# schema


def test_schema(call: Call) -> None:
    schema = json.loads(call("schema").stdout)
    assert schema["title"] == "ProfileSummary"
    assert set(schema["properties"]) == set(ProfileSummary.model_fields)
