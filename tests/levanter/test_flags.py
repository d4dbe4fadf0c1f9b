"""Older profiler flags, and which Levanter is refused."""

from importlib.metadata import PackageNotFoundError

import pytest

from marin_profile.levanter import lines
from marin_profile.levanter.flags import translate, without_effect
from marin_profile.levanter.lines import UnsupportedLevanterError, require_supported

OLDER = (
    "--config_path a.yaml --trainer.profiler true --trainer.profiler_start_step 5 "
    "--trainer.profiler_num_steps 50 --trainer.profiler_perfetto_link false --trainer.id x"
)
TODAY = (
    "--config_path a.yaml --trainer.profiler.enabled true --trainer.profiler.start_step 5 "
    "--trainer.profiler.num_steps 50 --trainer.profiler.perfetto_link false --trainer.id x"
)


def test_older_flags_are_translated_with_a_note_each():
    translated, notes = translate(OLDER.split())
    assert translated == TODAY.split()
    assert len(notes) == 4
    assert notes[1] == (
        "--trainer.profiler_start_step is an older flag: read as --trainer.profiler.start_step"
    )


def test_flags_of_a_profiler_that_is_off_are_named_once():
    assert without_effect(["--trainer.profiler.enabled", "false", "--trainer.id", "x"]) == []
    given = "--trainer.profiler.start_step 5 --trainer.profiler.every=9 --trainer.profiler.every 8"
    assert without_effect(given.split()) == [
        "--trainer.profiler.start_step, --trainer.profiler.every have no effect: the profiler is "
        "off (trainer.profiler.enabled is false)"
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        TODAY.split(),
        ["--trainer.profiler", "{enabled: true, start_step: 7}"],
        ["--trainer.profiler={start_step: 7}"],
        ["--trainer.profiler.windows", "[{start_step: 3, num_steps: 1}]"],
        ["--trainer.profiled", "true"],
        [],
    ],
)
def test_todays_flags_stay_as_they_are(arguments):
    assert translate(arguments) == (arguments, [])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--trainer.profiler=false"], ["--trainer.profiler.enabled", "false"]),
        (["--trainer.profiler_num_steps=3"], ["--trainer.profiler.num_steps", "3"]),
        (
            ["--trainer.profiler", "--trainer.id", "x"],
            ["--trainer.profiler.enabled", "true", "--trainer.id", "x"],
        ),
        (["--trainer.profiler.upload.enabled", "false"], []),
    ],
)
def test_other_spellings(arguments, expected):
    translated, notes = translate(arguments)
    assert translated == expected
    assert len(notes) == 1


def installed(monkeypatch, **versions: str) -> None:
    def version(name: str) -> str:
        if name.replace("-", "_") not in versions:
            raise PackageNotFoundError(name)
        return versions[name.replace("-", "_")]

    monkeypatch.setattr(lines, "version", version)


@pytest.mark.parametrize("number", ["0.2.20.dev202606180959", "0.2.227.dev40316220070"])
def test_both_lines_are_supported(monkeypatch, number):
    installed(monkeypatch, marin_levanter=number)
    assert require_supported() == number


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        ({"levanter": "1.2.dev1500"}, r"levanter 1\.2\.dev1500 is not supported"),
        ({"marin_levanter": "0.2.19"}, r"marin-levanter 0\.2\.19 is not supported"),
        ({"marin_levanter": "0.3.0"}, r"marin-levanter 0\.3\.0 is not supported"),
        ({}, r"marin-levanter \(not installed\)"),
    ],
)
def test_another_levanter_is_refused_by_name(monkeypatch, versions, named):
    installed(monkeypatch, **versions)
    with pytest.raises(UnsupportedLevanterError, match=named):
        require_supported()
