"""Ingestion beside training, with a stand-in for the command line."""

import os
import time
from pathlib import Path

import pytest

import marin_profile.levanter
from marin_profile.levanter.worker import LOG_NAME, REPORT_NAME, SUMMARY_NAME, start_ingestion

STAND_IN = """
import os, sys, time
verb, output = sys.argv[1], sys.argv[sys.argv.index("--output") + 1]
print(verb, "training flags:", [k for k in os.environ if k.startswith(("JAX_", "XLA_"))])
with open(output, "w") as f:
    f.write(f"half of {verb}")
    f.flush()
    time.sleep(float(os.environ.get("STAND_IN_SLEEP", "0")))
    f.write(", all of it")
sys.exit(5 if os.environ.get("STAND_IN_FAILS") == verb else 0)
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch) -> Path:
    """A marin_profile whose command line is the stand-in, found first by child processes."""
    package = tmp_path / "stand_in" / "marin_profile"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STAND_IN)
    (package / "levanter").symlink_to(Path(marin_profile.levanter.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package


@pytest.fixture
def output_dir(tmp_path) -> Path:
    return tmp_path / "out"


def written(output_dir: Path) -> list[str]:
    return sorted(path.name for path in output_dir.iterdir() if path.name != LOG_NAME)


def test_summary_and_report_are_written(stand_in, output_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    assert start_ingestion(tmp_path, output_dir).finish(timeout=30) is None
    assert written(output_dir) == [REPORT_NAME, SUMMARY_NAME]
    assert (output_dir / SUMMARY_NAME).read_text() == "half of summarize, all of it"
    assert "summarize training flags: []" in (output_dir / LOG_NAME).read_text()


@pytest.mark.parametrize(
    ("verb", "kept"), [("summarize", []), ("report", [SUMMARY_NAME])], ids=["summarize", "report"]
)
def test_a_failing_command_leaves_no_half_output(
    stand_in, output_dir, tmp_path, monkeypatch, verb, kept
):
    monkeypatch.setenv("STAND_IN_FAILS", verb)
    problem = start_ingestion(tmp_path, output_dir).finish(timeout=30)
    assert problem is not None
    assert "exit 5" in problem
    assert str(output_dir / LOG_NAME) in problem
    assert written(output_dir) == kept


def test_what_takes_too_long_is_stopped_and_said(stand_in, output_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN_SLEEP", "60")
    ingestion = start_ingestion(tmp_path, output_dir)
    assert ingestion.running
    started = time.monotonic()
    problem = ingestion.finish(timeout=1)
    assert problem is not None
    assert "not summarised within 1 s" in problem
    assert time.monotonic() - started < 10
    assert not ingestion.running
    assert written(output_dir) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(ingestion.process.pid, 0)
