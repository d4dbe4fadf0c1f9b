"""Where compiled code goes when the usual place is not writable."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numba
import pytest
from numba.core import caching

from marin_profile.base import jit


def add(a, b):
    return a + b


@pytest.fixture
def no_place(monkeypatch):
    """numba finds no cache folder of its own: only one that it is told."""
    places = caching.CacheImpl._locator_classes
    told = [place for place in places if "UserProvided" in place.__name__]
    assert len(told) == 1
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", told)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


def test_a_private_folder_serves(no_place, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiled = jit.jit(add)
    assert compiled(2, 3) == 5
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert list(folder.rglob("*.nbi"))
    assert numba.config.CACHE_DIR == ""


def test_without_any_folder_there_is_a_warning_and_a_result(no_place, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(file))
    with pytest.warns(RuntimeWarning, match="no folder is writable"):
        compiled = jit.jit_no_alloc(add)
    assert compiled(2, 3) == 5


def test_a_folder_that_others_can_write_is_not_trusted(no_place, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    jit.jit(add)
    (folder,) = Path(tmp_path).iterdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="no folder is writable"):
        assert jit.jit(add)(1, 1) == 2
