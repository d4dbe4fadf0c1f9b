"""What the words and options of a verb name -> summaries, with notes and signs of life on stderr.

What a word names, and how that is read, is `marin_profile.inputs`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from marin_profile.base.errors import UsageError
from marin_profile.base.startup import ready_to_read
from marin_profile.capture.sources import Capture
from marin_profile.cli import progress
from marin_profile.cli.options import note
from marin_profile.inputs import (
    Hooks,
    Input,
    Wandb,
    load_capture,
    load_input,
    load_with_programs,
    named,
)
from marin_profile.schema import ProfileSummary

if TYPE_CHECKING:
    from marin_profile.comparison import Programs
    from marin_profile.pipeline.summarizing import ReadHosts


def load_named(
    word: str, *, use_cache: bool = True, jobs: int | None = None, scheduler: str | None = None
) -> ProfileSummary:
    """The summary of what a word names. jobs, scheduler: who reads many hosts, see `crews`."""
    given = named(word)
    hooks = replace(TERMINAL, hosts_reader=_reader(jobs, scheduler, use_cache))
    return load_input(given, warmup_steps=1, wandb=Wandb(), use_cache=use_cache, hooks=hooks)


def _reader(
    jobs: int | None, scheduler: str | None, use_cache: bool
) -> Callable[[Capture], AbstractContextManager[ReadHosts | None]]:
    def reader(capture: Capture) -> AbstractContextManager[ReadHosts | None]:
        from marin_profile.cli.crews import hosts_reader

        return hosts_reader(capture, jobs, scheduler, use_cache=use_cache)

    return reader


def one_summary(
    word: str | None,
    summary_path: str | None,
    *,
    use_cache: bool,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> ProfileSummary:
    """Of a verb that takes one: named by a word, or with --summary."""
    if (word is None) == (summary_path is None):
        raise UsageError("Name one summary or profile, as a word or with --summary.")
    if summary_path is None:
        return load_named(word or "", use_cache=use_cache, jobs=jobs, scheduler=scheduler)
    return load(Input("summary", summary_path))


def two_sides(
    words: Sequence[str], before: Sequence[str], after: Sequence[str], *, use_cache: bool
) -> tuple[list[ProfileSummary], list[ProfileSummary]]:
    """Of a verb that takes summaries before and after: named by two words, or with --before and
    --after."""
    sides = named_sides(words, before, after)
    one, two = ([load(given, use_cache=use_cache) for given in side] for side in sides)
    return one, two


def named_sides(
    words: Sequence[str], before: Sequence[str], after: Sequence[str]
) -> tuple[list[Input], list[Input]]:
    """What two words, or --before and --after, name. Raises UsageError."""
    if len(words) == 2 and not before and not after:
        one, two = map(named, words)
        return [one], [two]
    if words or not before or not after:
        raise UsageError(
            "Name a summary or profile before and one after, as two words or with --before and "
            "--after."
        )
    return [Input("summary", path) for path in before], [Input("summary", path) for path in after]


def load_sides(
    sides: tuple[Sequence[Input], Sequence[Input]],
    *,
    warmup_steps: int = 1,
    wandb: Wandb | None = None,
    use_cache: bool = True,
    about_to_load: Callable[[str, Input], None] = lambda side, given: None,
) -> tuple[list[ProfileSummary], list[ProfileSummary], Programs]:
    """Both sides, and the programs of the profiles that they are made of."""
    loaded = []
    for name, side in zip(("before", "after"), sides, strict=True):
        found = []
        for given in side:
            about_to_load(name, given)
            found.append(
                load_with_programs(
                    given,
                    warmup_steps=warmup_steps,
                    wandb=wandb or Wandb(),
                    use_cache=use_cache,
                    hooks=TERMINAL,
                )
            )
        loaded.append(found)
    one, two = loaded
    programs = [captured for _, captured in one], [captured for _, captured in two]
    return [summary for summary, _ in one], [summary for summary, _ in two], programs


def capture_named(word: str) -> Capture:
    """The capture that a word names. Raises what `load_capture` raises."""
    return load_capture(named(word), wandb=Wandb(), hooks=TERMINAL)


def load(
    given: Input, *, warmup_steps: int = 1, wandb: Wandb | None = None, use_cache: bool = True
) -> ProfileSummary:
    """The summary. Raises what reading, summarising or fetching raises."""
    return load_input(
        given,
        warmup_steps=warmup_steps,
        wandb=wandb or Wandb(),
        use_cache=use_cache,
        hooks=TERMINAL,
    )


def _working_on(capture: Capture) -> AbstractContextManager[None]:
    return progress.working_on(capture)


def _fetching() -> AbstractContextManager[None]:
    return progress.fetching()


TERMINAL = Hooks(note=note, working_on=_working_on, fetching=_fetching, about_to_read=ready_to_read)
