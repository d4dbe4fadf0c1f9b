"""The protocol by itself, in simulated time: notes that are late, lost or old, processes that die.
And through the two mediums."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from marin_profile.profiling.agreement import (
    Answer,
    Follower,
    Leader,
    Note,
    Offer,
    SharedAgreement,
    Wish,
)
from marin_profile.profiling.medium import KeyValueStore, SharedFolder
from marin_profile.profiling.triggers import NEVER, Requests

POLL = 0.25  # seconds
LEG = 0.5


@dataclass
class Process:
    """A training of `step_seconds` a step, which began at `started`."""

    index: int
    member: Leader | Follower
    step_seconds: float = 0.1
    started: float = 0.0
    is_alive: bool = True
    agreed: list[tuple[int, str]] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def last_step(self, now: float) -> int:
        return int((now - self.started) / self.step_seconds) - 1


class Run:
    """`lag(process, reader)`: seconds until a note of a process is seen by another; None: this one
    never is."""

    def __init__(
        self,
        count: int = 3,
        *,
        lag: Callable[[int, int], float | None] = lambda *_: 0.2,
        end: int | None = None,
        name: str = "",
        left: dict[int, Note] | None = None,
    ) -> None:
        others = range(1, count)
        self.processes = [Process(0, Leader(0, others, f"{name}0", leg=LEG, end=end))]
        self.processes += [Process(i, Follower(i, 0, f"{name}{i}")) for i in others]
        self.now = 10.0
        self._lag = lag
        self._shown: dict[int, list[tuple[float, int, Note | None]]] = {
            index: [(0.0, reader, note) for reader in range(count)]
            for index, note in (left or {}).items()
        }

    def notes(self) -> dict[int, Note]:
        """Those that are there in the end."""
        last = {
            index: max(shown, key=lambda one: one[0])[2] for index, shown in self._shown.items()
        }
        return {index: note for index, note in last.items() if note is not None}

    def ask(self, index: int, trigger: str, touched: int | None = None) -> None:
        process = self.processes[index]
        process.member.ask(trigger, process.last_step(self.now), touched)

    def go(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += POLL
            for process in self.processes:
                if process.is_alive:
                    self._turn(process)

    def _turn(self, process: Process) -> None:
        seen = {index: self._read(index, process.index) for index in self._shown}
        turn = process.member.turn(
            self.now,
            process.last_step(self.now),
            process.step_seconds,
            {index: note for index, note in seen.items() if note is not None},
        )
        if turn.agreed is not None:
            process.agreed.append(turn.agreed)
            if process.last_step(self.now) <= turn.agreed[0] - 2:
                process.captured.append(turn.agreed[0])
        if turn.said is not None:
            process.said.append(turn.said)
        shown = self._shown.setdefault(process.index, [])
        for other in self.processes:
            lag = self._lag(process.index, other.index)
            if lag is not None:
                shown.append((self.now + lag, other.index, turn.note))

    def _read(self, index: int, reader: int) -> Note | None:
        """The newest that has arrived, of whatever order it was sent in."""
        shown = self._shown[index]
        arrived = [one for one in shown if one[1] == reader and one[0] <= self.now]
        if not arrived:
            return None
        newest = max(arrived, key=lambda one: one[0])
        self._shown[index] = [one for one in shown if one is newest or one not in arrived]
        return newest[2]

    @property
    def agreed(self) -> list[list[tuple[int, str]]]:
        return [process.agreed for process in self.processes]

    @property
    def said(self) -> list[list[str]]:
        return [process.said for process in self.processes]


@pytest.mark.parametrize("asking", [[0], [1], [2], [0, 1, 2]])
def test_all_begin_with_the_same_step_and_nothing_is_left(asking):
    run = Run()
    run.go(1)
    for index in asking:
        run.ask(index, "on_demand")
    run.go(20)
    (step, trigger), *more = run.processes[0].agreed
    assert (trigger, more) == ("on_demand", [])
    assert [process.captured for process in run.processes] == [[step]] * 3
    assert run.said == [[], [], []]
    assert run.notes() == {0: Note(sender="0", session="0")}


def test_the_step_is_as_far_ahead_as_notes_take():
    """Four legs of 0.5 s from second 10.25 on, when 101 steps of 0.1 s are over: 20 steps ahead of
    the one after the next."""
    run = Run()
    run.ask(0, "on_demand")
    run.go(10)
    assert run.agreed == [[(101 + 2 + 20, "on_demand")]] * 3


def test_steps_longer_than_notes_take_are_agreed_on_the_next_but_one():
    run = Run()
    for process in run.processes:
        process.step_seconds = 60.0
    run.ask(2, "slow_step")
    run.go(10)
    assert run.agreed == [[(2, "slow_step")]] * 3  # none has ended; step 0 goes on


def test_while_training_pauses_a_step_after_the_pause_is_agreed_on():
    """An evaluation of minutes: no step ends, and the next ones take what they took."""
    leader = Leader(0, [1], "a", leg=LEG, end=None)
    leader.turn(0.0, 100, 0.1, {})
    leader.ask("on_demand", 100, None)
    assert leader.turn(300.0, 100, 0.1, {}).note.offer.state == "offered"
    answered = Note(sender="b", session="a", answer=Answer(1, is_ahead=True))
    assert leader.turn(301.0, 100, 0.1, {1: answered}).agreed == (100 + 2 + 20, "on_demand")


def test_a_wish_waits_until_the_length_of_a_step_is_known():
    leader = Leader(0, [1], "a", leg=LEG, end=None)
    leader.ask("on_demand", 3, None)
    assert leader.turn(0.0, -1, None, {}).note.offer is None
    assert leader.turn(1.0, 3, 0.5, {}).note.offer.step == 3 + 2 + 4


def test_wishes_that_come_while_one_is_agreed_on_are_part_of_it():
    run = Run()
    run.ask(1, "slow_step")
    run.go(1)
    run.ask(2, "on_demand")
    run.ask(0, "on_demand")
    run.go(1)  # committed by now, and not begun
    run.ask(1, "on_demand")
    run.go(20)
    assert [len(agreed) for agreed in run.agreed] == [1, 1, 1]
    assert run.notes() == {0: Note(sender="0", session="0")}


def test_a_file_that_a_process_sees_touched_late_is_not_a_wish_of_its_own():
    run = Run()
    run.ask(0, "on_demand", 77)
    run.go(30)  # all is over
    run.ask(1, "on_demand", 77)
    run.go(10)
    assert [len(agreed) for agreed in run.agreed] == [1, 1, 1]
    run.ask(1, "on_demand", 78)
    run.go(10)
    assert [len(agreed) for agreed in run.agreed] == [2, 2, 2]
    assert run.said == [[], [], []]


def test_a_late_wish_that_was_served_is_answered_though_its_process_missed_it():
    leader = Leader(0, [1], "a", leg=LEG, end=None)
    leader.ask("on_demand", 100, 77)
    asked = Note(sender="b", session="a", answer=Answer(1, True))
    leader.turn(0.0, 100, 0.1, {})
    assert leader.turn(0.5, 104, 0.1, {1: asked}).agreed is not None
    assert leader.turn(9.0, 200, 0.1, {}).note.offer is None
    late = Note(sender="b", session="a", wish=Wish(1, "on_demand", 200, 77))
    turn = leader.turn(9.5, 205, 0.1, {1: late})
    assert turn.agreed is None
    assert (turn.note.offer.state, turn.note.offer.heard[1]) == ("committed", 1)
    follower = Follower(1, 0, "b")
    follower.ask("on_demand", 200, 77)
    follower.turn(9.0, 200, 0.1, {0: Note(sender="a", session="a")})
    heard = follower.turn(10.0, 210, 0.1, {0: turn.note})
    assert (heard.note, heard.agreed, heard.said) == (None, None, None)


def test_with_a_process_that_died_nothing_is_profiled_and_both_say_so_once():
    run = Run()
    run.processes[2].is_alive = False
    run.ask(1, "on_demand")
    run.go(200)
    assert run.agreed == [[], [], []]
    step = 106 + 2 + 20  # process 1 knows of process 0 in second 10.5, which reads it at 10.75
    line = f"not profiled: process 2 did not agree on step {step} in time"
    assert run.said == [[line], [line], []]
    assert run.notes() == {0: Note(sender="0", session="0")}


def test_a_wish_to_a_leader_that_died_is_given_up_and_said():
    run = Run(2)
    run.go(1)
    run.processes[0].is_alive = False
    run.ask(1, "on_demand")
    run.go(200)
    assert run.said == [[], ["not profiled: process 0 did not answer"]]
    assert 1 not in run.notes()


def test_a_process_that_died_with_a_wish_is_not_tried_for_ever():
    run = Run(2)
    run.go(1)
    run.ask(1, "on_demand")
    run.go(0.25)
    run.processes[1].is_alive = False
    run.go(300)
    assert len(run.said[0]) == 1


def test_with_slower_notes_than_expected_it_is_dropped_and_the_next_time_allows_for_it():
    run = Run(2, lag=lambda *_: 2.0)
    run.ask(1, "on_demand")
    run.go(30)
    assert run.agreed == [[], []]
    assert len(run.said[0]) == len(run.said[1]) == 1
    for _ in range(2):
        run.ask(1, "on_demand")
        run.go(60)
    assert [len(process.captured) for process in run.processes] == [1, 1]
    assert run.processes[0].captured == run.processes[1].captured
    assert run.notes() == {0: Note(sender="0", session="0")}


def test_a_process_that_is_ahead_of_the_step_refuses():
    run = Run(2)
    run.processes[1].started = -50.0  # 500 steps further
    run.ask(0, "on_demand")
    run.go(20)
    assert run.agreed == [[], []]
    (line,) = run.said[0]
    assert "was over in process 1 before it was heard of" in line


def test_near_the_end_of_training_nothing_is_agreed_on():
    run = Run(2, end=110)
    run.ask(1, "on_demand")
    run.go(20)
    assert run.agreed == [[], []]
    assert all("training ends before" in line for (line,) in run.said)


def test_a_commitment_that_comes_too_late_is_handed_on_to_be_said():
    """`Requests.take` says so: the step is over."""
    follower = Follower(1, 0, "b")
    offer = Offer(number=1, step=50, trigger="on_demand")
    follower.turn(0.0, 10, 0.1, {0: Note(sender="a", session="a", offer=offer)})
    committed = Offer(number=1, step=50, trigger="on_demand", state="committed", answered={1: "b"})
    note = Note(sender="a", session="a", offer=committed)
    assert follower.turn(9.0, 60, 0.1, {0: note}).agreed == (50, "on_demand")
    assert follower.turn(9.5, 60, 0.1, {0: note}).agreed is None


def test_an_outcome_that_was_never_heard_of_is_said():
    follower = Follower(1, 0, "b")
    offer = Offer(number=1, step=50, trigger="on_demand")
    follower.turn(0.0, 10, 0.1, {0: Note(sender="a", session="a", offer=offer)})
    turn = follower.turn(9.0, 60, 0.1, {0: Note(sender="a", session="a")})
    assert "was not heard of" in turn.said


def test_what_an_earlier_start_left_is_not_taken_for_new():
    """Notes of each kind, of a start whose processes were killed; the new ones are as far."""
    offered = Offer(number=1, step=120, trigger="on_demand", heard={1: 1})
    committed = Offer(
        number=1,
        step=120,
        trigger="on_demand",
        state="committed",
        answered={1: "old1", 2: "old2"},
    )
    left = {
        1: Note(
            sender="old1",
            session="old0",
            wish=Wish(1, "on_demand", 90),
            answer=Answer(1, True),
        )
    }
    for offer in (offered, committed):
        # The followers start first, and see only what is left of the leader.
        left |= {0: Note(sender="old0", session="old0", offer=offer)}
        run = Run(name="new", left=left)
        run.processes[0].is_alive = False
        run.go(5)
        run.processes[0].is_alive = True
        run.go(30)
        assert run.agreed == [[], [], []]
        assert run.said[0] == []
        run.ask(1, "on_demand")
        run.go(20)
        assert [len(process.captured) for process in run.processes] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_notes_do_no_process_begins_elsewhere(seed):
    """Notes come late, out of order or never, trainings are not in step, processes die: two that
    capture do so at one step, after all acknowledged it; who does not, says so."""
    chance = random.Random(seed)

    def lag(*_: int) -> float | None:
        return None if chance.random() < 0.2 else chance.choice([0.0, 0.2, 1.0, 4.0])

    run = Run(3, lag=lag)
    for process in run.processes:
        process.started = -chance.random()
    for _ in range(6):
        run.ask(chance.randrange(3), "on_demand", chance.choice([None, 5, 6]))
        run.go(chance.choice([0.25, 1.0, 30.0]))
        if chance.random() < 0.1:
            chance.choice(run.processes).is_alive = False
    run.go(200)
    committed = [step for step, _ in run.processes[0].agreed]
    for process in run.processes:
        steps = [step for step, _ in process.agreed]
        assert set(steps) <= set(committed)
        assert len(steps) == len(set(steps))
        missed = len(committed) - len(process.captured)
        late = len(steps) - len(process.captured)
        if process.is_alive:
            assert len(process.said) >= missed - late
    if run.processes[0].is_alive:
        assert run.notes()[0].offer is None


# --- through a medium -----------------------------------------------------------------------------


class Service:
    """What JAX's coordination service does, as far as it is used here."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        assert allow_overwrite or key not in self.values
        self.values[key] = value

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.values.items() if name.startswith(key)]

    def key_value_delete(self, key: str) -> None:
        self.values = {k: v for k, v in self.values.items() if not k.startswith(key)}


def key_values(tmp_path: Path):
    service = Service()
    return lambda: KeyValueStore(service, "run", 11), lambda: service.values


def folder(tmp_path: Path):
    return lambda: SharedFolder(str(tmp_path / "a"), 11), lambda: [*tmp_path.rglob("*.json")]


def url(tmp_path: Path):
    root = f"local://{tmp_path}/a"
    return lambda: SharedFolder(root, 11), lambda: [*tmp_path.rglob("*.json")]


@pytest.mark.parametrize("kind", [key_values, folder, url])
def test_mediums_carry_notes_and_leave_nothing(tmp_path, kind):
    medium_of, left = kind(tmp_path)
    now = 0.0
    indices = [1, 2, 10]  # process 1 is no prefix of process 10; process 0 does not capture
    members = [SharedAgreement(medium_of(), index, indices, clock=lambda: now) for index in indices]
    for member in members:
        member.propose("on_demand", -1, 7)
    agreed: list[list] = [[], [], []]
    while now < 60:
        for found, member in zip(agreed, members, strict=True):
            one = member.poll(int(now / 0.1), 0.1)
            found += [one] if one else []
        now += 0.25
    (step, trigger) = agreed[0][0]
    assert agreed == [[(step, trigger)]] * 3
    assert len(left()) == 1  # of the leader, which names this start
    for member in reversed(members):
        member.close()
    assert not left()


def test_nobody_looks_more_often_than_one_process_can_serve():
    assert SharedFolder("/a", 2).poll_every == 0.25
    assert SharedFolder("gs://a/b", 2).poll_every == 2
    assert KeyValueStore(Service(), "run", 1000).poll_every == 5


class FullDisk(SharedFolder):
    is_full = False

    def write(self, process: int, note: str) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().write(process, note)


def test_a_commitment_that_cannot_be_written_is_not_acted_on(tmp_path):
    now = 0.0
    disk = FullDisk(str(tmp_path), 2)
    leader = SharedAgreement(disk, 0, [0, 1], clock=lambda: now)
    follower = SharedAgreement(SharedFolder(str(tmp_path), 2), 1, [0, 1], clock=lambda: now)
    leader.propose("on_demand", 0)
    leader.poll(0, 0.1)
    follower.poll(0, 0.1)
    disk.is_full, now = True, 1.0
    with pytest.raises(OSError, match="No space"):
        leader.poll(10, 0.1)
    disk.is_full, now = False, 2.0
    step, _ = leader.poll(20, 0.1)
    assert follower.poll(20, 0.1) == (step, "on_demand")


# --- as the requests use it -----------------------------------------------------------------------


class Decided:
    """An agreement on a step that is known already."""

    def __init__(self, step: int) -> None:
        self.step: int | None = step
        self.proposed: list = []
        self.is_closed = False

    def propose(self, trigger, step, touched=None):
        self.proposed.append((trigger, step, touched))

    def poll(self, last_step, step_seconds):
        step, self.step = self.step, None
        return step if step is None else (step, "on_demand")

    def close(self):
        self.is_closed = True


def test_a_request_begins_at_the_step_that_was_agreed_on(tmp_path):
    agreement = Decided(50)
    requests = Requests(tmp_path, agreement)
    (tmp_path / "profile_now").touch()
    touched = (tmp_path / "profile_now").stat().st_mtime_ns
    requests.ask("slow_step", 9)
    requests.look(10, 0.1)
    requests.look(11, 0.1)
    assert agreement.proposed == [("on_demand", 10, touched), ("slow_step", 9, None)]
    assert (requests.take(49), requests.take(50), requests.due) == (None, "on_demand", NEVER)
    requests.give_back()
    requests.withdraw()
    assert agreement.is_closed


def test_a_step_that_is_over_is_said_and_not_profiled(tmp_path, caplog):
    requests = Requests(tmp_path, Decided(50))
    requests.look(60, 0.1)
    assert requests.take(61) is None
    assert "agreed on step 50, which was over before it was known" in caplog.text
    assert requests.due == NEVER
    requests.give_back()


def test_a_step_inside_a_planned_capture_waits_for_its_end(tmp_path):
    requests = Requests(tmp_path, Decided(50))
    requests.look(45, 0.1)
    requests.captured(range(48, 53))
    assert requests.take(53) == "on_demand"
    requests.give_back()
