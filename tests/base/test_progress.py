"""How far work has come."""

from __future__ import annotations

import threading

from marin_profile.base.progress import Work, advance, doing, watched


def test_what_is_watched_is_told():
    with watched() as work:
        assert work == Work()
        doing("reading a", size=10)
        advance(done=4, events=100)
        advance(done=6)
        assert work == Work("reading a", size=10, done=10, events=100)
        doing("analysing")
        assert work == Work("analysing", events=100)


def test_without_a_watcher_nothing_happens():
    doing("reading")
    advance(done=1, events=1)
    with watched() as work:
        assert work == Work()
    advance(done=1)
    assert work == Work()


def test_the_innermost_watcher_is_told():
    with watched() as outer:
        with watched() as inner:
            advance(done=1)
        advance(done=2)
    assert (outer.done, inner.done) == (2, 1)


def test_other_threads_are_not_heard():
    with watched() as work:
        other = threading.Thread(target=advance, kwargs={"done": 5})
        other.start()
        other.join()
        assert work.done == 0
