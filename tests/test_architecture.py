"""Imports go one way, and an addition touches the files that the documentation says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "marin_profile"

spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
assert spec is not None
assert spec.loader is not None
make_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_docs)


# In a process of its own: it disables the loggers that other tests listen to.
LINT = """
import sys
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename="pyproject.toml", no_cache=True))
"""


def test_imports_go_one_way():
    pytest.importorskip("importlinter", reason="import-linter is for development")
    found = subprocess.run(
        [sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("addition", make_docs.ADDITIONS, ids=lambda addition: addition.what)
def test_an_addition_touches_no_other_file(addition):
    touched = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(addition.sign, path.read_text())
    }
    assert touched == set(addition.files)
