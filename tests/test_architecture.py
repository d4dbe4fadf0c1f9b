"""Imports go one way. (`make lint` says which import does not.)"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_imports_go_one_way(capsys, monkeypatch):
    pytest.importorskip("importlinter", reason="import-linter is for development")
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    failed = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not failed, capsys.readouterr().out
