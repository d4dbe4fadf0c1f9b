"""One capture, opened: what can be asked of it, as values.

Contract
* `open` takes what the command line takes as a word (`marin_profile.inputs`), and raises what that
  raises; choices made on the way are in `notes`, nothing is printed.
* A refusal of a question is a value; a query, a parameter or an attribute that does not exist is an
  error, which says what does.
* What the summary does not hold is None, or a table that is not known; never an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from marin_profile.base.errors import CannotAnswerError, UsageError
from marin_profile.base.storage import write_file
from marin_profile.base.text import visible
from marin_profile.comparison import Comparison, compare
from marin_profile.inputs import Hooks, Wandb, load_capture, load_input, named
from marin_profile.opened.names import Suggesting
from marin_profile.opened.notebook import as_html, as_markdown
from marin_profile.opened.table import R, Table
from marin_profile.queries import answer, query_named, run_query
from marin_profile.queries.parameters import DECLARED, Parameters, typed
from marin_profile.reports.headline import headline, in_short
from marin_profile.schema import (
    Collective,
    DeviceLedger,
    GapBeforeOp,
    HotOp,
    OptimizationCandidate,
    ProfileSummary,
    Program,
    ProgramMemory,
    Region,
    Step,
    Straggler,
    Transfer,
)


def open(path: str | os.PathLike[str], *, warmup_steps: int = 1, cache: bool = True) -> Profile:
    """A profile, a folder above one (its newest capture is taken), a summary, or a W&B run as
    entity/project/run_id or by its URL. `warmup_steps`: so many at the start of a profile are left
    out; `cache`: summaries of profiles are kept in the user's cache.

    Raises NotFoundError, BrokenInputError, CannotAnswerError or RemoteError."""
    if isinstance(warmup_steps, bool) or not isinstance(warmup_steps, int) or warmup_steps < 0:
        raise UsageError(f"warmup_steps is a whole number from 0 on, not {warmup_steps!r}.")
    word = os.fspath(path)
    notes: list[str] = []
    summary = load_input(
        named(word),
        warmup_steps=warmup_steps,
        wandb=Wandb(),
        use_cache=cache,
        hooks=Hooks(note=notes.append),
    )
    return Profile(summary, word, tuple(notes))


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Suggesting):
    """`name`: how it was named; `notes`: choices made while it was opened."""

    summary: ProfileSummary
    name: str = ""
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """Where the step time goes, in a sentence."""
        return headline(self.summary)

    @property
    def advice(self) -> list[OptimizationCandidate]:
        """What to try, the first first."""
        return list(self.summary.optimization_candidates)

    def ask(self, question: str, *, limit: int | None = None) -> dict[str, Any]:
        """The answer, or the refusal, to a question in words."""
        if not isinstance(question, str):
            raise UsageError(f"A question is text, not {type(question).__name__}.")
        return answer(self.summary, question, top_k=limit)

    def query(self, name: str, **parameters: object) -> dict[str, Any]:
        """The answer to a query by its name; `pass_` stands for the parameter `pass`."""
        return run_query(self.summary, name, _typed(name, parameters))

    def compare(self, other: Profile | ProfileSummary | str | os.PathLike[str]) -> Comparison:
        """What changed from this capture to the other one."""
        if isinstance(other, str | os.PathLike):
            other = open(other)
        if not isinstance(other, Profile | ProfileSummary):
            raise UsageError(
                f"Compare with a profile, a summary or the name of one, not with "
                f"{type(other).__name__}."
            )
        return compare(self.summary, other.summary if isinstance(other, Profile) else other)

    def events(self) -> Any:
        """Every device event, as a pyarrow.Table: a row is what a row of `marin-profile events` is.

        Raises MissingPackageError; CannotAnswerError where no profile was opened, or another one is
        there now."""
        if not self.name:
            raise CannotAnswerError("A summary holds no single events; open the profile itself.")
        from marin_profile.export.arrow import events_table, require_pyarrow

        require_pyarrow()
        capture = load_capture(named(self.name), wandb=Wandb())
        if capture.source_path != self.summary.source_path:
            raise CannotAnswerError(
                f"{visible(self.name)} names another capture now, {capture.source_path}; open it "
                "again, or name the capture's own folder."
            )
        return events_table(capture, lambda _: None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a file or an fsspec URL."""
        write_file(os.fspath(path), self.summary.to_json().encode())

    @property
    def ops(self) -> Table[HotOp]:
        """The ops with most self time."""
        return self._table(HotOp, "hot_ops")

    @property
    def steps(self) -> Table[Step]:
        return Table(Step, self.summary.step_time.steps)

    @property
    def regions(self) -> Table[Region]:
        return self._table(Region, "hierarchical_regions")

    @property
    def devices(self) -> Table[DeviceLedger]:
        """Where each device's time went, by window."""
        return self._table(DeviceLedger, "device_ledger")

    @property
    def programs(self) -> Table[Program]:
        return self._table(Program, "programs")

    @property
    def collectives(self) -> Table[Collective]:
        return self._table(Collective, "collectives")

    @property
    def transfers(self) -> Table[Transfer]:
        return self._table(Transfer, "transfers")

    @property
    def stragglers(self) -> Table[Straggler]:
        """All devices that met others in collectives, the one that is waited for most first."""
        return self._table(Straggler, "stragglers")

    @property
    def gaps(self) -> Table[GapBeforeOp]:
        """Idle time by the op that ended it."""
        return self._table(GapBeforeOp, "gap_before_ops")

    @property
    def memory(self) -> Table[ProgramMemory]:
        """The peak of each program and memory space."""
        return self._table(ProgramMemory, "memory")

    def _table(self, kind: type[R], field: str) -> Table[R]:
        """A field that files of older tools lack says nothing: it is not known."""
        is_given = field in self.summary.model_fields_set
        records = getattr(self.summary, field) if is_given else None
        return Table(kind, records, basis=self.summary.list_basis.get(field))

    def __repr__(self) -> str:
        name = f" {visible(self.name)}" if self.name else ""
        return f"<Profile{name}: {in_short(self.summary)}>"

    def _repr_markdown_(self) -> str:
        return as_markdown(self.summary)

    def _repr_html_(self) -> str:
        return as_html(self.summary)


def _typed(name: str, given: dict[str, object]) -> Parameters:
    texts: dict[str, str] = {}
    for key, value in given.items():
        key = key.rstrip("_")
        is_flag = key in DECLARED and DECLARED[key].kind == "flag"
        if value is None or (is_flag and value is False):
            continue
        texts[key] = str(value)
    return typed(name, query_named(name).takes, texts, mark="")
