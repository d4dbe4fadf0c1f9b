"""Imports go one way, and an addition touches the files that the documentation says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "marin_profile"

spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
assert spec is not None
assert spec.loader is not None
make_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_docs)


def test_imports_go_one_way(capsys, monkeypatch):
    pytest.importorskip("importlinter", reason="import-linter is for development")
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    failed = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not failed, capsys.readouterr().out


@pytest.mark.parametrize("addition", make_docs.ADDITIONS, ids=lambda addition: addition.what)
def test_an_addition_touches_no_other_file(addition):
    touched = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(addition.sign, path.read_text())
    }
    assert touched == set(addition.files)
