"""Which of the file's HLO modules an op ran in.

Contract
* An op's program id names its module, if that has the name that the op gives.
* XLA's CPU ops carry the id of their compilation. A program out of JAX's compilation cache keeps
  that of another process, and is registered under another one: then the module of that name is it,
  where just one is left and just one program is without. Else it is not known: an op of that name
  in a foreign module would be taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from marin_profile.events.timeline import Op

StatedProgram = tuple[str, int]  # an op's own word: module, program id


def registered_programs(ops: Iterable[Op], names: Mapping[int, str]) -> dict[StatedProgram, int]:
    """The id that each program is registered under; `names`: the module's name of each such id."""
    ran = {(op.module, op.program_id) for op in ops if op.program_id is not None}
    found = {program: program[1] for program in ran if _fits(program, names)}
    taken = set(found.values())
    astray: dict[str, list[StatedProgram]] = {}
    for program in ran - found.keys():
        astray.setdefault(program[0], []).append(program)
    left: dict[str, list[int]] = {}
    for program_id in names.keys() - taken:
        left.setdefault(names[program_id], []).append(program_id)
    for name, programs in astray.items():
        candidates = left.get(name, [])
        if len(programs) == len(candidates) == 1:
            found[programs[0]] = candidates[0]
    return found


def _fits(program: StatedProgram, names: Mapping[int, str]) -> bool:
    module, program_id = program
    registered = names.get(program_id)
    return registered is not None and (not module or not registered or module == registered)
