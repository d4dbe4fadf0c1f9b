"""The forms in which `trainer.profiler` may be given, and what is refused: by name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.levanter.settings import SettingError, current_form
from marin_profile.profiling.config import ProfilerConfig, Window
from needs import needs_levanter
from patience import PATIENCE

PARSING = Path(__file__).with_name("parse_settings.py")


def test_todays_form_stays_as_it_is():
    trainer = {"id": "x", "profiler": {"start_step": 7, "upload": "never"}}
    assert current_form(trainer) == (trainer, [])
    assert current_form({"id": "x"}) == ({"id": "x", "profiler": {}}, [])


@pytest.mark.parametrize(
    ("given", "profiler", "notes"),
    [
        ({"profiler": True}, {"enabled": True}, ["trainer.profiler is an older field"]),
        ({"profiler": None}, {}, []),
        (
            {"profiler": False, "profiler_start_step": 6, "profiler_perfetto_link": True},
            {"enabled": False, "start_step": 6, "perfetto_link": True},
            ["trainer.profiler is", "trainer.profiler_start_step is", "trainer.profiler_perfetto"],
        ),
        (
            {"profiler": {"start_step": 9}, "profiler_start_step": 6},
            {"start_step": 9},
            ["trainer.profiler_start_step has no effect beside trainer.profiler.start_step"],
        ),
        (
            {"profiler": {"upload": {"enabled": True, "ttl_days": 3}}},
            {},
            ["trainer.profiler.upload, as Levanter means it, has no effect"],
        ),
        (
            {"profiler": {"windows": [{"start_step": 9, "num_steps": 1}], "start_step": 5}},
            {"windows": [{"start_step": 9, "num_steps": 1}], "start_step": 5},
            ["trainer.profiler.start_step has no effect beside trainer.profiler.windows"],
        ),
    ],
)
def test_other_forms_are_read_with_a_note_each(given, profiler, notes):
    trainer, said = current_form(given | {"seed": 1})
    assert trainer == {"seed": 1, "profiler": profiler}
    assert len(said) == len(notes)
    assert all(one.startswith(start) for one, start in zip(said, notes, strict=True))


@pytest.mark.parametrize(
    ("profiler", "named"),
    [
        ("sometimes", "trainer.profiler must be fields, or true or false, is 'sometimes'"),
        (
            {"windows": [{"start_step": 9, "num_steps": 1}], "start_step": 6},
            "trainer.profiler.start_step has no effect beside trainer.profiler.windows",
        ),
        (
            {"windows": [{"start_step": 9, "num_steps": 1}], "num_steps": 1},
            "trainer.profiler.num_steps has no effect beside trainer.profiler.windows",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(profiler, named):
    with pytest.raises(SettingError, match=named):
        current_form({"profiler": profiler})


@pytest.mark.parametrize(
    "config",
    [
        {"enabled": False, "start_step": 0, "num_steps": -3},
        {"enabled": False, "windows": [Window(0, 0), Window(0, 9)], "every": 1},
        {"enabled": False, "anomaly_factor": 0.5, "ingest_timeout": -1},
        {"num_steps": 0},
        {"num_steps": 0, "start_step": 0},
    ],
)
def test_what_is_off_is_never_invalid(config):
    assert not ProfilerConfig(**config).is_on


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"start_step": 0}, "start_step must be at least 1, is 0"),
        ({"num_steps": -1}, "num_steps must be at least 1, is -1"),
        ({"windows": [Window(3, 1), Window(9, 0)]}, r"windows\[1\].num_steps must be at least 1"),
        ({"windows": [Window(3, 3), Window(5, 1)]}, "windows overlap"),
        ({"every": 24}, "every must be at least 25"),
        ({"anomaly_factor": 1.0}, "anomaly_factor must be above 1"),
        ({"triggered_steps": 0}, "triggered_steps must be positive"),
        ({"max_anomalies": -1}, "max_anomalies must not be negative"),
    ],
)
def test_an_invalid_config_names_its_field(config, named):
    assert ProfilerConfig().is_on
    with pytest.raises(ValueError, match=named):
        ProfilerConfig(**config)


# --- through train_lm: YAML and flags, as draccus reads them -------------------------------------

OF_LEVANTER = (
    "{enabled: true, start_step: 7, num_steps: 3, perfetto_link: false, "
    "create_perfetto_trace: true, process_index: 0, profile_options: {"
    "host_tracer_level: 1, python_tracer_level: 0, "
    "device_tracer_level: 1, enable_hlo_proto: false, include_dataset_ops: true, "
    "advanced_configuration: {a: 1, b: x, c: true}}, "
    "upload: {enabled: true, ttl_days: 7, service_url: 'https://x'}}"
)
TWO_WINDOWS = "{windows: [{start_step: 9, num_steps: 2}, {start_step: 4, num_steps: 1}]}"
# Name: the YAML of `trainer`, the flags, and what is expected of the config or said.
ACCEPTED = {
    "all of Levanter's": (f"{{profiler: {OF_LEVANTER}}}", [], {"start_step": 7, "num_steps": 3}),
    "as one flag": ("{}", ["--trainer.profiler", OF_LEVANTER], {"start_step": 7}),
    "nothing": ("{profiler: }", [], {"enabled": True, "start_step": 5}),
    "no steps": ("{profiler: {num_steps: 0}}", [], {"is_on": False}),
    "off": ("{profiler: {enabled: false, start_step: -1, num_steps: -1}}", [], {"is_on": False}),
    "off with windows": (
        f"{{profiler: {TWO_WINDOWS}}}",
        ["--trainer.profiler.enabled", "false", "--trainer.profiler.every", "1"],
        {"is_on": False},
    ),
    "older": (
        "{profiler: true, profiler_start_step: 6, profiler_num_steps: 2}",
        [],
        {"enabled": True, "start_step": 6, "num_steps": 2},
    ),
    "older, off": ("{profiler: false, profiler_num_steps: 0}", [], {"is_on": False}),
    "older flags over older YAML": (
        "{profiler: true, profiler_start_step: 6}",
        ["--trainer.profiler", "no", "--trainer.profiler_start_step", "8"],
        {"is_on": False, "start_step": 8},
    ),
    "a flag over older YAML, off": (
        "{profiler: false}",
        ["--trainer.profiler.start_step", "8"],
        {"is_on": False, "start_step": 8},
    ),
    "older YAML, off, turned on": (
        "{profiler: false}",
        ["--trainer.profiler.enabled", "true", "--trainer.profiler.num_steps", "4"],
        {"is_on": True, "num_steps": 4},
    ),
    "older as one": (
        "{}",
        ["--trainer.profiler=1", "--trainer.profiler_num_steps=4"],
        {"num_steps": 4},
    ),
    "upload by flags": (
        "{profiler: {upload: never}}",
        ["--trainer.profiler.upload.enabled", "true"],
        {"upload": "never"},
    ),
    "windows": (f"{{profiler: {TWO_WINDOWS}}}", [], {"is_on": True}),
    "windows, taken back": (
        f"{{profiler: {TWO_WINDOWS}}}",
        ["--trainer.profiler.windows", "[]", "--trainer.profiler.start_step", "9"],
        {"start_step": 9},
    ),
}
REFUSED = {
    "flag beside windows": (
        f"{{profiler: {TWO_WINDOWS}}}",
        ["--trainer.profiler.start_step", "9"],
        "trainer.profiler.start_step has no effect beside trainer.profiler.windows: leave one of",
    ),
    "first step": ("{profiler: {start_step: 0}}", [], "trainer.profiler: start_step must be at"),
    "number": ("{profiler: {num_steps: many}}", [], "trainer.profiler.num_steps: "),
    "negative": ("{profiler: {num_steps: -2}}", [], "trainer.profiler: num_steps must be at least"),
    "unknown": ("{profiler: {no_such: 1}}", [], "trainer.profiler: The fields no_such are not"),
    "choice": ("{profiler: {ingest_in: cloud}}", [], "trainer.profiler.ingest_in: "),
    "union": ("{profiler: {process_index: x}}", [], "trainer.profiler.process_index: "),
    "window": ("{profiler: {windows: [{start_step: 3}]}}", [], "trainer.profiler.windows"),
    "older number": ("{profiler_start_step: soon}", [], "trainer.profiler.start_step: "),
    "neither": ("{profiler: sometimes}", [], "trainer.profiler must be fields"),
}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("settings")
    parse_all(folder)
    return json.loads((folder / "results.json").read_text())


def parse_all(folder: Path) -> None:
    arguments = {}
    for name, (trainer, flags, _) in (ACCEPTED | REFUSED).items():
        config = folder / f"{name}.yaml"
        config.write_text(f"trainer: {trainer}\n")
        arguments[name] = ["--config_path", str(config), *flags]
    (folder / "arguments.json").write_text(json.dumps(arguments))
    command = [sys.executable, str(PARSING), str(folder)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert child.returncode == 0, child.stderr[-4000:]


@needs_levanter
@pytest.mark.slow
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_levanter_accepts_works(parsed, name):
    assert "refused" not in parsed[name]
    expected = ACCEPTED[name][2]
    assert {field: parsed[name][field] for field in expected} == expected


@needs_levanter
@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(parsed, name):
    said = parsed[name]["refused"]
    assert said.startswith(REFUSED[name][2])
    assert "\n" not in said


@needs_levanter
@pytest.mark.slow
def test_a_window_before_the_first_hook_is_refused_before_training(parsed):
    """The two lines of Levanter differ."""
    assert parsed["first hook"] in (
        {"first": 1, "refused": None},
        {
            "first": 3,
            "refused": "trainer.profiler: start_step must be at least 3 with this Levanter, is 1: "
            "its first hook is called after step 2",
        },
    )
