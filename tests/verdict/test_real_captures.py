"""Which captures the bench of real captures takes; the trainings themselves are its own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import bench_repeats
from bench_repeats import ALIKE, BUSIER, UNEQUAL, WITHIN, Capture, captures_of
from real_captures import Neighbour


def test_of_twenty_pairs_eight_are_alike_and_four_of_each_other_kind() -> None:
    kinds = [captures_of(pair, 20)[0] for pair in range(20)]
    assert [kinds.count(kind) for kind in (ALIKE, UNEQUAL, BUSIER, WITHIN)] == [8, 4, 4, 4]


def test_a_neighbour_gets_busier_from_capture_to_capture_up_to_always() -> None:
    pairs = [captures_of(pair, 20) for pair in range(20)]
    busy = [capture.neighbour for kind, *both in pairs if kind == BUSIER for capture in both]
    assert busy == [Neighbour(at / 7, at / 7) for at in range(8)]


def test_either_side_of_unequal_captures_is_the_long_one() -> None:
    pairs = [captures_of(pair, 20) for pair in range(20)]
    steps = [(one.steps, two.steps) for kind, one, two in pairs if kind == UNEQUAL]
    assert steps == [(60, 25), (25, 60), (60, 25), (25, 60)]


def test_within_a_capture_the_neighbour_gets_busier_on_both_sides() -> None:
    growing = Capture(neighbour=Neighbour(0.0, 1.0))
    assert captures_of(4, 20) == (WITHIN, growing, growing)


def test_the_repeats_are_captures_of_their_own_spread_over_the_pairs(monkeypatch, tmp_path) -> None:
    taken: list[str] = []
    monkeypatch.setattr(bench_repeats, "summary_of", lambda folder, **_: taken.append(folder.name))
    bench_repeats._same_program(tmp_path, 20)
    after = {name: taken[taken.index(name) - 1] for name in taken if name.startswith("repeat")}
    assert after == {
        "repeat_1": "02_after",
        "repeat_2": "06_after",
        "repeat_3": "10_after",
        "repeat_4": "14_after",
        "repeat_5": "18_after",
    }
    assert len(taken) == len(set(taken)) == 45
