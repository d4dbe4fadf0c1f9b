"""Profiler flags of older Levanter versions, translated to the current ones.

Contract: a command line in, the same command line with current flags out, and one note for each
flag that was translated. Anything else stays as it is, where it is. Flags that a profiler which is
off makes idle are told by `without_effect`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_PREFIX = "--trainer.profiler"
_RENAMED = {
    "--trainer.profiler": "--trainer.profiler.enabled",
    "--trainer.profiler_start_step": "--trainer.profiler.start_step",
    "--trainer.profiler_num_steps": "--trainer.profiler.num_steps",
    "--trainer.profiler_perfetto_link": "--trainer.profiler.perfetto_link",
}
_TRUTH = dict.fromkeys(("true", "yes", "1"), "true") | dict.fromkeys(("false", "no", "0"), "false")
# Levanter's own upload to an XProf service; our profiler has none.
_WITHOUT_EFFECT = "--trainer.profiler.upload."


def translate(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments with current flags, and the notes."""
    translated: list[str] = []
    notes: list[str] = []
    for flag, value, parts in _flags(arguments):
        if flag.startswith(_WITHOUT_EFFECT):
            notes.append(f"{flag} has no effect: captures are not sent to an XProf service")
        elif flag == _PREFIX and (value is None or value.lower() in _TRUTH):
            current = _RENAMED[flag]
            notes.append(f"{flag} is an older flag: read as {current}")
            translated += [current, "true" if value is None else _TRUTH[value.lower()]]
        elif flag in _RENAMED and flag != _PREFIX:
            current = _RENAMED[flag]
            notes.append(f"{flag} is an older flag: read as {current}")
            translated += [current] if value is None else [current, value]
        else:
            translated += parts
    return translated, notes


def without_effect(arguments: Sequence[str]) -> list[str]:
    """A note for what current flags set of a profiler that is off."""
    flags = (flag for flag, _, _ in _flags(arguments) if flag.startswith(f"{_PREFIX}."))
    named = [flag for flag in dict.fromkeys(flags) if flag != _RENAMED[_PREFIX]]
    if not named:
        return []
    verb = "has" if len(named) == 1 else "have"
    return [
        f"{', '.join(named)} {verb} no effect: the profiler is off (trainer.profiler.enabled is "
        "false)"
    ]


def _flags(arguments: Sequence[str]) -> Iterator[tuple[str, str | None, list[str]]]:
    """Each profiler flag with its value, and the arguments it is made of; others one by one."""
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        flag, has_value, value = argument.partition("=")
        following = arguments[at + 1] if at + 1 < len(arguments) else "--"
        if not flag.startswith(_PREFIX):
            yield argument, None, [argument]
            at += 1
        elif has_value:
            yield flag, value, [argument]
            at += 1
        elif following.startswith("--"):
            yield flag, None, [argument]
            at += 1
        else:
            yield flag, following, [argument, following]
            at += 2
