"""`marin-profile mcp` as a verb: what it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]


def test_without_the_sdk_it_says_what_to_install(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "marin_profile.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    result = call("mcp", "--root", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'marin-profile[mcp]'" in result.stderr


def test_a_root_must_be_a_folder(call: Call, tmp_path: Path) -> None:
    result = call("mcp", "--root", tmp_path / "no")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is no local folder" in result.stderr
    assert call("mcp").exit_code == 2
