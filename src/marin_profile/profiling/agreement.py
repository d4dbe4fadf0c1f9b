"""How several processes of a run agree on the step that a capture begins with.

    wish -> offered(step) -> every process acknowledges -> committed
                          -> one did not, or the step came too near -> dropped, and said

Contract
* Each process has one note that the others read, written whole. The first process that captures
  leads: its note names this start of the run and the step that it offers; those of the others hold
  wishes and answers, and are there only while there are any.
* A step is committed only when every process acknowledged it while it was ahead, and while there is
  time for all to hear of it. Who hears of it too late does not capture.
* A wish made before the step that was agreed on, or of a touched file that it answered, is part of
  it.
* Notes may be lost, late, repeated or of an earlier start: only answers to this start's leader
  count, and only a commitment that names this start of the process.
* Leader and Follower know no clock, thread or medium: a turn takes what was read, and says what to
  write.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.medium import Medium, medium_of
from marin_profile.profiling.run import Run

logger = logging.getLogger(__name__)

LEGS = 4  # offer, answer and commitment, each read once; and one to spare
MOST_SECONDS_AHEAD = 120.0
NO_ANSWER_SECONDS = 120.0
LINGER_LEGS = 20  # how long an outcome is shown to those who do not react
TOUCHES_KEPT = 8


class Wish(msgspec.Struct, frozen=True):
    """A process wants a capture. `number` counts its wishes; `made_at`: the last step by then;
    `touched`: when the file that asks for it was touched, in ns."""

    number: int
    trigger: str
    made_at: int
    touched: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """To the offer `number`: whether its step was still ahead."""

    number: int
    is_ahead: bool


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """`heard`: the newest wish of each process that it stands for; `answered`: by process, which
    start of it acknowledged; `why`: it was dropped."""

    number: int
    step: int
    trigger: str
    touches: tuple[int, ...] = ()
    state: Literal["offered", "committed", "dropped"] = "offered"
    why: str = ""
    heard: dict[int, int] = {}
    answered: dict[int, str] = {}

    def serves(self, wish: Wish) -> bool:
        return wish.made_at <= self.step or wish.touched in self.touches


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a process tells the others. `sender`: this start of it; `session`: this start of the
    leader."""

    sender: str
    session: str
    wish: Wish | None = None
    answer: Answer | None = None
    offer: Offer | None = None


@dataclass(frozen=True)
class Turn:
    """`note`: what the others are to read from now on, None: nothing; `agreed`: a step and a
    trigger, once; `said`: what to log."""

    note: Note | None
    agreed: tuple[int, str] | None = None
    said: str | None = None


class _Wishes:
    """The wish of one process, at most one at a time: what comes meanwhile is part of it."""

    def __init__(self) -> None:
        self.current: Wish | None = None
        self._touches: tuple[int, ...] = ()
        self._number = 0

    def ask(self, trigger: str, made_at: int, touched: int | None) -> None:
        if touched is not None and touched in self._touches:
            return
        if self.current is None:
            self._number += 1
            self.current = Wish(self._number, trigger, made_at, touched)
        elif touched is not None:
            self.current = msgspec.structs.replace(self.current, touched=touched)

    def settle(self, me: int, offer: Offer) -> bool:
        """Forget the wish that the offer, committed or dropped, stands for; whether there was
        one."""
        wish = self.current
        if offer.state == "committed":
            self._touches = (*self._touches, *offer.touches)[-TOUCHES_KEPT:]
            is_served = wish is not None and offer.serves(wish)
        else:
            is_served = False
        is_heard = wish is not None and offer.heard.get(me) == wish.number
        if is_served or is_heard:
            self.current = None
        return is_served or is_heard


class Member(Protocol):
    """A process, as the protocol sees it."""

    def ask(self, trigger: str, made_at: int, touched: int | None) -> None: ...

    def turn(
        self, now: float, last_step: int, step_seconds: float | None, notes: Mapping[int, Note]
    ) -> Turn:
        """`now`: seconds of any clock; `step_seconds`: what a step usually takes."""


class Leader:
    """`others`: the processes that capture with it; `leg`: seconds until a note is read; `end`: the
    number of steps of the run."""

    def __init__(
        self, me: int, others: Iterable[int], sender: str, *, leg: float, end: int | None
    ) -> None:
        self._me = me
        self._others = tuple(others)
        self._sender = sender
        self._leg = leg
        self._end = end
        self._wishes = _Wishes()
        self._offer: Offer | None = None  # that is shown
        self._newest: Offer | None = None  # that was committed
        self._number = 0
        self._done: dict[int, tuple[str, int]] = {}  # by process: the wish that was settled
        self._settled_at = 0.0
        self._seconds_ahead = LEGS * leg
        self._step, self._step_since = -2, 0.0  # no step yet; when that was first seen

    def ask(self, trigger: str, made_at: int, touched: int | None) -> None:
        self._wishes.ask(trigger, made_at, touched)

    def turn(
        self, now: float, last_step: int, step_seconds: float | None, notes: Mapping[int, Note]
    ) -> Turn:
        if last_step != self._step:
            self._step, self._step_since = last_step, now
        heard = {
            process: note
            for process, note in notes.items()
            if process in self._others and note.session == self._sender
        }
        wishes = self._open_wishes(heard)
        if self._offer is not None and self._offer.state != "offered":
            self._show(self._offer, now, heard, wishes)
        if self._offer is None and wishes:
            self._begin(now, wishes, step_seconds)
        outcome = None
        if self._offer is not None and self._offer.state == "offered":
            self._offer = self._decided(_with(self._offer, wishes), now, heard, step_seconds)
            outcome = self._offer if self._offer.state != "offered" else None
        agreed = said = None
        if outcome is not None:
            self._settled_at = now
            if outcome.state == "committed":
                self._newest = outcome
                agreed = outcome.step, outcome.trigger
            else:
                said = f"not profiled: {outcome.why}"
                self._seconds_ahead = min(2 * self._seconds_ahead, MOST_SECONDS_AHEAD)
        self._settle(heard)
        note = Note(sender=self._sender, session=self._sender, offer=self._offer)
        return Turn(note, agreed, said)

    def _open_wishes(self, heard: Mapping[int, Note]) -> dict[int, Wish]:
        own = self._wishes.current
        wishes = {self._me: own} if own is not None else {}
        for process, note in heard.items():
            wish = note.wish
            if wish is not None and self._done.get(process) != (note.sender, wish.number):
                wishes[process] = wish
        return wishes

    def _show(
        self, offer: Offer, now: float, heard: Mapping[int, Note], wishes: Mapping[int, Wish]
    ) -> None:
        """The outcome, until everybody has reacted to it."""
        is_waited_for = any(
            (note.answer is not None and note.answer.number == offer.number)
            or (note.wish is not None and offer.heard.get(process) == note.wish.number)
            for process, note in heard.items()
        )
        if not is_waited_for or now - self._settled_at > LINGER_LEGS * self._leg:
            self._offer = None
        elif offer.state == "committed":
            self._offer = _with(offer, _served(offer, wishes))

    def _begin(self, now: float, wishes: Mapping[int, Wish], step_seconds: float | None) -> None:
        """Offer a step, or show again what was agreed on."""
        served = _served(self._newest, wishes) if self._newest is not None else {}
        if self._newest is not None and served:
            self._offer, self._settled_at = _with(self._newest, served), now
        elif step_seconds:
            self._number += 1
            step = self._step + 2 + math.ceil(self._seconds_ahead / step_seconds)
            first = next(iter(wishes.values()))
            self._offer = Offer(number=self._number, step=step, trigger=first.trigger)

    def _decided(
        self, offer: Offer, now: float, heard: Mapping[int, Note], step_seconds: float | None
    ) -> Offer:
        """The offer with its outcome, once it has one."""
        answers = {
            process: (note.sender, note.answer)
            for process, note in heard.items()
            if note.answer is not None and note.answer.number == offer.number
        }
        over = [process for process, (_, answer) in answers.items() if not answer.is_ahead]
        missing = [process for process in self._others if process not in answers]
        # The step that goes on may take long, as with an evaluation after it: it may end any time.
        usual = step_seconds or 0.0
        seconds = (offer.step - 1 - self._step) * usual - min(now - self._step_since, usual)
        is_near = self._step > offer.step - 2 or seconds < self._leg
        why = ""
        if self._end is not None and offer.step >= self._end:
            why = f"training ends before step {offer.step}, the next that could be agreed on"
        elif over:
            why = f"step {offer.step} was over in {_named(over)} before it was heard of"
        elif is_near and missing:
            why = f"{_named(missing)} did not agree on step {offer.step} in time"
        elif is_near:
            why = f"all agreed on step {offer.step}, but too late to begin with it"
        elif missing:
            return offer
        return msgspec.structs.replace(
            offer,
            state="dropped" if why else "committed",
            why=why,
            answered={process: sender for process, (sender, _) in answers.items()},
        )

    def _settle(self, heard: Mapping[int, Note]) -> None:
        """What the outcome stands for is not offered again."""
        offer = self._offer
        if offer is None or offer.state == "offered":
            return
        self._wishes.settle(self._me, offer)
        for process, note in heard.items():
            if note.wish is not None and offer.heard.get(process) == note.wish.number:
                self._done[process] = note.sender, note.wish.number


class Follower:
    """Any process but the leader."""

    def __init__(self, me: int, leader: int, sender: str) -> None:
        self._me = me
        self._leader = leader
        self._sender = sender
        self._wishes = _Wishes()
        self._wished_at: float | None = None
        self._session = ""
        self._past: set[str] = set()  # sessions before this one
        self._newest = 0  # the latest offer whose outcome is known
        self._answer: Answer | None = None

    def ask(self, trigger: str, made_at: int, touched: int | None) -> None:
        self._wishes.ask(trigger, made_at, touched)

    def turn(
        self, now: float, last_step: int, step_seconds: float | None, notes: Mapping[int, Note]
    ) -> Turn:
        agreed = said = None
        told = self._told(notes.get(self._leader))
        offer = told.offer if told is not None else None
        if offer is not None and offer.number > self._newest:
            if offer.state == "offered":
                if self._answer is None or self._answer.number != offer.number:
                    self._answer = Answer(offer.number, last_step <= offer.step - 2)
            else:
                if offer.state == "committed" and self._acknowledged(offer):
                    agreed = offer.step, offer.trigger
                self._newest, self._answer = offer.number, None
        if offer is not None and offer.state != "offered":
            was_wished = self._wishes.settle(self._me, offer)
            if offer.state == "dropped" and was_wished:
                said = f"not profiled: {offer.why}"
        if told is not None and offer is None and self._answer is not None:
            if self._answer.is_ahead:
                said = "not profiled: what the processes agreed on was not heard of in time"
            self._newest, self._answer = self._answer.number, None
        said = self._give_up(now) or said
        return Turn(self._note(), agreed, said)

    def _told(self, note: Note | None) -> Note | None:
        """What the leader says, unless it is of an earlier start than what it said before."""
        if note is None or note.session in self._past:
            return None
        if note.session != self._session:
            self._past.add(self._session)
            self._session, self._newest, self._answer = note.session, 0, None
        return note

    def _acknowledged(self, offer: Offer) -> bool:
        answer = self._answer
        return (
            answer is not None
            and answer.number == offer.number
            and answer.is_ahead
            and offer.answered.get(self._me) == self._sender
        )

    def _give_up(self, now: float) -> str | None:
        if self._wishes.current is None:
            self._wished_at = None
            return None
        if self._wished_at is None:
            self._wished_at = now
        if now - self._wished_at < NO_ANSWER_SECONDS:
            return None
        self._wishes.current = self._wished_at = None
        return f"not profiled: {_named([self._leader])} did not answer"

    def _note(self) -> Note | None:
        wish, answer = self._wishes.current, self._answer
        if not self._session or (wish is None and answer is None):
            return None
        return Note(sender=self._sender, session=self._session, wish=wish, answer=answer)


def _served(offer: Offer, wishes: Mapping[int, Wish]) -> dict[int, Wish]:
    return {process: wish for process, wish in wishes.items() if offer.serves(wish)}


def _with(offer: Offer, wishes: Mapping[int, Wish]) -> Offer:
    """The offer, which stands for these wishes too."""
    touches = {wish.touched for wish in wishes.values() if wish.touched is not None}
    return msgspec.structs.replace(
        offer,
        touches=tuple(sorted({*offer.touches, *touches})),
        heard=offer.heard | {process: wish.number for process, wish in wishes.items()},
    )


def _named(processes: Iterable[int]) -> str:
    found = sorted(processes)
    return f"{'process' if len(found) == 1 else 'processes'} {', '.join(map(str, found))}"


# --- with a clock and a medium --------------------------------------------------------------------


class SharedAgreement:
    """The Agreement of `triggers.py`, through a medium. One thread calls it."""

    def __init__(
        self,
        medium: Medium,
        me: int,
        capturing: Iterable[int],
        *,
        end: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._medium = medium
        self._me = me
        self._leader, *others = sorted(capturing)
        self._clock = clock
        sender = uuid.uuid4().hex
        self._member: Member
        if me == self._leader:
            leg = medium.poll_every + medium.lag
            self._member = Leader(me, others, sender, leg=leg, end=end)
        else:
            self._member = Follower(me, self._leader, sender)
        self._next_at = -math.inf
        self._written: Note | None = None
        self._agreed: tuple[int, str] | None = None

    def propose(self, trigger: str, step: int, touched: int | None = None) -> None:
        self._member.ask(trigger, step, touched)

    def poll(self, last_step: int, step_seconds: float | None) -> tuple[int, str] | None:
        now = self._clock()
        if now < self._next_at:
            return None
        self._next_at = now + self._medium.poll_every
        turn = self._member.turn(now, last_step, step_seconds, self._read())
        if turn.said is not None:
            logger.warning("%s", turn.said)
        # What could not be written is not acted on before it is: the others would not know.
        self._agreed = turn.agreed or self._agreed
        self._write(turn.note)
        agreed, self._agreed = self._agreed, None
        return agreed

    def close(self) -> None:
        """What cannot be deleted, as the medium is gone, is not missed: it says nothing to the next
        start."""
        with suppress(Exception):
            found = self._medium.read_all() if self._me == self._leader else {}
            for process in {self._me, *found}:
                self._medium.delete(process)

    def _read(self) -> dict[int, Note]:
        if self._me == self._leader:
            found = self._medium.read_all()
        else:
            data = self._medium.read(self._leader)
            found = {} if data is None else {self._leader: data}
        return {process: note for process, data in found.items() if (note := _decoded(data))}

    def _write(self, note: Note | None) -> None:
        if note == self._written:
            return
        if note is None:
            self._medium.delete(self._me)
        else:
            self._medium.write(self._me, msgspec.json.encode(note).decode())
        self._written = note


def agreement_of(config: ProfilerConfig, run: Run) -> SharedAgreement | None:
    """Where several processes may have to begin at one step."""
    capturing = config.capturing(run.count)
    has_triggers = config.on_demand or config.anomaly_factor is not None
    if len(capturing) < 2 or not has_triggers:
        return None
    return SharedAgreement(medium_of(run), run.index, capturing, end=run.num_steps)


def _decoded(data: str) -> Note | None:
    try:
        return msgspec.json.decode(data, type=Note)
    except (msgspec.DecodeError, UnicodeError):
        return None
