"""How often each program ran: where there are no steps, its executions stand in for them.

Contract
* Executions that the devices show are counted as they are, over all main devices (see
  `program_calls`).
* GPU files show none. There a program ran as often as most of its kernels did, but no oftener than
  the host launched it: kernels in loops run oftener, and launches may lie outside what the devices
  recorded. Launches go by the module's name, so that programs of one name are not told apart.
* What is not known has no entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from marin_profile.analysis.ops import OpTotals
from marin_profile.base.columns import counts_of
from marin_profile.events.timeline import Timeline

# XLA's host event around the launches of one execution on a GPU.
_LAUNCHED = ":XLA GPU module"


def launches_by_name(timeline: Timeline) -> dict[str, int]:
    """Executions that the host launched on its GPUs, by the module's name."""
    named = [at for at, op in enumerate(timeline.ops) if op.name.endswith(_LAUNCHED)]
    if not named:
        return {}
    counts = counts_of(timeline.op, len(timeline.ops))
    found: Counter[str] = Counter()
    for at in named:
        found[timeline.ops[at].name.removesuffix(_LAUNCHED)] += int(counts[at])
    return dict(sorted(found.items()))


def program_runs(
    ops: Iterable[OpTotals], executions: Mapping[str, int], launches: Mapping[str, int]
) -> dict[str, int]:
    """Of each program that shares its name with no other."""
    ids: dict[str, set[int | None]] = {}
    kernels: dict[str, Counter[int]] = {}
    for op in ops:
        if op.module:
            ids.setdefault(op.module, set()).add(op.program_id)
            kernels.setdefault(op.module, Counter())[op.count] += 1
    found = {}
    for name in sorted(name for name, own in ids.items() if len(own) == 1):
        if name in executions:
            found[name] = executions[name]
        elif name in launches:
            found[name] = _runs(kernels[name], launches[name])
    return found


def _runs(kernels: Mapping[int, int], launched: int) -> int:
    """`kernels`: how many ran so often. Of counts alike common the larger: kernels get lost."""
    within = [(number, count) for count, number in kernels.items() if count <= launched]
    return max(within)[1] if within else launched
