"""Which form of a loop runs, and where compiled code goes when the usual place is not writable."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from marin_profile.base import jit


def add(a, b):
    return a + b


@jit.jit
def twice(a):
    return a + a


@jit.jit
def four_times(a):
    return twice(twice(a))


def form_of(value):
    return "plain"


@jit.jit(portable=form_of)
def form(value):
    return "compiled"


@jit.jit_no_alloc(views=True)
def double_all(values):
    for i in range(len(values)):
        values[i] = 2 * values[i]


@pytest.fixture
def compiled_loops():
    with jit.forced(jit.COMPILED):
        yield


def test_a_loop_is_compiled_from_the_size_on(monkeypatch):
    monkeypatch.setattr(jit, "_forms", jit._Forms(""))
    jit.expect(jit.LARGE_BYTES - 1)
    assert (form(1), jit.is_compiled()) == ("plain", False)
    jit.expect(1)
    assert (form(1), jit.is_compiled()) == ("compiled", True)


@pytest.mark.parametrize("name", [jit.PLAIN, jit.COMPILED])
def test_a_form_can_be_asked_for(monkeypatch, name):
    monkeypatch.setattr(jit, "_forms", jit._Forms(name))
    jit.expect(2 * jit.LARGE_BYTES if name == jit.PLAIN else 0)
    assert form(1) == name


@pytest.mark.parametrize("name", [jit.PLAIN, jit.COMPILED])
def test_both_forms_give_the_same(name):
    values = np.array([1, 2, 3])
    with jit.forced(name):
        double_all(values)
        assert four_times(5) == 20
    assert values.tolist() == [2, 4, 6]


def test_the_plain_form_of_a_loop_on_views_has_integers_of_python():
    seen = []

    @jit.jit(views=True)
    def look(values, factor):
        seen.extend(type(one) for one in (values[0], factor))

    with jit.forced(jit.PLAIN):
        look(np.array([1]), 2)
    assert seen == [int, int]


@pytest.fixture
def no_place(monkeypatch):
    """numba finds no cache folder of its own: only one that it is told. It compiles, whatever
    NUMBA_DISABLE_JIT says."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    places = caching.CacheImpl._locator_classes
    told = [place for place in places if "UserProvided" in place.__name__]
    assert len(told) == 1
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", told)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


def test_a_private_folder_serves(compiled_loops, no_place, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiled = jit.jit(add)
    assert compiled(2, 3) == 5
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert list(folder.rglob("*.nbi"))
    assert numba.config.CACHE_DIR == ""


def test_without_any_folder_there_is_a_warning_and_a_result(
    compiled_loops, no_place, monkeypatch, tmp_path
):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(file))
    with pytest.warns(RuntimeWarning, match="no folder is writable"):
        assert jit.jit_no_alloc(add)(2, 3) == 5


def test_a_folder_that_others_can_write_is_not_trusted(
    compiled_loops, no_place, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    jit.jit(add)(1, 1)
    (folder,) = Path(tmp_path).iterdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="no folder is writable"):
        assert jit.jit(add)(1, 1) == 2


@pytest.mark.parametrize(("size", "calls"), [(jit.LARGE_BYTES - 1, 0), (jit.LARGE_BYTES, 1)])
def test_what_a_large_file_needs_is_loaded_beside_its_reading(monkeypatch, size, calls):
    monkeypatch.setattr(jit, "_forms", jit._Forms(""))
    called = []
    jit.prepare(size, lambda: called.append(size))
    assert len(called) == calls
    assert not jit.is_compiled()
