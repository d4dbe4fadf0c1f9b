"""`marin-profile TARGET`, and words that name a capture or a summary in every verb."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from builders_capture import leave_capture
from builders_verdict import capture, noisy
from marin_profile import summarize
from marin_profile.base.errors import NotFoundError
from marin_profile.base.storage import write_file
from marin_profile.inputs import Input, named
from marin_profile.reports.headline import headline
from marin_profile.reports.report import render_markdown


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    leave_capture(tmp_path / "run")
    return tmp_path / "run"


def first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


@pytest.mark.parametrize("verb", [[], ["show"]])
def test_a_folder_is_shown(call, run_folder, verb):
    found = call(*verb, run_folder)
    assert found.exit_code == 0
    assert first_paragraph(found.stdout) == headline(summarize(run_folder))
    assert f"marin-profile report {run_folder} -o report.md" in found.stdout
    assert "\x1b" not in found.stdout


def test_a_summary_and_a_file_are_shown(call, run_folder, summary_path):
    (profile,) = run_folder.rglob("*.xplane.pb")
    assert call(profile).exit_code == 0
    assert first_paragraph(call(summary_path).stdout).startswith("Step ")


def test_a_file_by_the_name_of_a_verb_needs_the_verb(call, tmp_path, monkeypatch, run_folder):
    monkeypatch.chdir(tmp_path)
    run_folder.rename(tmp_path / "schema")
    assert json.loads(call("schema").stdout)["title"] == "ProfileSummary"
    assert call("show", "schema").stdout.startswith("Step")


@pytest.mark.parametrize(
    ("word", "verb"), [("reprot", "report"), ("quer", "query"), ("sumarize", "summarize")]
)
def test_a_slip_in_a_verb_is_a_usage_error(call, word, verb):
    found = call(word)
    assert (found.exit_code, found.stdout) == (2, "")
    assert f"There is no verb {word!r}; did you mean {verb!r}?" in found.stderr


@pytest.mark.parametrize("word", ["nothere", "runs/none", "my/run.d/x/y", "abc123"])
def test_what_is_not_there_is_not_found(call, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = call(word)
    assert found.exit_code == 3
    assert f"There is no {word}" in found.stderr


def test_a_word_names_what_is_there_before_anything_remote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named("team/project/abc") == Input("run_target", "team/project/abc")
    assert named("team/project/profile:v3") == Input("artifact", "team/project/profile:v3")
    page = "https://wandb.ai/team/project/runs/abc"
    assert named(page) == Input("run_target", page)
    assert named("gs://bucket/run") == Input("profile", "gs://bucket/run")
    assert named("gs://bucket/h.trace.json") == Input("profile", "gs://bucket/h.trace.json")
    for content, kind in (
        (b'{"schema_version": 1}', "summary"),
        (b"{", "summary"),
        (b'{"displayTimeUnit": "ns", "traceEvents": []}', "profile"),
        (b' [{"ph": "X"}]', "profile"),
    ):
        for place in ("memory://words/s.json", str(tmp_path / "s.json")):
            write_file(place, content)
            assert named(place).kind == kind
    assert named("-") == Input("summary", "-")
    (tmp_path / "team").mkdir()
    with pytest.raises(NotFoundError):
        named("team/project/abc")
    (tmp_path / "team" / "project" / "abc").mkdir(parents=True)
    assert named("team/project/abc") == Input("profile", "team/project/abc")


def test_a_report_of_a_folder_and_from_stdin(call, run_folder, tmp_path, monkeypatch):
    expected = render_markdown(summarize(run_folder))
    assert call("report", run_folder).stdout == expected
    content = summarize(run_folder).to_json().encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert call("report", "--summary", "-").stdout == expected
    assert call("report", run_folder, "-o", tmp_path / "r.md").exit_code == 0
    assert (tmp_path / "r.md").read_text() == expected


def test_one_of_a_word_and_a_summary(call, run_folder, summary_path):
    for words in ([], [run_folder, "--summary", summary_path]):
        found = call("report", *words)
        assert found.exit_code == 2
        assert "Name one summary or profile" in found.stderr


def test_two_words_are_before_and_after(call, tmp_path):
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(capture(noisy(1, 25)).to_json())
    after.write_text(capture(noisy(2, 25, typical=1200.0)).to_json())
    for verb in ("compare", "track"):
        by_words = call(verb, before, after)
        by_flags = call(verb, "--before", before, "--after", after)
        assert by_words.stdout == by_flags.stdout != ""
        assert by_words.exit_code == by_flags.exit_code
    assert call("bundle", before, after, "-o", tmp_path / "one").exit_code == 0
    call("bundle", "--before-summary", before, "--after-summary", after, "-o", tmp_path / "two")
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize("verb", ["compare", "track", "bundle"])
@pytest.mark.parametrize("count", [1, 3])
def test_any_other_number_of_words_is_a_usage_error(call, verb, count, summary_path):
    found = call(verb, *[summary_path] * count)
    assert found.exit_code == 2
    assert "as two words" in found.stderr


def test_profiles_are_compared_as_they_lie(call, run_folder, tmp_path):
    leave_capture(tmp_path / "other")
    found = call("compare", run_folder, tmp_path / "other", "--no-cache")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["before"][0]["source_path"]


def test_help_by_one_letter(call):
    assert call("-h").stdout.startswith("Usage: marin-profile [VERB]")
    assert "Example: marin-profile report" in call("report", "-h").stdout
